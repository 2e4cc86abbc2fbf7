package main

import (
	"fmt"
	"io"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

// print writes the tables for people.
func (v *validation) print(w io.Writer, rows bool) error {
	if rows {
		if err := v.printRows(w); err != nil {
			return err
		}
	}
	t := scoreTable("all")
	scoreRow(t, truth.Part{Name: "all points", Score: v.all})
	for _, p := range v.halves {
		scoreRow(t, p)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if v.all.Machines > 0 {
		fmt.Fprintf(w, "averaged over %s: median %s, 90th percentile %s\n", counted(v.all.Machines, "machine"), percent(v.all.MachineMedian), percent(v.all.MachineP90))
	}
	fmt.Fprintf(w, "predicted %d of %d points that can be scored%s\n", len(v.rows), v.gradable, v.share())
	for _, x := range []struct {
		head  string
		parts []truth.Part
	}{
		{"class (small < 64 KiB, large > 16 MiB)", v.classes},
		{"hw_class of the source (small ≤ 256 KiB, large ≥ 64 MiB)", v.hardware},
		{"machine", v.who},
	} {
		if len(x.parts) == 0 {
			continue
		}
		t := scoreTable(x.head)
		for _, p := range x.parts {
			scoreRow(t, p)
		}
		fmt.Fprintln(w)
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if err := v.printLeft(w); err != nil {
		return err
	}
	for i, n := range v.notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
	}
	return nil
}

// share is how many of the points that count were predicted, in brackets.
func (v *validation) share() string {
	if v.gradable == 0 {
		return ""
	}
	return " (" + percent(float64(len(v.rows))/float64(v.gradable)) + ")"
}

func scoreTable(head string) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: head}}}
	for _, h := range []string{"points", "median", "90%", "worst", "pred/meas", "in the bar"} {
		t.Columns = append(t.Columns, texttab.Column{Head: h, Align: texttab.Right})
	}
	return t
}

func scoreRow(t *texttab.Table, p truth.Part) {
	if p.Points == 0 {
		t.Row(texttab.Clean(p.Name), "0", "no points", "-", "-", "-", "-")
		return
	}
	t.Row(texttab.Clean(p.Name), fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst), fmt.Sprintf("%.2f", p.Bias), percent(p.Covered))
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func (v *validation) printRows(w io.Writer) error {
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{
		{Head: "id"},
		{Head: "size", Align: right},
		{Head: "measured µs", Align: right},
		{Head: "predicted µs", Align: right},
		{Head: "error", Align: right},
		{Head: "bar", Align: right},
		{Head: "by"},
		{Head: "limited by"},
	}}
	for i := range v.rows {
		r := &v.rows[i]
		s := r.Case.Settings[r.Index]
		t.Row(texttab.Clean(r.Case.Sweep.ID), r.Size().String(), fmt.Sprintf("%.1f", micros(r.Measured())), fmt.Sprintf("%.1f", micros(r.Predicted)),
			percent(r.APE), fmt.Sprintf("×%.2f", r.Margin), fmt.Sprintf("%s/%s/%d", s.Algo, s.Proto, s.Channels), r.Limit.Text)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// printLeft lists what is not in the score: first what could not be predicted.
func (v *validation) printLeft(w io.Writer) error {
	for _, fair := range []bool{false, true} {
		t := texttab.Table{Columns: []texttab.Column{{Head: "not predicted"}, {Head: "points", Align: texttab.Right}, {Head: "reason"}}}
		if fair {
			t.Columns[0].Head = "not scored"
		}
		for _, l := range leftTogether(v.left, fair) {
			t.Row(texttab.Clean(l.ID), fmt.Sprint(l.Points), texttab.Clean(l.Reason))
		}
		if t.Len() == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := t.Write(w); err != nil {
			return err
		}
	}
	return nil
}

// leftTogether puts what was left out for the same reason into one row, where the first stood;
// --json lists each.
func leftTogether(list []truth.Left, fair bool) []truth.Left {
	var out []truth.Left
	more := map[string]int{}
	at := map[string]int{}
	for _, l := range list {
		if l.Fair != fair {
			continue
		}
		if i, ok := at[l.Reason]; ok {
			out[i].Points += l.Points
			more[l.Reason]++
			continue
		}
		at[l.Reason] = len(out)
		out = append(out, l)
	}
	for i := range out {
		if n := more[out[i].Reason]; n > 0 {
			out[i].ID += fmt.Sprintf(" and %d more", n)
		}
	}
	return out
}

// The JSON form; names are those of the contract.
type (
	validateDoc struct {
		Points    int     `json:"points"`
		Skipped   []left  `json:"skipped"`
		Median    float64 `json:"median_ape"`
		P90       float64 `json:"p90_ape"`
		Worst     float64 `json:"worst_ape"`
		Coverage  float64 `json:"coverage"`
		Gradable  int     `json:"gradable_points"`
		Predicted int     `json:"predicted"`
		Share     float64 `json:"predicted_share"`
		Machines  struct {
			Count  int     `json:"count"`
			Median float64 `json:"median_ape"`
			P90    float64 `json:"p90_ape"`
		} `json:"machine_mean"`
		Halves   []part     `json:"by_mebibyte"`
		Classes  []part     `json:"classes"`
		Hardware []part     `json:"hw_classes"`
		Who      []part     `json:"machines"`
		Rows     []scoreDoc `json:"rows"`
		Notes    []string   `json:"notes,omitempty"`
		// Choices is about training runs of one job in several ways.
		Choices *choicesDoc `json:"choices,omitempty"`
	}
	choicesDoc struct {
		Jobs     int     `json:"jobs"`
		Pairs    int     `json:"pairs"`
		Right    int     `json:"pairs_in_order"`
		Far      int     `json:"far_pairs"`
		FarRight int     `json:"far_pairs_in_order"`
		Within   int     `json:"first_within"`
		Lost     float64 `json:"first_slower_median"`
		Worst    float64 `json:"first_slower_worst"`
	}
	left struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
		Points int    `json:"points"`
		Scored bool   `json:"gradable"` // it would count, had it been predicted
	}
	part struct {
		Class    string  `json:"class"`
		Points   int     `json:"points"`
		Median   float64 `json:"median_ape"`
		P90      float64 `json:"p90_ape"`
		Worst    float64 `json:"worst_ape"`
		Bias     float64 `json:"median_ratio"`
		Coverage float64 `json:"coverage"`
	}
	scoreDoc struct {
		ID        string     `json:"id"`
		Size      unit.Bytes `json:"size_bytes"`
		Measured  float64    `json:"measured"`
		Predicted float64    `json:"predicted"`
		Unit      string     `json:"unit"`
		APE       float64    `json:"ape"`
		Margin    float64    `json:"margin"` // measured is expected within predicted/margin and predicted×margin
		Class     string     `json:"class"`
		Machine   string     `json:"machine"`
		Algo      string     `json:"algo"`
		Proto     string     `json:"proto"`
		Channels  int        `json:"channels"`
		Limit     string     `json:"bottleneck"`
		Assumed   []string   `json:"assumed,omitempty"`
	}
)

// document is the JSON form.
func (v *validation) document() *validateDoc {
	d := &validateDoc{Points: len(v.rows), Median: v.all.Median, P90: v.all.P90, Worst: v.all.Worst, Coverage: v.all.Covered, Gradable: v.gradable, Predicted: len(v.rows), Skipped: []left{}, Rows: []scoreDoc{}, Notes: v.notes}
	if v.gradable > 0 {
		d.Share = float64(len(v.rows)) / float64(v.gradable)
	}
	d.Machines.Count, d.Machines.Median, d.Machines.P90 = v.all.Machines, v.all.MachineMedian, v.all.MachineP90
	for _, l := range v.left {
		d.Skipped = append(d.Skipped, left{l.ID, l.Reason, l.Points, !l.Fair})
	}
	d.Halves, d.Classes, d.Hardware, d.Who = parts(v.halves), parts(v.classes), parts(v.hardware), parts(v.who)
	for i := range v.rows {
		r := &v.rows[i]
		s := r.Case.Settings[r.Index]
		d.Rows = append(d.Rows, scoreDoc{
			r.Case.Sweep.ID, r.Size(), micros(r.Measured()), micros(r.Predicted), "us", r.APE, r.Margin, truth.ByClass(r), truth.ByMachine(r),
			s.Algo, s.Proto, s.Channels, r.Limit.Text, r.Case.Assumed,
		})
	}
	return d
}

func parts(list []truth.Part) []part {
	out := make([]part, 0, len(list))
	for _, p := range list {
		out = append(out, part{p.Name, p.Points, p.Median, p.P90, p.Worst, p.Bias, p.Covered})
	}
	return out
}

// counted is a number of things.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
