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

// PairMeter is what one rank of a group needs to measure its pairs.
type PairMeter struct {
	*meter
	p    PairPlan
	runs []float64
}

// NewPairMeter makes one; all ranks of the group do. Free gives its buffers back.
func NewPairMeter(g *engine.Group, p PairPlan) (*PairMeter, error) {
	base, err := newMeter(g, Plan{
		Op: coll.Op{Kind: coll.SendRecv, Type: coll.Uint8}, Sizes: []unit.Bytes{p.Small, p.Large}, Transport: g.Transport(),
		Iters: pairFigures,
	})
	if err != nil {
		return nil, err
	}
	return &PairMeter{meter: base, p: p}, nil
}

// Free gives the buffers back.
func (m *PairMeter) Free() { m.free() }

// Pair measures the two ranks of a group. Rank 0 gets both directions.
func Pair(ctx context.Context, g *engine.Group, p PairPlan) ([]pairs.Measure, error) {
	m, err := NewPairMeter(g, p)
	if err != nil {
		return nil, err
	}
	defer m.Free()
	return m.Turn(ctx, [][2]int{{0, 1}})
}

// Turn measures pairs that have no rank in common, at once. All ranks name the same ones; those that are in none wait.
// Rank 0 gets both directions of each.
func (m *PairMeter) Turn(ctx context.Context, list [][2]int) ([]pairs.Measure, error) {
	if err := m.exchange(ctx, list); err != nil {
		return nil, err
	}
	if _, err := m.gather.Run(ctx); err != nil || m.g.Rank() != 0 {
		return nil, err
	}
	var cells []pairs.Measure
	for _, p := range list {
		for i := range p {
			f, back := m.all[p[i]*pairFigures:][:pairFigures], m.all[p[1-i]*pairFigures:][:pairFigures]
			cells = append(cells, pairs.Measure{
				// there and back is the same seen from both ends
				From: p[i], To: p[1-i], Latency: unit.Seconds(min(f[pairLatency], back[pairLatency])),
				Rate: unit.Rate(f[pairRate]), Both: unit.Rate(f[pairBoth]), Segments: int64(f[pairSegments]),
				Lost: int64(f[pairLost]), MSS: int(f[pairMSS]),
			})
		}
	}
	return cells, nil
}

// exchange measures this rank's pair among those of a turn.
func (m *PairMeter) exchange(ctx context.Context, list [][2]int) error {
	rank := m.g.Rank()
	x := exchange{partner: make([]int32, m.g.Size())}
	for i := range x.partner {
		x.partner[i] = -1
	}
	for _, p := range list {
		x.partner[p[0]], x.partner[p[1]] = int32(p[1]), int32(p[0])
	}
	peer := int(x.partner[rank])
	there, before := m.took, m.g.TCPCounts(peer)
	clear(there)
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
func (m *PairMeter) time(ctx context.Context, x exchange, name string, size unit.Bytes, iters int,
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
	m.runs = m.runs[:0]
	for i := range m.p.Warm + iters {
		run, err := call.Run(ctx)
		if err != nil {
			return 0, err
		}
		if i >= m.p.Warm {
			m.runs = append(m.runs, run.Time.Seconds())
		}
	}
	return stats.Nearest(m.runs, quantile), nil
}
