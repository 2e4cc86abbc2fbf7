package sim

import (
	"cmp"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

const second = 1e12 // in picoseconds

// Price is the time of one call by the outline, under a model.
//
// The data goes in loops of what a message may carry. A stage moves its data at
// the rate of its busiest resource, or as fast as its chain of messages lets it.
// Stages of one lane follow each other; what different lanes do overlaps between
// loops, so that with many loops only the busiest lane or resource counts.
func (o *Outline) Price(op coll.Op, m *Model) *result.Run {
	r := &result.Run{Op: op, Ranks: o.s.Ranks, Algo: o.s.Name, Proto: m.Wire.Name, Channels: o.s.Channels}
	var kind Kind
	r.Parts, kind = o.parts(moved(op), m)
	r.Time = r.Parts.Launch + r.Parts.Latency + r.Parts.Sync + r.Parts.Moving
	o.explain(r, m, kind, moved(op))
	return r
}

// moved is the size that an operation moves: a barrier moves nothing.
func moved(op coll.Op) float64 {
	if op.Kind == coll.Barrier {
		return 0
	}
	return float64(op.Bytes)
}

// Time is Price without an explanation, for those who ask very often.
func (o *Outline) Time(op coll.Op, m *Model) unit.Time {
	x, _ := o.parts(moved(op), m)
	return x.Launch + x.Latency + x.Sync + x.Moving
}

// parts are the parts of the time, and the kind of resource that limits the flow.
func (o *Outline) parts(size float64, m *Model) (r result.Parts, limit Kind) {
	if o.s.Ranks <= 1 {
		return r, Lane
	}
	loops := o.loops(size, m)
	var sum, latency, sync float64
	var lanes [2]float64
	for i := range o.stages {
		x := &o.stages[i]
		t := m.stage(o, x, size, loops)
		sum += t.all
		latency += t.latency
		sync += t.sync
		for k := range lanes {
			switch {
			case m.Wire.Overlap:
				lanes[k] = max(lanes[k], t.all)
			case x.parity[k]:
				lanes[k] += t.all
			}
		}
	}
	if turn := o.turn(m) * loops; turn > 0 {
		lanes[0], lanes[1] = max(lanes[0], turn), max(lanes[1], turn)
	}
	kind, busy := m.busiest(&o.all, o.message(), size)
	b := busy
	if lane := o.all[Lane].bytes; lane > 0 && o.even() {
		b *= 1 + m.Wire.Last*o.message()/lane
	}
	total := sum/loops + max(b, lanes[0], lanes[1])*(1-1/loops)
	moving := max(0, total-latency-sync)
	if total < latency+sync { // a chain that overlaps with itself
		scale := total / (latency + sync)
		latency, sync = latency*scale, sync*scale
	}
	moving += m.ramp(&o.all, o.message(), size, moving, busy)
	r.Launch = m.Wire.Launch
	r.Latency, r.Sync, r.Moving = ps(latency), ps(sync), ps(moving)
	r.Launch += max(0, m.Wire.Issue-r.Launch-r.Latency-r.Sync-r.Moving)
	return r, kind
}

func ps(seconds float64) unit.Time { return unit.Time(math.Round(seconds * second)) }

// ramp is what the threads of a GPU lose until they have their full rate, as far
// as nothing else is slower still.
func (m *Model) ramp(loads *[nKinds]load, message, size, moving, busy float64) float64 {
	if m.Wire.RampOver <= 0 {
		return 0
	}
	var own [nKinds]load
	for _, k := range []Kind{Lane, NVLink, Multimem} {
		own[k] = loads[k]
	}
	_, t := m.busiest(&own, message, size)
	lost := float64(m.Wire.Ramp) / second * (1 - math.Exp(-moving*second/float64(m.Wire.RampOver)))
	return max(0, min(lost, t+lost-busy))
}

// spent is the time of a stage in s, and what of it is waiting.
type spent struct{ all, latency, sync float64 }

// stage is the time of one stage over all loops.
//
// In a ring every rank waits for the one before it in every round, so that its
// time is that of its slowest link or the sum of all hops on the way of a block,
// whichever is longer (the greatest cycle mean of the max-plus recurrence). A pipe
// runs at the rate of its slowest link once it is filled.
func (m *Model) stage(o *Outline, x *stage, size, loops float64) spent {
	_, b := m.busiest(&x.loads, x.message, size)
	b *= 1 + m.Wire.Last*x.last()
	t := spent{latency: m.latency(x, o), sync: m.sync(x, loops)}
	chain := 0.0
	for h, n := range x.moves {
		if n > 0 {
			chain += n * m.message(x, Hop(h), size)
		}
	}
	if m.Stored { // a NIC sends what the threads have written, and not while they write
		chain += x.moves[OverNet] * min(m.one(x, Lane, size), m.message(x, OverNet, size))
	}
	chain *= 1 + m.Wire.Last*x.last()
	switch x.pacing {
	case schedule.Even:
		t.latency *= loops
		for h, n := range x.uneven { // once, until the loops follow each other
			t.latency += n * float64(m.Wire.Hop[h]) / second
		}
		// A slice goes on while the next one is still coming in.
		t.all = max(b, t.latency+t.sync+chain/float64(max(m.Wire.Slices, 1)))
	case schedule.Piped:
		pieces := float64(max(x.pieces, 1)) * loops
		if m.Wire.Queued {
			// Ranks of a node are a message behind each other, and buffers hold several. Over the network as far as a channel's
			// part of a call fits into them.
			fits := 1.0
			if x.chain[OverNet] > 0 {
				fits = min(1, m.Wire.Slots*float64(m.Wire.Chunk)/max(1, size*x.message*float64(max(x.pieces, 1))))
			}
			t.latency, chain = t.latency*(1-fits), chain*(1-fits)
		}
		t.all = max(b, m.serial(x, size)+t.sync) + t.latency + max(0, chain-b)/pieces
	case schedule.AtOnce:
		t.all = b + t.latency + t.sync
		// every loop waits for the switch, and the last block comes back from it
		if x.chain[OverSwitch] > 0 && !m.Wire.Overlap {
			t.all += t.latency*(loops-1) + m.message(x, OverSwitch, size)
			t.latency *= loops
		}
	default:
		if !m.Wire.Overlap {
			t.latency *= loops
		}
		t.all = b + t.latency + t.sync
	}
	return t
}

// serial is how long the busiest lane of a pipe takes to send its messages one
// after the other.
func (m *Model) serial(x *stage, size float64) float64 {
	t := 0.0
	for h, n := range x.serial {
		if n > 0 {
			t += n * m.message(x, Hop(h), size)
		}
	}
	return t
}

// ofHop are the kinds of resources that a hop meets.
var ofHop = [nHops][]Kind{
	OverNVLink: {Lane, NVLink},
	OverPCIe:   {Lane, PCIe},
	OverHost:   {Lane, Shm, Socket, Staging},
	OverFar:    {Lane, Far, Socket, Staging},
	OverNet:    {Lane, NIC, DMA, Bounce, FarBounce, Socket, Fabric},
	OverSwitch: {Multimem},
}

// message is how long one message of a stage takes over a kind of hop. Rounds keep
// all flows in step; of a pipe only those channels meet that use a resource at the
// same depth.
func (m *Model) message(x *stage, h Hop, size float64) float64 {
	t := 0.0
	for _, k := range ofHop[h] {
		t = max(t, m.one(x, k, size))
	}
	return t
}

// one is how long one message of a stage keeps a kind of resource busy.
func (m *Model) one(x *stage, k Kind, size float64) float64 {
	l := x.loads[k]
	if l.messages <= 0 {
		return 0
	}
	flows := l.flows
	if x.pacing == schedule.Piped {
		flows = min(flows, max(1, x.meet[k]))
	}
	return m.seconds(k, &l, size) * flows / l.messages
}

// loops is how often the program runs: the largest message over what one may carry.
func (o *Outline) loops(size float64, m *Model) float64 {
	w := &m.Wire
	message := size * o.message()
	for i, r := range w.Ladder {
		if message < r.Below || i == len(w.Ladder)-1 {
			return max(1, message/r.Chunk)
		}
	}
	if w.Chunk <= 0 {
		return 1
	}
	loops := message / float64(w.Chunk)
	if w.Least > 0 {
		loops = max(loops, min(w.Want, message/float64(w.Least)))
	}
	return max(1, loops)
}

// message is the largest message of all stages, for a byte of the operation.
func (o *Outline) message() float64 {
	most := 0.0
	for i := range o.stages {
		most = max(most, o.stages[i].message)
	}
	return most
}

// even tells whether ranks of all stages send all the time, as in a ring.
func (o *Outline) even() bool {
	for i := range o.stages {
		if k := o.stages[i].pacing; k != schedule.Even && k != schedule.AtOnce {
			return false
		}
	}
	return true
}

// last is one message over all that a lane sends in a stage.
func (x *stage) last() float64 {
	if lane := x.loads[Lane].bytes; lane > 0 && (x.pacing == schedule.Even || x.pacing == schedule.AtOnce) {
		return x.message / lane
	}
	return 0
}

// seconds is how long a load keeps its resource busy.
func (m *Model) seconds(k Kind, l *load, size float64) float64 {
	bytes := l.bytes * size * m.Wire.factor()
	rate := float64(l.rate) * m.share(k, l.net)
	switch k {
	case Fabric:
		if isHashed(l.net) {
			rate *= hashed(l.flows, l.cables)
		}
	case Lane:
		rate = float64(m.Wire.Lane) * m.Wire.factor()
	case Staging:
		rate = float64(m.through(m.Staging, l))
	case Bounce, FarBounce:
		rate = float64(m.bounce(k, l))
	case NIC:
		if m.socketBound(l) {
			rate = float64(m.Sockets)
		}
		if l.shared && m.SharedNIC > 0 {
			rate *= m.SharedNIC
		}
	case Multimem:
		if m.Through > 0 {
			rate = float64(l.rate) * m.Through
		}
	}
	if rate <= 0 {
		return 0
	}
	return bytes / rate
}

// through is a rate through a host's memory, which goes with the memory's own.
func (m *Model) through(r unit.Rate, l *load) unit.Rate {
	if m.Memory <= 0 || l.rate <= 0 {
		return r
	}
	return unit.Rate(float64(r) * float64(l.rate) / float64(m.Memory))
}

// bounce is what a NIC gets through host memory in one direction. GPUs of another socket copy over what joins the
// sockets, which became faster with the memory; near ones at the same rate on processors of 2021 and 2023.
func (m *Model) bounce(k Kind, l *load) unit.Rate {
	switch {
	case l.net == cluster.EFA:
		return m.BounceEFA
	case k == FarBounce:
		return m.through(m.BounceFar, l)
	}
	return m.Bounce
}

// socketBound reports a port of plain Ethernet that is faster than kernel sockets.
func (m *Model) socketBound(l *load) bool {
	return l.net == cluster.Ethernet && m.Sockets > 0 && float64(m.Sockets) < float64(l.rate)*m.share(NIC, l.net)
}

// busiest is the kind that takes longest, and how long.
func (m *Model) busiest(loads *[nKinds]load, message, size float64) (Kind, float64) {
	kind, most := Lane, 0.0
	for k := range loads {
		l := loads[k]
		if Kind(k) == Lane && l.bytes > 0 {
			if m.Wire.Spread > 1 {
				l.bytes = max(message, l.bytes/m.Wire.Spread)
			}
			l.bytes += m.Wire.Own * message
		}
		if t := m.seconds(Kind(k), &l, size); t > most {
			kind, most = Kind(k), t
		}
	}
	return kind, most
}

// latency is the chain of a stage, in s.
func (m *Model) latency(x *stage, o *Outline) float64 {
	t := float64(x.wires)
	for h, n := range x.chain {
		t += n * float64(m.Wire.Hop[h])
	}
	t += x.chain[OverNet] * m.late(o)
	if last := x.last(); m.Wire.Peer > 0 && last > 0 {
		t += (1/last - 1) * float64(m.Wire.Peer)
	}
	return t / second
}

// late is what the family of a network adds to a hop: more where many channels take it, and where the host copies and
// sends what all of them have, one after the other.
func (m *Model) late(o *Outline) float64 {
	n := float64(max(o.s.Channels, 1))
	t := float64(m.Fabric[netAt(o.net)])
	if o.net == cluster.EFA && o.all[Bounce].bytes+o.all[FarBounce].bytes > 0 {
		t = min(t, float64(micros(efaStaged)))
	}
	t *= 1 + m.Crowd*(1-1/n)
	if o.net == cluster.Ethernet || o.net == cluster.TCPX {
		t += float64(m.Proxy) * (n - 1)
	}
	return t
}

// sync is what handing over slices costs, in s: in every round of a ring, and once
// a loop where pieces follow each other.
func (m *Model) sync(x *stage, loops float64) float64 {
	n := float64(max(m.Wire.Slices, 1)) * loops
	if x.pacing == schedule.Even || x.pacing == schedule.Stepped {
		n *= x.rounds()
	}
	return n * float64(m.Wire.Slice) / second
}

// explain names the bottleneck and the busiest resources.
func (o *Outline) explain(r *result.Run, m *Model, kind Kind, size float64) {
	for k := range o.all {
		l := &o.all[k]
		t := m.seconds(Kind(k), l, size)
		if t == 0 || Kind(k) == Lane || r.Time == 0 {
			continue
		}
		r.Busy = append(r.Busy, result.Use{
			Where: o.m.name(l.id), Kind: Kind(k).limit(), Rate: l.rate,
			Bytes: unit.Bytes(l.bytes * size * m.Wire.factor() * (1 + 1e-12)), Share: min(1, t*second/float64(r.Time)),
		})
	}
	// What is equally busy stays in the order of kinds, however its bytes were added up.
	slices.SortStableFunc(r.Busy, func(a, b result.Use) int { return cmp.Compare(float32(b.Share), float32(a.Share)) })
	r.Limit = o.limit(r, m, kind, size)
}
