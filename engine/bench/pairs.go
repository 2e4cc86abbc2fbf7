package bench

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// PairPlan is how pairs are measured.
type PairPlan struct {
	Small, Large unit.Bytes // messages for latency and for bandwidth
	Warm, Iters  int
	// Alone measures one pair at a time; else all pairs of a round concurrently.
	Alone bool
	// Rounds are what is measured, of pairs that have no rank in common; nil is every pair.
	Rounds [][][2]int
}

// Bounds of a plan. Rank 0 gets six figures a pair and direction.
const (
	maxPairRanks = 2048
	pingsPerRun  = 4
	pingRuns     = 5 // of small messages, for one of large ones
	blocksPerRun = 2
)

// Validate reports what makes a plan impossible on n ranks.
func (p *PairPlan) Validate(n int) error {
	switch {
	case n < 2:
		return fmt.Errorf("%d ranks have no pairs; at least 2", n)
	case n > maxPairRanks:
		return fmt.Errorf("%d ranks have %d pairs; at most %d ranks can be measured", n, n*(n-1)/2, maxPairRanks)
	case p.Small < 1 || p.Large < p.Small || p.Large > 4*unit.GiB:
		return fmt.Errorf("messages of %v and %v; expected a small and a large one, up to 4 GiB", p.Small, p.Large)
	case p.Iters < 1 || p.Iters > 1<<16 || p.Warm < 0 || p.Warm > 1<<16:
		return fmt.Errorf("%d runs after %d to warm up; 1 to %d and 0 to %d are possible", p.Iters, p.Warm, 1<<16, 1<<16)
	}
	return nil
}

// Memory is what the buffers of a rank take.
func (p *PairPlan) Memory() unit.Bytes { return 2 * max(p.Small, p.Large) }

// Turns is how often pairs take turns under the plan.
func (p *PairPlan) Turns(n int) int { return len(p.turns(n)) }

// turns lists which pairs are measured at once.
func (p *PairPlan) turns(n int) [][][2]int {
	rounds := p.Rounds
	if rounds == nil {
		rounds = pairs.Rounds(n)
	}
	if !p.Alone {
		return rounds
	}
	var list [][][2]int
	for _, round := range rounds {
		for _, pair := range round {
			list = append(list, [][2]int{pair})
		}
	}
	return list
}

// Figures of a direction, as they travel to rank 0.
const (
	pairLatency = iota // seconds, one way
	pairRate           // bytes a second
	pairBoth
	pairSegments
	pairLost
	pairMSS
	pairFigures // an even number: blocks are multiples of 16 bytes
)

// pairMeter is what one rank needs to measure its pairs.
type pairMeter struct {
	*meter
	p    PairPlan
	mine []float64 // figures towards every rank
	took []float64
}

// Pairs measures every pair. Rank 0 gets the table, without names; turn is called on it before
// each turn.
func Pairs(ctx context.Context, g *engine.Group, p PairPlan, turn func(k int)) (*pairs.Table, error) {
	n := g.Size()
	base, err := newMeter(g, Plan{
		Op: coll.Op{Kind: coll.SendRecv, Type: coll.Uint8}, Sizes: []unit.Bytes{p.Small, p.Large}, Transport: g.Transport(),
		Iters: 1,
	})
	if err != nil {
		return nil, err
	}
	defer base.free()
	m := &pairMeter{meter: base, p: p, mine: make([]float64, n*pairFigures)}
	for k, pairs := range p.turns(n) {
		if g.Rank() == 0 && turn != nil {
			turn(k)
		}
		if err := m.turn(ctx, pairs); err != nil {
			return nil, err
		}
	}
	return m.table(ctx)
}

// turn measures some pairs at once; ranks that are in none wait.
func (m *pairMeter) turn(ctx context.Context, list [][2]int) error {
	rank := m.g.Rank()
	x := exchange{partner: make([]int32, m.g.Size())}
	for i := range x.partner {
		x.partner[i] = -1
	}
	for _, p := range list {
		x.partner[p[0]], x.partner[p[1]] = int32(p[1]), int32(p[0])
	}
	peer := int(x.partner[rank])
	var there []float64
	var before engine.TCPCounts
	if peer >= 0 {
		there, before = m.mine[peer*pairFigures:(peer+1)*pairFigures], m.g.TCPCounts(peer)
	}
	// The shortest of many, and of large messages the faster quarter: what the link can do when
	// nobody's processor is elsewhere. A slow link never gets there.
	x.how, x.times = pingPong, pingsPerRun
	t, err := m.time(ctx, x, "ping_pong", m.p.Small, pingRuns*m.p.Iters, 0)
	if err != nil {
		return err
	}
	if peer >= 0 {
		there[pairLatency] = t / (2 * pingsPerRun)
	}
	for _, how := range []exchanging{upward, downward, bothWays} {
		x.how, x.times = how, blocksPerRun
		t, err := m.time(ctx, x, "stream", m.p.Large, m.p.Iters, 0.25)
		switch {
		case err != nil:
			return err
		case peer < 0:
		case how == bothWays:
			there[pairBoth] = rateOf(float64(m.p.Large)*blocksPerRun, t, there[pairLatency])
		case (how == upward) == (rank < peer): // the sender's clock, which sees the word at the end
			there[pairRate] = rateOf(float64(m.p.Large)*blocksPerRun, t, 2*there[pairLatency])
		}
	}
	if peer >= 0 {
		now := m.g.TCPCounts(peer)
		there[pairSegments], there[pairLost], there[pairMSS] = float64(now.Segments-before.Segments),
			float64(now.Lost-before.Lost), float64(now.MSS)
	}
	return nil
}

// rateOf is bytes over time, less what the messages needed to arrive where that is little.
func rateOf(bytes, t, latency float64) float64 {
	if t > 2*latency {
		t -= latency
	}
	if t <= 0 {
		return 0
	}
	return bytes / t
}

// time is a quantile of this rank's runs of an exchange, in seconds.
func (m *pairMeter) time(ctx context.Context, x exchange, name string, size unit.Bytes, iters int,
	quantile float64,
) (float64, error) {
	op := coll.Op{Kind: coll.SendRecv, Type: coll.Uint8, Bytes: size}
	call, err := m.g.Prepare(x.schedule(name), op)
	if err != nil {
		return 0, err
	}
	defer m.g.Forget(call)
	if err := call.Bind(m.buffers(op, false)); err != nil {
		return 0, err
	}
	if _, err := m.barrier.Run(ctx); err != nil {
		return 0, err
	}
	m.took = m.took[:0]
	for i := range m.p.Warm + iters {
		run, err := call.Run(ctx)
		if err != nil {
			return 0, err
		}
		if i >= m.p.Warm {
			m.took = append(m.took, run.Time.Seconds())
		}
	}
	return stats.Nearest(m.took, quantile), nil
}

// table gathers what all ranks measured.
func (m *pairMeter) table(ctx context.Context) (*pairs.Table, error) {
	n := m.g.Size()
	var all []float64
	if m.g.Rank() == 0 {
		all = make([]float64, n*len(m.mine))
	}
	op := coll.Op{Kind: coll.Gather, Type: coll.Double, Bytes: unit.Bytes(8 * n * len(m.mine))}
	s, err := engine.Pick(op, n, m.g.Transport())
	if err != nil {
		return nil, err
	}
	if _, err := m.g.Run(ctx, s, op, engine.Buffers{Send: engine.Bytes(m.mine), Recv: engine.Bytes(all)}); err != nil {
		return nil, err
	}
	if m.g.Rank() != 0 {
		return nil, nil
	}
	t := &pairs.Table{Names: make([]string, n)}
	for a := range n {
		for b := range n {
			f, back := all[(a*n+b)*pairFigures:][:pairFigures], all[(b*n+a)*pairFigures:][:pairFigures]
			f[pairLatency] = min(f[pairLatency], back[pairLatency]) // there and back is the same seen from both ends
			if a != b {
				t.Cells = append(t.Cells, pairs.Measure{
					From: a, To: b, Latency: unit.Seconds(f[pairLatency]), Rate: unit.Rate(f[pairRate]), Both: unit.Rate(f[pairBoth]),
					Segments: int64(f[pairSegments]), Lost: int64(f[pairLost]), MSS: int(f[pairMSS]),
				})
			}
		}
	}
	return t, nil
}
