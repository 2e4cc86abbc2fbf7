package query

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/input/kineto"
	"busbar.dev/input/nsys"
	"busbar.dev/internal/failure"
	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// Trace asks where the time of real steps went, from the traces of a profiler: computing, communication that nothing hides,
// copies, nothing. With a cluster, every collective is held against its prediction; with a model too, the step is.
type Trace struct {
	Sources []string `arg:"" optional:"" name:"path" page:"file" names:"files" help:"Traces of PyTorch's profiler (JSON, also .gz), exports of Nsight Systems (SQLite, or cuda_gpu_trace as CSV or JSON), of one or several ranks; folders of them."`
	Job
	FailOn string `name:"fail-on" page:"-" placeholder:"SEVERITY" default:"warn" help:"Lowest severity that makes the exit code 1: note, warn, error or never (default warn)."`
}

// TraceDoc is the answer to Trace. Times are those of one step where the program marked steps, else of the whole trace.
type TraceDoc struct {
	Ranks    []TraceRank       `json:"ranks"`
	Calls    []TraceCall       `json:"collectives"`   // of the first rank, those that cost most first
	Job      *rates.Job        `json:"job,omitempty"` // what the ranks waited for each other, from the traces of several
	Verdict  string            `json:"verdict"`       // in one sentence: the step against its prediction
	Findings []finding.Finding `json:"findings"`
	Step     *StepRow          `json:"predicted,omitempty"` // with a cluster and a model

	FailOn
	Noted
}

// TraceRank is where the time of one GPU went: Compute, Exposed, Copy and Idle add up to Step.
type TraceRank struct {
	File    string    `json:"file"`
	Tool    string    `json:"tool"`
	Rank    *int      `json:"rank,omitempty"`
	World   int       `json:"world_size,omitempty"`
	Device  int       `json:"device"`
	GPU     string    `json:"gpu,omitempty"`
	NCCL    string    `json:"nccl,omitempty"`
	Steps   int       `json:"steps"` // that were marked; 0: times are of the whole trace
	Kernels int       `json:"events"`
	Step    unit.Span `json:"step_s"`
	Compute unit.Span `json:"compute_s"`
	Comm    unit.Span `json:"comm_s"`
	Exposed unit.Span `json:"exposed_comm_s"`
	Copy    unit.Span `json:"copy_s"`
	Idle    unit.Span `json:"idle_s"`
	FP32    unit.Span `json:"fp32_matmul_s,omitempty"` // of Compute, matrix products in 32 bits without tensor cores
}

// TraceCall is one collective of one process group, sizes within a factor of two together.
type TraceCall struct {
	Op       string     `json:"op"`
	Group    string     `json:"group,omitempty"`
	Ranks    int        `json:"ranks,omitempty"` // of the group
	Bytes    unit.Bytes `json:"size_bytes,omitempty"`
	Algo     string     `json:"algo,omitempty"`
	Count    float64    `json:"calls"`
	Time     unit.Span  `json:"comm_s"`
	Exposed  unit.Span  `json:"exposed_comm_s"`
	Median   unit.Time  `json:"median_us"`
	Transfer unit.Time  `json:"transfer_us,omitempty"` // without waiting for others, from the traces of several ranks
	BusBW    unit.Rate  `json:"busbw_GBps,omitempty"`  // of the transfer where it is known, else of the median
	Expected unit.Time  `json:"expected_us,omitempty"`
	Low      unit.Time  `json:"low_us,omitempty"`
	High     unit.Time  `json:"high_us,omitempty"`

	members []int
	row     rowKey
}

// rowKey finds the row of a report that is about the same calls.
type rowKey struct {
	comm, op string
	class    int
}

// Wrong reports a finding of the severity that was asked for, or a graver one.
func (d *TraceDoc) Wrong() bool {
	return d.in(d.Findings)
}

// Check refuses a question that cannot be answered.
func (q Trace) Check() error {
	_, err := finding.ParseSeverity(q.FailOn)
	switch {
	case err != nil && q.FailOn != "never" && q.FailOn != "":
		return fmt.Errorf("--fail-on %s: expected note, warn, error or never", q.FailOn)
	case len(q.Sources) == 0:
		return errors.New("nothing to read: give traces of PyTorch's profiler (prof.export_chrome_trace) or of Nsight Systems (nsys export --type sqlite)")
	case q.Model != "" && q.Cluster == "":
		return requireJob(q.Cluster, q.Model)
	case q.Compare != "":
		return errors.New("--compare: a trace is of one layout; give it with -l")
	}
	return nil
}

// Run reads the traces, adds up their times and predicts beside them.
func (q Trace) Run(ctx context.Context, env Env) (doc *TraceDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
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
	d := &TraceDoc{Ranks: []TraceRank{}, Calls: []TraceCall{}, Findings: []finding.Finding{}, FailOn: failOn(q.FailOn)}
	w := rates.NewWindow(localSamples)
	for i, t := range traces {
		w.AddTrace(t, i)
		s := t.Summarize()
		d.Ranks = append(d.Ranks, traceRank(t, &s))
		if i == 0 {
			d.addCalls(&s)
		}
	}
	together := rates.Join(w.Done())
	if q.Cluster != "" {
		if err := q.predict(ctx, &env, d, together, traces[0]); err != nil {
			return nil, err
		}
	}
	d.join(together)
	d.judge()
	return d, nil
}

func traceRank(t *trace.Trace, s *trace.Summary) TraceRank {
	r := TraceRank{
		File: t.File, Tool: t.Tool, World: t.World, Device: t.Device, GPU: t.GPU, NCCL: t.NCCL, Steps: s.Steps, Kernels: len(t.Events),
		Step: s.Step, Compute: s.Compute, Comm: s.Comm, Exposed: s.Exposed, Copy: s.Copy, Idle: s.Idle, FP32: s.FP32,
	}
	if t.Rank >= 0 {
		r.Rank = &t.Rank
	}
	return r
}

// addCalls lists the collectives of a rank.
func (d *TraceDoc) addCalls(s *trace.Summary) {
	for i := range s.Groups {
		g := &s.Groups[i]
		c := TraceCall{
			Op: g.Op.String(), Group: g.Desc, Ranks: g.Size, Bytes: g.Bytes, Algo: g.Algo, Count: g.Count, Time: g.Time,
			Exposed: g.Exposed, Median: g.Median, BusBW: g.BusBW, members: g.Call.Ranks,
		}
		c.Group = cmp.Or(c.Group, g.Group)
		if g.P2P {
			c.Op = "send/recv"
		}
		c.row = rowKey{rates.GroupOf(&g.Call), g.Op.String(), g.Class}
		d.Calls = append(d.Calls, c)
	}
}

// join takes over what the ranks' calls say together: transfers, predictions and findings.
func (d *TraceDoc) join(r *rates.Report) {
	d.Findings = r.Findings()
	if len(r.Jobs) == 0 {
		return
	}
	if len(r.Jobs[0].Ranks) > 1 {
		d.Job = &r.Jobs[0]
	}
	for i := range r.Jobs[0].Rows {
		row := &r.Jobs[0].Rows[i]
		for k := range d.Calls {
			c := &d.Calls[k]
			if c.row != (rowKey{row.Comm, row.Op, trace.Class(row.Bytes)}) {
				continue
			}
			if row.Transfer > 0 {
				c.Transfer, c.BusBW = row.Transfer, row.BusBW
			}
			if e := row.Expected; e != nil {
				c.Expected, c.Low, c.High = e.Time, e.Low, e.High
			}
		}
	}
}

// traces reads a file, a folder or standard input.
func (e *Env) traces(ctx context.Context, name string) ([]*trace.Trace, error) {
	if name == "-" {
		return readTrace("standard input", e.stdin())
	}
	var list []*trace.Trace
	err := e.eachFile(ctx, name, "the traces", func(path string, inFolder bool) error {
		more, err := e.traceFile(path)
		if list = append(list, more...); len(list) > maxTraces {
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

func (e *Env) traceFile(name string) ([]*trace.Trace, error) {
	f, err := e.files().Open(name)
	if err != nil {
		return nil, failure.Cannot(err)
	}
	defer f.Close()
	return readTrace(name, f)
}

// maxTraceHeld bounds an export that cannot be read where it lies.
const maxTraceHeld = 1 << 30

// readTrace recognises a trace by its beginning.
func readTrace(name string, in io.Reader) ([]*trace.Trace, error) {
	head := make([]byte, 1<<16)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, failure.Cannot(fmt.Errorf("%s: %w", name, err))
	}
	head = head[:n]
	switch {
	case kineto.Match(head):
		t, err := kineto.Read(name, io.MultiReader(bytes.NewReader(head), in))
		if err != nil {
			return nil, err
		}
		return []*trace.Trace{t}, nil
	case !nsys.Match(head):
		return nil, fmt.Errorf("%s: %w; expected PyTorch's (prof.export_chrome_trace), or Nsight's as SQLite (nsys export --type sqlite) or as CSV (nsys stats --report cuda_gpu_trace --format csv)", name, errNoTrace)
	}
	if f, ok := in.(interface {
		io.ReaderAt
		Stat() (fs.FileInfo, error)
	}); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return nsys.Read(name, f, info.Size())
		}
	}
	rest, err := io.ReadAll(io.LimitReader(in, maxTraceHeld))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("%s: %w", name, err))
	}
	data := append(head, rest...)
	return nsys.Read(name, bytes.NewReader(data), int64(len(data)))
}
