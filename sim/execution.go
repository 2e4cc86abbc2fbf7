package sim

import (
	"container/heap"
	"math"

	"busbar.dev/internal/fair"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// advance runs a lane until something that it needs is missing.
func (p *execution) advance(i int32) error {
	s, l := p.s, &p.lanes[i]
	who, ln := int(l.who), int(l.ln)
	for !l.busy && p.now >= l.rest && int(l.loop) < p.loops {
		if l.pc == l.lo && l.prev >= 0 && !p.ended(l.prev, l.loop, !l.comes) {
			p.blocked[who] = append(p.blocked[who], i)
			return nil
		}
		op := s.At(who, ln, int(l.pc))
		if w := op.After; w.Count > 0 && !p.passed(who, int(w.Lane), w.Count, l.loop) {
			p.blocked[who] = append(p.blocked[who], i)
			return nil
		}
		switch {
		case op.Verb == schedule.Send:
			wait, err := p.send(i, who, ln, op)
			if err != nil {
				return err
			}
			p.pass(i, who)
			if wait {
				l.busy = true
				return nil
			}
			p.handOver(i)
			continue
		case op.Verb.Receives():
			k, err := p.connect(int(op.Peer), who, ln)
			if err != nil {
				return err
			}
			c := &p.conns[k]
			if c.arrived == c.taken {
				c.lane = i
				return nil
			}
			c.taken++
			p.note(l, who, ln, op, l.since, p.now)
		default:
			p.note(l, who, ln, op, p.now, p.now)
		}
		p.pass(i, who)
		p.handOver(i)
	}
	return nil
}

// handOver lets a lane rest that has come to the end of a loop.
func (p *execution) handOver(i int32) {
	if l := &p.lanes[i]; l.owes {
		l.owes = false
		l.rest = p.now + unit.Time(p.idle*float64(l.took))
		if !p.sliced {
			l.rest += p.m.Wire.Slice * unit.Time(max(p.m.Wire.Slices, 1))
		}
		p.end = max(p.end, l.rest)
		heap.Push(&p.late, arrival{l.rest, -1 - i})
	}
}

// pass counts an op as begun or done and lets the lanes look that may wait for it.
func (p *execution) pass(i int32, who int) {
	l := &p.lanes[i]
	l.since = p.now
	if l.pc++; l.pc == l.hi {
		l.pc = l.lo
		if l.loop++; int(l.loop) == p.loops {
			p.left--
		}
		// Where messages are not sliced one by one, a loop hands over once, when its
		// last bytes are out; and what it does about its last block, nothing goes on with.
		l.owes = who < p.s.Ranks && (!p.sliced && p.m.Wire.Slice > 0 || p.idle > 0 && !p.atOnce)
	}
	p.wake(who)
}

// wake lets the lanes of a participant look that wait for another one.
func (p *execution) wake(who int) {
	p.ready = append(p.ready, p.blocked[who]...)
	p.blocked[who] = p.blocked[who][:0]
}

// send puts a message on its way; true when the lane must wait until its bytes
// are out.
func (p *execution) send(i int32, who, ln int, op schedule.Op) (bool, error) {
	k, err := p.connect(who, int(op.Peer), ln)
	if err != nil {
		return false, err
	}
	c := &p.conns[k]
	l := &p.lanes[i]
	if l.sends++; !p.atOnce || l.sends == 1 {
		l.sent = p.now
	}
	bytes := float64(p.s.Bytes(p.op, op)) * p.share(l)
	f := flight{conn: k, lane: i, left: bytes, mark: bytes * (1 - p.cut), event: -1}
	if p.record {
		f.event = int32(len(p.events))
		p.note(l, who, ln, op, p.now, p.now)
	}
	most := p.lane
	if c.switched || who >= p.s.Ranks || c.first == c.last && c.from == c.to {
		most = 1e18
	}
	p.under = append(p.under, f)
	p.flows = append(p.flows, fair.Flow{From: c.first, To: c.last, Cap: most})
	return !c.switched && !p.atOnce, nil
}

// share is the part of the data that goes in the loop a lane is in.
func (p *execution) share(l *lane) float64 {
	if int(l.loop) == p.loops-1 {
		return p.last
	}
	return p.full
}

// note records an op.
func (p *execution) note(l *lane, who, ln int, op schedule.Op, from, to unit.Time) {
	if !p.record {
		return
	}
	e := result.Event{
		Rank: who, Lane: ln, Op: int(l.pc), Loop: int(l.loop), Name: op.Verb.String(), Peer: -1,
		Bytes: unit.Bytes(math.Round(float64(p.s.Bytes(p.op, op)) * p.share(l))), From: from + p.m.Wire.Launch,
		To: to + p.m.Wire.Launch,
	}
	if !op.Verb.Local() {
		e.Peer = int(op.Peer)
	}
	p.events = append(p.events, e)
}

// connect finds a connection, and its route when it is new.
func (p *execution) connect(from, to, ln int) (int32, error) {
	key := uint64(from)<<38 | uint64(to)<<12 | uint64(ln)
	if k, ok := p.index[key]; ok {
		return k, nil
	}
	w, ok := p.routes.find(from, to, p.s.Channel(ln))
	if !ok {
		return 0, p.o.m.noRoute(from, to)
	}
	c := conn{from: int32(from), to: int32(to), lane: -1, first: int32(len(p.solver.Links))}
	c.switched = from >= p.s.Ranks
	c.hop = p.m.Wire.Hop[w.hop] + w.wires
	if w.hop == OverNet {
		c.hop += unit.Time(p.m.late(p.o))
	}
	if w.hop == OverSwitch {
		c.hop /= 2 // half the route
	}
	if p.sliced {
		c.hop += p.m.Wire.Slice * unit.Time(max(p.m.Wire.Slices, 1))
	}
	if p.atOnce && from < p.s.Ranks {
		p.solver.Links = append(p.solver.Links, p.laneResource(from*p.s.Lanes+ln))
	}
	for _, id := range w.resources {
		p.solver.Links = append(p.solver.Links, p.resource(id, w.hop))
	}
	c.last = int32(len(p.solver.Links))
	k := int32(len(p.conns))
	p.conns = append(p.conns, c)
	p.index[key] = k
	return k, nil
}

// laneResource is what the messages share that a lane has under way at once.
func (p *execution) laneResource(lane int) int32 {
	key := capKey{-1 - int64(lane), Lane}
	k, ok := p.dense[key]
	if !ok {
		k = int32(len(p.caps))
		p.caps = append(p.caps, min(p.lane*max(1, p.m.Wire.Spread), 1e18))
		p.dense[key] = k
	}
	return k
}

// resource is the dense number of a resource, with its capacity for data.
func (p *execution) resource(id int64, h Hop) int32 {
	x := p.o.m.describe(id)
	x.kind = x.kind.under(1 << h)
	key := capKey{id, x.kind}
	if k, ok := p.dense[key]; ok {
		return k
	}
	l := p.o.m.load(id, x, 1, 0)
	most := 1e18
	if t := p.m.seconds(x.kind, &l, 1); t > 0 {
		most = 1 / t
	}
	k := int32(len(p.caps))
	p.caps = append(p.caps, most)
	p.dense[key] = k
	return k
}
