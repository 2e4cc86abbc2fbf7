package main

import (
	"fmt"
	"io"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// training is the score of training runs.
type training struct {
	rows []*truth.RunRow
	left []truth.Left
	all  truth.RunScore
}

// newTraining predicts runs; nil where there are none.
func newTraining(runs []*truth.Training, class string) *training {
	if len(runs) == 0 {
		return nil
	}
	if class != "" {
		runs = slices.DeleteFunc(runs, func(t *truth.Training) bool { return !is(class, t.Class) && !is(class, t.Cluster) })
	}
	t := &training{}
	t.rows, t.left = truth.PredictRuns(runs, step.Default())
	t.all = truth.RateRuns("all runs", t.rows)
	return t
}

// print writes the tables for people.
func (t *training) print(w io.Writer, rows bool) error {
	right := texttab.Right
	if rows {
		list := texttab.Table{Columns: []texttab.Column{{Head: "run"}, {Head: "measured", Align: right}, {Head: "predicted", Align: right}, {Head: "error", Align: right}, {Head: "limited by"}}}
		for _, r := range t.rows {
			list.Row(texttab.Clean(r.ID), unit.Span(r.Seconds()).Short(), unit.Span(r.Predicted).Short(), percent(r.APE), r.Limit.Text)
		}
		if err := list.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, x := range []struct {
		head  string
		parts []truth.RunScore
	}{
		{"training steps", []truth.RunScore{t.all}},
		{"hw_class of the source", truth.SplitRuns(t.rows, func(r *truth.RunRow) string { return r.Class })},
		{"cluster", truth.SplitRuns(t.rows, func(r *truth.RunRow) string { return r.Cluster })},
	} {
		list := texttab.Table{Columns: []texttab.Column{{Head: x.head}}}
		for _, h := range []string{"runs", "median", "90%", "worst", "pred/meas"} {
			list.Columns = append(list.Columns, texttab.Column{Head: h, Align: right})
		}
		for _, p := range x.parts {
			list.Row(texttab.Clean(p.Name), fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst), fmt.Sprintf("%.2f", p.Bias))
		}
		if err := list.Write(w); err != nil {
			return err
		}
		if x.head == "training steps" {
			fmt.Fprintf(w, "averaged over %d clusters: median %s, 90th percentile %s\n", t.all.Clusters, percent(t.all.ClusterMedian), percent(t.all.ClusterP90))
		}
		fmt.Fprintln(w)
	}
	t.printChoices(w)
	return (&validation{left: t.left}).printLeft(w)
}

// printChoices says how well settings are told apart.
func (t *training) printChoices(w io.Writer) {
	c := truth.RateChoices(t.rows)
	if c.Jobs == 0 {
		return
	}
	fmt.Fprintf(w, "settings: %s were run in several ways; of pairs that differ by more than %.0f%%, %d of %d come in the measured order (by more than %.0f%%: %d of %d);\n", counted(c.Jobs, "job"), 100*truth.Apart, c.Right, c.Pairs, 100*truth.FarApart, c.FarRight, c.Far)
	fmt.Fprintf(w, "the way predicted fastest is within %.0f%% of the fastest measured in %d of %d jobs (median %s slower, worst %s)\n\n", 100*truth.Apart, c.Within, c.Jobs, percent(c.Lost), percent(c.Worst))
}

// fill puts the runs into a document: as its subject where it has no other.
func (t *training) fill(d *validateDoc) {
	var classes, who []part
	for _, p := range truth.SplitRuns(t.rows, func(r *truth.RunRow) string { return r.Class }) {
		classes = append(classes, part{Class: p.Name, Points: p.Points, Median: p.Median, P90: p.P90, Worst: p.Worst, Bias: p.Bias})
	}
	for _, p := range truth.SplitRuns(t.rows, func(r *truth.RunRow) string { return r.Cluster }) {
		who = append(who, part{Class: p.Name, Points: p.Points, Median: p.Median, P90: p.P90, Worst: p.Worst, Bias: p.Bias})
	}
	gradable := len(t.rows)
	for _, l := range t.left {
		if !l.Fair {
			gradable++
		}
		d.Skipped = append(d.Skipped, left{l.ID, l.Reason, l.Points, !l.Fair})
	}
	if d.Points == 0 {
		d.Median, d.P90, d.Worst = t.all.Median, t.all.P90, t.all.Worst
		d.Machines.Count, d.Machines.Median, d.Machines.P90 = t.all.Clusters, t.all.ClusterMedian, t.all.ClusterP90
		if gradable > 0 {
			d.Share = float64(len(t.rows)) / float64(gradable)
		}
	}
	if c := truth.RateChoices(t.rows); c.Jobs > 0 {
		d.Choices = &choicesDoc{c.Jobs, c.Pairs, c.Right, c.Far, c.FarRight, c.Within, c.Lost, c.Worst}
	}
	d.Points += len(t.rows)
	d.Predicted += len(t.rows)
	d.Gradable += gradable
	d.Classes, d.Who = append(d.Classes, classes...), append(d.Who, who...)
	for _, r := range t.rows {
		d.Rows = append(d.Rows, scoreDoc{ID: r.ID, Measured: r.Seconds(), Predicted: r.Predicted, Unit: "s", APE: r.APE, Class: r.Class, Machine: r.Cluster, Limit: r.Limit.Text, Assumed: r.Assumed})
	}
}
