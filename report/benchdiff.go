package report

import (
	"fmt"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result/diff"
)

// BenchDiff prints two sets of results side by side; -v lists the rows that only one side has.
func BenchDiff(p *Page, d *query.BenchDiffDoc) {
	for rest := d.Rows; len(rest) > 0; {
		t := texttab.New(">size", "algorithm", ">old", ">±", ">new", ">±", ">change", ">p", ">n", "")
		t.Title = rest[0].Setup
		p.printf("%s%s\n", when(len(rest) < len(d.Rows), "\n"), t.Title)
		for ; len(rest) > 0 && rest[0].Setup == t.Title; rest = rest[1:] {
			r := &rest[0]
			t.Add(r.Size, r.Old.Algo+when(r.New.Algo != r.Old.Algo, " → "+r.New.Algo), r.Old.Median,
				plusMinus(r.Old), r.New.Median, plusMinus(r.New),
				either(r.Verdict == diff.Same, "~", signed(r.Change)), chance(r), fmt.Sprintf("%d+%d", r.Old.N, r.New.N),
				verdictText(r))
		}
		p.table(t)
	}
	p.printf("\n%s: %+.1f%% on average%s\n", words.Plural(len(d.Rows), "row"), 100*d.Geomean,
		noneChanged(d.Rows))
	printAlone(p, "before", d.OldRows)
	printAlone(p, "now", d.NewRows)
	p.notes(d.Notes)
}

// noneChanged says of an average over rows none of which is told from noise that it is noise too.
func noneChanged(rows []diff.Row) string {
	told := func(r diff.Row) bool { return r.Verdict != diff.Same && r.Verdict != diff.Unknown }
	return when(!slices.ContainsFunc(rows, told), ", which cannot be told from noise")
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
