package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// mostAdvice is how many changes are printed.
const mostAdvice = 3

// Step prints a training step on every layout: the table, what limits each, its traffic, and what would help.
func Step(p *Page, d *query.StepDoc) {
	if len(d.Rows) == 0 {
		return
	}
	first := &d.Rows[0]
	j := &first.Job
	if d.Wrong() {
		p.lines(first.Bottleneck.Text)
	}
	sameBatch := !slices.ContainsFunc(d.Rows, func(r query.StepRow) bool { return r.Job.Global != first.Job.Global })
	jobLine(p, d.Cluster, first.GPU, j, sameBatch)
	if len(d.Rows) > 1 && !d.Wrong() {
		p.lines(fastestLayout(d.Rows))
	} else if first.Fits {
		from, _, _ := strings.Cut(first.MarginFrom, ",")
		p.printf("%s: %s per step (%s expected, from %s)%s\n", first.Layout, first.Step, spanRange(first.Low, first.High),
			from, when(first.Tight, fmt.Sprintf("; memory is tight: it fits with a probability of %.0f%%", 100*first.Sure)))
		stepLimit(p, "limit", first)
	}
	of := passed(j)
	t := texttab.New("layout", ">step", texttab.If(len(d.Rows) > 1, ">expected"), ">compute", ">exposed", ">bubble",
		">update", ">"+of+"/s|%.0f", ">"+of+"/s/GPU|%.0f", ">TFLOPS/GPU|%.1f", ">MFU|%.1f%%", ">memory",
		texttab.If(!sameBatch, ">global batch"), "parallel")
	for _, r := range d.Rows {
		if !r.Fits {
			continue
		}
		t.Add(r.Layout, r.Step, spanRange(r.Low, r.High), r.Compute, r.Exposed, r.Bubble, r.Optimizer+r.Host, r.TokensPerS,
			r.PerGPU, r.TFLOPSPerGPU, 100*r.MFU, memoryOf(r.Memory["total"], r.Has)+when(r.Tight, " tight"), r.Job.Global,
			r.Job.Parallel)
		if b := r.Branches; len(d.Rows) > 1 && len(b) > 1 {
			t.Add(r.Layout+" fork", b[1].Step, spanRange(b[1].Low, b[1].High))
		}
	}
	if !d.Wrong() {
		p.table(t)
	}
	for _, r := range d.Rows {
		switch {
		case !r.Fits && !d.Wrong():
			p.printf("%s: %s\n", r.Layout, r.Bottleneck.Text)
		case r.Fits && len(d.Rows) > 1:
			stepLimit(p, r.Layout, &r)
		}
		if b := r.Branches; len(b) > 1 {
			p.printf("fork on %s: assumed %s; if %s, a step takes %s (%s) instead of %s; %s tells\n", r.Layout, b[0].If, b[1].If,
				b[1].Step, spanRange(b[1].Low, b[1].High), b[0].Step, b[1].Tell)
		}
		stepDetails(p, &r)
	}
	allReduces(p, d.Rows)
	for _, s := range d.Skipped {
		p.printf("left out: %s\n", s)
	}
}

// allReduces is what each layout takes to sum all gradients in one call, by algorithm, and how much goes through the
// busiest of its links.
func allReduces(p *Page, rows []query.StepRow) {
	t := texttab.New("layout", "algo", ">time", ">expected", ">busbw (GB/s)|%.2f", ">NVLink", ">NIC")
	var size unit.Bytes
	add := func(layout string, list []predict.Row) {
		for _, r := range list {
			size = r.Size
			t.Add(layout, r.Algo+when(r.Chosen, "*"), r.Time, spanRange(unit.Span(r.Low.Seconds()), unit.Span(r.High.Seconds())),
				r.BusBW.GBps(), carried(&r, result.ByNVLink), carried(&r, result.ByNIC))
		}
	}
	for _, r := range rows {
		add(r.Layout, r.AllReduces)
		for _, b := range r.Branches {
			add(r.Layout+" fork", b.AllReduces)
		}
	}
	if size > 0 {
		p.printf("\nAll-reduce of the gradients, %v in one call; bytes are those of the busiest link, one direction:\n", size)
		p.table(t)
		p.lines(p.dim("* NCCL's choice"))
	}
}

// carried is what a call sends through the busiest link of a kind, in one direction.
func carried(r *predict.Row, kind result.LimitKind) string {
	for _, u := range r.Busy {
		if u.Kind == kind {
			return u.Bytes.String()
		}
	}
	return "–"
}

// stepLimit is what a step is bounded by, and the change that would help most.
func stepLimit(p *Page, lead string, r *query.StepRow) {
	p.printf("%s: %s\n", lead, r.Bottleneck.Text)
	helps(p, "would help", r.Advice[:min(1, len(r.Advice))], 0, &r.Job)
}

// helps are changes that would make a step shorter, by the gain in tokens/s, or samples/s: beyond twice the rate a
// factor reads better than percent.
func helps(p *Page, lead string, list []step.Change, digits int, j *workload.Summary) {
	for _, c := range list {
		gain := fmt.Sprintf("%.*f%% more", digits, 100*c.Gain)
		if c.Gain >= 1.5 {
			gain = fmt.Sprintf("%.3g times the", 1+c.Gain)
		}
		p.printf("%s: %s %s/s with %s: %s\n", lead, gain, passed(j), c.Setting, c.Text)
	}
}

// jobLine says which job was understood, on which GPUs of a cluster; its batch where that is everywhere the same.
func jobLine(p *Page, cluster, gpu string, j *workload.Summary, sameBatch bool) {
	p.printf("%s on %s (%s): %s parameters%s%s, micro-batch %d, %s, recompute %s, %s%s\n", j.Model,
		cmp.Or(cluster, "the cluster"), gpu, words.Thousands(j.Params),
		when(j.Seq != 1, fmt.Sprintf(", sequence length %d", j.Seq)),
		when(sameBatch, fmt.Sprintf(", global batch %d", j.Global)), j.Micro, j.Precision, j.Recompute, runBy(j),
		jobSettings(j))
}

// stepDetails is what stands below the table about one layout: what was asked beside the step, and where more is asked
// for what it is made of.
func stepDetails(p *Page, r *query.StepRow) {
	if r.Fits && p.Verbose {
		for _, g := range r.Groups {
			p.printf("  %-9s %v\n", g.Group, g)
		}
		for _, x := range r.Traffic {
			p.printf("  %-9s %s: %.0f calls of %v take %s, %s of it exposed\n", x.Group, x.What, x.Calls, x.Bytes,
				x.Time, x.Exposed)
		}
		helps(p, "  would help", r.Advice[min(1, len(r.Advice)):min(mostAdvice, len(r.Advice))], 0, &r.Job)
	}
	if r.HostMemory != "" {
		p.printf("  %s\n", r.HostMemory)
	}
	if r.CampaignDoc != nil {
		campaignLines(p, r.CampaignDoc, r.Step, passed(&r.Job))
	}
}

// jobSettings are the settings of a job that differ from the usual ones.
func jobSettings(j *workload.Summary) string {
	return when(len(j.Settings) > 0, ", "+strings.Join(j.Settings, ", "))
}

// fastestLayout says which layout is fastest, by tokens per second, and how far behind the others are. One whose memory
// is too small cannot win.
func fastestLayout(rows []query.StepRow) string {
	order := slices.DeleteFunc(slices.Clone(rows), func(r query.StepRow) bool { return !r.Fits })
	if len(order) == 1 {
		return fmt.Sprintf("only %s fits into GPU memory", order[0].Layout)
	}
	slices.SortStableFunc(order, func(a, b query.StepRow) int { return cmp.Compare(b.TokensPerS, a.TokensPerS) })
	best := order[0]
	var others []string
	for _, r := range order[1:] {
		others = append(others, fmt.Sprintf("%s takes %.1f times as long", r.Layout, best.TokensPerS/r.TokensPerS))
	}
	return fmt.Sprintf("%s is fastest; for as many %s %s", best.Layout, passed(&best.Job), strings.Join(others, ", "))
}

// StepTimeline draws the timeline of a step on one layout.
func StepTimeline(d *query.StepDoc) (*Picture, error) {
	return timeline(stepTitle(d), stepBars(d), d.Rows[0].Step.Time())
}

// StepTrace writes the timeline of a step on one layout for ui.perfetto.dev or chrome://tracing.
func StepTrace(w io.Writer, d *query.StepDoc) error {
	var spans []Span
	for _, b := range stepBars(d) {
		spans = append(spans, b.Span)
	}
	return Spans(w, stepTitle(d), spans)
}

func stepTitle(d *query.StepDoc) string {
	r := &d.Rows[0]
	j := &r.Job
	return fmt.Sprintf("one step of %s on %s %s, %s", j.Model, d.Cluster, r.Layout, j.Parallel) + jobSettings(j)
}

// stepBars are the bars of a step as they are drawn.
func stepBars(d *query.StepDoc) (bars []bar) {
	for _, b := range d.Timeline {
		s := Span{
			Group: fmt.Sprintf("stage %d", b.Stage), Track: either(b.Host, "host", either(b.Traffic, "traffic", "compute")),
			Name: b.Name, From: b.From.Time(), To: b.To.Time(),
			Bytes: b.Bytes.Bytes(),
		}
		bars = append(bars, bar{Span: s, fill: barFill(byte(b.Kind))})
	}
	return bars
}
