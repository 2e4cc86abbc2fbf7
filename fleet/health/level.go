package health

import (
	"math"

	"busbar.dev/internal/stats"
)

// A class is pairs that should show the same: the types of sender and receiver, and whether
// they hang on one leaf. Where leaves are unknown all are of one sort.
const (
	sameLeaf = iota
	acrossLeaves
	unknownLeaves
	sorts
)

// class is the number of a pair's class.
func (h *History) class(k pairKey) int {
	a, b := &h.node[k.from], &h.node[k.to]
	sort := sameLeaf
	switch {
	case a.leaf < 0 || b.leaf < 0:
		sort = unknownLeaves
	case a.leaf != b.leaf:
		sort = acrossLeaves
	}
	return (int(a.kind+1)*(len(h.types.list)+1)+int(b.kind+1))*sorts + sort
}

// classes is how many numbers there are.
func (h *History) classes() int {
	n := len(h.types.list) + 1
	return n * n * sorts
}

// levels computes what classes show in the sweeps that got new samples: an upper quantile of
// a sender's pairs, and of these over the senders. Faults and disturbances only slow down,
// hence not the median: with it three bad nodes of eight, or one bad leaf of three, would be
// what is usual.
func (h *History) levels(order []uint32) {
	rows := map[[2]int32]*row{} // by class and sender
	for _, id := range order {
		w := h.sweeps.at(id)
		if !w.dirty && len(w.level[0]) == h.classes() {
			continue
		}
		w.dirty = false
		for _, r := range rows {
			for f := range figures {
				r[f] = r[f][:0]
			}
		}
		h.rows(id, w.order, rows)
		w.pairs = make([]int32, h.classes())
		for k, r := range rows {
			w.pairs[k[0]] += int32(len(r[rate]))
		}
		for f := range figures {
			byClass := map[int32][]float32{}
			for k, r := range rows {
				if len(r[f]) > 0 {
					byClass[k[0]] = append(byClass[k[0]], usual(r[f]))
				}
			}
			level := make([]float32, h.classes())
			for c := range level {
				level[c] = float32(math.NaN())
			}
			for c, list := range byClass {
				level[c] = usual(list)
			}
			w.level[f] = level
		}
	}
}

const upper = 0.65

// usual is the upper quantile less what noise alone lifts it above the middle: half its
// distance from the lower one, where that is small enough to be noise.
func usual(list []float32) float32 {
	high := stats.Nearest(list, upper)
	return high - min((high-stats.Nearest(list, 1-upper))/2, 0.05)
}

// row is what one sender showed with receivers of one class, by figure.
type row [figures][]float32

// rows gathers the figures of a sweep.
func (h *History) rows(id uint32, order int32, rows map[[2]int32]*row) {
	var key [2]int32
	var r *row
	for i := range h.series {
		s := &h.series[i]
		p, ok := s.in(&h.sweeps, id, order)
		if !ok {
			continue
		}
		// Samples of a sender mostly follow each other: the map is asked once for all.
		if k := [2]int32{int32(h.class(s.pairKey)), s.from}; k != key || r == nil {
			if key, r = k, rows[k]; r == nil {
				r = &row{}
				rows[k] = r
			}
		}
		for f := range figures {
			if v, ok := p.of(f); ok {
				r[f] = append(r[f], float32(v))
			}
		}
	}
}

// in is a series' sample of a sweep; recent sweeps are found first.
func (s *series) in(w *sweeps, id uint32, order int32) (point, bool) {
	for k := len(s.samples) - 1; k >= 0; k-- {
		p := s.samples[k]
		if p.sweep == id {
			return p, true
		}
		if !w.holds(p.sweep) || w.at(p.sweep).order < order {
			break
		}
	}
	return point{}, false
}

func median3[T float32 | float64](a, b, c T) T {
	return max(min(a, b), min(max(a, b), c))
}

// shifts are how far classes of pairs across leaves fell behind all others in a sweep,
// compared with what they had: with two leaves, a bad link between them slows a whole class,
// and its pairs have no better peers. 0 where there is no such thing. Sweeps that were measured
// alike are held against each other: a bound of the rate makes classes equal.
func (h *History) shifts(order []uint32, f figure) map[uint32][]float32 {
	alike := map[string][]uint32{}
	for _, id := range order {
		w := h.sweeps.at(id)
		alike[w.setup] = append(alike[w.setup], id)
	}
	out := map[uint32][]float32{}
	for _, list := range alike {
		h.shiftsOf(list, f, out)
	}
	return out
}

// shiftsOf finds those of sweeps that were measured alike.
func (h *History) shiftsOf(order []uint32, f figure, out map[uint32][]float32) {
	if len(order) < history {
		return
	}
	n := h.classes()
	base := make([]float32, n)
	count := 0
	for c := range n {
		var list []float32
		for _, id := range order {
			if v := h.sweeps.at(id).level[f][c]; v == v {
				list = append(list, v)
			}
		}
		base[c] = float32(math.NaN())
		if len(list) >= history {
			base[c], count = stats.Nearest(list, 0.75), count+1
		}
	}
	if count < 2 {
		return
	}
	for _, id := range order {
		level := h.sweeps.at(id).level[f]
		best := float32(math.Inf(-1))
		for c := range n {
			if d := level[c] - base[c]; d == d && d > best {
				best = d
			}
		}
		for c := acrossLeaves; c < n; c += sorts {
			if d := level[c] - base[c] - best; d < shifted {
				if out[id] == nil {
					out[id] = make([]float32, n)
				}
				out[id][c] = d
			}
		}
	}
}

const (
	history = 8     // so many sweeps make a past
	shifted = -0.22 // a class that is down to 80 % of the others is no accident of noise
)
