package hub

import (
	"cmp"
	"math"
	"slices"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/stats"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// value is a figure in the unit that Heat prints, with four digits.
func (c cell) value(f fleet.Figure) float64 {
	v := float64(c.rate) / 1e9
	switch f {
	case fleet.FigureBoth:
		v = float64(c.both) / 1e9
	case fleet.FigureLatency:
		v = float64(c.latency) * 1e6
	}
	if v <= 0 {
		return 0
	}
	digits := math.Pow(10, 3-math.Floor(math.Log10(v)))
	return math.Round(v*digits) / digits
}

// Heat is the last figures of all pairs of nodes by a transport, of all that have not left where names are nil.
func (v *View) Heat(f fleet.Figure, by fleet.Transport, names []fleet.Name) *fleet.Heat {
	if names == nil {
		names = v.asked(&fleet.Order{})
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	h := v.heat(f, names, v.cells[by], func(cell) bool { return true })
	h.By = by
	for _, t := range fleet.Transports() {
		if len(v.cells[t]) > 0 {
			h.Ways = append(h.Ways, t)
		}
	}
	if len(h.Ways) == 1 && h.Ways[0] == fleet.TCP {
		h.Ways = nil
	}
	return h
}

// SweepHeat is what the last sweep of an order measured, and nothing that others did; false where there is no
// such order.
func (v *View) SweepHeat(f fleet.Figure, id string) (*fleet.Heat, bool) {
	s, _ := v.Order(id, time.Time{})
	names := v.asked(&s.Order)
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[id]
	if o == nil {
		return nil, false
	}
	h := v.heat(f, names, v.last(o, o.Over), func(c cell) bool { return c.order == o.number && int(c.sweep) == o.Sweep })
	h.By = o.Over
	return h, true
}

// asked are the nodes of an order, all that have not left where it names none, in their order.
func (v *View) asked(o *fleet.Order) []fleet.Name {
	names := o.Nodes
	if names == nil {
		names = v.present()
	}
	names = append([]fleet.Name{}, names...)
	slices.SortFunc(names, byNumber)
	return names
}

// heat is the figures that are asked for. The caller holds mu.
func (v *View) heat(f fleet.Figure, names []fleet.Name, cells map[uint64]cell, want func(cell) bool) *fleet.Heat {
	h := &fleet.Heat{Figure: f, Unit: "GB/s", Names: names, Values: make([][]*float64, len(names))}
	if f == fleet.FigureLatency {
		h.Unit = "µs"
	}
	var all []float64
	store := make([]float64, len(names)*len(names)) // one allocation for all cells
	oldest, newest := int64(math.MaxInt64), int64(0)
	for i, a := range names {
		h.Values[i] = make([]*float64, len(names))
		for j, b := range names {
			c, ok := v.cell(cells, a, b)
			if !ok || !want(c) {
				continue
			}
			x := c.value(f)
			if x == 0 {
				continue
			}
			store[i*len(names)+j] = x
			h.Values[i][j] = &store[i*len(names)+j]
			all = append(all, x)
			oldest, newest = min(oldest, c.at), max(newest, c.at)
		}
	}
	if len(all) > 0 {
		h.Median, h.Oldest, h.Newest = stats.Nearest(all, 0.5), time.Unix(oldest, 0).UTC(), time.Unix(newest, 0).UTC()
	}
	return h
}

// last is where the last figures of such an order are kept.
func (v *View) last(o *order, over fleet.Transport) map[uint64]cell {
	if o.Job != "" {
		return v.checks[over]
	}
	return v.cells[over]
}

// cell is the last figures of a direction. The caller holds mu.
func (v *View) cell(cells map[uint64]cell, a, b fleet.Name) (cell, bool) {
	x, ok1 := v.numbers[a]
	y, ok2 := v.numbers[b]
	if !ok1 || !ok2 || a == b {
		return cell{}, false
	}
	c, ok := cells[uint64(x)<<32|uint64(y)]
	return c, ok
}

// nodeRates are the least and the middle of the rates of pairs that each node is in.
func (v *View) nodeRates(by fleet.Transport) map[fleet.Name][2]float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	names := make([]fleet.Name, len(v.numbers))
	for n, i := range v.numbers {
		names[i] = n
	}
	rates := make([][]float32, len(names))
	for k, c := range v.cells[by] {
		if c.rate > 0 {
			rates[k>>32] = append(rates[k>>32], c.rate)
			rates[uint32(k)] = append(rates[uint32(k)], c.rate)
		}
	}
	out := make(map[fleet.Name][2]float64, len(names))
	for i, list := range rates {
		if len(list) > 0 {
			out[names[i]] = [2]float64{float64(slices.Min(list)), float64(stats.Nearest(list, 0.5))}
		}
	}
	return out
}

// table is what a sweep of an order showed, the middle of it, and the middle rate that pairs of the fleet show when
// they are measured with messages of the same size; 0 where few were. Every node that says something has one vote,
// however much it says: one in the wrong hands could claim rates that make all others look slow.
func (v *View) table(id string, sweep int, names []fleet.Name) (t *pairs.Table, mid pairs.Measure, usual unit.Rate) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	t = &pairs.Table{}
	o := v.orders[id]
	if o == nil {
		return t, mid, 0
	}
	var rate, both, slow votes
	place := map[uint32]int{}
	for i, a := range names {
		t.Names = append(t.Names, string(a))
		if n, ok := v.numbers[a]; ok {
			place[n] = i
		}
	}
	for k, c := range v.last(o, o.Over) { // what was measured, which is less than all pairs
		if c.order != o.number || int(c.sweep) != sweep {
			continue
		}
		i, ok1 := place[uint32(k>>32)]
		j, ok2 := place[uint32(k)]
		if ok1 && ok2 {
			rate.add(c.by, float64(c.rate))
			both.add(c.by, float64(c.both))
			slow.add(c.by, -float64(c.latency))
			t.Cells = append(t.Cells, pairs.Measure{
				From: i, To: j, Rate: unit.Rate(c.rate), Both: unit.Rate(c.both), Latency: unit.Seconds(float64(c.latency)),
			})
		}
	}
	slices.SortFunc(t.Cells, func(a, b pairs.Measure) int { return cmp.Or(a.From-b.From, a.To-b.To) })
	alike := map[uint32]bool{}
	for _, other := range v.orders {
		alike[other.number] = other.What.Measure == fleet.MeasurePairs && other.Over == o.Over &&
			other.What.Large == o.What.Large && other.Caps.Rate == o.Caps.Rate
	}
	mid.Rate, mid.Both, mid.Latency = unit.Rate(rate.middle()), unit.Rate(both.middle()), unit.Seconds(-slow.middle())
	count := 0
	var all votes
	for _, cells := range []map[uint64]cell{v.cells[o.Over], v.checks[o.Over]} {
		for _, c := range cells {
			if alike[c.order] && c.rate > 0 {
				all.add(c.by, float64(c.rate))
				count++
			}
		}
	}
	if count < 8 {
		return t, mid, 0
	}
	return t, mid, unit.Rate(all.middle())
}

// votes are figures by who said them.
type votes map[uint32][]float64

func (v *votes) add(by uint32, x float64) {
	if *v == nil {
		*v = votes{}
	}
	if x != 0 {
		(*v)[by] = append((*v)[by], x)
	}
}

// middle is that of the middles of all who said something; 0 where nobody did. Of two it is the lower: nobody is slow
// because one says so.
func (v votes) middle() float64 {
	var list []float64
	for _, x := range v {
		list = append(list, stats.Nearest(x, 0.5))
	}
	if len(list) == 0 {
		return 0
	}
	return stats.MedianLow(list)
}
