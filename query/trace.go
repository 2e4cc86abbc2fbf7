package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/input/kineto"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/unpack"
	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// Trace asks where the time of real steps went, from the traces of a profiler: computing, communication that nothing
// hides, copies, nothing. With a cluster, every collective is held against its prediction; with a model too, the step
// is.
type Trace struct {
	Sources []string `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Traces of PyTorch's profiler (JSON, also .gz) of one or several ranks; folders of them."`
	Job
	FailOn string `name:"fail-on" page:"-" placeholder:"SEVERITY" enum:"note,warn,error,never" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// TraceDoc is the answer to Trace. Times are those of one step where the program marked steps, else of the whole trace.
type TraceDoc struct {
	Ranks    []traceRank       `json:"ranks"`
	Calls    []traceCall       `json:"collectives"`   // of the first rank, those that cost most first
	Job      *rates.Job        `json:"job,omitempty"` // what the ranks waited for each other, from the traces of several
	Verdict  string            `json:"verdict"`       // in one sentence: the step against its prediction
	Findings []finding.Finding `json:"findings"`
	Step     *StepRow          `json:"predicted,omitempty"` // with a cluster and a model

	FailOn
	Noted
}

// traceRank is where the time of one GPU went: Compute, Exposed, Copy and Idle add up to Step.
type traceRank struct {
	File    string `json:"file"`
	Tool    string `json:"tool"`
	Rank    *int   `json:"rank,omitempty"`
	World   int    `json:"world_size,omitempty"`
	Device  int    `json:"device"`
	GPU     string `json:"gpu,omitempty"`
	NCCL    string `json:"nccl,omitempty"`
	Kernels int    `json:"events"`
	trace.Summary
}

// traceCall is one collective of one process group, sizes within a factor of two together.
type traceCall struct {
	Op       string     `json:"op"`
	Group    string     `json:"group,omitempty"`
	Ranks    int        `json:"ranks,omitempty"` // of the group
	Bytes    unit.Bytes `json:"size_bytes,omitempty"`
	Algo     string     `json:"algo,omitempty"`
	Count    float64    `json:"calls"`
	Time     unit.Span  `json:"comm_s"`
	Exposed  unit.Span  `json:"exposed_comm_s"`
	Median   unit.Time  `json:"median_s"`
	Transfer unit.Time  `json:"transfer_s,omitempty"` // without waiting for others, from the traces of several ranks
	BusBW    unit.Rate  `json:"busbw_GBps,omitempty"` // of the transfer where it is known, else of the median
	Expected unit.Time  `json:"expected_s,omitempty"`
	Low      unit.Time  `json:"low_s,omitempty"`
	High     unit.Time  `json:"high_s,omitempty"`
}

// Wrong reports a finding of the severity that was asked for, or a graver one.
func (d *TraceDoc) Wrong() bool {
	return d.in(d.Findings)
}

// check refuses a question that cannot be answered.
func (q *Trace) check() error {
	switch {
	case len(q.Sources) == 0:
		return errors.New("nothing to read: give traces of PyTorch's profiler (prof.export_chrome_trace)")
	case q.Model != "" && q.Cluster == "":
		return requireJob(q.Cluster, q.Model)
	case q.Compare != "":
		return errors.New("--compare: a trace is of one layout; give it with -l")
	}
	return nil
}

// Run reads the traces, adds up their times and predicts beside them.
func (q Trace) Run(ctx context.Context, env Env) (doc *TraceDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	var traces []*trace.Trace
	for _, name := range q.Sources {
		more, err := env.traces(ctx, name)
		if err != nil {
			return nil, err
		}
		traces = append(traces, more...)
	}
	slices.SortStableFunc(traces, func(a, b *trace.Trace) int { return a.Rank - b.Rank })
	trace.Align(traces)
	d := &TraceDoc{Ranks: []traceRank{}, Calls: []traceCall{}, FailOn: failOn(q.FailOn)}
	w := rates.NewWindow(localSamples)
	var first []trace.GroupTime
	for i, t := range traces {
		w.AddTrace(t, i)
		s, groups := t.Summarize()
		r := traceRank{t.File, t.Tool, nil, t.World, t.Device, t.GPU, t.NCCL, len(t.Events), s}
		if t.Rank >= 0 {
			r.Rank = &t.Rank
		}
		if d.Ranks = append(d.Ranks, r); i == 0 {
			first = groups
		}
	}
	together, err := rates.Join(ctx, rates.Bounds{}, w.Done())
	if err != nil {
		return nil, err
	}
	if q.Cluster != "" {
		if err := q.predict(ctx, &env, d, together, traces[0]); err != nil {
			return nil, err
		}
	}
	d.Findings = together.Findings()
	if len(together.Jobs) > 0 && len(together.Jobs[0].Ranks) > 1 {
		d.Job = &together.Jobs[0]
	}
	d.addCalls(first, together)
	d.judge()
	return d, nil
}

// addCalls lists the collectives of a rank, with the transfers and predictions of the calls of all ranks.
func (d *TraceDoc) addCalls(groups []trace.GroupTime, together *rates.Report) {
	type key struct {
		comm, op string
		class    int
	}
	rows := map[key]*rates.Row{}
	for i := range together.Jobs {
		for k := range together.Jobs[i].Rows {
			row := &together.Jobs[i].Rows[k]
			rows[key{row.Comm, row.Op, trace.Class(row.Bytes)}] = row
		}
	}
	for i := range groups {
		g := &groups[i]
		c := traceCall{
			Op: g.Op.String(), Group: cmp.Or(g.Desc, g.Group), Ranks: g.Size, Bytes: g.Bytes, Algo: g.Algo, Count: g.Count,
			Time: g.Time, Exposed: g.Exposed, Median: g.Median, BusBW: g.BusBW,
		}
		if g.P2P {
			c.Op = "send/recv"
		}
		if row := rows[key{rates.GroupOf(&g.Call), g.Op.String(), g.Class}]; row != nil {
			if row.Transfer > 0 {
				c.Transfer, c.BusBW = row.Transfer, row.BusBW
			}
			if e := row.Expected; e != nil {
				c.Expected, c.Low, c.High = e.Time, e.Low, e.High
			}
		}
		d.Calls = append(d.Calls, c)
	}
}

// traces reads a file, a folder or standard input.
func (e *Env) traces(ctx context.Context, name string) (list []*trace.Trace, err error) {
	b := e.logBudget(ctx)
	err = e.eachInput(ctx, name, "the traces", func(path string, in io.Reader, inFolder bool) error {
		t, err := readTrace(b, path, in)
		if err == nil {
			list = append(list, t)
		}
		if len(list) > maxTraces {
			return fmt.Errorf("%s: more than %d traces; give some of the ranks", name, maxTraces)
		}
		if inFolder && err != nil && !errors.Is(err, fs.ErrPermission) {
			if !errors.Is(err, errNoTrace) {
				e.note(err.Error())
			}
			return nil
		}
		return err
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: no trace in this folder", name)
	}
	return list, err
}

// errNoTrace is wrapped by errors about files that are something else.
var errNoTrace = errors.New("not a trace that is known")

// maxTraces bounds the ranks that are held at once.
const maxTraces = 64

// readTrace recognises a trace by its beginning.
func readTrace(b *cluster.Budget, name string, in io.Reader) (*trace.Trace, error) {
	plain, _, err := unpack.Plain(b, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %w", name, errNoTrace, err)
	}
	head, err := plain.Peek(1 << 16)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failure.Cannot(fmt.Errorf("%s: %w", name, err))
	}
	if !kineto.Match(head) {
		return nil, fmt.Errorf("%s: %w; expected PyTorch's (prof.export_chrome_trace)", name, errNoTrace)
	}
	return kineto.Read(name, plain)
}

// excess is a part of a traced step that takes longer than predicted.
type excess struct {
	what             string
	traced, expected unit.Span
	why              string
}

func (x *excess) over() unit.Span { return x.traced - x.expected }

// judge says in one sentence how the traced step compares with its prediction. Above the range it is a finding, with
// the parts that take longer; products in 32 bits are a note, because a program may want them.
func (d *TraceDoc) judge() {
	r, p := &d.Ranks[0], d.Step
	if r.FP32 > r.Compute/2 {
		d.Findings = append(d.Findings, finding.Finding{
			ID: "fp32-matmul", Kind: "fp32-matmul", Severity: finding.Note, Confidence: 1,
			Text: fmt.Sprintf("Matrix products in 32 bits without tensor cores take %s of the %s of computing.", r.FP32.Short(),
				r.Compute.Short()),
			Fix: "torch.set_float32_matmul_precision('high') computes them in TF32; bf16 (torch.autocast) is faster still",
		})
	}
	took := fmt.Sprintf("The step takes %s", r.Step.Short())
	switch {
	case r.Steps == 0:
		d.Verdict = "No steps are marked, so there is no step time to judge: call prof.step() of PyTorch's " +
			"profiler after every step."
	case p == nil:
		d.Verdict = took + ". To compare it with its prediction, give the cluster and the model."
	case r.Step < p.Low:
		d.Verdict = fmt.Sprintf("%s, predicted %s to %s: it is faster than predicted. Check that model, batch and "+
			"precision are those of the traced job.", took, p.Low.Short(), p.High.Short())
	case r.Step <= p.High:
		d.Verdict = fmt.Sprintf("%s, predicted %s to %s: it is within the range.", took, p.Low.Short(), p.High.Short())
	default:
		d.over(took)
	}
}

// over is the verdict on a step that takes longer than the range of its prediction.
func (d *TraceDoc) over(took string) {
	r, p := &d.Ranks[0], d.Step
	parts := []excess{
		{"computing", r.Compute, p.Compute + p.Optimizer, ""},
		{"exposed communication", r.Exposed, p.Exposed, d.slowCall()},
		{"idle time and copies", r.Idle + r.Copy, p.Bubble + p.Host, "the host is too slow or waits for data"},
	}
	if r.FP32 > r.Compute/2 {
		parts[0].why = fmt.Sprintf("%s of it are matrix products in 32 bits without tensor cores", r.FP32.Short())
	}
	slices.SortStableFunc(parts, func(a, b excess) int { return cmp.Compare(b.over(), a.over()) })
	var because []string
	for _, x := range parts {
		if x.over() < (r.Step-p.Step)/5 && len(because) > 0 {
			continue
		}
		text := fmt.Sprintf("%s takes %s instead of %s", x.what, x.traced.Short(), x.expected.Short())
		if x.why != "" {
			text += " (" + x.why + ")"
		}
		because = append(because, text)
	}
	d.Verdict = fmt.Sprintf("%s, predicted %s to %s: over by %s because %s.", took, p.Low.Short(), p.High.Short(),
		(r.Step - p.High).Short(), strings.Join(because, ", and "))
	d.Findings = append(d.Findings, finding.Finding{
		ID: "slow-step", Kind: "slow-step", Severity: finding.Warn, Text: d.Verdict, Factor: float64(p.Step / r.Step),
		Figure: "step",
		Fix: "check first that model, batch, precision and layout are those of the traced job; busbar doctor on the job's " +
			"log names settings",
	})
	slices.SortStableFunc(d.Findings, finding.BySeverity)
}

// slowCall is the collective with the most exposed time that takes longer than its prediction allows. The kernel's time
// has the waiting for other ranks in it, which only the traces of several separate.
func (d *TraceDoc) slowCall() string {
	for i := range d.Calls {
		c := &d.Calls[i]
		t, note := c.Transfer, ""
		if t == 0 {
			t, note = c.Median, ", waiting for other ranks included; traces of all ranks separate the two"
		}
		if c.High > 0 && t > c.High {
			return fmt.Sprintf("%s of %s takes %s, expected %s to %s%s", c.Op, c.Bytes, t, c.Low, c.High, note)
		}
	}
	return ""
}

// predict puts predictions beside what a trace measured: of every collective whose group and size it names, and of the
// step where a model is given.
func (q *Trace) predict(ctx context.Context, env *Env, d *TraceDoc, together *rates.Report, t *trace.Trace) error {
	place := q.placement()
	shapes, err := place.shapes()
	if err != nil {
		return err
	}
	release := cmp.Or(q.NCCL, t.NCCL)
	if _, err := env.parseNCCL(release); err != nil && q.NCCL != "" {
		return err
	} else if err != nil {
		release = ""
	}
	cl, err := place.loadGPUs(ctx, env, shapes)
	if err != nil {
		return err
	}
	per := cmp.Or(shapes[0].gpus, cl.TypeOf(0).Count(cluster.GPU))
	quiet := *env
	quiet.Note, quiet.Verbose = nil, nil
	place.devices = "" // groups are on some of these
	of := rowPredictors(ctx, &quiet, place, release)
	for i := range together.Jobs {
		for k := range together.Jobs[i].Rows {
			row := &together.Jobs[i].Rows[k]
			if row.Nodes = groupNodes(t, row, per); row.Nodes == 0 || row.Bytes == 0 {
				continue
			}
			if p, err := of(row); err == nil {
				_ = row.Expect(p) // rows without an expectation are told all the same
			}
		}
	}
	if q.Model == "" {
		return nil
	}
	doc, err := Step{Job: q.Job}.Run(ctx, *env)
	if err != nil {
		return err
	}
	d.Step = &doc.Rows[0]
	return nil
}

// groupNodes is how many nodes the process group of a row is on, with as many ranks on each; 0 where the trace does not
// say it. Ranks are taken to be numbered node by node, as launchers do it.
func groupNodes(t *trace.Trace, row *rates.Row, per int) int {
	at := slices.IndexFunc(t.Calls, func(c trace.Call) bool { return rates.GroupOf(&c) == row.Comm })
	if at < 0 || row.Ranks < 2 || per < 1 || len(t.Calls[at].Ranks) != row.Ranks {
		return 0
	}
	ranks := map[int]int{} // of each node
	for _, r := range t.Calls[at].Ranks {
		ranks[r/per]++
	}
	for _, n := range ranks {
		if n*len(ranks) != row.Ranks {
			return 0
		}
	}
	return len(ranks)
}
