package report

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result/diff"
)

// Diff prints two sides beside each other: the verdict, what differs, parts of a step, rows; -v lists the rows that
// only one side has.
func Diff(p *Page, d *query.DiffDoc) {
	p.wrapped("", "", p.bold(d.Verdict))
	for _, text := range d.Both {
		p.wrapped("", "", "On both sides: "+text+".")
	}
	if len(d.Differences) > 0 {
		t := texttab.New("differs", "old", "new", "slower by it", texttab.If(d.Ratio > 0, "explains it"))
		for _, x := range d.Differences {
			t.Add(x.What, x.Old, x.New, cmp.Or(x.Slower, "either")+when(x.AtMost > 0,
				fmt.Sprintf(", at most %.2f times", x.AtMost)), x.Explains)
		}
		p.printf("\n")
		p.table(t)
	}
	if len(d.Parts) > 0 {
		t := texttab.New("part", ">old", ">new", ">change")
		for _, x := range d.Parts {
			t.Add(x.What, x.Old.Short(), x.New.Short(), known(x.Old > 0, signed(float64(x.New/x.Old)-1)))
		}
		p.printf("\n")
		p.table(t)
	}
	diffRows(p, d)
	p.notes(d.Notes)
}

// diffRows prints the rows of two tables.
func diffRows(p *Page, d *query.DiffDoc) {
	for rest := d.Rows; len(rest) > 0; {
		t := texttab.New(">size", "algorithm", ">old", ">±", ">new", ">±", ">change", ">p", ">n", "")
		t.Title = rest[0].Setup
		p.printf("\n%s\n", t.Title)
		for ; len(rest) > 0 && rest[0].Setup == t.Title; rest = rest[1:] {
			r := &rest[0]
			t.Add(r.Size, r.Old.Algo+when(r.New.Algo != r.Old.Algo, " → "+r.New.Algo), r.Old.Median,
				plusMinus(r.Old), r.New.Median, plusMinus(r.New),
				either(r.Verdict == diff.Same, "~", signed(r.Change)), chance(r), fmt.Sprintf("%d+%d", r.Old.N, r.New.N),
				verdictText(r))
		}
		p.table(t)
	}
	if len(d.Rows) > 0 {
		p.printf("\n%s: %+.1f%% on average%s\n", words.Plural(len(d.Rows), "row"), 100*d.Geomean,
			noneChanged(d.Rows))
	}
	printAlone(p, "before", d.OldRows)
	printAlone(p, "now", d.NewRows)
}

// noneChanged says of an average over rows none of which is told from noise that it is noise too, or that nobody knows.
func noneChanged(rows []diff.Row) string {
	changed := func(r diff.Row) bool { return r.Verdict != diff.Same && r.Verdict != diff.Unknown }
	same := func(r diff.Row) bool { return r.Verdict == diff.Same }
	switch {
	case slices.ContainsFunc(rows, changed):
		return ""
	case slices.ContainsFunc(rows, same):
		return ", which cannot be told from noise"
	}
	return "; runs are too few to tell it from noise: four of each side do"
}

// printAlone tells of rows that one side has.
func printAlone(p *Page, side string, list []diff.Measured) {
	if len(list) == 0 {
		return
	}
	p.printf("measured only %s: %s%s\n", side, words.Plural(len(list), "row"),
		either(p.Verbose, ":", " (--all lists them)"))
	for _, r := range list {
		if p.Verbose {
			p.printf("  %s, %v\n", r.Setup, r.Size)
		}
	}
}

func plusMinus(s diff.Side) string {
	if s.Low == s.High || s.Median <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*float64(max(s.High-s.Median, s.Median-s.Low))/float64(s.Median))
}

func chance(r *diff.Row) string {
	switch {
	case r.Adjusted == nil:
		return "?"
	case *r.Adjusted < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", *r.Adjusted)
}

func verdictText(r *diff.Row) string {
	switch {
	case r.New.Wrong > 0:
		return fmt.Sprintf("%d wrong", r.New.Wrong)
	case r.Bad:
		return "SLOWER"
	case r.Verdict == diff.Slower || r.Verdict == diff.Faster:
		return string(r.Verdict)
	}
	return ""
}
