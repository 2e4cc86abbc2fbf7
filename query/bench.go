package query

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
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
	Algo     string  `default:"auto" help:"Algorithm (see busbar list algorithms), or auto to choose by size (default auto)."`
	Channels int     `default:"1" least:"1" help:"Number of channels, with --algo NAME (default 1)."`
	Groups   string  `placeholder:"SIZE|LIST" help:"With --algo hierarchical, groups of nearby ranks, such as a rack's: 4 is groups of four, 0-3/4-7 names them (default: those of a host)."`
	Check    bool    `help:"Check the results: count wrong elements, and exit 1 if there are any."`
}

// Run measures between ranks of this process, over plain memory.
func (q Bench) Run(ctx context.Context, env Env) (*BenchDoc, error) {
	return alone(ctx, env, q, Bench.RunOn)
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
	t.Same = fmt.Sprint("bench", q)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		plan := plan // ranks may share this process
		groups, err := parseGroups(q.Groups, g.Size())
		if err != nil {
			return err
		}
		plan.Params.Groups = groups
		d := newBenchDoc(&q, g, plan)
		if err := d.measure(ctx, &env, &on, g, plan); err != nil || g.Rank() != 0 {
			return err
		}
		doc = d
		return on.answer(d, keep)
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
		return p, err
	}
	if p.Op.Type, err = q.Dtype.dtype(); err != nil {
		return p, err
	}
	if p.Op.Reduce, err = coll.ParseRedop(q.Redop); err != nil {
		return p, fmt.Errorf("--redop: %w", err)
	}
	if p.Transport, err = engine.ParseTransport(transport); err != nil {
		return p, fmt.Errorf("--transport: %w", err)
	}
	if b, err := schedule.Find(q.Algo); q.Groups != "" && (err != nil || b.Needs != "groups") {
		return p, fmt.Errorf("--groups has no effect with --algo %s; expected --algo hierarchical", q.Algo)
	}
	p.Op.Root = q.Root
	p.Sizes, err = benchSizes(p.Op.Kind, q.Min, q.Max, q.Factor)
	return p, err
}

// benchSizes go from the smallest to the greatest; a barrier has none. What a host has memory for is
// asked elsewhere: the bound here keeps products of sizes and ranks within what numbers hold.
func benchSizes(kind coll.Kind, from, to Size, factor float64) ([]unit.Bytes, error) {
	if kind == coll.Barrier {
		return []unit.Bytes{0}, nil
	}
	least, err := from.bytes()
	if err != nil {
		return nil, flagged("-b", err)
	}
	most, err := to.bytes()
	if err != nil {
		return nil, flagged("-e", err)
	}
	if most > 16*unit.TiB {
		return nil, fmt.Errorf("-e %s: at most 16 TiB", to)
	}
	return sizeSteps(least, most, factor)
}

func newBenchDoc(q *Bench, g *engine.Group, p bench.Plan) *BenchDoc {
	return &BenchDoc{
		Op: p.Op.Kind, Ranks: g.Size(), Transport: g.Transport(), Dtype: p.Op.Type.String(), Redop: p.Op.Reduce.String(),
		Algo: p.Algo, Iters: p.Iters, Warmup: p.Warm, Checked: p.Check, Hosts: g.Hosts(), Members: g.Members(),
		Crowded: bench.Crowded(g.Members()), Min: p.Sizes[0], Max: p.Sizes[len(p.Sizes)-1], Factor: q.Factor,
		Rows: []bench.Row{},
	}
}

// measure fills in the rows where rank 0 is, size after size, and what comes after them.
func (d *BenchDoc) measure(ctx context.Context, env *Env, on *Ranks[*BenchDoc], g *engine.Group, p bench.Plan) error {
	var here result.Sweep // what all sweeps have in common
	begin := func(k int) {
		env.steps(k, len(p.Sizes))
		if k < len(p.Sizes) {
			env.progress(fmt.Sprintf("%s of %v, size %d of %d", p.Op.Kind, p.Sizes[k], k+1, len(p.Sizes)))
		}
	}
	if g.Rank() == 0 {
		here = bench.Here(g, env.Version)
		begin(0)
		defer env.progress("")
	}
	err := bench.Run(ctx, g, p, func(s *result.Sweep) error {
		env.progress("")
		s.Describe(&here)
		d.Results.Append(s)
		d.Rows = append(d.Rows, bench.NewRow(s, p.Op))
		if err := on.row(d); err != nil {
			return err
		}
		begin(len(d.Rows))
		return nil
	})
	if err != nil {
		return failure.Cannot(err)
	}
	rows := d.Results.Rows()
	for _, r := range rows {
		d.AvgBus += r.BusBW().GBps() / float64(len(rows))
	}
	for why, n := range g.Refused() {
		d.Refused += n
		d.Refusals = append(d.Refusals, fmt.Sprintf("%d connections were refused: %s", n, why))
	}
	return nil
}

// BenchDoc is the answer of Bench.
type BenchDoc struct {
	Op        coll.Kind        `json:"op"`
	Ranks     int              `json:"ranks"`
	Transport engine.Transport `json:"transport"` // what carried the bytes: tcp, shm, mem, or auto where hosts share memory within and not between
	Dtype     string           `json:"dtype"`
	Redop     string           `json:"redop"`
	Algo      string           `json:"algo"`    // that was asked for; auto: by size
	Iters     int              `json:"iters"`   // runs of each size that count
	Warmup    int              `json:"warmup"`  // runs before those
	Checked   bool             `json:"checked"` // results were compared with what they must be
	Hosts     []string         `json:"hosts,omitempty"`
	Members   []engine.Member  `json:"members"`
	Crowded   string           `json:"crowded,omitempty"` // that ranks wait for processors
	Min       unit.Bytes       `json:"min_bytes"`         // that was asked for
	Max       unit.Bytes       `json:"max_bytes"`
	Factor    float64          `json:"step_factor"` // from size to size
	Rows      []bench.Row      `json:"rows"`
	Results   result.Sweeps    `json:"results"`             // the rows as they are kept
	AvgBus    float64          `json:"avg_busbw_GBps"`      // over all rows, out of place and in place
	Refused   int64            `json:"refused_connections"` // that did not belong to the job
	Refusals  []string         `json:"refusals,omitempty"`  // why
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
