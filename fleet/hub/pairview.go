package hub

import (
	"math"
	"slices"
	"strconv"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/stats"
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
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return v
}

// Heat is the last figures of pairs by a transport; with the ID of an order, those of its last sweep and nothing that
// others measured.
func (v *View) Heat(f fleet.Figure, by fleet.Transport, names []fleet.Name, id string) *fleet.Heat {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if o := v.orders[id]; o != nil {
		h := v.heat(f, names, v.cells[o.table(o.Over)], func(c cell) bool { return c.of(o) })
		h.By = o.Over
		return h
	}
	h := v.heat(f, names, v.cells[table{by, false}], func(cell) bool { return true })
	h.By = by
	for _, t := range fleet.Transports() {
		if len(v.cells[table{t, false}]) > 0 {
			h.Ways = append(h.Ways, t)
		}
	}
	if len(h.Ways) == 1 && h.Ways[0] == fleet.TCP {
		h.Ways = nil
	}
	return h
}

// of tells whether the last sweep of an order measured it.
func (c cell) of(o *order) bool { return c.order == o.number && int(c.sweep) == o.Sweep }

// asked are the nodes of an order, in their order; all that joined and have not left where it names none.
func (v *View) asked(o *fleet.Order) []fleet.Name {
	v.mu.RLock()
	defer v.mu.RUnlock()
	names := append([]fleet.Name{}, o.Nodes...)
	for n, s := range v.nodes {
		if o.Nodes == nil && s.joined != nil && !s.left {
			names = append(names, n)
		}
	}
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
	oldest, newest := int64(math.MaxInt64), int64(0)
	for i, a := range names {
		h.Values[i] = make([]*float64, len(names))
		for j, b := range names {
			k, ok := v.key(a, b)
			c := cells[k]
			x := c.value(f)
			if !ok || x == 0 || !want(c) {
				continue
			}
			h.Values[i][j] = &x
			all = append(all, x)
			oldest, newest = min(oldest, c.at), max(newest, c.at)
		}
	}
	if len(all) > 0 {
		h.Median, h.Oldest, h.Newest = stats.Nearest(all, 0.5), time.Unix(oldest, 0).UTC(), time.Unix(newest, 0).UTC()
	}
	return h
}

// nodeRates are the least and the middle of the rates of pairs that each node is in.
func (v *View) nodeRates(by fleet.Transport) map[fleet.Name][2]float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	names, rates := v.names(), votes{}
	for k, c := range v.cells[table{by, false}] {
		rates.add(uint32(k>>32), float64(c.rate))
		rates.add(uint32(k), float64(c.rate))
	}
	out := map[fleet.Name][2]float64{}
	for i, list := range rates {
		out[names[i]] = [2]float64{slices.Min(list), stats.Nearest(list, 0.5)}
	}
	return out
}

// sweepPairs are the pairs that the last sweep of an order measured.
func (v *View) sweepPairs(id string) (list []judgedPair) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[id]
	if o == nil {
		return nil
	}
	slow := map[uint64]string{}
	usual, names := v.typical(o), v.names()
	for k, c := range v.cells[o.table(o.Over)] {
		if c.of(o) {
			slow[undirected(k)] = max(slow[undirected(k)], usual.slow(c))
		}
	}
	for k, text := range slow {
		list = append(list, judgedPair{names[uint32(k)], names[k>>32], text})
	}
	return list
}

// typical is the middle of what pairs of the fleet show when they are measured with messages of the same size. Every
// node that says something has one vote, however much it says: one in the wrong hands could claim rates that make all
// others look slow. The caller holds mu.
func (v *View) typical(o *order) typical {
	alike := map[uint32]bool{}
	for _, other := range v.orders {
		alike[other.number] = other.What.Measure == fleet.MeasurePairs && other.Over == o.Over &&
			other.What.Large == o.What.Large && other.Caps.Rate == o.Caps.Rate
	}
	rate, speed := votes{}, votes{}
	for t, cells := range v.cells {
		for _, c := range cells {
			if t.over == o.Over && alike[c.order] {
				rate.add(c.by, float64(c.rate))
				speed.add(c.by, -float64(c.latency))
			}
		}
	}
	return typical{rate.middle(), -speed.middle()}
}

// votes are figures by who said them.
type votes map[uint32][]float64

func (v votes) add(by uint32, x float64) {
	if x != 0 {
		v[by] = append(v[by], x)
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
