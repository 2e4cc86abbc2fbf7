package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// everyKind are the collectives that busbar-gpu runs and that predictions know; hypercube is run where it is named.
func everyKind() []coll.Kind {
	return []coll.Kind{coll.AllReduce, coll.ReduceScatter, coll.AllGather, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.Gather, coll.Scatter, coll.SendRecv}
}

// kinds are those of --op, which may be all.
func (q *BenchGPU) kinds() ([]coll.Kind, error) {
	if q.Op == "all" {
		return everyKind(), nil
	}
	k, err := q.Op.kind()
	switch {
	case err != nil:
		return nil, fmt.Errorf("--op: %w", err)
	case k == coll.AllToAllV || k == coll.Barrier:
		return nil, fmt.Errorf("--op %s: busbar-gpu does not run it; --by nccl-tests may", k)
	}
	return []coll.Kind{k}, nil
}

// own measures by busbar-gpu: NCCL's own choice, and the settings that --algos and --channels name.
func (q BenchGPU) own(ctx context.Context, env Env, with Programs) (*BenchGPUDoc, error) {
	kinds, err := q.kinds()
	if err != nil {
		return nil, err
	}
	all := q
	all.Op, all.Factor = OpOf(kinds[0]), 2 // checked with the factor that was given below
	t, settings, err := all.test(ctx, env)
	if err != nil {
		return nil, err
	}
	if len(q.Algos) == 0 { // every setting needs workers of its own
		settings = settings[:1]
		for _, s := range q.Channels {
			if s != "auto" {
				list, err := q.settings(kinds[0])
				if err != nil {
					return nil, err
				}
				settings = list
				break
			}
		}
	}
	if with.Ready != nil {
		if err := with.Ready(); err != nil {
			return nil, err
		}
	}
	d := &BenchGPUDoc{Op: kinds[0], Refused: []BenchGPURefusal{}, Rows: []BenchGPURow{}, Own: true}
	per := make([]gpu.Results, len(kinds))
	for range q.Repeat {
		for _, s := range settings {
			if err := q.ownSetting(ctx, env, with, t, s, kinds, per, d); err != nil {
				if ctx.Err() != nil || s.Auto() {
					return nil, err
				}
				d.refuse(s, err)
			}
		}
	}
	for i := range per {
		d.add(kinds[i], &per[i])
	}
	return d, nil
}

// ownSetting measures all collectives by workers that were started with a setting.
func (q *BenchGPU) ownSetting(ctx context.Context, env Env, with Programs, t *gpu.Test, s gpu.Setting, kinds []coll.Kind, per []gpu.Results, d *BenchGPUDoc) error {
	team, notes, err := q.workers(ctx, with, t.Launch, s.Env(), true)
	if err != nil {
		return err
	}
	defer team.End()
	if busy := busyTeam(ctx, team); busy != "" {
		notes = append(notes, busy+": times are of a GPU that others use too")
	}
	d.Notes = notes
	own := gpu.Own{Dtype: t.Dtype, Warm: q.Warm, Iters: q.Iters, Check: q.Check, Timeout: q.Timeout, Cluster: q.Cluster, Setting: s}
	for i, kind := range kinds {
		if kind == coll.Hypercube && len(team)&(len(team)-1) != 0 {
			continue // it needs a power of two
		}
		sizes, err := benchSizes(kind, string(q.Min), string(q.Max), q.Factor)
		if err != nil {
			return err
		}
		sweep, err := own.Sweep(ctx, team, kind, sizes, func(size unit.Bytes) { env.progress(fmt.Sprintf("%s, %s, %v", kind, s, size)) })
		env.progress("")
		if err != nil {
			return failure.Cannot(err)
		}
		if len(sweep.Points) > 0 {
			per[i].Add(s, result.Sweeps{sweep})
		}
	}
	return nil
}

// add takes what a collective gave.
func (d *BenchGPUDoc) add(kind coll.Kind, got *gpu.Results) {
	if len(got.Sweeps) == 0 {
		return
	}
	part := &BenchGPUDoc{Op: kind}
	part.fill(got)
	d.Ops = append(d.Ops, kind)
	if d.Ranks == 0 {
		d.Ranks, d.Dtype, d.Tool, d.Library, d.GPU, d.Settings, d.Best = part.Ranks, part.Dtype, part.Tool, part.Library, part.GPU, part.Settings, part.Best
	}
	d.Rows = append(d.Rows, part.Rows...)
	d.Results = append(d.Results, part.Results...)
	d.Bad += part.Bad
}

// BenchGPUPairs measures every pair of GPUs by NCCL's sends and receives.
type BenchGPUPairs struct {
	GPURanks
	Size   Size   `default:"64M" placeholder:"SIZE" help:"Message size for bandwidth (default 64M)."`
	Small  Size   `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Warm   int    `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters  int    `name:"iters" default:"10" least:"1" help:"Measured iterations per pair (default 10)."`
	Alone  bool   `help:"Measure one pair at a time (default: all disjoint pairs of a round concurrently)."`
	Check  bool   `help:"Check what arrives."`
	Launch string `placeholder:"COMMAND" help:"Launch command such as \"srun -N 2 --ntasks-per-node 8\"; -n says how many ranks it starts in all."`
}

// RunWith measures.
func (q BenchGPUPairs) RunWith(ctx context.Context, env Env, with Programs) (doc *BenchPairsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Alone: q.Alone}
	if p.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if p.Small, err = q.Small.bytes(); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	launch, err := gpu.SplitWords(q.Launch)
	if err != nil {
		return nil, fmt.Errorf("--launch %s: %w", q.Launch, err)
	}
	team, notes, err := q.workers(ctx, with, launch, nil, true)
	if err != nil {
		return nil, err
	}
	defer team.End()
	if len(team) < 2 {
		return nil, failure.Cannot(errors.New("one GPU has nobody to be measured with; expected two or more, or -n 2 to share one"))
	}
	return pairsOf(ctx, env, team, p, q.Check, notes)
}

func pairsOf(ctx context.Context, env Env, team device.Team, p bench.PairPlan, check bool, notes []string) (*BenchPairsDoc, error) {
	table, wrong, err := gpu.Pairs(ctx, team, p, check, func(k int) { env.progress(fmt.Sprintf("pairs, round %d", k+1)) })
	env.progress("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	d := &BenchPairsDoc{
		Ranks: len(team), Names: table.Names, Hosts: distinct(table.Hosts), Transport: result.NCCL, Alone: p.Alone, Size: p.Large, Small: p.Small,
		SizeBytes: int64(p.Large), SmallBytes: int64(p.Small), Iters: p.Iters, Findings: append([]finding.Finding{}, table.Findings()...), Table: table,
	}
	if len(notes) > 0 { // what stands out may be whose turn it was on the GPU
		d.Notes = notes
		for i := range d.Findings {
			d.Findings[i].Severity = finding.Note
		}
	}
	if wrong > 0 {
		d.Findings = append(d.Findings, finding.Finding{Severity: finding.Error, Confidence: 1, Text: fmt.Sprintf("%d bytes arrived wrong", wrong)})
	}
	d.Rate, d.MidRate = pairGrid(table, pairs.GBps)
	d.Both, d.MidBoth = pairGrid(table, pairs.BothGBps)
	d.Latency, d.MidLatency = pairGrid(table, pairs.Micros)
	return d, nil
}

// distinct are different texts, in their order.
func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
