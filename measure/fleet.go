package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/fleet"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// FleetNode is how a node of a fleet measures by other means than TCP between agents.
type FleetNode struct {
	With     Programs
	Bind     string // as the agent's
	Perftest string // folder of perftest's programs; empty is PATH
}

// star joins the nodes of a part.
func (n *FleetNode) star(ctx context.Context, p *fleet.Part) (*engine.Star, error) {
	cfg, err := p.Group(n.Bind)
	if err != nil {
		return nil, err
	}
	return engine.JoinStar(ctx, cfg)
}

// lead has the nodes of a part meet. The node of rank 0 leads and tells; the others follow.
func (n *FleetNode) lead(ctx context.Context, p *fleet.Part, m member,
	lead func(h *hub) (*fleet.Measured, error),
) (*fleet.Measured, error) {
	s, err := n.star(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	m.star = s
	if p.Rank != 0 {
		return nil, m.serve(ctx)
	}
	h := newHub(m)
	defer h.end()
	out := (*fleet.Measured)(nil)
	if err = h.absent(); err == nil {
		out, err = lead(h)
	}
	if gone := h.absent(); err != nil && gone != nil {
		err = fmt.Errorf("%w; %w", gone, err)
	}
	return out, err
}

// absent is the error about the first rank that does not answer, nil where all do.
func (h *hub) absent() error {
	for r, m := range h.members {
		if why := h.away(r); why != "" {
			return &engine.PeerError{Rank: r, Host: m.Host, Text: why}
		}
	}
	return nil
}

// LacksRDMA says why this node cannot be measured by perftest; nil: it can.
func (n *FleetNode) LacksRDMA(ctx context.Context) error {
	_, err := NewPerftest(n.With, n.Perftest).ports(ctx)
	return err
}

// RDMA measures a pair of a fleet's nodes by perftest, one rail after the other. What fails over all of them is the
// pair's failure.
func (n *FleetNode) RDMA(ctx context.Context, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
	if len(p.Ranks) != 2 {
		return nil, fmt.Errorf("%d nodes; RDMA is measured between two", len(p.Ranks))
	}
	test := NewPerftest(n.With, n.Perftest)
	// orders count collectives, of which a few are enough
	test.Size, test.Small, test.Iters = p.What.Large, p.What.Small, min(max(p.What.Iters, briefIters), fleet.MaxIters)
	if err := test.Validate(); err != nil {
		return nil, err
	}
	at(0, 1, "meeting")
	return n.lead(ctx, p, member{rdma: test}, func(h *hub) (*fleet.Measured, error) {
		m, err := h.findRails(ctx, true)
		if err != nil {
			return nil, err
		}
		s := m.sweep(func(text string) { at(0, 1, text) })
		s.Once = true
		t, err := s.Measure(ctx, m.rounds(0))
		if err != nil {
			return nil, err
		}
		out, good := &fleet.Measured{}, false
		for _, c := range t.Cells {
			a, b := m.ends[c.From], m.ends[c.To]
			c.From, c.To = a.rank, b.rank
			out.Pairs = append(out.Pairs, p.Samples([]pairs.Measure{c})...)
			rail := &out.Pairs[len(out.Pairs)-1].Rail
			if *rail = a.Name; a.Name != b.Name { // else both hosts call the port the same
				*rail = fmt.Sprintf("rail%d", a.rail)
			}
			good = good || c.Failed == ""
		}
		if !good {
			why := "nothing was measured"
			if len(out.Pairs) > 0 {
				why = out.Pairs[0].Rail + ": " + out.Pairs[0].Failed
			}
			return nil, &engine.PeerError{Rank: 1, Host: string(p.Ranks[1]), Text: why}
		}
		return out, nil
	})
}

// LacksNCCL says why this node cannot be measured by NCCL; nil: it can.
func (n *FleetNode) LacksNCCL(ctx context.Context) error {
	team, _, err := (&GPURanks{PerHost: 1}).started(ctx, n.With, nil)
	team.End()
	return err
}

// NCCL measures a part by busbar-gpu: a pair of nodes between one GPU of each, a collective over all GPUs of all nodes
// that no other program uses.
func (n *FleetNode) NCCL(ctx context.Context, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
	g := GPURanks{PerHost: 1}
	if p.What.Measure == fleet.MeasureCollective {
		g.PerHost = 0
	}
	at(0, 1, "starting busbar-gpu")
	own, _, err := g.Workers(ctx, n.With, nil, nil, false)
	if err != nil {
		return nil, err
	}
	defer own.End()
	if p.What.Measure == fleet.MeasureCollective {
		if a, err := own[0].Ask(ctx, device.Request{Do: device.Health}); err == nil {
			if busy := busyGPUs(a.Health); busy != "" {
				return nil, errors.New(busy)
			}
		}
	}
	at(0, 1, "meeting")
	return n.lead(ctx, p, member{gpus: own}, func(h *hub) (*fleet.Measured, error) {
		team, err := h.team(ctx, min(p.Caps.Bound(), mostLimit))
		if err == nil {
			err = team.Join(ctx)
		}
		if err != nil {
			return nil, err
		}
		return measureTeam(ctx, team, p, at)
	})
}

// measureTeam measures what the part asks for, of workers of all nodes.
func measureTeam(ctx context.Context, team device.Team, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
	w := p.What
	if w.Measure == fleet.MeasurePairs {
		at(0, 1, "pairs")
		t, _, wrong, err := Team(ctx, team, bench.PairPlan{
			Small: w.Small, Large: w.Large, Warm: max(w.Warm, 1), Iters: w.Iters,
		}, true, true, func(string) {})
		if err == nil && wrong > 0 {
			err = fmt.Errorf("%d elements arrived wrong", wrong)
		}
		if err != nil {
			return nil, err
		}
		return &fleet.Measured{Pairs: p.Samples(t.Cells)}, nil
	}
	own := gpu.Own{
		Dtype: coll.Float, Warm: max(w.Warm, 1), Iters: w.Iters, Check: true,
		Setting: gpu.Auto,
	}
	k := 0
	sweep, err := own.Sweep(ctx, team, w.Op, w.Sizes, func(size unit.Bytes) {
		at(k, len(w.Sizes), fmt.Sprintf("%s of %v", w.Op, size))
		k++
	})
	if err != nil {
		return nil, err
	}
	for _, r := range sweep.Rows() {
		if r.Wrong != nil && *r.Wrong > 0 {
			return nil, fmt.Errorf("%d elements of a %s were wrong", *r.Wrong, w.Op)
		}
	}
	return &fleet.Measured{Results: result.Sweeps{sweep}}, nil
}

// gpuAllowed is what a node does with its GPUs for another: nothing that changes their settings.
var gpuAllowed = []device.Do{
	device.Open, device.GPUs, device.Key, device.Join, device.Leave, device.Collective, device.Pair,
}

// askGPU asks one of this node's workers. What it refuses is its answer.
func (m *member) askGPU(ctx context.Context, worker int, q device.Request) *device.Answer {
	a, err := m.gpus[worker].Ask(ctx, q)
	if err != nil && a.Failure == nil {
		a.Failure = &device.Failure{Text: err.Error()}
	}
	return &a
}

// team is the workers of all members, as rank 0 asks them: its own first.
func (h *hub) team(ctx context.Context, limit time.Duration) (device.Team, error) {
	team := slices.Clone(h.gpus)
	hello := team[0].Hello
	for _, w := range team {
		w.Hello.Host = h.members[0].Host
	}
	for r := 1; r < len(h.members); r++ {
		x := h.ask(ctx, r, order{Do: "gpus"}, startTime)
		hello.Host, hello.PID = h.members[r].Host, 0
		if x.Failed != "" {
			return nil, &engine.PeerError{Rank: r, Host: hello.Host, Text: x.Failed}
		}
		for k := range x.GPUs {
			team = append(team, device.NewRemote(len(team), hello,
				func(ctx context.Context, q device.Request) (device.Answer, error) {
					x := h.ask(ctx, r, order{Do: "gpu", Worker: k, GPU: &q}, limit)
					if x.GPU == nil {
						return device.Answer{}, &device.GoneError{Rank: r, Host: h.members[r].Host, Err: errors.New(x.Failed)}
					}
					return *x.GPU, nil
				}))
		}
	}
	return team, nil
}
