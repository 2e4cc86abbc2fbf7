package nsys

import (
	"bytes"
	"math"
	"os"
	"testing"

	"busbar.dev/result/trace"
)

func TestDatabase(t *testing.T) {
	data, err := os.ReadFile("testdata/small.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	if !Match(data[:4096]) {
		t.Error("not recognised")
	}
	traces, err := Read("small.sqlite", bytes.NewReader(data), int64(len(data)))
	if err != nil || len(traces) != 2 {
		t.Fatal(len(traces), err)
	}
	for i, tr := range traces {
		if tr.Device != i || tr.GPU != "NVIDIA H200" {
			t.Errorf("%+v", tr)
		}
		check(t, tr, 2, 60, 40, 20, 10)
	}
}

// check compares the parts of a step, in µs.
func check(t *testing.T, tr *trace.Trace, steps int, compute, comm, exposed, copied float64) {
	t.Helper()
	s, groups := tr.Summarize()
	if s.Steps != steps || len(groups) != 1 || groups[0].BusBW != 0 {
		t.Errorf("%+v", s)
	}
	for name, v := range map[string][2]float64{
		"compute": {float64(s.Compute), compute}, "comm": {float64(s.Comm), comm}, "exposed": {float64(s.Exposed), exposed},
		"copies": {float64(s.Copy), copied},
	} {
		if math.Abs(v[0]*1e6-v[1]) > 1e-6 {
			t.Errorf("%s: %g µs, expected %g", name, v[0]*1e6, v[1])
		}
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/small.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		traces, _ := Read("x", bytes.NewReader(data), int64(len(data)))
		for _, tr := range traces {
			tr.Summarize()
		}
	})
}
