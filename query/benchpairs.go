package query

import (
	"context"
	"fmt"
	"slices"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
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
	Alone      bool              `json:"alone"`          // one pair at a time
	Rate       pairs.Grid        `json:"bandwidth_GBps"` // one direction
	Both       pairs.Grid        `json:"both_GBps"`      // with the other direction at the same time
	Findings   []finding.Finding `json:"findings"`
	Hosts      []string          `json:"hosts"`
	Iters      int               `json:"iters"`
	Latency    pairs.Grid        `json:"latency_s"` // one direction
	MidRate    float64           `json:"median_bandwidth_GBps"`
	MidBoth    float64           `json:"median_both_GBps"`
	MidLatency float64           `json:"median_latency_s"`
	Names      []string          `json:"names"`           // of the ranks
	Notes      []string          `json:"notes,omitempty"` // why outliers are notes at most
	Ranks      int               `json:"ranks"`
	Scatter    []float64         `json:"scatter,omitempty"` // of bandwidth, both and latency: the median distance of two measurements of a pair, as a logarithm
	Size       unit.Bytes        `json:"size_bytes"`        // of the messages that bandwidth was measured with
	Small      unit.Bytes        `json:"small_bytes"`       // and latency
	Transport  string            `json:"transport"`
	Tries      int               `json:"tries"` // how often every pair was measured; the best of it counts
}

// Wrong reports findings that are more than notes.
func (d *BenchPairsDoc) Wrong() bool { return finding.Serious(d.Findings) }

// Run measures between ranks of this process, over plain memory.
func (q BenchPairs) Run(ctx context.Context, env Env) (*BenchPairsDoc, error) {
	return alone(ctx, env, q, BenchPairs.RunOn)
}

// RunOn measures on the ranks of a job. All fields count as they are: a Warm of 0 is none.
func (q BenchPairs) RunOn(ctx context.Context, env Env, on Ranks[*BenchPairsDoc]) (doc *BenchPairsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Alone: q.Alone}
	if err := pairSizes(q.Size, q.Small, &p.Large, &p.Small); err != nil {
		return nil, err
	}
	t := on.task()
	t.Valid, t.Memory, t.Advice = p.Validate, func(int) unit.Bytes { return p.Memory() },
		"a smaller --size, fewer ranks or more hosts"
	t.Same = fmt.Sprint("pairs", p)
	t.Work = func(g *engine.Group, keep func([]byte) error) error {
		table, tries, err := measure.Group(ctx, g, p, env.progress)
		if g.Rank() == 0 {
			env.progress("")
		}
		if err != nil {
			return failure.Cannot(err)
		}
		if g.Rank() != 0 {
			return nil
		}
		var notes []string
		if note := bench.Crowded(g.Members()); note != "" { // what stands out may be who had a processor
			notes = []string{note}
		}
		doc = newBenchPairsDoc(table, p, string(g.Transport()), notes)
		doc.Tries = tries
		return on.answer(doc, keep)
	}
	err = on.run(ctx, t)
	return doc, err
}

// newBenchPairsDoc is a table as a document; with notes, what stands out is a note at most.
func newBenchPairsDoc(t *pairs.Table, p bench.PairPlan, transport string, notes []string) *BenchPairsDoc {
	d := &BenchPairsDoc{
		Ranks: len(t.Names), Names: t.Names, Transport: transport, Alone: p.Alone, Size: p.Large, Small: p.Small,
		Iters: p.Iters, Notes: notes, Findings: append([]finding.Finding{}, t.Findings()...),
	}
	for _, h := range t.Hosts {
		if !slices.Contains(d.Hosts, h) {
			d.Hosts = append(d.Hosts, h)
		}
	}
	for i := range d.Findings {
		if len(notes) > 0 {
			d.Findings[i].Severity = finding.Note
		}
	}
	if t.Scatter != [3]float64{} {
		d.Scatter = t.Scatter[:]
	}
	d.Rate, d.MidRate = t.Grid(pairs.GBps)
	d.Both, d.MidBoth = t.Grid(pairs.BothGBps)
	d.Latency, d.MidLatency = t.Grid(pairs.Seconds)
	return d
}
