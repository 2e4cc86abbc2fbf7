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
	Size  string `default:"4M" placeholder:"SIZE" help:"Message size for bandwidth (default 4M)."`
	Small string `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Warm  int    `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters int    `name:"iters" default:"10" least:"1" help:"Measured iterations per pair; the fastest quarter counts (default 10)."`
	Alone bool   `help:"Measure one pair at a time (default: all disjoint pairs of a round concurrently)."`
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
func (q BenchPairs) Run(ctx context.Context, env Env) (*BenchPairsDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	return q.RunOn(ctx, env, Ranks[*BenchPairsDoc]{Job: ranks.DefaultJob()})
}

// RunOn measures on the ranks of a job. All fields count as they are: a Warm of 0 is none.
func (q BenchPairs) RunOn(ctx context.Context, env Env, on Ranks[*BenchPairsDoc]) (doc *BenchPairsDoc, err error) {
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Alone: q.Alone}
	if p.Large, err = unit.ParseBytes(q.Size); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if p.Small, err = unit.ParseBytes(q.Small); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	t := on.task()
	t.Valid, t.Memory, t.Advice = p.Validate, func(int) unit.Bytes { return p.Memory() }, "a smaller --size, fewer ranks or more hosts"
	t.Same = fmt.Sprint("pairs", p)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		tries := checkTries
		if bench.Crowded(g.Members()) != "" { // what stands out is a note at most, and would be again
			tries = 1
		}
		table, turns, err := pairsTwice(ctx, g, p, tries, env.progress)
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
		doc.Tries = turns / p.Turns(g.Size())
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

func newBenchPairsDoc(g *engine.Group, p bench.PairPlan, t *pairs.Table) *BenchPairsDoc {
	d := &BenchPairsDoc{
		Ranks: g.Size(), Names: t.Names, Hosts: g.Hosts(), Transport: string(g.Transport()), Alone: p.Alone, Size: p.Large, Small: p.Small,
		SizeBytes: int64(p.Large), SmallBytes: int64(p.Small), Iters: p.Iters, Findings: append([]finding.Finding{}, t.Findings()...), Table: t,
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

// pairsTwice measures every pair, and again where something stands out; what is slow every time remains.
func pairsTwice(ctx context.Context, g *engine.Group, p bench.PairPlan, tries int, show func(string)) (table *pairs.Table, turns int, err error) {
	for try := range tries {
		got, err := bench.Pairs(ctx, g, p, func(k int) { show(fmt.Sprintf("pairs, round %d of %d", k+1, p.Turns(g.Size()))) })
		if err != nil {
			return nil, turns, failure.Cannot(err)
		}
		turns += p.Turns(g.Size())
		if table == nil {
			table = got
		} else if g.Rank() == 0 {
			table.Better(got)
		}
		doubt := false
		if g.Rank() == 0 {
			table.Names, table.Hosts = rankNames(g.Members()), nil
			for _, m := range g.Members() {
				table.Hosts = append(table.Hosts, m.Host)
			}
			doubt = standsOut(table)
		}
		if again, err := anyOf(ctx, g, doubt); err != nil || !again || try == tries-1 {
			return table, turns, err
		}
	}
	return table, turns, nil
}

// anyOf tells all ranks whether one says so.
func anyOf(ctx context.Context, g *engine.Group, mine bool) (bool, error) {
	op := coll.Op{Kind: coll.AllReduce, Type: coll.Int32, Bytes: 4}
	s, err := g.Pick(op)
	if err != nil {
		return false, err
	}
	send, recv := make([]byte, 4), make([]byte, 4)
	if mine {
		send[0] = 1
	}
	if _, err := g.Run(ctx, s, op, engine.Buffers{Send: send, Recv: recv}); err != nil {
		return false, failure.Cannot(err)
	}
	return recv[0] != 0, nil
}
