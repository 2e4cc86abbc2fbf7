package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// BenchStep prints what steps took, and their buckets: with -v all of them, else the first and the last.
func BenchStep(p *Page, d *query.BenchStepDoc) {
	if len(d.Rows) == 0 {
		return
	}
	p.printf("%s: %d parameters in %d tensors, gradients %s of %s in %s; %s, transport %s\n", d.Title, d.Params,
		d.Tensors, mebi(d.GradientBytes), d.Dtype, words.Plural(len(d.Rows[0].Buckets), "bucket"),
		words.Plural(d.Ranks, "rank"), d.Transport)
	p.printf("a step computes for %s, %s of it forwards; %s, each on the rank that took longest, and what it was "+
		"made of\n\n", unit.Seconds(d.Compute), unit.Seconds(d.Forward), medianOf(d.Iters))
	t := texttab.New("overlap", ">step", ">computing", ">exposed", ">of the step|%.0f%%", ">fastest", ">slowest")
	for _, r := range d.Rows {
		t.Add(r.Overlap, unit.Seconds(r.Step), unit.Seconds(r.Computed), unit.Seconds(r.Exposed),
			100*share(r.Exposed, r.Step), unit.Seconds(r.Min), unit.Seconds(r.Max))
	}
	p.table(t)
	if len(d.Rows) == 2 {
		p.printf("overlap hides %.0f%% of the communication\n",
			100*max(0, 1-share(d.Rows[1].Exposed, d.Rows[0].Exposed)))
	}
	benchBuckets(p, d)
}

// medianOf names the step that is shown.
func medianOf(steps int) string {
	switch {
	case steps == 1:
		return "one step"
	case steps%2 == 0:
		return fmt.Sprintf("the lower median of %d steps", steps)
	}
	return fmt.Sprintf("the median of %d steps", steps)
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func mebi(b unit.Bytes) string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(unit.MiB)) }

// fewBuckets is how many are listed when nobody asks for all.
const fewBuckets = 12

// benchBuckets lists the buckets of the last way.
func benchBuckets(p *Page, d *query.BenchStepDoc) {
	row := &d.Rows[len(d.Rows)-1]
	all := p.Verbose || len(row.Buckets) <= fewBuckets+4
	p.printf("\nbuckets on rank 0, overlap %s\n", row.Overlap)
	p.send(bucketTable(d, true))
	p.lay(bucketTable(d, all))
	p.printf("took: from a bucket's start to its end, while others are under way; busbw is its share\n")
	if !all {
		p.printf("--buckets lists all\n")
	}
}

// bucketTable is the buckets of the last way: all, or the first and the last.
func bucketTable(d *query.BenchStepDoc, all bool) *texttab.Table {
	t := texttab.New(">bucket", ">tensors", ">size", ">full after", ">took", ">busbw", "algorithm")
	list := d.Rows[len(d.Rows)-1].Buckets
	for i, b := range list {
		if !all && i == fewBuckets/2 {
			t.Row("…")
		}
		if !all && i >= fewBuckets/2 && i < len(list)-fewBuckets/2 {
			continue
		}
		t.Add(i, b.Tensors, mebi(b.Bytes), b.Ready, b.Took, b.BusBW, b.Algo)
	}
	t.Add("total", d.Tensors, mebi(d.GradientBytes))
	return t
}

// BenchStepTrace draws the median step of each way, as rank 0 saw it, for Perfetto.
func BenchStepTrace(w io.Writer, d *query.BenchStepDoc) error {
	var list []Span
	forward := unit.Seconds(d.Forward)
	for _, r := range d.Rows {
		group, computed := "overlap "+r.Overlap, unit.Seconds(r.Computed)
		list = append(list,
			Span{Group: group, Track: "computing", Name: "forward", To: forward},
			Span{Group: group, Track: "computing", Name: "backward", From: forward, To: computed},
			Span{
				Group: group, Track: "computing", Name: "exposed communication", From: computed,
				To: computed + unit.Seconds(r.Exposed),
			})
		for k, b := range r.Buckets {
			from := b.Ready
			if r.Overlap == "off" {
				from = computed
			}
			list = append(list, Span{
				Group: group, Track: "buckets", Name: fmt.Sprintf("bucket %d", k), From: from, To: from + b.Took, Bytes: b.Bytes,
			})
		}
	}
	return Spans(w, fmt.Sprintf("a step of %s on %d ranks", d.Title, d.Ranks), list)
}
