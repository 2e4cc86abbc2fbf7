package main

import (
	"fmt"

	"busbar.dev/internal/texttab"
	"busbar.dev/lab"
	"busbar.dev/unit"
)

// labStepDoc is the document of lab check --step --json.
type labStepDoc struct {
	labVerdict
	Model   string       `json:"model"`
	Scale   lab.Scale    `json:"scale"`
	Inside  lab.Inside   `json:"inside"`
	Shrink  int          `json:"shrink"`
	Longer  float64      `json:"longer"` // a second of the cluster in the lab
	Compute unit.Time    `json:"compute_us"`
	Rows    []labStepRow `json:"rows"`
	Skipped []string     `json:"skipped"`
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
	d.print(w, "steps", "which way is faster")
	for _, x := range d.Skipped {
		fmt.Fprintln(w, "left out:", x)
	}
	return nil
}
