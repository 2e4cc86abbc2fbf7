package report

import (
	"fmt"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Validate prints how far off predictions are of collectives, training runs, or both; -v adds every point.
func Validate(p *Page, d *query.ValidateDoc) {
	if t := d.Training; t != nil {
		own := *d
		own.Training, own.Score, own.Score.Points = nil, d.Score, d.Points-t.Points
		if own.Points == 0 {
			own.Score = truth.Score{}
		}
		own.Rows, own.Skipped = cutLast(d.Rows, t.Points), cutLast(d.Skipped, t.Skipped)
		own.Classes, own.Who = cutLast(d.Classes, t.Classes), cutLast(d.Who, t.Clusters)
		validatedRuns(p, d)
		if len(own.Rows)+len(own.Skipped) == 0 {
			return
		}
		p.printf("\n")
		d = &own
	}
	validatedPoints(p, d)
}

// cutLast is a list without its last elements, and last are those.
func cutLast[T any](list []T, n int) []T { return list[:max(0, len(list)-n)] }
func last[T any](list []T, n int) []T    { return list[max(0, len(list)-n):] }

// validatedPoints prints the score of collectives.
func validatedPoints(p *Page, d *query.ValidateDoc) {
	if p.Verbose {
		validatedRows(p, d.Rows)
	}
	p.table(scoreTable("all", "points", append([]truth.Part{{Name: "all points", Score: d.Score}}, d.Halves...)))
	if d.Machines > 0 {
		averaged(p, words.Plural(d.Machines, "machine"), d.Score)
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
	gradable, share := len(d.Rows), ""
	for _, l := range d.Skipped {
		if l.Gradable {
			gradable += l.Points
		}
	}
	if gradable > 0 {
		share = " (" + percent(float64(len(d.Rows))/float64(gradable)) + ")"
	}
	p.printf("predicted %d of %d points that can be scored%s\n", len(d.Rows), gradable, share)
	p.below(scoreTable("class (small < 64 KiB, large > 16 MiB)", "points", d.Classes))
	p.below(scoreTable("hw_class of the source (small ≤ 256 KiB, large ≥ 64 MiB)", "points", d.Hardware))
	p.below(scoreTable("machine", "points", d.Who))
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

// averaged prints a score whose parts count alike, however many points they have.
func averaged(p *Page, over string, s truth.Score) {
	p.printf("averaged over %s: median %s, 90th percentile %s, in the bar %s\n", over, percent(s.MachineMedian),
		percent(s.MachineP90), percent(s.MachineCovered))
}

// scoreTable is the scores of parts, counted in points or runs.
func scoreTable(head, of string, parts []truth.Part) *texttab.Table {
	t := texttab.New(head, ">"+of, ">median", ">90%", ">worst", ">pred/meas|%.2f", ">in the bar")
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

// validatedRuns prints the score of training runs.
func validatedRuns(p *Page, d *query.ValidateDoc) {
	all := d.Training
	if p.Verbose {
		list := texttab.New("run", ">measured", ">predicted", ">error", ">bar|×%.2f", "limited by")
		for _, r := range last(d.Rows, all.Points) {
			list.Add(r.ID, unit.Span(r.Measured), unit.Span(r.Predicted), percent(r.APE), r.Margin, r.Limit)
		}
		p.table(list)
		p.printf("\n")
	}
	p.table(scoreTable("training steps", "runs", []truth.Part{all.Part}))
	averaged(p, fmt.Sprintf("%d clusters", all.Machines), all.Score)
	p.below(scoreTable("hw_class of the source", "runs", last(d.Classes, all.Classes)))
	p.below(scoreTable("cluster", "runs", last(d.Who, all.Clusters)))
	p.printf("\n")
	notScored(p, last(d.Skipped, all.Skipped))
}
