package main

import (
	"fmt"

	"busbar.dev/internal/texttab"
	"busbar.dev/lab"
)

// labPlanDoc is the document of lab check --plan --json.
type labPlanDoc struct {
	labVerdict
	Cluster string       `json:"cluster"`
	Plan    string       `json:"plan"`
	Given   string       `json:"given_order"`
	Order   string       `json:"plan_order"`
	Scale   lab.Scale    `json:"scale"`
	Rows    []labPlanRow `json:"rows"`
	Model   string       `json:"model,omitempty"`
	Shrink  int          `json:"shrink,omitempty"`
	Longer  float64      `json:"longer,omitempty"` // a second of the cluster in the lab
	Steps   []labPlanRow `json:"steps"`
}

// labPlanRow is one way to run a collective or a step.
type labPlanRow struct {
	Way     string `json:"way"`
	Builder string `json:"builder"`
	lab.Point
	// Gain is how many times as fast it is as the given order with a flat ring.
	Gain          float64 `json:"gain"`
	PredictedGain float64 `json:"predicted_gain"`
	// Cluster is the same as NCCL's ring is predicted to have on the cluster itself, with as many more bytes as its
	// links are faster; 0 unknown.
	Cluster float64 `json:"cluster_gain,omitempty"`
}

// printLabPlan prints gains beside those that were predicted.
func printLabPlan(e *env, d *labPlanDoc) error {
	w := e.stdout
	fmt.Fprintf(w, "%s, rates × %v\ngiven order: %s\nplan's order: %s\n\n", d.Cluster, d.Scale, d.Given, d.Order)
	if err := planTable(d.Rows, "size", func(r *labPlanRow) string { return r.Size.String() }).Write(w); err != nil {
		return err
	}
	if len(d.Steps) > 0 {
		fmt.Fprintf(w, "\nsteps of %s with overlap: gradients and buckets 1/%d (%v), everything takes %.3g times as long as on the cluster\n\n", d.Model, d.Shrink, d.Steps[0].Size, d.Longer)
		if err := planTable(d.Steps, "", nil).Write(w); err != nil {
			return err
		}
	}
	if d.Score.Points == 0 {
		fmt.Fprintf(w, "\nnothing counts: runs differ by more than %.0f%%, the machine is busy\n", d.MaxNoise*100)
		return nil
	}
	d.print(w, "points", "which way is faster")
	return nil
}

func planTable(rows []labPlanRow, first string, cell func(*labPlanRow) string) *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{}
	if cell != nil {
		t.Columns = append(t.Columns, texttab.Column{Head: first, Align: right})
	}
	t.Columns = append(t.Columns, []texttab.Column{
		{Head: "way"}, {Head: "measured", Align: right}, {Head: "predicted", Align: right}, {Head: "noise", Align: right}, {Head: "gain", Align: right}, {Head: "predicted", Align: right}, {Head: "on the cluster", Align: right}, {Head: "limited by"},
	}...)
	for i := range rows {
		r := &rows[i]
		real := "-"
		if r.Cluster > 0 {
			real = fmt.Sprintf("%.2f", r.Cluster)
		}
		line := []string{r.Way, r.Measured.String() + mark(&r.Point), r.Predicted.String(), fmt.Sprintf("%.0f%%", r.Noise*100), fmt.Sprintf("%.2f", r.Gain), fmt.Sprintf("%.2f", r.PredictedGain), real, r.Limit}
		if cell != nil {
			line = append([]string{cell(r)}, line...)
		}
		t.Row(line...)
	}
	return t
}
