package health

import (
	"math"
	"slices"

	"busbar.dev/internal/stats"
)

// A class is pairs that should show the same: the types of sender and receiver, and whether
// they hang on one leaf. Where leaves are unknown all are of one sort.
const (
	sameLeaf = iota
	acrossLeaves
	unknownLeaves
	pathKinds
)

// classOf is the number of a pair's class.
func (h *History) classOf(k pairKey) int16 {
	a, b := &h.node[k.from], &h.node[k.to]
	path := sameLeaf
	switch {
	case a.leaf < 0 || b.leaf < 0:
		path = unknownLeaves
	case a.leaf != b.leaf:
		path = acrossLeaves
	}
	return int16((int(a.kind+1)*(len(h.types.list)+1)+int(b.kind+1))*pathKinds + path)
}

// classes is how many numbers there are.
func (h *History) classes() int {
	n := len(h.types.list) + 1
	return n * n * pathKinds
}

// unjudged is the class of pairs that are not looked at.
const unjudged = -1

// classify gives every pair its class. Pairs of a node that was taken out are not judged. Nor are rails beyond those
// that pairs without a node in common have: a pair is measured by one of its nodes, and one that makes up rails would
// have a vote for each of them.
func (t *table) classify() {
	now := [2]int{len(t.series), t.version}
	if t.classed == now {
		return
	}
	t.classed = now
	count := map[[2]int32]int{}
	lanes := make([]uint8, len(t.series)) // how many rails of its direction were there before
	var common [mostRails][2]int32        // the nodes that all pairs with so many rails have
	for i := range t.series {
		k := t.series[i].pairKey
		if len(t.rails.list) > 1 {
			way := [2]int32{k.from, k.to}
			lanes[i] = uint8(count[way])
			count[way]++
		}
		c := &common[lanes[i]]
		if *c == [2]int32{} {
			*c = [2]int32{k.from, k.to}
		}
		for j, n := range c {
			if n != k.from && n != k.to {
				c[j] = -1
			}
		}
	}
	for i := range t.series {
		r := &t.series[i]
		class := t.classOf(r.pairKey)
		if t.node[r.from].gone || t.node[r.to].gone || lanes[i] > 0 && common[lanes[i]] != [2]int32{-1, -1} {
			class = unjudged
		}
		if class == r.class {
			continue
		}
		r.class = class
		for _, p := range r.samples {
			t.sweeps.at(p.sweep).dirty = true
		}
	}
}

// levelBatch is how many sweeps are looked at together: one new sweep costs a look at the newest samples, and a fleet
// of which every place changed must not take the memory of all samples again.
const levelBatch = 64

// levels computes what classes show in the sweeps that got new samples.
func (t *table) levels() {
	var dirty []*sweep
	for _, w := range t.sweeps.order {
		if w.dirty || len(w.level) != t.classes() {
			dirty = append(dirty, w)
		}
	}
	for ; len(dirty) > 0; dirty = dirty[min(levelBatch, len(dirty)):] {
		t.levelsOf(dirty[:min(levelBatch, len(dirty))])
	}
}

// rowKey is a class in a sweep, and of it what one node sent.
type rowKey struct {
	sweep  *sweep
	sender int32
	class  int16
}

// levelsOf takes an upper quantile of a sender's pairs, and of these over the senders. Faults and disturbances only
// slow down, hence not the median: with it three bad nodes of eight, or one bad leaf of three, would be what is usual.
func (t *table) levelsOf(dirty []*sweep) {
	for _, w := range dirty {
		w.dirty, w.level = true, slices.Repeat([]float32{float32(math.NaN())}, t.classes())
	}
	senders := map[rowKey][]float32{}
	for k, list := range t.rows(dirty[0].order, dirty[len(dirty)-1].order) {
		k.sender = 0
		senders[k] = append(senders[k], usual(*list))
	}
	for k, list := range senders {
		k.sweep.level[k.class] = usual(list)
	}
	for _, w := range dirty {
		w.dirty = false
	}
}

// rows gathers the rates of sweeps whose levels are to be computed, of those from one place in time to another.
func (t *table) rows(first, last int32) map[rowKey]*[]float32 {
	rows := map[rowKey]*[]float32{}
	var key rowKey
	var list *[]float32
	for i := range t.series {
		s := &t.series[i]
		for k := len(s.samples) - 1; k >= 0 && s.class != unjudged; k-- {
			w := t.sweeps.at(s.samples[k].sweep)
			if w.order < first {
				break
			}
			v, ok := s.samples[k].log()
			if w.order > last || !w.dirty || !ok {
				continue
			}
			// Samples of a sender mostly follow each other: the map is asked once for all.
			if now := (rowKey{w, s.from, s.class}); now != key {
				if key = now; rows[key] == nil {
					rows[key] = &[]float32{}
				}
				list = rows[key]
			}
			*list = append(*list, float32(v))
		}
	}
	return rows
}

const upper = 0.65

// usual is the upper quantile less what noise alone lifts it above the middle: half its
// distance from the lower one, where that is small enough to be noise.
func usual(list []float32) float32 {
	high := stats.Nearest(list, upper)
	return high - min((high-stats.Nearest(list, 1-upper))/2, 0.05)
}

const (
	history = 8    // so many sweeps make a past
	shifted = 0.22 // a class that is down to 80 % of the others is no accident of noise
)

// expect sets what pairs should show: the level of their class, but for classes across leaves that fell behind all
// others, compared with what they had. With two leaves, a bad link between them slows a whole class,
// and its pairs have no better peers. Sweeps that were measured
// alike are held against each other: a bound of the rate makes classes equal.
func (t *table) expect() {
	alike := map[string][]*sweep{}
	for _, w := range t.sweeps.order {
		w.expect = w.level
		alike[w.setup] = append(alike[w.setup], w)
	}
	for _, list := range alike {
		expectAlike(list)
	}
}

// expectAlike does so for sweeps that were measured alike.
func expectAlike(order []*sweep) {
	base := make([]float32, len(order[0].level))
	known := 0
	for c := range base {
		var list []float32
		for _, w := range order {
			if v := w.level[c]; v == v {
				list = append(list, v)
			}
		}
		base[c] = float32(math.NaN())
		if len(list) >= history {
			base[c], known = stats.Nearest(list, 0.75), known+1
		}
	}
	for _, w := range order {
		best := float32(math.Inf(-1))
		for c, b := range base {
			if d := w.level[c] - b; d > best {
				best = d
			}
		}
		for c := acrossLeaves; c < len(base) && known > 1; c += pathKinds {
			if base[c]+best-w.level[c] > shifted {
				w.expect = slices.Clone(w.expect)
				w.expect[c] = base[c] + best
			}
		}
	}
}
