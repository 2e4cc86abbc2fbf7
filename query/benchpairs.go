package query

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// BenchPairs measures every pair of ranks and names slow hosts, links and directions.
type BenchPairs struct {
	Size  Size `default:"4M" placeholder:"SIZE" help:"Message size for bandwidth (default 4M)."`
	Small Size `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Warm  int  `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters int  `name:"iters" default:"10" least:"1" help:"Measured iterations per pair; the fastest quarter counts (default 10)."`
	Alone bool `help:"Measure one pair at a time (default: all disjoint pairs of a round concurrently)."`
}

// BenchPairsDoc is the answer of BenchPairs. Rows of tables send, columns receive; a rank to itself is nil.
type BenchPairsDoc struct {
	Alone       bool              `json:"alone"`          // one pair at a time
	Rate        [][]*float64      `json:"bandwidth_GBps"` // one direction
	Both        [][]*float64      `json:"both_GBps"`      // with the other direction at the same time
	Findings    []finding.Finding `json:"findings"`
	Hosts       []string          `json:"hosts"`
	Iters       int               `json:"iters"`
	Latency     [][]*float64      `json:"latency_us"` // one direction
	MidRate     float64           `json:"median_bandwidth_GBps"`
	MidBoth     float64           `json:"median_both_GBps"`
	MidLatency  float64           `json:"median_latency_us"`
	Names       []string          `json:"names"`           // of the ranks
	Notes       []string          `json:"notes,omitempty"` // why outliers are notes at most
	Ranks       int               `json:"ranks"`
	Scatter     []float64         `json:"scatter,omitempty"` // of bandwidth, both and latency: the median distance of two measurements of a pair, as a logarithm
	Size, Small unit.Bytes        `json:"-"`
	SizeBytes   int64             `json:"size_bytes"`  // of the messages that bandwidth was measured with
	SmallBytes  int64             `json:"small_bytes"` // and latency
	Transport   string            `json:"transport"`
	Tries       int               `json:"tries"` // how often every pair was measured; the best of it counts

	Table *pairs.Table `json:"-"`
}

// Wrong reports findings that are more than notes.
func (d *BenchPairsDoc) Wrong() bool { return finding.Serious(d.Findings) }

// Run measures between ranks of this process, over plain memory.
func (q BenchPairs) Run(ctx context.Context, env Env) (doc *BenchPairsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	return q.RunOn(ctx, env, Ranks[*BenchPairsDoc]{Job: ranks.DefaultJob()})
}

// RunOn measures on the ranks of a job. All fields count as they are: a Warm of 0 is none.
func (q BenchPairs) RunOn(ctx context.Context, env Env, on Ranks[*BenchPairsDoc]) (doc *BenchPairsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Alone: q.Alone}
	if p.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if p.Small, err = q.Small.bytes(); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	t := on.task()
	t.Valid, t.Memory, t.Advice = p.Validate, func(int) unit.Bytes { return p.Memory() },
		"a smaller --size, fewer ranks or more hosts"
	t.Same = fmt.Sprint("pairs", p)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		l := &pairLead{g: g, p: p, show: env.progress}
		table, err := l.measure(ctx)
		if g.Rank() == 0 {
			env.progress("")
		}
		if err != nil {
			return err
		}
		if g.Rank() != 0 {
			return nil
		}
		doc = newBenchPairsDoc(g, p, table)
		doc.Tries = l.tries
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

func newBenchPairsDoc(g *engine.Group, p bench.PairPlan, t *pairs.Table) *BenchPairsDoc {
	d := &BenchPairsDoc{
		Ranks: g.Size(), Names: t.Names, Hosts: g.Hosts(), Transport: string(g.Transport()), Alone: p.Alone, Size: p.Large,
		Small:     p.Small,
		SizeBytes: int64(p.Large), SmallBytes: int64(p.Small), Iters: p.Iters,
		Findings: append([]finding.Finding{}, t.Findings()...), Table: t,
	}
	if note := bench.Crowded(g.Members()); note != "" { // what stands out may be who had a processor
		d.Notes = []string{note}
		for i := range d.Findings {
			d.Findings[i].Severity = finding.Note
		}
	}
	if t.Scatter != [3]float64{} {
		d.Scatter = t.Scatter[:]
	}
	d.Rate, d.MidRate = pairGrid(t, pairs.GBps)
	d.Both, d.MidBoth = pairGrid(t, pairs.BothGBps)
	d.Latency, d.MidLatency = pairGrid(t, pairs.Micros)
	return d
}

// pairGrid is one figure of all pairs, and its median.
func pairGrid(t *pairs.Table, of func(pairs.Measure) float64) ([][]*float64, float64) {
	grid := make([][]*float64, len(t.Names))
	for r := range grid {
		grid[r] = make([]*float64, len(t.Names))
	}
	for _, m := range t.Cells {
		v := of(m)
		grid[m.From][m.To] = &v
	}
	_, mid, _ := t.Extremes(of)
	return grid, mid
}

// rankNames are the hosts', with the rank where a host has several.
func rankNames(members []engine.Member) []string {
	count := map[string]int{}
	for _, m := range members {
		count[m.Host]++
	}
	names := make([]string, len(members))
	for i, m := range members {
		switch {
		case m.Host == "":
			names[i] = fmt.Sprintf("rank %d", i)
		case count[m.Host] > 1:
			names[i] = fmt.Sprintf("%s:%d", m.Host, i)
		default:
			names[i] = m.Host
		}
	}
	return names
}

// pairLead measures pairs of a group: rank 0 says which rounds, and the others follow.
type pairLead struct {
	g     *engine.Group
	p     bench.PairPlan
	show  func(string)
	tries int // how often every pair was measured
}

// measure is rank 0's table; the others have none.
func (l *pairLead) measure(ctx context.Context) (table *pairs.Table, err error) {
	all := pairs.Rounds(l.g.Size())
	if l.g.Rank() != 0 {
		for err == nil {
			if l.p.Rounds, err = l.agree(ctx, nil); err != nil || len(l.p.Rounds) == 0 {
				break
			}
			_, err = bench.Pairs(ctx, l.g, l.p, nil)
		}
		return nil, cannot(err)
	}
	pass := func(rounds [][][2]int) (*pairs.Table, error) {
		if len(rounds) == len(all) {
			l.tries++
		}
		return l.pass(ctx, rounds)
	}
	if bench.Crowded(l.g.Members()) != "" { // what stands out is a note at most, and would be again
		table, err = pass(all)
	} else {
		table, err = measureAgain(all, true, pass)
	}
	if err == nil {
		_, err = l.agree(ctx, [][][2]int{})
	}
	return table, cannot(err)
}

func cannot(err error) error {
	if err == nil {
		return nil
	}
	return failure.Cannot(err)
}

// pass measures rounds once.
func (l *pairLead) pass(ctx context.Context, rounds [][][2]int) (*pairs.Table, error) {
	var err error
	if l.p.Rounds, err = l.agree(ctx, rounds); err != nil {
		return nil, err
	}
	t, err := bench.Pairs(ctx, l.g, l.p,
		func(k int) { l.show(fmt.Sprintf("pairs, round %d of %d", k+1, l.p.Turns(l.g.Size()))) })
	if err != nil {
		return nil, err
	}
	t.Names = rankNames(l.g.Members())
	for _, m := range l.g.Members() {
		t.Hosts = append(t.Hosts, m.Host)
	}
	return t, nil
}

// agree tells all ranks which rounds rank 0 wants; none is the end. A round travels as the partner of every rank.
func (l *pairLead) agree(ctx context.Context, rounds [][][2]int) ([][][2]int, error) {
	n := l.g.Size()
	count := []int32{int32(len(rounds))}
	if err := l.sum(ctx, count); err != nil || count[0] == 0 {
		return nil, err
	}
	partners := make([]int32, n*int(count[0]))
	for k, round := range rounds {
		for _, p := range round {
			partners[k*n+p[0]] = int32(p[1]) + 1
		}
	}
	if err := l.sum(ctx, partners); err != nil {
		return nil, err
	}
	list := make([][][2]int, count[0])
	for k := range list {
		for r := range n {
			if to := partners[k*n+r]; to > 0 {
				list[k] = append(list[k], [2]int{r, int(to) - 1})
			}
		}
	}
	return list, nil
}

// sum adds values over all ranks, of which all but rank 0 have zeros.
func (l *pairLead) sum(ctx context.Context, values []int32) error {
	op := coll.Op{Kind: coll.AllReduce, Type: coll.Int32, Bytes: unit.Bytes(4 * len(values))}
	s, err := l.g.Pick(op)
	if err != nil {
		return err
	}
	out := make([]int32, len(values))
	if _, err := l.g.Run(ctx, s, op, engine.Buffers{Send: engine.Bytes(values), Recv: engine.Bytes(out)}); err != nil {
		return err
	}
	copy(values, out)
	return nil
}
