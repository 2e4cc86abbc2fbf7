package hub

import (
	"slices"
	"strconv"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
)

// maxSamples bounds the samples of one part: a pair has two for each of its rails.
const maxSamples = 64

// stopped is what an agent says of a part that it was told to stop.
const stopped = "stopped"

// measured folds the outcome of a part. A node speaks of pairs that it is in, of orders that
// there are, and of sweeps that have begun.
func (v *View) measured(name fleet.Name, s *node, m *fleet.Measured, at time.Time) bool {
	o := v.orders[m.Order]
	var sweep begun
	began := false
	if o != nil {
		sweep, began = o.sweeps[m.Sweep]
	}
	switch {
	case (o == nil || m.Sweep > o.Order.Sweep || m.Sweep > 0 && !began) && v.orderMissing() && v.early.add("order "+m.Order, postponed{name, m, at}):
		return false // the order, or that it ran, may come again
	case o == nil:
		return v.ignore("unknown order")
	case m.Sweep < 1 || m.Sweep > o.Order.Sweep || m.Round < 0 || m.Took < 0 || len(m.Part) > 2*maxText || len(m.Pairs) > maxSamples:
		return v.ignore("absurd values")
	case o.nodes != nil && !o.nodes[name]:
		return v.ignore("no part of the order")
	case !began:
		return v.ignore("earlier sweep")
	}
	v.own(o, name, m, sweep.at)
	if m.Failed == stopped && m.Peer == "" {
		return true // as it was told to
	}
	if m.Failed != "" {
		if m.Peer != "" && !v.partner(o, &sweep, name, m.Peer) {
			return v.ignore("more partners than rounds")
		}
		s.lastFailed, s.lastFailedAt = cut(m.Failed), at
		v.failed(name, o, m, &sweep)
		return true
	}
	if len(m.Results) > 0 {
		switch {
		case o.Order.What.Measure != fleet.MeasureCollective:
			return v.ignore("absurd values")
		case sweep.lead != "" && sweep.lead != name:
			return v.ignore("not rank 0")
		}
		if !v.collective(name, m, at) {
			return false
		}
		if m.Sweep == o.Order.Sweep { // it has one part, whoever speaks of it
			o.good, o.bad = 1, 0
		}
		return true
	}
	for _, p := range m.Pairs {
		peer := p.To
		if p.To == name {
			peer = p.From
		}
		switch {
		case p.From == p.To || p.From != name && p.To != name || peer != m.Pairs[0].To && peer != m.Pairs[0].From:
			return v.ignore("another's pair")
		case v.nodes[peer] == nil && v.early.add("node "+string(peer), postponed{name, m, at}):
			return false // that it joined may come again
		case v.nodes[peer] == nil || o.nodes != nil && !o.nodes[peer]:
			return v.ignore("unknown peer")
		case !saneRate(p.Rate) || !saneRate(p.Both) || !saneTime(p.Latency) || len(p.Rail) > maxText || p.Rate == 0 && p.Latency == 0 && p.Failed == "":
			return v.ignore("absurd values")
		case !v.partner(o, &sweep, name, peer):
			return v.ignore("more partners than rounds")
		}
	}
	for _, p := range worstRails(m.Pairs) {
		v.pair(o, name, m, sweep.over, p, at)
	}
	if o.Job == "" { // else a brief look at a few nodes: neither a fault nor its end is shown by one
		list, id, setup := m.Pairs, sweepName(m.Order, m.Sweep), o.setup
		v.history(func(h *health.History) {
			for _, p := range list {
				h.Add(health.Sample{By: string(sweep.over), Rail: p.Rail, Sweep: id, Time: sweep.at, From: string(p.From), To: string(p.To), Rate: p.Rate, Latency: p.Latency, Error: cut(p.Failed), Setup: setup})
			}
		})
	}
	return true
}

// partner tells whether a node may speak of a pair with another.
func (v *View) partner(o *order, b *begun, node, other fleet.Name) bool {
	return v.nodes[other] == nil || b.partner(o.Order.Rounds, v.number(node), v.number(other))
}

// sweepName is a sweep in the statistics.
func sweepName(order string, sweep int) string { return order + "/" + strconv.Itoa(sweep) }

// pair keeps one direction, as a node says it is.
func (v *View) pair(o *order, by fleet.Name, m *fleet.Measured, over fleet.Transport, p fleet.PairSample, at time.Time) {
	from, to := v.number(p.From), v.number(p.To)
	if m.Sweep == o.Order.Sweep {
		o.mark(from, to, true)
	}
	key := uint64(from)<<32 | uint64(to)
	cells := v.last(o, over)
	if old, known := cells[key]; known || len(cells) < maxCells {
		// A clock that was ahead for a while must not keep the figures of that time for ever.
		if at.Unix() >= old.at || old.order == o.number && int32(m.Sweep) > old.sweep {
			cells[key] = cell{
				float32(p.Rate), float32(p.Both), float32(p.Latency.Seconds()), v.number(by),
				at.Unix(), o.number, int32(m.Sweep),
			}
		}
	} else {
		v.ignored["too many pairs"]++
	}
}

// worstRails are the directions of a pair, each with the worst figures of its rails: one that is slow holds up a job that uses all.
func worstRails(list []fleet.PairSample) (worst []fleet.PairSample) {
	for _, p := range list {
		if p.Failed != "" {
			p.Rate, p.Both, p.Latency = 1, 0, 0 // a byte a second: nothing gets through
		}
		i := slices.IndexFunc(worst, func(w fleet.PairSample) bool { return w.From == p.From && w.To == p.To })
		if i < 0 {
			worst = append(worst, p)
			continue
		}
		w := &worst[i]
		w.Rate, w.Both, w.Latency = min(w.Rate, p.Rate), min(w.Both, p.Both), max(w.Latency, p.Latency)
	}
	return worst
}

// failed keeps that a pair could not be measured, over no rail that it was measured over before.
func (v *View) failed(name fleet.Name, o *order, m *fleet.Measured, sweep *begun) {
	known := m.Peer != "" && m.Peer != name && v.nodes[m.Peer] != nil && (o.nodes == nil || o.nodes[m.Peer])
	if o.Order.What.Measure != fleet.MeasurePairs {
		if m.Sweep == o.Order.Sweep && o.good == 0 {
			o.bad = 1
		}
		return
	}
	if !known || o.State == fleet.Cancelled { // who was stopped first is nobody's fault
		return
	}
	if m.Sweep == o.Order.Sweep {
		o.mark(v.number(name), v.number(m.Peer), false)
	}
	if o.Job != "" {
		return
	}
	for _, d := range [][2]fleet.Name{{name, m.Peer}, {m.Peer, name}} {
		s := health.Sample{By: string(sweep.over), Sweep: sweepName(m.Order, m.Sweep), Time: sweep.at, From: string(d[0]), To: string(d[1]), Error: cut(m.Failed), Setup: o.setup}
		v.history(func(h *health.History) {
			ways := slices.DeleteFunc(h.Ways(s.From, s.To), func(w health.Way) bool { return w.By != s.By })
			if len(ways) == 0 {
				ways = []health.Way{{By: s.By}}
			}
			for _, w := range ways {
				s.Rail = w.Rail
				h.Add(s)
			}
		})
	}
}

// own keeps how long a node took for its own work before a collective, for the statistics of who is late again and again.
// Only its own word counts: whoever speaks for others could have any of them drained.
func (v *View) own(o *order, name fleet.Name, m *fleet.Measured, at time.Time) {
	if o.Job != "" || o.Order.What.Measure != fleet.MeasureCollective || len(m.Own) > fleet.MaxNodes {
		return
	}
	for _, w := range m.Own {
		switch {
		case w.Node != name:
			v.ignored["another's time"]++
		case w.Spent <= 0 || !saneTime(w.Spent):
			v.ignored["absurd values"]++
		default:
			v.history(func(h *health.History) {
				h.Work(health.Work{Op: sweepName(m.Order, m.Sweep), Node: string(name), Time: at, Spent: w.Spent})
			})
		}
	}
}

// number is a node's, small for the keys of cells.
func (v *View) number(n fleet.Name) uint32 {
	i, ok := v.numbers[n]
	if !ok {
		i = uint32(len(v.numbers))
		v.numbers[n] = i
	}
	return i
}

// collective keeps rows that stand by themselves. What a node says again takes the place of what it
// said, so that none drives out what others measured.
func (v *View) collective(name fleet.Name, m *fleet.Measured, at time.Time) bool {
	if n := len(m.Results.Rows()); n == 0 || n > maxRecords {
		return v.ignore("absurd values")
	}
	for _, s := range m.Results {
		if s.Check() != nil {
			return v.ignore("absurd values")
		}
	}
	c := fleet.Collective{At: at, Node: name, Order: m.Order, Sweep: m.Sweep, Results: m.Results}
	kept := make([]fleet.Collective, 0, len(v.kept)+1)
	for _, k := range v.kept { // made anew: others may be reading the old one
		if name == "" || k.Node != name || k.Order != m.Order || k.Sweep != m.Sweep {
			kept = append(kept, k)
		}
	}
	kept = append(kept, c)
	v.kept = kept[max(0, len(kept)-maxKept):]
	return true
}
