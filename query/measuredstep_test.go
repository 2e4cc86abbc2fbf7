package query

import (
	"math"
	"strings"
	"testing"
)

// A measured step is kept with the cluster: jobs of its kind are predicted by it, and what is too far off to be the job
// that was described is refused.
func TestMeasuredStep(t *testing.T) {
	job := Job{Cluster: "dgx-h100:2", Model: "llama3-8b", Parallel: "zero=3", Framework: "fsdp"}
	plain, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	was := plain.Rows[0]
	d, err := Step{Job: job, Took: (was.Step * 1.2).String()}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	m := d.Measured
	if m == nil || d.Described == nil || d.Described.Calibration == nil || !strings.Contains(m.Kind, "fsdp") {
		t.Fatalf("measured %+v", m)
	}
	cl, err := d.Described.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	figure := cl.Calibration.Figures[0]
	if math.Abs(figure.Value-1.2) > 1e-3 || !strings.Contains(figure.Source, "llama3-8b") {
		t.Errorf("kept is %+v", figure)
	}
	for _, took := range []string{"50us", "1h", "fast", "6"} {
		if _, err := (Step{Job: job, Took: took}).Run(t.Context(), Env{}); err == nil ||
			!strings.Contains(err.Error(), "--step") {
			t.Errorf("a step of %s: %v", took, err)
		}
	}
}
