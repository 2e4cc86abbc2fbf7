package report

import (
	"fmt"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
)

// Validate prints how far off predictions of collectives are; -v adds every point.
func Validate(p *Page, d *query.ValidateDoc) {
	if p.Verbose {
		validatedRows(p, d.Rows)
	}
	p.table(scoreTable("all", append([]truth.Part{{Name: "all points", Score: d.Score}}, d.Halves...)))
	if d.Machines > 0 {
		p.printf("averaged over %s: median %s, 90th percentile %s, in the bar %s\n", words.Plural(d.Machines, "machine"),
			percent(d.MachineMedian), percent(d.MachineP90), percent(d.MachineCovered))
	}
	files := texttab.New("file", "sizes", ">points", ">median", ">90%", ">averaged over machines", ">in the bar",
		">averaged")
	for _, x := range d.Files {
		files.Add(x.File, x.Sizes, x.Points, percent(x.Median), percent(x.P90),
			fmt.Sprintf("%s (%d)", percent(x.MachineMedian), x.Machines), percent(x.Covered), percent(x.MachineCovered))
	}
	if files.Len() > 0 {
		p.table(files)
	}
	share := ""
	if d.Gradable > 0 {
		share = " (" + percent(d.Share) + ")"
	}
	p.printf("predicted %d of %d points that can be scored%s\n", d.Predicted, d.Gradable, share)
	p.below(scoreTable("class (small < 64 KiB, large > 16 MiB)", d.Classes))
	p.below(scoreTable("hw_class of the source (small ≤ 256 KiB, large ≥ 64 MiB)", d.Hardware))
	p.below(scoreTable("machine", d.Who))
	notScored(p, d.Skipped)
	unused := texttab.New("stated, and of no use to a prediction", ">groups", "the first")
	for _, u := range d.Unused {
		unused.Add(u.Field, u.Groups, u.ID)
	}
	p.below(unused)
	if len(d.Notes) > 0 {
		p.printf("\n")
	}
	p.notes(d.Notes)
}

// scoreTable is the scores of parts.
func scoreTable(head string, parts []truth.Part) *texttab.Table {
	t := texttab.New(head, ">points", ">median", ">90%", ">worst", ">pred/meas|%.2f", ">in the bar")
	for _, x := range parts {
		if x.Points == 0 {
			t.Add(x.Name, 0, "no points", "-", "-", "-", "-")
			continue
		}
		t.Add(x.Name, x.Points, percent(x.Median), percent(x.P90), percent(x.Worst), x.Bias, percent(x.Covered))
	}
	return t
}

// percent is a share with one digit after the point.
func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

func validatedRows(p *Page, rows []truth.Point) {
	t := texttab.New("id", ">size", ">measured µs|%.1f", ">predicted µs|%.1f", ">error", ">bar|×%.2f", "by",
		"limited by")
	for _, r := range rows {
		t.Add(r.ID, r.Size, r.Measured, r.Predicted, percent(r.APE), r.Margin,
			fmt.Sprintf("%s/%s/%d", r.Algo, r.Proto, r.Channels), r.Limit)
	}
	p.table(t)
	p.printf("\n")
}

// notScored lists what is not in the score, first what could not be predicted. What was left out for the same reason is
// one row, where the first stood; --json lists each.
func notScored(p *Page, left []truth.Left) {
	for _, gradable := range []bool{true, false} {
		var reasons grouped[string, truth.Left]
		for _, l := range left {
			if l.Gradable == gradable {
				reasons.put(l.Reason, l)
			}
		}
		t := texttab.New(either(gradable, "not predicted", "not scored"), ">points", "reason")
		for why, list := range reasons.all() {
			points := 0
			for _, l := range list {
				points += l.Points
			}
			t.Add(list[0].ID+andMore(len(list)-1, "more"), points, why)
		}
		p.below(t)
	}
}
