package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/fleet"
)

// FleetNode is how a node of a fleet measures by other means than TCP between agents.
type FleetNode struct {
	With Programs
	Name fleet.Name
	Bind string // as the agent's
	// Perftest is the folder of perftest's programs; empty is PATH.
	Perftest string
	// Side is that of the product that GPUs are timed with; 0 is 4096.
	Side int
}

// Patience of the nodes of a part with each other.
const (
	partJoin = 10 * time.Second
	partPeer = 5 * time.Second
	partTest = 20 * time.Second // one side of one test
)

// star joins the nodes of a part. Who leads is told of who does not come.
func (n *FleetNode) star(ctx context.Context, p *fleet.Part) (*engine.Star, error) {
	work, err := json.Marshal(p.What)
	if err != nil {
		return nil, err
	}
	return engine.JoinStar(ctx, engine.Config{
		Rank: p.Rank, Size: len(p.Ranks), Meet: p.Meet, Job: p.ID, Secret: p.Secret, Work: string(work), Transport: engine.TCP, Bind: n.Bind, Host: string(n.Name),
		Timeout: partPeer, JoinTimeout: min(partJoin, p.Caps.Bound()),
	})
}

// absentPeer is the error about the first rank that does not answer, nil where all do.
func absentPeer(h *checkHub, p *fleet.Part) error {
	for r := 1; r < len(p.Ranks); r++ {
		if why := h.lost[r]; why != "" {
			return &engine.PeerError{Rank: r, Host: string(p.Ranks[r]), Text: why}
		}
	}
	return nil
}

// rdmaLeast is how many messages a test has at least: orders count collectives, of which a few are enough.
const rdmaLeast = 200

// rdma is how perftest is run for a part.
func (n *FleetNode) rdma(w fleet.What) (*rdmaWorker, error) {
	q := BenchRDMA{Perftest: n.Perftest}
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if w.Large > 0 {
		q.Size, q.Small = SizeOf(w.Large), SizeOf(w.Small)
	}
	q.Iters = min(max(w.Iters, rdmaLeast), fleet.MaxIters)
	bw, lat, err := q.tests()
	return &rdmaWorker{q: &q, with: n.With, bw: bw, lat: lat}, err
}

// LacksRDMA says why this node cannot be measured by perftest; nil: it can.
func (n *FleetNode) LacksRDMA(ctx context.Context) error {
	w, err := n.rdma(fleet.What{})
	if err == nil {
		_, err = w.ports(ctx)
	}
	return err
}

// RDMA measures a pair of a fleet's nodes by perftest, one rail after the other. The node of rank 0 leads and tells.
func (n *FleetNode) RDMA(ctx context.Context, p *fleet.Part, at func(done, of int, text string)) (*fleet.Measured, error) {
	if len(p.Ranks) != 2 {
		return nil, fmt.Errorf("%d nodes; RDMA is measured between two", len(p.Ranks))
	}
	run, err := n.rdma(p.What)
	if err != nil {
		return nil, err
	}
	at(0, 1, "meeting")
	s, err := n.star(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	w := checkWorker{star: s, with: n.With, rdma: run}
	if p.Rank != 0 {
		return nil, w.serve(ctx)
	}
	h := newCheckHub(w)
	defer h.end()
	if err := absentPeer(h, p); err != nil {
		return nil, err
	}
	m := &rdmaHub{checkHub: h, q: run.q, names: []string{string(p.Ranks[0]), string(p.Ranks[1])}, brief: true}
	job := bench.NewSession()
	m.collect(h.ask(ctx, map[int]checkOrder{0: {Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}, 1: {Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}}, rdmaTime))
	if err := errors.Join(absentPeer(h, p), m.possible()); err != nil {
		return nil, err
	}
	return m.part(ctx, p, at)
}

// part measures the rails of a pair. What fails over all of them is the pair's failure.
func (m *rdmaHub) part(ctx context.Context, p *fleet.Part, at func(done, of int, text string)) (*fleet.Measured, error) {
	out := &fleet.Measured{}
	var failed string
	good := false
	for k, members := range m.rails {
		at(k, len(m.rails), fmt.Sprintf("rail %d", k))
		if len(members) != 2 {
			continue // of a host with fewer ports: it is known by its links
		}
		rail := m.railName(k, members)
		cells, _ := m.turn(ctx, [][2]int{{members[0], members[1]}}, partTest)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, c := range cells {
			out.Pairs = append(out.Pairs, fleet.PairSample{
				From: p.Ranks[m.ends[c.From].rank], To: p.Ranks[m.ends[c.To].rank], Rail: rail, Rate: c.Rate, Both: c.Both, Latency: c.Latency, Failed: c.Failed,
			})
			if good = good || c.Failed == ""; c.Failed != "" && failed == "" {
				failed = rail + ": " + c.Failed
			}
		}
	}
	if !good {
		return nil, &engine.PeerError{Rank: 1, Host: string(p.Ranks[1]), Text: failed}
	}
	return out, nil
}

// railName is the port where both hosts call it the same, else the rail's number.
func (m *rdmaHub) railName(k int, members []int) string {
	a, b := m.ends[members[0]], m.ends[members[1]]
	if a.Device == b.Device && a.Port == b.Port {
		return fmt.Sprintf("%s/%d", a.Device, a.Port)
	}
	return fmt.Sprintf("rail%d", k)
}

// OrderRDMA orders a measurement of RDMA between every pair of nodes that have it, rail by rail.
type OrderRDMA struct {
	OrderNodes
	OrderTimes
	Size   Size `default:"1M" placeholder:"SIZE" help:"Message size for bandwidth (default 1M)."`
	Small  Size `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8)."`
	Iters  int  `name:"iters" default:"1000" least:"5" most:"10000" help:"Messages per test (default 1000)."`
	Rounds int  `default:"0" least:"0" help:"Maximum rounds per sweep; the next sweep continues where this one ended. 0 is all (default 0)."`
	AtOnce int  `name:"at-once" default:"0" least:"0" help:"Maximum number of concurrent pairs; 0 is all of a round (default 0)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderRDMA) Run(ctx context.Context, env Env) (doc *OrderDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	o, err := q.order(fleet.What{Measure: fleet.MeasurePairs, By: fleet.RDMA, Iters: q.Iters})
	if err != nil {
		return nil, err
	}
	o.Rounds, o.AtOnce = q.Rounds, q.AtOnce
	if o.What.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if o.What.Small, err = q.Small.bytes(); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	return env.order(ctx, o, q.OrderTimes)
}

// OrderNodes are who is measured by programs that agents start, and within which bounds.
type OrderNodes struct {
	Nodes   string        `placeholder:"HOSTLIST" help:"Participating nodes: gpu[01-16] (default: all nodes that are up and can be measured)."`
	MaxTime time.Duration `name:"max-time" default:"2m" placeholder:"TIME" help:"Time limit of one part of the order (default 2m)."`
	Busy    string        `placeholder:"RATE" help:"Refuse to measure while the interface or an RDMA port carries more traffic than this, because a job is running (default 50MB/s; any disables the check)."`
}

func (n *OrderNodes) order(what fleet.What) (fleet.Order, error) {
	b := OrderBounds{Nodes: n.Nodes, MaxTime: n.MaxTime, Busy: n.Busy, Warm: new(int)}
	o, err := b.order()
	o.What = what
	return o, err
}
