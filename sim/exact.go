package sim

import (
	"container/heap"
	"context"
	"fmt"
	"math"

	"busbar.dev/coll"
	"busbar.dev/internal/fair"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// maxPlayed bounds the messages that Exact plays.
const maxPlayed = 50_000_000

// Exact plays every message of a schedule: a send is a flow that shares its links
// max-min fairly with the others under way, a receive waits for its message, loops
// follow each other lane by lane. With events the run carries what every op did.
//
// A message takes its hop's latency beside the time of its bytes; the next may
// follow as soon as the bytes are out. Queues do not fill.
func (o *Outline) Exact(ctx context.Context, op coll.Op, m *Model, ports Ports, events bool) (*result.Run, error) {
	r := o.Price(op, m)
	p, err := newExecution(o, op, m, ports, events)
	if err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	p.now = max(p.now, p.end) + m.Wire.Launch
	moving := max(0, p.now-r.Parts.Launch-r.Parts.Latency-r.Parts.Sync)
	kind, busy := m.busiest(&o.all, o.message(), moved(op))
	lost := ps(m.ramp(&o.all, o.message(), moved(op), float64(moving)/second, busy))
	p.now, moving = p.now+lost, moving+lost
	r.Time, r.Parts.Moving = p.now, moving
	r.Parts.Launch = max(0, p.now-r.Parts.Latency-r.Parts.Sync-moving)
	r.Events, r.Busy = p.events, nil
	o.explain(r, m, kind, moved(op)) // of the time as played
	return r, nil
}

// Regular reports whether the steady form is made for the schedule: its rounds are
// alike, piped or at once, or everybody sends in every one of them. For others it
// is a guess beside Exact.
func (o *Outline) Regular() bool {
	for i := range o.stages {
		if o.stages[i].idle {
			return false
		}
	}
	return true
}

// Ops is the number of ops that Exact plays of a call.
func (o *Outline) Ops(op coll.Op, m *Model) int64 {
	n := int64(0)
	for p := range o.s.Nodes() {
		for lane := range o.s.Lanes {
			n += int64(o.s.Len(p, lane))
		}
	}
	if o.atOnce() {
		return n
	}
	return n * int64(math.Ceil(o.loops(moved(op), m)-1e-9))
}

// atOnce tells whether no send waits for anything, so that nothing waits for the end of a loop
// either.
func (o *Outline) atOnce() bool {
	for i := range o.stages {
		if o.stages[i].pacing != schedule.AtOnce {
			return false
		}
	}
	return len(o.s.Switches) == 0
}

// play is a run of the simulator.
type execution struct {
	o      *Outline
	s      *schedule.Schedule
	op     coll.Op
	m      *Model
	routes *router
	loops  int
	full   float64 // share of the data in a full loop
	last   float64 // share in the last one
	sliced bool    // slices are handed over message by message
	atOnce bool    // sends wait for nothing
	cut    float64 // part of a message after which the receiver may pass it on

	lanes  []lane
	first  []int32 // of lanes, by participant and lane
	conns  []conn
	index  map[uint64]int32
	caps   []float64 // of resources, bytes of data per second
	dense  map[capKey]int32
	lane   float64 // what a lane can send
	solver fair.Solver

	flows   []fair.Flow
	under   []flight // what the flows are
	idle    float64  // messages' time that a lane loses in every loop
	rates   []float64
	late    arrivals
	now     unit.Time
	end     unit.Time // when the last rest of a message arrives
	ready   []int32
	blocked [][]int32 // by participant: lanes that wait for another lane
	left    int       // lanes that are not done
	record  bool
	events  []result.Event
}

type capKey struct {
	id   int64
	kind Kind
}

// lane is where a lane of a participant stands, or a part of it that threads of
// their own run.
type lane struct {
	who, ln  int32
	lo, hi   int32 // its ops
	prev     int32 // the part that comes before it in every loop, or -1
	comes    bool  // the part before it sends, and this one gets what comes back
	switched bool  // its peers are switches
	pc, loop int32
	busy     bool      // a send is under way
	rest     unit.Time // until which it hands over slices
	owes     bool      // it must hand over before it goes on
	since    unit.Time
	sent     unit.Time // when its last send began
	took     unit.Time // and how long its bytes took
	sends    int32     // how many it has begun
}

// conn is a connection: how many messages have arrived and were taken.
type conn struct {
	from, to    int32
	arrived     int64
	taken       int64
	first, last int32 // resources in the solver's list
	hop         unit.Time
	lane        int32 // of the receiver, or -1 when it does not wait
	switched    bool
}

// flight is a message whose bytes are on the way.
type flight struct {
	conn, lane int32
	left       float64
	mark       float64 // what is left when the first slice is through; -1 when it is
	event      int32
}

// arrivals are messages whose last bytes are on the way, by time.
type arrivals []arrival

type arrival struct {
	at   unit.Time
	conn int32
}

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

func newExecution(o *Outline, op coll.Op, m *Model, ports Ports, events bool) (*execution, error) {
	s := o.s
	p := &execution{
		o: o, s: s, op: op, m: m, routes: o.m.router(s, ports), index: map[uint64]int32{}, dense: map[capKey]int32{},
		record: events,
	}
	loops := o.loops(moved(op), m)
	p.loops = int(math.Ceil(loops - 1e-9))
	p.full, p.last = 1/loops, 1-float64(p.loops-1)/loops
	p.lane = math.Inf(1)
	if m.Wire.Lane > 0 {
		l := &o.all[Lane]
		p.lane = float64(m.Wire.Lane) * l.bytes / max(l.bytes+m.Wire.Own*o.message(), 1e-300)
	}
	p.sliced, p.atOnce = true, o.atOnce()
	for _, st := range o.stages {
		p.sliced = p.sliced && (st.pacing == schedule.Even || st.pacing == schedule.Stepped)
	}
	p.cut = 1
	if p.sliced && o.even() && m.Wire.Slices > 1 {
		p.cut = 1 / float64(m.Wire.Slices)
	}
	if o.even() {
		p.idle = m.Wire.Last
	}
	if p.atOnce {
		p.loops, p.full, p.last = 1, 1, 1
	}
	p.blocked = make([][]int32, s.Nodes())
	total := int64(0)
	for i := range s.Nodes() * s.Lanes {
		p.split(i/s.Lanes, i%s.Lanes)
		total += int64(s.Len(i/s.Lanes, i%s.Lanes)) * int64(p.loops)
	}
	p.first = append(p.first, int32(len(p.lanes)))
	if total > maxPlayed {
		return nil, fmt.Errorf("%d ops in %d loops; at most %d are played one by one; ask for a smaller size or the steady "+
			"form", total, p.loops, maxPlayed)
	}
	return p, nil
}

// run plays until all lanes are done.
func (p *execution) run(ctx context.Context) error {
	for round := 0; ; round++ {
		for len(p.ready) > 0 {
			i := p.ready[len(p.ready)-1]
			p.ready = p.ready[:len(p.ready)-1]
			if err := p.advance(i); err != nil {
				return err
			}
		}
		if len(p.flows) == 0 && len(p.late) == 0 {
			break
		}
		if round%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.step()
	}
	if p.left > 0 {
		return fmt.Errorf("%s stops with %d lanes waiting", p.s.Name, p.left)
	}
	return nil
}

// step goes on to the next moment at which bytes are out or a message arrives.
func (p *execution) step() {
	if cap(p.rates) < len(p.flows) {
		p.rates = make([]float64, 2*len(p.flows))
	}
	p.rates = p.rates[:len(p.flows)]
	p.solver.Rates(p.caps, p.flows, p.rates)
	next := unit.Time(math.MaxInt64)
	for i := range p.under {
		f := &p.under[i]
		next = min(next, p.now+until(f.left-max(f.mark, 0), p.rates[i]))
	}
	if len(p.late) > 0 {
		next = min(next, p.late[0].at)
	}
	past := float64(next-p.now) / second
	p.now = next
	for i := 0; i < len(p.under); {
		f := &p.under[i]
		f.left -= p.rates[i] * past
		if f.mark >= 0 && f.left-f.mark <= p.rates[i]/second {
			f.mark = -1
			heap.Push(&p.late, arrival{p.now + p.conns[f.conn].hop, f.conn})
		}
		// What would take less than a picosecond is done.
		if f.mark >= 0 || f.left > p.rates[i]/second {
			i++
			continue
		}
		p.out(f)
		end := len(p.under) - 1
		p.under[i], p.flows[i], p.rates[i] = p.under[end], p.flows[end], p.rates[end]
		p.under, p.flows, p.rates = p.under[:end], p.flows[:end], p.rates[:end]
	}
	for len(p.late) > 0 && p.late[0].at <= p.now {
		k := heap.Pop(&p.late).(arrival).conn
		if k < 0 {
			p.ready = append(p.ready, -1-k)
			p.wake(int(p.lanes[-1-k].who)) // others may wait for what is handed over
			continue
		}
		c := &p.conns[k]
		c.arrived++
		if c.lane >= 0 {
			p.ready = append(p.ready, c.lane)
			c.lane = -1
		}
	}
}

// until is how long bytes take, at least a picosecond.
func until(bytes, rate float64) unit.Time {
	if math.IsInf(rate, 1) || bytes <= 0 {
		return 0
	}
	t := bytes / rate * second
	if t > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return unit.Time(math.Ceil(t))
}

// out is called when the bytes of a message have left.
func (p *execution) out(f *flight) {
	c := &p.conns[f.conn]
	if p.cut < 1 { // the rest of it arrives; who waits has the first slice
		p.end = max(p.end, p.now+c.hop)
	}
	if f.event >= 0 {
		p.events[f.event].To = p.now + p.m.Wire.Launch
	}
	l := &p.lanes[f.lane]
	if p.atOnce { // its own block takes as long as a message, or part of that
		p.end = max(p.end, p.now+c.hop+unit.Time(p.idle*float64(p.now-l.sent)/float64(max(l.sends, 1))))
	}
	if !c.switched && !p.atOnce {
		l.busy, l.took = false, p.now-l.sent
		p.handOver(f.lane)
		p.ready = append(p.ready, f.lane)
	}
}
