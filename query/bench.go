package query

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Bench measures a collective on real memory between ranks, size after size, as nccl-tests does.
type Bench struct {
	Op       Op      `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v (with equal blocks), gather, scatter, sendrecv, hypercube, barrier (default all_reduce)."`
	Min      Size    `short:"b" name:"minbytes" default:"8" placeholder:"SIZE" help:"Smallest size (default 8); 8, 64K, 1M, 1G are 1024-based as in nccl-tests."`
	Max      Size    `short:"e" name:"maxbytes" default:"64M" placeholder:"SIZE" help:"Largest size (default 64M)."`
	Factor   float64 `short:"f" name:"stepfactor" default:"2" help:"Factor between sizes (default 2)."`
	Warm     int     `short:"w" name:"warmup" default:"5" least:"0" help:"Warm-up iterations per size (default 5)."`
	Iters    int     `name:"iters" default:"20" least:"1" help:"Measured iterations per size (default 20)."`
	Dtype    Dtype   `short:"d" default:"float" help:"float, half, bfloat16, double, int8, int32, int64, … (default float)"`
	Redop    string  `default:"sum" help:"sum, prod, min, max, avg, mulsum (default sum)."`
	Root     int     `least:"0" help:"Root rank of broadcast, reduce, gather, scatter."`
	Algo     string  `default:"auto" help:"Algorithm (see busbar sched --list), or auto to choose by size (default auto)."`
	Channels int     `default:"1" least:"1" help:"Number of channels, with --algo NAME (default 1)."`
	Check    bool    `help:"Check the results: count wrong elements, and exit 1 if there are any."`
}

// Run measures between ranks of this process, over plain memory.
func (q Bench) Run(ctx context.Context, env Env) (doc *BenchDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	return q.RunOn(ctx, env, Ranks[*BenchDoc]{Job: ranks.DefaultJob()})
}

// RunOn measures on the ranks of a job. All fields count as they are: a Warm of 0 is none.
func (q Bench) RunOn(ctx context.Context, env Env, on Ranks[*BenchDoc]) (doc *BenchDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	plan, err := q.plan(on.Job.Transport)
	if err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid, t.Memory, t.Advice = plan.Validate, plan.Memory, "a smaller -e, fewer ranks or more hosts"
	t.Same = fmt.Sprint("bench", q.Op, plan.Sizes, q.Warm, q.Iters, q.Dtype, q.Redop, q.Root, q.Algo, q.Channels, q.Check)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		m := newBenchRun(&q, &env, &on, g, plan)
		err := bench.Run(ctx, g, plan, m.add)
		m.clear()
		if err != nil {
			return failure.Cannot(err)
		}
		if g.Rank() != 0 {
			return nil
		}
		m.end()
		doc = m.doc
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// plan is what the fields ask for.
func (q *Bench) plan(transport string) (bench.Plan, error) {
	p := bench.Plan{
		Algo: q.Algo, Warm: q.Warm, Iters: q.Iters, Check: q.Check, Params: schedule.Params{Channels: q.Channels},
	}
	var err error
	if p.Op.Kind, err = q.Op.kind(); err != nil {
		return p, fmt.Errorf("--op: %w", err)
	}
	if p.Op.Type, err = q.Dtype.dtype(); err != nil {
		return p, fmt.Errorf("--dtype: %w", err)
	}
	if p.Op.Reduce, err = coll.ParseRedop(q.Redop); err != nil {
		return p, fmt.Errorf("--redop: %w", err)
	}
	if p.Transport, err = engine.ParseTransport(transport); err != nil {
		return p, fmt.Errorf("--transport: %w", err)
	}
	p.Op.Root = q.Root
	p.Sizes, err = benchSizes(p.Op.Kind, string(q.Min), string(q.Max), q.Factor)
	return p, err
}

// benchSizes go from the smallest to the greatest; a barrier has none. What a host has memory for is
// asked elsewhere: the bound here keeps products of sizes and ranks within what numbers hold.
func benchSizes(kind coll.Kind, from, to string, factor float64) ([]unit.Bytes, error) {
	if kind == coll.Barrier {
		return []unit.Bytes{0}, nil
	}
	least, err := unit.ParseBytes(from)
	if err != nil {
		return nil, fmt.Errorf("-b: %w", err)
	}
	most, err := unit.ParseBytes(to)
	if err != nil {
		return nil, fmt.Errorf("-e: %w", err)
	}
	switch {
	case least < 0 || most < least:
		return nil, fmt.Errorf("-b %s -e %s: expected sizes from the smaller to the greater", from, to)
	case !(factor > 1) && least != most:
		return nil, fmt.Errorf("-f %v: expected a factor above 1", factor)
	case most > 16<<40:
		return nil, fmt.Errorf("-e %s: at most 16 TiB", to)
	}
	var list []unit.Bytes
	for x := least; x <= most; {
		list = append(list, x)
		next := unit.Bytes(float64(x) * factor)
		if next <= x {
			next = x + 1
		}
		if len(list) > 10000 || least == most {
			break
		}
		x = next
	}
	return list, nil
}

// benchRun is one rank's measurement, on its way to a document.
type benchRun struct {
	env   *Env
	on    *Ranks[*BenchDoc]
	group *engine.Group
	plan  bench.Plan
	doc   *BenchDoc
	like  result.Sweep // what all sweeps have in common
	shown bool         // progress was told
	sum   float64      // of bus bandwidths
	rows  int          // of those
}

func newBenchRun(q *Bench, env *Env, on *Ranks[*BenchDoc], g *engine.Group, p bench.Plan) *benchRun {
	m := &benchRun{env: env, on: on, group: g, plan: p, doc: &BenchDoc{
		Op: p.Op.Kind, Ranks: g.Size(), Transport: string(g.Transport()), Dtype: p.Op.Type.String(),
		Redop: p.Op.Reduce.String(),
		Iters: p.Iters, Warmup: p.Warm, Checked: p.Check, Hosts: g.Hosts(), Rows: []BenchRow{},
		Group: g, Plan: p, Factor: q.Factor,
	}}
	if g.Rank() == 0 {
		m.like = bench.Here(g, env.Version)
	}
	m.progress()
	return m
}

// progress tells which size is next, where rank 0 is.
func (m *benchRun) progress() {
	m.clear()
	done := len(m.doc.Rows)
	if m.group.Rank() == 0 {
		m.env.steps(done, len(m.plan.Sizes))
	}
	if m.group.Rank() == 0 && done < len(m.plan.Sizes) {
		m.env.progress(fmt.Sprintf("%s of %v, size %d of %d", m.plan.Op.Kind, m.plan.Sizes[done], done+1, len(m.plan.Sizes)))
		m.shown = true
	}
}

// clear takes what progress told back.
func (m *benchRun) clear() {
	if m.shown {
		m.env.progress("")
		m.shown = false
	}
}

// add takes one size.
func (m *benchRun) add(s *result.Sweep) error {
	s.Describe(&m.like)
	row, err := newBenchRow(s)
	if err != nil {
		return err
	}
	for _, t := range []*BenchTiming{&row.BenchTiming, row.InPlace} {
		if t != nil {
			m.sum += t.BusBW
			m.rows++
		}
	}
	m.doc.Rows = append(m.doc.Rows, row)
	m.doc.Sweeps.Append(s)
	m.clear()
	if err := m.on.row(m.doc); err != nil {
		return err
	}
	m.progress()
	return nil
}

// end fills in what comes after the rows.
func (m *benchRun) end() {
	m.doc.AvgBus = m.sum / float64(max(m.rows, 1))
	m.doc.Refusals = m.group.Refused()
	for _, n := range m.doc.Refusals {
		m.doc.Refused += n
	}
}

// BenchDoc is the answer of Bench.
type BenchDoc struct {
	Op        coll.Kind  `json:"op"`
	Ranks     int        `json:"ranks"`
	Transport string     `json:"transport"` // what carried the bytes: tcp, shm, mem, or auto where hosts share memory within and not between
	Dtype     string     `json:"dtype"`
	Redop     string     `json:"redop"`
	Iters     int        `json:"iters"`   // runs of each size that count
	Warmup    int        `json:"warmup"`  // runs before those
	Checked   bool       `json:"checked"` // results were compared with what they must be
	Hosts     []string   `json:"hosts,omitempty"`
	Rows      []BenchRow `json:"rows"`
	AvgBus    float64    `json:"avg_busbw_GBps"`      // over all rows, out of place and in place
	Refused   int64      `json:"refused_connections"` // that did not belong to the job

	Group    *engine.Group            `json:"-"`
	Plan     bench.Plan               `json:"-"`
	Factor   float64                  `json:"-"` // from size to size
	Refusals map[engine.Refusal]int64 `json:"-"`
	Sweeps   result.Sweeps            `json:"-"` // the rows as they are kept
	Noted
}

// Wrong reports elements that are not what they must be.
func (d *BenchDoc) Wrong() bool { return d.WrongElements() > 0 }

// WrongElements counts them over all rows.
func (d *BenchDoc) WrongElements() (n int64) {
	for i := range d.Rows {
		n += d.Rows[i].Wrong
		if in := d.Rows[i].InPlace; in != nil {
			n += in.Wrong
		}
	}
	return n
}

// BenchRow is one size; the figures of the row itself are those out of place.
type BenchRow struct {
	Size      int64  `json:"size_bytes"`
	Count     int64  `json:"count"` // elements
	Algo      string `json:"algo"`  // of the schedule that ran
	Dtype     string `json:"dtype"`
	WireBytes int64  `json:"wire_bytes"` // what all ranks send in a run
	BenchTiming
	InPlace *BenchTiming `json:"in_place,omitempty"`

	Redop string `json:"-"` // "" where nothing is reduced
	Root  int    `json:"-"` // -1 where there is none
}

// BenchTiming is a size out of place or in place.
type BenchTiming struct {
	Time    BenchTimes `json:"time_us"`
	AlgBW   float64    `json:"algbw_GBps"`
	BusBW   float64    `json:"busbw_GBps"`
	Wrong   int64      `json:"wrong"`        // 0 where results were not checked, see checked
	Slowest int        `json:"slowest_rank"` // whose runs took longest in all
	Spread  float64    `json:"spread_us"`    // between the slowest and the fastest rank, per run
}

// BenchTimes are per run, of the slowest rank.
type BenchTimes struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Mean   float64 `json:"mean"`
}

// newBenchRow is a sweep of one size as a row.
func newBenchRow(s *result.Sweep) (BenchRow, error) {
	p := &s.Points[0]
	op, err := s.Operation(p.Size)
	if err != nil {
		return BenchRow{}, err
	}
	x := BenchRow{
		Size: int64(p.Size), Count: op.Count(s.Ranks), Algo: p.Algo, Dtype: s.Dtype,
		WireBytes: int64(p.WireBytes), Redop: s.Redop, Root: -1,
	}
	if s.Op.Rooted() {
		x.Root = s.Root
	}
	for _, r := range s.Rows() {
		t := BenchTiming{
			Time:  BenchTimes{r.Time.Min, r.Time.Median, r.Time.P99, r.Time.Mean},
			AlgBW: r.AlgBW().GBps(), BusBW: r.BusBW().GBps(), Slowest: *r.Slowest, Spread: r.Spread,
		}
		if r.Wrong != nil {
			t.Wrong = *r.Wrong
		}
		if r.InPlace {
			x.InPlace = &t
		} else {
			x.BenchTiming = t
		}
	}
	return x, nil
}
