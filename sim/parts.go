package sim

import (
	"container/heap"
	"slices"

	"busbar.dev/unit"
)

// split adds a lane to what is played. Where threads of their own run every stage
// (Wire.Overlap) a lane falls into parts: each goes on to its next loop as soon as
// it is done with the last, and begins a loop when the part before it has ended that.
func (p *execution) split(who, ln int) {
	p.first = append(p.first, int32(len(p.lanes)))
	n := p.s.Len(who, ln)
	if n == 0 {
		return
	}
	cuts := []int32{0}
	if p.m.Wire.Overlap && who < p.s.Ranks {
		cuts = p.cuts(who, ln, n)
	}
	for k, lo := range cuts {
		op := p.s.At(who, ln, int(lo))
		l := lane{who: int32(who), ln: int32(ln), lo: lo, hi: int32(n), pc: lo, prev: -1, switched: int(op.Peer) >= p.s.Ranks}
		if k+1 < len(cuts) {
			l.hi = cuts[k+1]
		}
		if k > 0 {
			l.prev = int32(len(p.lanes)) - 1
			l.comes = op.Verb.Receives() && p.lanes[l.prev].switched == l.switched
		}
		if last := p.o.stages[0].last(); p.atOnce && last > 0 { // all sends are made ready first
			l.rest = unit.Time((1/last - 1) * float64(p.m.Wire.Peer))
			heap.Push(&p.late, arrival{l.rest, -1 - int32(len(p.lanes))})
		}
		p.left++
		p.ready = append(p.ready, int32(len(p.lanes)))
		p.lanes = append(p.lanes, l)
	}
}

// cuts is where the parts of a lane begin: where it turns from ranks to a switch or
// back, and from sending to what comes back. Parts must not
// share a connection, or their messages would be mixed up; such a lane stays whole.
func (p *execution) cuts(who, ln, n int) []int32 {
	list := []int32{0}
	var last int32 // the switch of the op before, 0 where it was a rank
	sent := false
	var to, from [][]int32 // the peers of each part
	for i := range n {
		op := p.s.At(who, ln, i)
		sw := max(0, op.Peer-int32(p.s.Ranks)+1)
		if i > 0 && (sw != last || sent && op.Verb.Receives()) {
			list = append(list, int32(i))
		}
		for len(to) < len(list) {
			to, from = append(to, nil), append(from, nil)
		}
		k := len(list) - 1
		if sent = !op.Verb.Receives(); sent {
			to[k] = append(to[k], op.Peer)
		} else {
			from[k] = append(from[k], op.Peer)
		}
		last = sw
	}
	if shared(to) || shared(from) {
		return list[:1]
	}
	return list
}

// shared reports whether two of the lists have a member in common.
func shared(lists [][]int32) bool {
	for i, a := range lists {
		for _, b := range lists[:i] {
			for _, x := range a {
				if slices.Contains(b, x) {
					return true
				}
			}
		}
	}
	return false
}

// ended reports whether a part is done with a loop, and has handed it over.
func (p *execution) ended(i, loop int32, over bool) bool {
	l := &p.lanes[i]
	return l.loop > loop && !(over && p.m.Wire.Overlap && l.loop == loop+1 && (l.owes || p.now < l.rest))
}

// passed reports whether a lane has done its first count ops in a loop.
func (p *execution) passed(who, ln int, count, loop int32) bool {
	at := who*p.s.Lanes + ln
	for i := p.first[at]; i < p.first[at+1]; i++ {
		l := &p.lanes[i]
		if count > l.hi && i+1 < p.first[at+1] {
			continue
		}
		return p.ended(i, loop, l.switched) || l.loop == loop && l.pc >= count && l.pc < l.hi
	}
	return true
}

// turn is how long a block keeps the threads of its channel from the next one where switches reduce, in s.
func (o *Outline) turn(m *Model) float64 {
	if m.Wire.Turn <= 0 {
		return 0
	}
	hops := 0.0
	for i := range o.stages {
		hops += o.stages[i].chain[OverSwitch]
	}
	return m.Wire.Turn * hops * float64(m.Wire.Hop[OverSwitch]) / second
}
