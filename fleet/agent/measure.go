package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/fleet"
	"busbar.dev/result"
	"busbar.dev/unit"
)

const maxLayout = 64 // ranks of which each names all, in records

// meter measures for real.
type meter struct {
	bind    string
	version string
}

func pairPlan(w *fleet.What) bench.PairPlan {
	return bench.PairPlan{Small: w.Small, Large: w.Large, Warm: w.Warm, Iters: w.Iters}
}

func plan(w *fleet.What) bench.Plan {
	return bench.Plan{
		Op: coll.Op{Kind: w.Op, Type: coll.Float}, Sizes: w.Sizes, Algo: w.Algo, Transport: engine.TCP, Warm: w.Warm,
		Iters: w.Iters,
	}
}

// memoryOf is what a part's buffers take on this node.
func memoryOf(p *fleet.Part) (unit.Bytes, error) {
	n := len(p.Ranks)
	if p.What.By != fleet.TCP {
		return 2 * max(p.What.Large, slices.Max(append(p.What.Sizes, 0))), nil // of the programs that it is measured by
	}
	if p.What.Measure == fleet.MeasurePairs {
		b := pairPlan(&p.What)
		return b.Memory(), b.Validate(n)
	}
	b := plan(&p.What)
	if err := b.Validate(n); err != nil {
		return 0, err
	}
	return b.Memory(n), nil
}

// measure joins the part's group and measures. Rank 0 tells what came of it; the others of a collective only how long
// their own work took.
func (m *meter) measure(ctx context.Context, p *fleet.Part, at func(int, int, string)) (*fleet.Measured, error) {
	cfg, err := p.Group(m.bind)
	if err != nil {
		return nil, err
	}
	peers := 1
	if p.What.Measure == fleet.MeasureCollective {
		peers = len(p.Ranks) - 1 // a rank may send to all others at once
	}
	at(0, 1, "meeting")
	cfg.Stall, cfg.MaxRate = p.Caps.Bound(), p.Caps.Rate/unit.Rate(peers)
	g, err := engine.Join(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	if p.What.Measure == fleet.MeasurePairs {
		return m.pairs(ctx, g, p, at)
	}
	return m.collective(ctx, g, p, at)
}

func (m *meter) pairs(ctx context.Context, g *engine.Group, p *fleet.Part,
	at func(int, int, string),
) (*fleet.Measured, error) {
	at(0, 1, "pairs")
	cells, err := bench.Pair(ctx, g, pairPlan(&p.What))
	if err != nil || g.Rank() != 0 {
		return nil, err
	}
	return &fleet.Measured{Pairs: p.Samples(cells)}, nil
}

func (m *meter) collective(ctx context.Context, g *engine.Group, p *fleet.Part,
	at func(int, int, string),
) (*fleet.Measured, error) {
	out := &fleet.Measured{}
	var names []string
	for _, n := range p.Ranks {
		names = append(names, string(n))
	}
	names = slices.Compact(names) // a server's own two ranks are one
	like := result.Sweep{
		Source: result.Measured, Transport: string(g.Transport()), When: time.Now().UTC().Truncate(time.Second),
		Session: short(p.ID, 64), Tool: "busbar " + m.version, Nodes: len(names),
		PerNode: g.Size() / len(names),
	}
	if len(p.Ranks) <= maxLayout {
		like.Hosts = cluster.FormatHosts(names)
	}
	at(0, len(p.What.Sizes), p.What.Op.String())
	rows := 0
	err := bench.Run(ctx, g, plan(&p.What), func(s *result.Sweep) error {
		s.Describe(&like)
		for _, r := range s.Rows() {
			r.Samples = nil // a history keeps the figures and not every run
			rows++
		}
		out.Results.Append(s)
		at(rows, len(p.What.Sizes), fmt.Sprintf("%s of %v", p.What.Op, s.Points[0].Size))
		return nil
	})
	if err != nil || g.Rank() != 0 {
		return nil, err
	}
	return out, nil
}
