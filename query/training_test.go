package query

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/finding"
)

// trainingLog is what a program prints at steps of so many tokens/s.
func trainingLog(rate float64) *fstest.MapFile {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "step %d loss 2.3 tok/s %.1f\n", i, rate)
	}
	return &fstest.MapFile{Data: []byte(b.String())}
}

// A training log is held against the step that is predicted for the job, and a slow one is a warning.
func TestTrainingAgainstPrediction(t *testing.T) {
	job := Job{Cluster: "dgx-h100", Model: "gpt2"}
	step, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	rate := step.Rows[0].TokensPerS
	for name, c := range map[string]struct {
		text *fstest.MapFile
		want string
		sev  finding.Severity
	}{
		"as predicted":     {trainingLog(rate), "training-as-predicted", finding.Note},
		"20 times as slow": {trainingLog(rate / 20), "training-slow", finding.Warn},
	} {
		env := Env{Files: fstest.MapFS{"train.log": c.text}}
		d, err := Doctor{Sources: []string{"train.log"}, Against: &job}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if f := d.Findings[0]; f.ID != c.want || f.Severity != c.sev || d.Predicted == nil ||
			d.Healthy != (c.sev == finding.Note) {
			t.Errorf("%s: %s %v: %s", name, f.ID, f.Severity, f.Title)
		}
	}
	env := Env{Files: fstest.MapFS{"a.log": {Data: []byte("nothing of a training\n")}}}
	if _, err := (Doctor{Sources: []string{"a.log"}, Against: &job}).Run(t.Context(), env); err == nil {
		t.Error("a job was named that nothing is held against; expected an error that says so")
	}
}
