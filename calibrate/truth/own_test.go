package truth

import (
	"math"
	"strings"
	"testing"
)

func TestPointsThatCarryTheirPrediction(t *testing.T) {
	const text = `{"id":"lab-x-2x2-ring","collective":"all_reduce","nodes":2,"gpus_per_node":2,"n_ranks":4,"algo":"ring","sizes_bytes":[1048576,4194304],"time_us":[100,400],"predicted_us":[110,380],"hw_class":"lab x","grade":"A"}
{"id":"lab-bad","collective":"all_reduce","nodes":2,"gpus_per_node":2,"n_ranks":4,"sizes_bytes":[1048576,4194304],"time_us":[100,400],"predicted_us":[110],"grade":"A"}
{"id":"lab-worse","collective":"all_reduce","nodes":2,"gpus_per_node":2,"n_ranks":4,"sizes_bytes":[1048576],"time_us":[100],"predicted_us":[null],"grade":"A"}
`
	sweeps, _, err := Read("points.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	rows, left := Predicted(sweeps, nil)
	if len(rows) != 2 || len(left) != 2 {
		t.Fatalf("%d rows, %d left; want 2 and 2", len(rows), len(left))
	}
	for i, want := range []float64{0.1, 0.05} {
		if math.Abs(rows[i].APE-want) > 1e-9 || !strings.HasPrefix(ByClass(&rows[i]), "lab/") {
			t.Errorf("row %d: %v %s", i, rows[i].APE, ByClass(&rows[i]))
		}
	}
	if cases, left := Gather(sweeps, nil); len(cases) != 0 || len(left) != 3 {
		t.Errorf("for fitting: %d cases, %d left; want none and 3", len(cases), len(left))
	}
}
