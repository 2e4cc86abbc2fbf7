package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/fleet"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// partLine is what the nodes of a part say to each other about workers of busbar-gpu: requests of rank 0, and answers.
type partLine struct {
	Worker  int             `json:"worker"`
	Line    json.RawMessage `json:"line,omitempty"`    // a request, or its answer
	Workers int             `json:"workers,omitempty"` // how many a node has, first of all
	Failed  string          `json:"failed,omitempty"`  // why it has none
}

// partAllowed is what a node does with its GPUs for another: nothing that changes their settings.
var partAllowed = []device.Do{
	device.Open, device.GPUs, device.Key, device.Join, device.Leave, device.Collective, device.Pair,
}

// LacksNCCL says why this node cannot be measured by NCCL; nil: it can.
func (n *FleetNode) LacksNCCL(ctx context.Context) error {
	if n.With.Helper == nil || n.With.Worker == nil {
		return errors.New("no programs can be run here")
	}
	path, err := n.With.Helper()
	if err != nil {
		return err
	}
	p, err := n.With.Worker([]string{path, "work"}, nil)
	if err != nil {
		return err
	}
	w, err := device.NewWorker(ctx, 0, p)
	if err != nil {
		p.End(0)
		return err
	}
	defer w.End()
	a, err := w.Ask(ctx, device.Request{Do: device.GPUs})
	if err == nil && a.Count == 0 {
		err = errors.New("the driver shows no GPU")
	}
	return err
}

// NCCL measures a part by busbar-gpu: a pair of nodes between one GPU of each, a collective over all GPUs of all nodes
// that no other program uses. The node of rank 0 leads and tells.
func (n *FleetNode) NCCL(ctx context.Context, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
	g := GPURanks{PerHost: 1}
	if p.What.Measure == fleet.MeasureCollective {
		g.PerHost = 0
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at(0, 1, "starting busbar-gpu")
	own, _, err := g.workers(ctx, n.With, nil, nil, false)
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
	s, err := n.star(ctx, p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if p.Rank != 0 {
		return nil, serveWorkers(ctx, s, own)
	}
	team, err := partTeam(ctx, s, own, p)
	if err != nil {
		return nil, err
	}
	defer func() {
		for r := 1; r < len(p.Ranks); r++ {
			_ = s.Order(r, partLine{}) // the end; who is gone ends by itself
		}
	}()
	if err := team.Join(ctx); err != nil {
		return nil, err
	}
	return measureTeam(ctx, team, p, at)
}

// measureTeam measures what the part asks for, of workers of all nodes.
func measureTeam(ctx context.Context, team device.Team, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
	w, out := p.What, &fleet.Measured{}
	if w.Measure == fleet.MeasurePairs {
		t, wrong, err := gpu.Pairs(ctx, team, bench.PairPlan{
			Small: w.Small, Large: w.Large, Warm: max(w.Warm, 1), Iters: w.Iters,
		}, true, func(k int) { at(k, 1, "pairs") })
		switch {
		case err != nil:
			return nil, err
		case wrong > 0:
			return nil, fmt.Errorf("%d elements arrived wrong", wrong)
		}
		for _, c := range t.Cells {
			out.Pairs = append(out.Pairs, fleet.PairSample{
				From: p.Ranks[c.From], To: p.Ranks[c.To], Rate: c.Rate, Both: c.Both, Latency: c.Latency,
			})
		}
		return out, nil
	}
	own := gpu.Own{
		Dtype: coll.Float, Warm: max(w.Warm, 1), Iters: w.Iters, Check: true,
		Setting: gpu.Setting{Algo: "auto", Proto: "auto"},
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
	out.Results = result.Sweeps{sweep}
	return out, nil
}

// serveWorkers does what rank 0 asks of this node's workers, until it says that it is over or is gone.
func serveWorkers(ctx context.Context, s *engine.Star, own device.Team) error {
	if err := s.Reply(partLine{Workers: len(own)}); err != nil {
		return err
	}
	var busy sync.WaitGroup
	defer busy.Wait()
	defer own.End() // what waits for a GPU ends first
	for {
		body, err := s.Next(ctx)
		if err != nil {
			return err
		}
		var o partLine
		var q device.Request
		if err := json.Unmarshal(body, &o); err != nil {
			return err
		}
		if o.Line == nil {
			return nil
		}
		if err := json.Unmarshal(o.Line, &q); err != nil || o.Worker < 0 || o.Worker >= len(own) ||
			!slices.Contains(partAllowed, q.Do) {
			return fmt.Errorf("rank 0 asks for what a part does not need: %.40q", q.Do)
		}
		busy.Go(func() {
			a, err := own[o.Worker].Ask(ctx, q)
			a.ID = q.ID
			if err != nil && a.Failure == nil {
				a.Failure = &device.Failure{Text: err.Error()}
			}
			_ = s.Reply(partLine{Worker: o.Worker, Line: bytes.TrimSpace(device.Line(a))}) // rank 0 may be gone
		})
	}
}

// partTeam is the workers of all nodes, as rank 0 asks them: its own first.
func partTeam(ctx context.Context, s *engine.Star, own device.Team, p *fleet.Part) (device.Team, error) {
	whole := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, checkStartTime,
		fmt.Errorf("busbar-gpu did not start on all nodes within %v", checkStartTime))
	defer cancel()
	counts := make([]int, len(p.Ranks))
	for _, m := range s.Members()[1:] {
		if m.Pid == 0 {
			return nil, &engine.PeerError{Rank: m.Rank, Host: string(p.Ranks[m.Rank]), Text: "it did not come"}
		}
	}
	for range p.Ranks[1:] {
		select {
		case x := <-s.Replies():
			var l partLine
			if x.Err == nil {
				x.Err = json.Unmarshal(x.Body, &l)
			}
			if x.Err != nil || l.Workers < 1 || l.Workers > 1024 {
				return nil,
					&engine.PeerError{Rank: x.Rank, Host: string(p.Ranks[x.Rank]), Text: fmt.Sprintf("it is gone: %v", x.Err)}
			}
			counts[x.Rank] = l.Workers
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	team := slices.Clone(own)
	lines := map[[2]int]*remoteWorker{}
	for r := 1; r < len(p.Ranks); r++ {
		for k := range counts[r] {
			w := &remoteWorker{star: s, rank: r, worker: k, answers: make(chan []byte, 8), gone: make(chan struct{})}
			lines[[2]int{r, k}] = w
			w.take(device.Line(device.Answer{Hello: &device.Hello{Program: own[0].Hello.Program, Host: string(p.Ranks[r])}}))
		}
	}
	go dispatch(whole, s, lines)
	for r := 1; r < len(p.Ranks); r++ {
		for k := range counts[r] {
			w, err := device.NewWorker(ctx, len(team), lines[[2]int{r, k}])
			if err != nil {
				return nil, err
			}
			team = append(team, w)
		}
	}
	for i := range own {
		team[i].Hello.Host = string(p.Ranks[0])
	}
	return team, nil
}

// dispatch gives answers to the workers that they are of, until the part is over.
func dispatch(ctx context.Context, s *engine.Star, lines map[[2]int]*remoteWorker) {
	for {
		var x engine.StarReply
		select {
		case x = <-s.Replies():
		case <-ctx.Done():
			return
		}
		var l partLine
		if x.Err == nil && json.Unmarshal(x.Body, &l) == nil {
			if w := lines[[2]int{x.Rank, l.Worker}]; w != nil {
				w.take(append(l.Line, '\n'))
			}
			continue
		}
		for at, w := range lines {
			if at[0] == x.Rank {
				w.End(0)
			}
		}
	}
}

// remoteWorker is a worker of another node, reached through its agent.
type remoteWorker struct {
	star         *engine.Star
	rank, worker int
	answers      chan []byte
	gone         chan struct{}
	once         sync.Once
	rest         []byte
}

func (w *remoteWorker) take(line []byte) {
	select {
	case w.answers <- line:
	default: // nobody asked so much
		w.End(0)
	}
}

// Read gives answers, a line at a time.
func (w *remoteWorker) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		select {
		case w.rest = <-w.answers:
		case <-w.gone:
			return 0, io.EOF
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// Write sends a request.
func (w *remoteWorker) Write(p []byte) (int, error) {
	return len(p), w.star.Order(w.rank, partLine{Worker: w.worker, Line: bytes.TrimSpace(p)})
}

// End ends it here; its agent ends the process.
func (w *remoteWorker) End(time.Duration) { w.once.Do(func() { close(w.gone) }) }

// Why says that it is gone.
func (w *remoteWorker) Why() error { return errors.New("its agent is gone") }

// OrderGPU orders a measurement of GPUs by NCCL, over the nodes that have it.
type OrderGPU struct {
	OrderNodes
	OrderTimes
	Pairs bool     `help:"Measure every pair of nodes, between one GPU of each, instead of a collective over all GPUs."`
	Op    Op       `default:"all_reduce" help:"Collective (default all_reduce)."`
	Size  []string `default:"1M,64M" placeholder:"SIZE" help:"Message sizes; the last is that of pairs (default 1M,64M)."`
	Warm  *int     `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations (default 2)."`
	Iters int      `name:"iters" default:"10" least:"1" help:"Measured iterations (default 10)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderGPU) Run(ctx context.Context, env Env) (doc *OrderDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	what := fleet.What{Measure: fleet.MeasureCollective, By: fleet.NCCL, Warm: *q.Warm, Iters: q.Iters}
	if what.Op, err = q.Op.kind(); err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	if what.Op == coll.AllToAllV || what.Op == coll.Barrier {
		return nil, fmt.Errorf("--op %s: busbar-gpu does not run it", what.Op)
	}
	for _, s := range q.Size {
		b, err := unit.ParseBytes(s)
		if err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
		what.Sizes = append(what.Sizes, b)
	}
	if q.Pairs && len(what.Sizes) > 0 {
		what.Measure, what.Small, what.Large, what.Sizes, what.Op = fleet.MeasurePairs, 8, what.Sizes[len(what.Sizes)-1], nil,
			0
	}
	o, err := q.order(what)
	if err != nil {
		return nil, err
	}
	return env.order(ctx, o, q.OrderTimes)
}

// FleetNode is how a node of a fleet measures by other means than TCP between agents.
type FleetNode struct {
	With Programs
	Bind string // as the agent's
	// Perftest is the folder of perftest's programs; empty is PATH.
	Perftest string
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
		Rank: p.Rank, Size: len(p.Ranks), Meet: p.Meet, Job: p.ID, Secret: p.Secret, Work: string(work),
		Transport: engine.TCP, Bind: cmp.Or(n.Bind, p.Hosts[p.Rank]), MayDial: p.MayDial, Host: string(p.Ranks[p.Rank]),
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
func (n *FleetNode) RDMA(ctx context.Context, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
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
	m.collect(h.ask(ctx, map[int]checkOrder{
		0: {Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}}, 1: {Do: "rdma-ports", RDMA: &rdmaOrder{Job: job}},
	}, rdmaTime))
	if err := errors.Join(absentPeer(h, p), m.possible()); err != nil {
		return nil, err
	}
	return m.part(ctx, p, at)
}

// part measures the rails of a pair. What fails over all of them is the pair's failure.
func (m *rdmaHub) part(ctx context.Context, p *fleet.Part,
	at func(done, of int, text string),
) (*fleet.Measured, error) {
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
				From: p.Ranks[m.ends[c.From].rank], To: p.Ranks[m.ends[c.To].rank], Rail: rail, Rate: c.Rate, Both: c.Both,
				Latency: c.Latency, Failed: c.Failed,
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
