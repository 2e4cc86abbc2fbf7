package main

import (
	"fmt"

	"busbar/internal/texttab"
	"busbar/lab"
	"busbar/unit"
)

// labStepDoc is the document of lab check --step --json.
type labStepDoc struct {
	Score     lab.Score    `json:"score"`
	MaxMedian float64      `json:"max_median"`
	MaxWorst  float64      `json:"max_worst"`
	MaxNoise  float64      `json:"max_noise"`
	Model     string       `json:"model"`
	Scale     lab.Scale    `json:"scale"`
	Inside    lab.Inside   `json:"inside"`
	Shrink    int          `json:"shrink"`
	Longer    float64      `json:"longer"` // a second of the cluster in the lab
	Compute   unit.Time    `json:"compute_us"`
	Rows      []labStepRow `json:"rows"`
	Skipped   []string     `json:"skipped"`
}

// printLabSteps prints steps beside what was predicted for them.
func printLabSteps(e *env, d *labStepDoc) error {
	w := e.stdout
	fmt.Fprintf(w, "%s: rates × %v, gradients and buckets 1/%d (%v): everything takes %.3g times as long as on the cluster, computing too (%v a step)\n\n", d.Model, d.Scale, d.Shrink, d.Rows[0].Size, d.Longer, d.Compute)
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "layout"},
		{Head: "compression"},
		{Head: "overlap"},
		{Head: "step", Align: right},
		{Head: "predicted", Align: right},
		{Head: "error", Align: right},
		{Head: "noise", Align: right},
		{Head: "exposed", Align: right},
		{Head: "predicted", Align: right},
		{Head: "limited by"},
	}}
	for i := range d.Rows {
		r := &d.Rows[i]
		t.Row(r.Layout, r.Compress, onOff(r.Overlap), r.Measured.String(), r.Predicted.String(), fmt.Sprintf("%+.1f%%", r.Error*100)+mark(&r.Point), fmt.Sprintf("%.0f%%", r.Noise*100),
			r.Exposed.String(), r.PredictedExposed.String(), r.Limit)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	s := &d.Score
	fmt.Fprintf(w, "\n%d steps: median error %.1f%% (at most %.0f%%), worst %.1f%% (at most %.0f%%): %s\n", s.Points, s.Median*100, d.MaxMedian*100, s.Worst*100, d.MaxWorst*100, s.Where)
	if s.Noisy > 0 {
		fmt.Fprintf(w, "* %d more do not count: their runs differ by more than %.0f%%, the machine is busy\n", s.Noisy, d.MaxNoise*100)
	}
	fmt.Fprintf(w, "which way is faster: %d of %d pairs that differ by more than 15%% right\n", s.Pairs-len(s.Wrong), s.Pairs)
	for _, x := range s.Wrong {
		fmt.Fprintln(w, "wrong:", x)
	}
	for _, x := range d.Skipped {
		fmt.Fprintln(w, "left out:", x)
	}
	return nil
}
