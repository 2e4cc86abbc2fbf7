package report

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Validate prints how far off predictions are of collectives, training runs, or both; rows adds every point.
func Validate(w io.Writer, d *query.ValidateDoc, rows bool) error {
	if t := d.Training; t != nil {
		own := *d
		own.Training, own.Score, own.Score.Points = nil, d.Score, d.Points-t.Points
		if own.Points == 0 {
			own.Score = truth.Score{}
		}
		own.Rows, own.Skipped = cutLast(d.Rows, t.Points), cutLast(d.Skipped, t.Skipped)
		own.Classes, own.Who = cutLast(d.Classes, t.Classes), cutLast(d.Who, t.Clusters)
		if err := validatedRuns(w, d, rows); err != nil || len(own.Rows)+len(own.Skipped) == 0 {
			return err
		}
		fmt.Fprintln(w)
		d = &own
	}
	return validatedPoints(w, d, rows)
}

// cutLast is a list without its last elements, and last are those.
func cutLast[T any](list []T, n int) []T { return list[:max(0, len(list)-n)] }
func last[T any](list []T, n int) []T    { return list[max(0, len(list)-n):] }

// validatedPoints prints the score of collectives.
func validatedPoints(w io.Writer, d *query.ValidateDoc, rows bool) error {
	if rows {
		if err := validatedRows(w, d.Rows); err != nil {
			return err
		}
	}
	t := scoreTable("all")
	for _, part := range append([]truth.Part{{Name: "all points", Score: d.Score}}, d.Halves...) {
		scoreRow(t, part)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if d.Machines > 0 {
		fmt.Fprintf(w, "averaged over %s: median %s, 90th percentile %s, in the bar %s\n",
			words.Plural(d.Machines, "machine"), percent(d.MachineMedian), percent(d.MachineP90), percent(d.MachineCovered))
	}
	files := texttab.New("file", "sizes", ">points", ">median", ">90%", ">averaged over machines", ">in the bar",
		">averaged")
	for _, x := range d.Files {
		files.Row(texttab.Clean(x.File), x.Sizes, fmt.Sprint(x.Points), percent(x.Median), percent(x.P90),
			fmt.Sprintf("%s (%d)", percent(x.MachineMedian), x.Machines), percent(x.Covered), percent(x.MachineCovered))
	}
	if files.Len() > 0 {
		if err := files.Write(w); err != nil {
			return err
		}
	}
	gradable, share := len(d.Rows), ""
	for _, l := range d.Skipped {
		if l.Gradable {
			gradable += l.Points
		}
	}
	if gradable > 0 {
		share = " (" + percent(float64(len(d.Rows))/float64(gradable)) + ")"
	}
	fmt.Fprintf(w, "predicted %d of %d points that can be scored%s\n", len(d.Rows), gradable, share)
	for _, x := range []struct {
		head  string
		parts []truth.Part
	}{
		{"class (small < 64 KiB, large > 16 MiB)", d.Classes},
		{"hw_class of the source (small ≤ 256 KiB, large ≥ 64 MiB)", d.Hardware},
		{"machine", d.Who},
	} {
		if len(x.parts) == 0 {
			continue
		}
		t := scoreTable(x.head)
		for _, part := range x.parts {
			scoreRow(t, part)
		}
		fmt.Fprintln(w)
		if err := t.Write(w); err != nil {
			return err
		}
	}
	if err := notScored(w, d.Skipped); err != nil {
		return err
	}
	unused := texttab.New("stated, and of no use to a prediction", ">groups", "the first")
	for _, u := range d.Unused {
		unused.Row(texttab.Clean(u.Field), fmt.Sprint(u.Groups), texttab.Clean(u.ID))
	}
	if unused.Len() > 0 {
		fmt.Fprintln(w)
		if err := unused.Write(w); err != nil {
			return err
		}
	}
	for i, n := range d.Notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
	}
	return nil
}

func scoreTable(head string) *texttab.Table {
	return texttab.New(head, ">points", ">median", ">90%", ">worst", ">pred/meas", ">in the bar")
}

func scoreRow(t *texttab.Table, p truth.Part) {
	if p.Points == 0 {
		t.Row(texttab.Clean(p.Name), "0", "no points", "-", "-", "-", "-")
		return
	}
	t.Row(texttab.Clean(p.Name), fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst),
		fmt.Sprintf("%.2f", p.Bias), percent(p.Covered))
}

// percent is a share with one digit after the point.
func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func validatedRows(w io.Writer, rows []truth.Point) error {
	t := texttab.New("id", ">size", ">measured µs", ">predicted µs", ">error", ">bar", "by", "limited by")
	for _, r := range rows {
		t.Row(texttab.Clean(r.ID), r.Size.String(), fmt.Sprintf("%.1f", r.Measured), fmt.Sprintf("%.1f", r.Predicted),
			percent(r.APE), fmt.Sprintf("×%.2f", r.Margin), fmt.Sprintf("%s/%s/%d", r.Algo, r.Proto, r.Channels), r.Limit)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// notScored lists what is not in the score: first what could not be predicted.
func notScored(w io.Writer, left []truth.Left) error {
	for _, gradable := range []bool{true, false} {
		head := "not scored"
		if gradable {
			head = "not predicted"
		}
		t := texttab.New(head, ">points", "reason")
		for _, l := range sameReason(left, gradable) {
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

// sameReason puts what was left out for the same reason into one row, where the first stood;
// --json lists each.
func sameReason(list []truth.Left, gradable bool) []truth.Left {
	var out []truth.Left
	more := map[string]int{}
	at := map[string]int{}
	for _, l := range list {
		if l.Gradable != gradable {
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

// validatedRuns prints the score of training runs.
func validatedRuns(w io.Writer, d *query.ValidateDoc, rows bool) error {
	all := d.Training
	if rows {
		list := texttab.New("run", ">measured", ">predicted", ">error", ">bar", "limited by")
		for _, r := range last(d.Rows, all.Points) {
			list.Row(texttab.Clean(r.ID), unit.Span(r.Measured).Short(), unit.Span(r.Predicted).Short(), percent(r.APE),
				fmt.Sprintf("×%.2f", r.Margin), r.Limit)
		}
		if err := list.Write(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for i, x := range []struct {
		head  string
		parts []truth.Part
	}{
		{"training steps", []truth.Part{all.Part}},
		{"hw_class of the source", last(d.Classes, all.Classes)},
		{"cluster", last(d.Who, all.Clusters)},
	} {
		t := texttab.New(x.head, ">runs", ">median", ">90%", ">worst", ">pred/meas", ">in the bar")
		for _, p := range x.parts {
			t.Row(texttab.Clean(p.Name), fmt.Sprint(p.Points), percent(p.Median), percent(p.P90), percent(p.Worst),
				fmt.Sprintf("%.2f", p.Bias), percent(p.Covered))
		}
		if err := t.Write(w); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(w, "averaged over %d clusters: median %s, 90th percentile %s, in the bar %s\n", all.Machines,
				percent(all.MachineMedian), percent(all.MachineP90), percent(all.MachineCovered))
		}
		fmt.Fprintln(w)
	}
	choices(w, d.Choices)
	return notScored(w, last(d.Skipped, all.Skipped))
}

// choices says how well settings are told apart.
func choices(w io.Writer, c *truth.Choices) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "settings: %s were run in several ways; of pairs that differ by more than %.0f%%, %d of %d come in "+
		"the measured order (by more than %.0f%%: %d of %d);\n", words.Plural(c.Jobs, "job"), 100*truth.Apart, c.Right,
		c.Pairs, 100*truth.FarApart, c.FarRight, c.Far)
	fmt.Fprintf(w, "the way predicted fastest is within %.0f%% of the fastest measured in %d of %d jobs (median %s "+
		"slower, worst %s)\n\n", 100*truth.Apart, c.Within, c.Jobs, percent(c.Lost), percent(c.Worst))
}

// ValidateDoctor prints how often the doctor found the cause, and the cases in which it did not; all adds the others.
func ValidateDoctor(w io.Writer, d *query.ValidateDoctorDoc, all bool) error {
	if d.Threads != nil {
		return validateThreads(w, d, all)
	}
	fmt.Fprintf(w, "%d cases, %d decidable from their evidence; the cause is first in %d (%.0f%%), among the first "+
		"three in %d (%.0f%%)\n", d.Cases, d.Decidable, d.First, percentOf(d.First, d.Decidable), d.Three,
		percentOf(d.Three, d.Decidable))
	t := &texttab.Table{}
	t.Row("", "case", "category", "first findings", "")
	for _, o := range d.Rows {
		mark := "miss"
		note := ""
		switch {
		case o.Undecidable != "" && o.Hit:
			mark, note = "(hit)", "not counted: "+o.Undecidable
		case o.Undecidable != "":
			mark, note = "open", o.Undecidable
		case o.Hit:
			mark = "hit"
		case o.Place > 0:
			note = fmt.Sprintf("the cause is finding %d", o.Place)
		}
		if all || mark == "miss" || mark == "open" {
			t.Row(mark, o.ID, o.Category, strings.Join(o.Said[:min(len(o.Said), 3)], " "), note)
		}
	}
	if t.Len() > 1 {
		fmt.Fprintln(w)
		return t.Write(w)
	}
	return nil
}

func percentOf(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// validateThreads prints how often the cause was named, how sure that was, and every miss.
func validateThreads(w io.Writer, d *query.ValidateDoctorDoc, all bool) error {
	t := d.Threads
	fmt.Fprintf(w, "%d threads: the cause is first in %d (%.0f%%), among the first three in %d (%.0f%%); wrong with a "+
		"confidence of 50%% or more in %d (%.0f%%); unknown in %d (%.0f%%)\n",
		d.Cases, d.First, percentOf(d.First, d.Cases), d.Three, percentOf(d.Three, d.Cases), t.Wrong,
		percentOf(t.Wrong, d.Cases), t.Unknown, percentOf(t.Unknown, d.Cases))
	fmt.Fprintf(w, "Before the diagnosis: first %.0f%%, first three %.0f%%, wrong and sure %.0f%%. No cause of the "+
		"program is that of %d.\n\n", percentOf(t.EarlyFirst, d.Cases), percentOf(t.EarlyThree, d.Cases),
		percentOf(t.EarlyWrong, d.Cases), t.Nameless)
	tab := &texttab.Table{}
	tab.Row("confidence", "answers", "right")
	for _, r := range t.Reliability {
		tab.Row(fmt.Sprintf("%.0f%%", 100*r.Confidence), fmt.Sprint(r.Said), fmt.Sprintf("%.0f%%", 100*r.Right))
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	tab = &texttab.Table{}
	tab.Row("", "thread", "cause", "said", "")
	for _, o := range d.Rows {
		mark, note := "miss", fmt.Sprintf("%.0f%% sure", 100*o.Confidence)
		switch {
		case o.Place == 1:
			mark = "hit"
		case len(o.Wanted) == 0:
			note += ", no such cause here"
		case o.Place > 0:
			note += fmt.Sprintf(", the cause is number %d", o.Place)
		}
		if all || mark == "miss" {
			tab.Row(mark, o.ID, o.Category, strings.Join(o.Said[:min(len(o.Said), 3)], " "), note)
		}
	}
	return tab.Write(w)
}
