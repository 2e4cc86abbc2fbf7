package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/texttab"
	"busbar.dev/report"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// stepOutput collects what steps took and prints it on rank 0.
type stepOutput struct {
	c     *benchStepCmd
	e     *env
	g     *engine.Group
	m     *workload.Model
	p     bench.StepPlan
	rows  []stepRow
	clear func()
}

// stepRow is one way to take steps.
type stepRow struct {
	overlap bool
	*bench.StepTimes
}

func newStepOutput(c *benchStepCmd, e *env, g *engine.Group, m *workload.Model, p bench.StepPlan) *stepOutput {
	o := &stepOutput{c: c, e: e, g: g, m: m, p: p, clear: func() {}}
	if g.Rank() == 0 {
		o.clear = e.progress(c.common, fmt.Sprintf("memory for the gradients of %s", m.Name))
	}
	return o
}

// progress shows how many steps were taken.
func (o *stepOutput) progress(overlap bool, k int) {
	o.clear()
	o.clear = o.e.progress(o.c.common, fmt.Sprintf("%s, overlap %s, step %d of %d", o.m.Name, onOff(overlap), k+1, o.p.Warm+o.p.Iters))
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func (o *stepOutput) add(overlap bool, t *bench.StepTimes) {
	if t != nil {
		o.rows = append(o.rows, stepRow{overlap, t})
	}
}

// print writes the tables, or the document.
func (o *stepOutput) print() error {
	if o.c.JSON {
		return writeIndented(o.e.stdout, o.document())
	}
	w := o.e.stdout
	right := texttab.Right
	fmt.Fprintf(w, "%s: %d parameters in %d tensors, gradients %s of %s in %s; %s, transport %s\n", o.m.Title, o.m.Params(), len(o.p.Grads), mebi(o.p.Memory()), o.p.Type, counted(len(o.rows[0].Buckets), "bucket"), counted(o.g.Size(), "rank"), o.g.Transport())
	if o.p.Wire != engine.Uncompressed {
		fmt.Fprintf(w, "gradients travel as %s; bandwidths count them uncompressed\n", o.p.Wire)
	}
	fmt.Fprintf(w, "a step computes for %s, %s of it forwards; %s, each on the rank that took longest, and what it was made of\n\n", durationText(o.p.Compute()), durationText(o.p.Forward), medianOf(o.p.Iters))
	t := &texttab.Table{Columns: []texttab.Column{{Head: "overlap"}, {Head: "step", Align: right}, {Head: "computing", Align: right}, {Head: "exposed", Align: right}, {Head: "of the step", Align: right}, {Head: "fastest", Align: right}, {Head: "slowest", Align: right}}}
	for _, r := range o.rows {
		t.Row(onOff(r.overlap), durationText(r.Median()), durationText(r.Computed), durationText(r.Exposed), fmt.Sprintf("%.0f%%", 100*share(r.Exposed, r.Median())), durationText(r.Steps[0]), durationText(r.Steps[len(r.Steps)-1]))
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if len(o.rows) == 2 {
		off, on := o.rows[0], o.rows[1]
		fmt.Fprintf(w, "overlap hides %.0f%% of the communication\n", 100*max(0, 1-share(on.Exposed, off.Exposed)))
	}
	return o.printBuckets(w)
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

func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func mebi(b unit.Bytes) string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(unit.MiB)) }

func durationText(d time.Duration) string { return unit.Seconds(d.Seconds()).String() }

// fewBuckets is how many are listed when nobody asks for all.
const fewBuckets = 12

// printBuckets lists the buckets of the last way.
func (o *stepOutput) printBuckets(w io.Writer) error {
	r := o.rows[len(o.rows)-1]
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "bucket", Align: right}, {Head: "tensors", Align: right}, {Head: "size", Align: right}, {Head: "full after", Align: right}, {Head: "took", Align: right}, {Head: "busbw", Align: right}, {Head: "algorithm"}}}
	all := o.c.Buckets || len(r.Buckets) <= fewBuckets+4
	for i, b := range r.Buckets {
		if !all && i == fewBuckets/2 {
			t.Row("…")
		}
		if !all && i >= fewBuckets/2 && i < len(r.Buckets)-fewBuckets/2 {
			continue
		}
		t.Row(fmt.Sprint(i), fmt.Sprint(b.Tensors), mebi(b.Bytes), durationText(b.Ready), durationText(b.Took), o.busbw(b).String(), b.Algo)
	}
	t.Row("total", fmt.Sprint(len(o.p.Grads)), mebi(o.p.Memory()))
	fmt.Fprintf(w, "\nbuckets on rank 0, overlap %s\n", onOff(r.overlap))
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "took: from a bucket's start to its end, while others are under way; busbw is its share")
	if !all {
		fmt.Fprintln(w, "--buckets lists all")
	}
	return nil
}

// busbw is that of a bucket from its start to its end, while others are under way too.
func (o *stepOutput) busbw(b bench.StepBucket) unit.Rate {
	if b.Took <= 0 {
		return 0
	}
	n := float64(o.g.Size())
	return unit.Rate(float64(b.Bytes) * 2 * (n - 1) / n / b.Took.Seconds())
}

// document is what --json prints.
func (o *stepOutput) document() any {
	type bucket struct {
		Size    int64   `json:"size_bytes"`
		Tensors int     `json:"tensors"`
		Ready   float64 `json:"ready_us"`
		Took    float64 `json:"time_us"`
		BusBW   float64 `json:"busbw_GBps"`
		Algo    string  `json:"algo"`
	}
	type row struct {
		Overlap  string    `json:"overlap"`
		Step     float64   `json:"step_s"`
		Min      float64   `json:"min_step_s"`
		Max      float64   `json:"max_step_s"`
		Computed float64   `json:"compute_s"`
		Exposed  float64   `json:"exposed_comm_s"`
		Steps    []float64 `json:"steps_s"`
		Buckets  []bucket  `json:"buckets"`
	}
	rows := []row{}
	for _, r := range o.rows {
		x := row{Overlap: onOff(r.overlap), Step: r.Median().Seconds(), Min: r.Steps[0].Seconds(), Max: r.Steps[len(r.Steps)-1].Seconds(), Computed: r.Computed.Seconds(), Exposed: r.Exposed.Seconds(), Buckets: []bucket{}}
		for _, s := range r.Steps {
			x.Steps = append(x.Steps, s.Seconds())
		}
		for _, b := range r.Buckets {
			x.Buckets = append(x.Buckets, bucket{int64(b.Bytes), b.Tensors, inMicros(b.Ready), inMicros(b.Took), o.busbw(b).GBps(), b.Algo})
		}
		rows = append(rows, x)
	}
	return map[string]any{
		"model": o.m.Name, "params": o.m.Params(), "tensors": len(o.p.Grads), "gradient_bytes": int64(o.p.Memory()), "dtype": o.p.Type.String(), "compress": o.p.Wire.String(),
		"ranks": o.g.Size(), "hosts": o.g.Hosts(), "transport": string(o.g.Transport()), "iters": o.p.Iters, "warmup": o.p.Warm,
		"planned_compute_s": o.p.Compute().Seconds(), "rows": rows,
	}
}

// trace draws the median step of each way, as rank 0 saw it.
func (o *stepOutput) trace() ([]byte, error) {
	var list []report.Span
	at := func(d time.Duration) unit.Time { return unit.Seconds(d.Seconds()) }
	for _, r := range o.rows {
		group := "overlap " + onOff(r.overlap)
		list = append(list,
			report.Span{Group: group, Track: "computing", Name: "forward", To: at(o.p.Forward)},
			report.Span{Group: group, Track: "computing", Name: "backward", From: at(o.p.Forward), To: at(r.Computed)},
			report.Span{Group: group, Track: "computing", Name: "exposed communication", From: at(r.Computed), To: at(r.Computed + r.Exposed)})
		for i, b := range r.Buckets {
			from := b.Ready
			if !r.overlap {
				from = r.Computed
			}
			list = append(list, report.Span{Group: group, Track: "buckets", Name: fmt.Sprintf("bucket %d", i), From: at(from), To: at(from + b.Took), Bytes: b.Bytes})
		}
	}
	var b bytes.Buffer
	err := report.Spans(&b, fmt.Sprintf("a step of %s on %d ranks", o.m.Title, o.g.Size()), list)
	return b.Bytes(), err
}

func inMicros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
