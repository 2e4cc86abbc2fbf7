package query

import "testing"

func FuzzMeasuredDocument(f *testing.F) {
	f.Add(`{"op":"all_reduce","ranks":4,"transport":"tcp","dtype":"float","hosts":["a"],"rows":[{"size_bytes":8,"time_us":{"median":9,"mean":9}}]}`)
	f.Add(`{"args":["all_gather_perf"],"nccl_version":22907,"config":{"devices":[{"hostname":"a"}]},"results":[{"size":8,"type":"half","out_of_place":{"time":1}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		q := &DoctorBench{}
		list, _, err := q.read("f", []byte(text))
		if err != nil {
			return
		}
		for _, r := range list {
			_, _, _ = q.shape(r)
		}
	})
}
