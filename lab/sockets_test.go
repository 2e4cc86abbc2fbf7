package lab

import (
	"context"
	"fmt"
	"math"

	"busbar.dev/coll"
	"busbar.dev/internal/fair"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Sockets is the model of ranks that are processes of a host: they pass messages
// through shared memory inside a node and through kernel sockets between nodes, and
// compute with processors that may be fewer than they are. Its figures are of pairs
// of ranks; nothing in it is fitted to collectives.
type Sockets struct {
	// Cores is the number of processors that all ranks share.
	Cores float64
	// Call is what beginning and ending a collective costs a rank.
	Call unit.Time
	// Net and Near are messages between nodes and inside one.
	Net, Near Carrier
}

// Carrier is what a message costs beside the links it crosses.
type Carrier struct {
	// Latency is from the send to the end of the receive, of a message without bytes.
	Latency unit.Time
	// Send, Copy and Reduce are processor seconds for a byte: of the sender, of a
	// receiver that stores it, and of one that adds it to what it has.
	Send, Copy, Reduce float64
}

// network is what lies under the ranks.
type network interface {
	// Capacity is what each resource carries, in bytes of data a second.
	Capacity() []float64
	// Route lists the resources that a message crosses, one of them twice where it crosses it
	// twice; near reports ranks of one node, whose messages are taken out of memory by
	// the receiver.
	Route(from, to int) (resources []int, near bool)
}

// Played is a collective of ranks of the wiring: rank r of the schedule is Ranks[r].
type Played struct {
	Schedule *schedule.Schedule
	Op       coll.Op
	Ranks    []int
	// Start is when it first begins. Jobs that share a network do not run in step.
	Start unit.Time
}

// second is a second in the simulator's picoseconds; maxPlayed bounds the messages of a collective.
const (
	second    = float64(unit.Second)
	maxPlayed = 6_000_000
)

// nano makes processor time of the order of bytes for the solver.
const nano = 1e9

// A job runs several times, one after the other, so that what ranks do ahead of others is
// as in a measurement; the first time does not count. Several jobs take longer to find
// their rhythm.
const (
	roundsAlone = 3
	roundsMany  = 9
)

// Simulate runs jobs side by side, again and again, and returns what one run of each takes
// when resources go their usual route, with the resource that carries most for its capacity
// (-1 where the processors or waiting take the time).
func (m *Sockets) Simulate(ctx context.Context, w network, jobs []Played) ([]unit.Time, int, error) {
	rounds := roundsAlone
	if len(jobs) > 1 {
		rounds = roundsMany
	}
	p, err := m.simulate(ctx, w, jobs, rounds)
	if err != nil {
		return nil, -1, err
	}
	times := make([]unit.Time, len(jobs))
	end := 0.0
	for j := range p.jobs {
		worst := 0.0
		for _, r := range p.jobs[j].ranks {
			worst = max(worst, (r.ended[p.rounds-1]-r.ended[0])/float64(p.rounds-1))
			end = max(end, r.ended[p.rounds-1])
		}
		times[j] = unit.Seconds(worst)
	}
	return times, p.busiest(end), nil
}

// Once runs every job once, from its start on, and returns when each has ended, with the
// resource that carries most for its capacity. Jobs may have ranks in common, as the buckets of
// a step have: what those send to each other then goes in the order in which they come to it.
func (m *Sockets) Once(ctx context.Context, w network, jobs []Played) ([]unit.Time, int, error) {
	p, err := m.simulate(ctx, w, jobs, 1)
	if err != nil {
		return nil, -1, err
	}
	times := make([]unit.Time, len(jobs))
	end := 0.0
	for j := range p.jobs {
		for _, r := range p.jobs[j].ranks {
			times[j] = max(times[j], unit.Seconds(r.ended[0]))
			end = max(end, r.ended[0])
		}
	}
	return times, p.busiest(end), nil
}

// simulate runs jobs so many times.
func (m *Sockets) simulate(ctx context.Context, w network, jobs []Played, rounds int) (*socketRun, error) {
	p := &socketRun{
		m: m, w: w, caps: append([]float64{}, w.Capacity()...), conns: map[[2]int]*socketConn{}, cpu: map[int]int32{},
		rounds: rounds,
	}
	p.resources = len(p.caps)
	p.cores = int32(len(p.caps))
	p.caps = append(p.caps, max(m.Cores, 1)*nano)
	p.jobs = make([]socketJob, 0, len(jobs))
	for j := range jobs {
		if err := p.add(&jobs[j]); err != nil {
			return nil, err
		}
	}
	return p, p.run(ctx)
}

// socketRun is the state of a run; times are seconds.
type socketRun struct {
	m         *Sockets
	w         network
	caps      []float64
	resources int // of the wiring
	rounds    int
	cores     int32
	cpu       map[int]int32 // a rank's own processor
	jobs      []socketJob
	conns     map[[2]int]*socketConn

	now    float64
	flows  []*socketMessage
	due    []socketEvent // messages whose bytes are through, ranks that begin
	solver fair.Solver
	carry  []float64 // bytes of every resource
}

type socketJob struct {
	*Played
	ranks []*socketRank
}

// socketRank is a rank of a job.
type socketRank struct {
	p     *socketRun
	job   *socketJob
	rank  int
	lanes []socketLane
	round int
	ended []float64
	began bool
	came  map[[2]int]int // messages that are there, by peer and lane
}

// socketLane is how far a lane has come.
type socketLane struct {
	pc     int
	taking bool // it takes a message out of a peer's memory
}

// socketConn is a connection in one direction. Its messages go one after the other.
type socketConn struct {
	near      bool
	resources []int
	queue     []*socketMessage // not yet through, in order
}

type socketMessage struct {
	conn   *socketConn
	from   int // the sender's number in its job
	to     *socketRank
	lane   int
	bytes  float64
	left   float64
	began  bool
	taken  bool // the receiver has come to it
	reduce bool
	sender int32
	links  []int32
	cost   []float64
}

type socketEvent struct {
	at   float64
	rank *socketRank    // to begin a round, or to look again
	msg  *socketMessage // to arrive
	look bool
}

// add puts a job's ranks at their beginning.
func (p *socketRun) add(j *Played) error {
	s := j.Schedule
	if len(s.Switches) > 0 || len(j.Ranks) != s.Ranks {
		return fmt.Errorf("%s: %d places for %d ranks and %d switches; sockets need a place a rank and no switch", s.Name,
			len(j.Ranks), s.Ranks, len(s.Switches))
	}
	total := 0
	job := socketJob{Played: j}
	for r := range s.Ranks {
		x := &socketRank{p: p, rank: r, came: map[[2]int]int{}, lanes: make([]socketLane, s.Lanes)}
		for l := range s.Lanes {
			total += s.Len(r, l)
		}
		if total > maxPlayed {
			return fmt.Errorf("%s over %d ranks has too many messages to play", s.Name, s.Ranks)
		}
		job.ranks = append(job.ranks, x)
		p.due = append(p.due, socketEvent{at: float64(j.Start) / second, rank: x})
		if _, ok := p.cpu[j.Ranks[r]]; !ok {
			p.cpu[j.Ranks[r]] = int32(len(p.caps))
			p.caps = append(p.caps, nano)
		}
	}
	p.jobs = append(p.jobs, job)
	for _, x := range job.ranks {
		x.job = &p.jobs[len(p.jobs)-1] // there is room for all of them, so they stay in place
	}
	return nil
}

// run goes from event to event.
func (p *socketRun) run(ctx context.Context) error {
	p.carry = make([]float64, len(p.caps))
	for step := 0; len(p.due) > 0 || len(p.flows) > 0; step++ {
		if step%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rates := p.rates()
		next := math.Inf(1)
		for _, e := range p.due {
			next = min(next, e.at)
		}
		for i, f := range p.flows {
			next = min(next, p.now+f.left/rates[i])
		}
		p.advance(next, rates)
	}
	for i := range p.jobs {
		for _, r := range p.jobs[i].ranks {
			if len(r.ended) < p.rounds {
				return fmt.Errorf("%s stops at rank %d", p.jobs[i].Schedule.Name, r.rank)
			}
		}
	}
	return nil
}

// rates shares links and processors among the messages under way.
func (p *socketRun) rates() []float64 {
	p.solver.Links, p.solver.Weights = p.solver.Links[:0], p.solver.Weights[:0]
	flows := make([]fair.Flow, len(p.flows))
	for i, f := range p.flows {
		from := int32(len(p.solver.Links))
		p.solver.Links = append(p.solver.Links, f.links...)
		p.solver.Weights = append(p.solver.Weights, f.cost...)
		flows[i] = fair.Flow{From: from, To: int32(len(p.solver.Links)), Cap: 1e13}
	}
	rates := make([]float64, len(flows))
	if len(flows) > 0 {
		p.solver.Rates(p.caps, flows, rates)
	}
	return rates
}

// advance moves bytes until a moment and does what is due then.
func (p *socketRun) advance(to float64, rates []float64) {
	past := to - p.now
	p.now = to
	var through []*socketMessage
	kept := p.flows[:0]
	for i, f := range p.flows {
		moved := min(f.left, rates[i]*past)
		for k, l := range f.links {
			p.carry[l] += moved * f.cost[k]
		}
		if f.left -= moved; f.left <= rates[i]*1e-12 {
			through = append(through, f)
			continue
		}
		kept = append(kept, f)
	}
	p.flows = kept
	for _, f := range through {
		p.through(f)
	}
	var now []socketEvent
	later := p.due[:0]
	for _, e := range p.due {
		if e.at <= p.now {
			now = append(now, e)
		} else {
			later = append(later, e)
		}
	}
	p.due = later
	for _, e := range now {
		switch {
		case e.msg != nil:
			p.arrive(e.msg)
		case e.look:
			e.rank.goOn()
		default:
			e.rank.began = true
			e.rank.goOn()
		}
	}
}

// through is called when a message's bytes are over; the next of its connection follows.
func (p *socketRun) through(f *socketMessage) {
	c := f.conn
	for i, x := range c.queue {
		if x == f {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			break
		}
	}
	p.due = append(p.due, socketEvent{at: p.now + float64(c.carrier(p.m).Latency)/second, msg: f})
	if !c.near && len(c.queue) > 0 {
		p.begin(c.queue[0])
	}
}

func (c *socketConn) carrier(m *Sockets) *Carrier {
	if c.near {
		return &m.Near
	}
	return &m.Net
}

// begin lets the bytes of a message flow.
func (p *socketRun) begin(f *socketMessage) {
	if f.began {
		return
	}
	f.began = true
	c := f.conn
	m := c.carrier(p.m)
	receive := m.Copy
	if f.reduce {
		receive = m.Reduce
	}
	add := func(resource int32, cost float64) {
		if cost > 0 {
			f.links, f.cost = append(f.links, resource), append(f.cost, cost)
		}
	}
	for _, t := range c.resources {
		add(int32(t), 1)
	}
	add(p.cpu[f.to.job.Ranks[f.to.rank]], receive*nano)
	add(f.sender, m.Send*nano)
	add(p.cores, (receive+m.Send)*nano)
	p.flows = append(p.flows, f)
}

// busiest is the resource of the wiring that was nearest to its capacity.
func (p *socketRun) busiest(end float64) int {
	best, most := -1, 0.5
	for i := range p.resources {
		if x := p.carry[i] / p.caps[i] / max(end, 1e-12); x > most {
			best, most = i, x
		}
	}
	return best
}

// goOn runs all lanes of a rank until each waits for a message, and ends the round when
// all are through.
func (r *socketRank) goOn() {
	if !r.began {
		return
	}
	s := r.job.Schedule
	for moved := true; moved; {
		moved = false
		for l := range r.lanes {
			for r.step(l) {
				moved = true
			}
		}
	}
	for l := range r.lanes {
		if r.lanes[l].pc < s.Len(r.rank, l) {
			return
		}
	}
	r.ended = append(r.ended, r.p.now)
	r.began = false
	if r.round++; r.round < r.p.rounds {
		for l := range r.lanes {
			r.lanes[l] = socketLane{}
		}
		r.p.due = append(r.p.due, socketEvent{at: r.p.now + float64(r.p.m.Call)/second, rank: r})
	}
}

// step does one op of a lane; false when it must wait.
func (r *socketRank) step(l int) bool {
	s, ln := r.job.Schedule, &r.lanes[l]
	if ln.pc >= s.Len(r.rank, l) {
		return false
	}
	op := s.At(r.rank, l, ln.pc)
	if w := op.After; w.Count > 0 && r.lanes[w.Lane].pc < int(w.Count) {
		return false
	}
	switch {
	case op.Verb == schedule.Send:
		r.send(l, op)
	case op.Verb.Receives():
		if at := [2]int{int(op.Peer), l}; r.came[at] > 0 {
			r.came[at]--
			ln.taking = false
			break
		}
		c := r.p.connect(r.job, int(op.Peer), r.rank)
		if c.near && !ln.taking { // the receiver takes it out of the sender's memory
			for _, f := range c.queue {
				if f.to == r && f.lane == l && !f.taken {
					ln.taking, f.taken, f.reduce = true, true, op.Verb == schedule.RecvReduce
					r.p.begin(f)
					break
				}
			}
		}
		return false
	}
	ln.pc++
	return true
}

// send posts a message; it goes when those before it on the connection are through.
func (r *socketRank) send(l int, op schedule.Op) {
	p, j := r.p, r.job
	c := p.connect(j, r.rank, int(op.Peer))
	bytes := float64(j.Schedule.Bytes(j.Op, op))
	f := &socketMessage{
		conn: c, from: r.rank, to: j.ranks[op.Peer], lane: l, bytes: bytes, left: max(bytes, 1),
		sender: p.cpu[j.Ranks[r.rank]],
	}
	c.queue = append(c.queue, f)
	if c.near {
		p.due = append(p.due, socketEvent{at: p.now, rank: f.to, look: true}) // it may wait for this
		return
	}
	f.reduce = true // what a receiver adds it adds as it comes in
	if len(c.queue) == 1 {
		p.begin(f)
	}
}

// arrive hands a message to its lane.
func (p *socketRun) arrive(f *socketMessage) {
	f.to.came[[2]int{f.from, f.lane}]++
	f.to.goOn()
}

// connect finds a connection of a job.
func (p *socketRun) connect(j *socketJob, from, to int) *socketConn {
	key := [2]int{j.Ranks[from], j.Ranks[to]}
	c := p.conns[key]
	if c == nil {
		c = &socketConn{}
		c.resources, c.near = p.w.Route(key[0], key[1])
		p.conns[key] = c
	}
	return c
}
