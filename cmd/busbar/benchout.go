package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/result"
)

// benchOutput prints the rows of a bench as they come: nccl-tests' table, or one document at
// the end.
type benchOutput struct {
	c     *benchRunCmd
	e     *env
	g     team
	p     bench.Plan
	doc   benchDoc
	wrong int64
	sum   float64 // of bus bandwidths
	halfs int
	head  bool
	mute  bool // somebody else prints
	clear func()
	like  result.Sweep // what all sweeps have in common
	kept  result.Sweeps
}

// benchDoc is the document of --json.
type benchDoc struct {
	Op        coll.Kind     `json:"op"`
	Ranks     int           `json:"ranks"`
	Transport string        `json:"transport"`
	Dtype     string        `json:"dtype"`
	Redop     string        `json:"redop"`
	Iters     int           `json:"iters"`
	Warmup    int           `json:"warmup"`
	Checked   bool          `json:"checked"`
	Hosts     []string      `json:"hosts,omitempty"`
	Rows      []benchRow    `json:"rows"`
	Changes   []benchChange `json:"membership,omitempty"`
	AvgBus    float64       `json:"avg_busbw_GBps"`
	Refused   int64         `json:"refused_connections"`
}

// benchRow is one size; the figures of the row itself are those out of place.
type benchRow struct {
	Size  int64  `json:"size_bytes"`
	Count int64  `json:"count"`
	Algo  string `json:"algo"`
	Dtype string `json:"dtype"`
	Ranks int    `json:"ranks,omitempty"` // of an elastic job, where they change
	// Compress is how elements travel, WireBytes what all ranks send in a run.
	Compress  string `json:"compress"`
	WireBytes int64  `json:"wire_bytes"`
	benchHalf
	InPlace *benchHalf `json:"in_place,omitempty"`
}

type benchHalf struct {
	Time    benchTimes `json:"time_us"`
	AlgBW   float64    `json:"algbw_GBps"`
	BusBW   float64    `json:"busbw_GBps"`
	Wrong   int64      `json:"wrong"` // 0 where nobody looked, see checked
	Slowest int        `json:"slowest_rank"`
	Spread  float64    `json:"spread_us"`
}

// benchTimes are per run, of the slowest rank.
type benchTimes struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Mean   float64 `json:"mean"`
}

func newBenchOutput(c *benchRunCmd, e *env, g team, p bench.Plan) *benchOutput {
	o := &benchOutput{c: c, e: e, g: g, p: p, clear: func() {}}
	o.doc = benchDoc{
		Op: p.Op.Kind, Ranks: g.Size(), Transport: string(g.Transport()), Dtype: p.Op.Type.String(), Redop: p.Op.Reduce.String(),
		Iters: p.Iters, Warmup: p.Warm, Checked: p.Check, Hosts: g.Hosts(), Rows: []benchRow{},
	}
	if g.Rank() == 0 {
		o.like = measuredHere(g)
	}
	o.progress(0)
	return o
}

// progress shows which size is next.
func (o *benchOutput) progress(done int) {
	o.clear()
	if o.g.Rank() != 0 || done >= len(o.p.Sizes) {
		o.clear = func() {}
		return
	}
	o.clear = o.e.progress(o.c.common, fmt.Sprintf("%s of %v, size %d of %d", o.p.Op.Kind, o.p.Sizes[done], done+1, len(o.p.Sizes)))
}

// add takes one size.
func (o *benchOutput) add(s *result.Sweep) error {
	s.Describe(&o.like)
	op, err := s.Operation(s.Points[0].Size)
	if err != nil {
		return err
	}
	p := &s.Points[0]
	x := benchRow{Size: int64(p.Size), Count: op.Count(s.Ranks), Algo: p.Algo, Dtype: s.Dtype, Compress: cmp.Or(s.Compress, engine.Uncompressed.String()), WireBytes: int64(p.WireBytes)}
	for _, r := range s.Rows() {
		if h := o.half(r); r.InPlace {
			x.InPlace = &h
		} else {
			x.benchHalf = h
		}
	}
	o.doc.Rows = append(o.doc.Rows, x)
	o.kept.Append(s)
	if !o.c.JSON && !o.c.toStdout() && !o.mute {
		o.clear()
		if !o.head {
			o.head = true
			o.header(o.e.stdout)
		}
		o.line(o.e.stdout, s, op)
	}
	o.progress(len(o.doc.Rows))
	return nil
}

func (o *benchOutput) half(r result.Row) benchHalf {
	x := benchHalf{
		Time:  benchTimes{r.Time.Min, r.Time.Median, r.Time.P99, r.Time.Mean},
		AlgBW: r.AlgBW().GBps(), BusBW: r.BusBW().GBps(), Slowest: *r.Slowest, Spread: r.Spread,
	}
	if r.Wrong != nil {
		x.Wrong = *r.Wrong
		o.wrong += *r.Wrong
	}
	o.sum += x.BusBW
	o.halfs++
	return x
}

// header is nccl-tests'.
func (o *benchOutput) header(w io.Writer) {
	first, last := o.p.Sizes[0], o.p.Sizes[len(o.p.Sizes)-1]
	check := 0
	if o.c.Check {
		check = 1
	}
	fmt.Fprintf(w, "# Collective test starting: %s\n", binary(o.p.Op.Kind))
	fmt.Fprintf(w, "# nThread 1 nGpus 1 minBytes %d maxBytes %d step: %v(factor) warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0\n#\n",
		int64(first), int64(last), o.c.Factor, o.p.Warm, o.p.Iters, check)
	fmt.Fprintf(w, "# Using %d ranks on CPUs, transport %s, algorithm %s\n", o.g.Size(), o.doc.Transport, o.p.Algo)
	if note := crowded(o.g.Members()); note != "" {
		fmt.Fprintf(w, "# %s\n", note)
	}
	if o.p.Wire != engine.Uncompressed {
		fmt.Fprintf(w, "# Elements travel as %s; bandwidths count them uncompressed\n", o.p.Wire)
	}
	for r, m := range o.g.Members() {
		fmt.Fprintf(w, "#  Rank %2d Group  0 Pid %6d on %10s device  %d [0x00] CPU\n", r, m.Pid, m.Host, r)
	}
	fmt.Fprintf(w, "#\n#%58s%-24s%11s%s\n", "", "   out-of-place", "", "in-place")
	fmt.Fprintf(w, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong")
	fmt.Fprintf(w, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")
}

// line is a row of nccl-tests' table.
func (o *benchOutput) line(w io.Writer, s *result.Sweep, op coll.Op) {
	redop, root := cmp.Or(s.Redop, "none"), "-1"
	if s.Op.Rooted() {
		root = fmt.Sprint(s.Root)
	}
	var text strings.Builder // one write, so that nothing comes into the middle of a row
	fmt.Fprintf(&text, "%12d  %12d  %8s  %6s  %6s", int64(op.Bytes), op.Count(s.Ranks), s.Dtype, redop, root)
	for _, r := range s.Rows() {
		wrong := "N/A"
		if r.Wrong != nil {
			wrong = fmt.Sprint(*r.Wrong)
		}
		fmt.Fprintf(&text, "  %7s  %6.2f  %6.2f  %6s", benchTime(r.Time.Mean), r.AlgBW().GBps(), r.BusBW().GBps(), wrong)
	}
	if s.Points[0].In == nil {
		fmt.Fprintf(&text, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A")
	}
	fmt.Fprintln(w, text.String())
}

// benchTime is microseconds in the seven characters that nccl-tests has for them.
func benchTime(us float64) string {
	switch {
	case us >= 100000:
		return fmt.Sprintf("%.0f", us)
	case us >= 10000:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.2f", us)
	}
}

// end prints what comes after the rows.
func (o *benchOutput) end() error {
	o.clear()
	avg := o.sum / float64(max(o.halfs, 1))
	switch {
	case o.c.JSON:
		o.doc.AvgBus = avg
		for _, n := range o.g.Refused() {
			o.doc.Refused += n
		}
		if err := writeIndented(o.e.stdout, o.doc); err != nil {
			return err
		}
	case !o.c.toStdout():
		verdict := fmt.Sprintf("%d OK", o.wrong)
		switch {
		case o.wrong > 0:
			verdict = fmt.Sprintf("%d FAILED", o.wrong)
		case !o.p.Check:
			verdict = "N/A (not checked)"
		}
		fmt.Fprintf(o.e.stdout, "# Out of bounds values : %s\n# Avg bus bandwidth    : %.6g\n#\n# Collective test concluded: %s\n", verdict, avg, binary(o.p.Op.Kind))
	}
	if err := o.c.keep(o.e, o.kept); err != nil {
		return err
	}
	for why, n := range o.g.Refused() {
		if !o.c.Quiet {
			fmt.Fprintf(o.e.stderr, "busbar: %d connections were refused: %s\n", n, why)
		}
	}
	if o.wrong > 0 {
		return errWrong
	}
	return nil
}
