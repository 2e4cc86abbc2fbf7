package health

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// comparable is sweeps that can be compared as a whole: measured alike, and with about as many pairs,
// for pairs that are measured at once share the network.
type comparable struct {
	setup string
	pairs int      // of the newest
	list  []uint32 // in the order of time
}

// comparableSweeps sorts sweeps into those that can be compared, the one of the newest sweep first. A sweep
// that is under way has fewer pairs than the others, and is a course of its own until it has most.
func (h *History) comparableSweeps(order []uint32) []*comparable {
	var list []*comparable
	for _, id := range order {
		w := h.sweeps.at(id)
		n := 0
		for _, m := range w.pairs {
			n += int(m)
		}
		if n == 0 {
			continue
		}
		k := slices.IndexFunc(list, func(c *comparable) bool {
			return c.setup == w.setup && 3*n >= 2*c.pairs && 3*c.pairs >= 2*n
		})
		if k < 0 {
			k, list = len(list), append(list, &comparable{setup: w.setup})
		}
		c := list[k]
		c.pairs, c.list = n, append(c.list, id)
	}
	slices.SortStableFunc(list, func(a, b *comparable) int { return int(h.newest(b) - h.newest(a)) })
	return list
}

// newest is the place in time of a course's last sweep.
func (h *History) newest(c *comparable) int32 { return h.sweeps.at(c.list[len(c.list)-1]).order }

// stages are what a class showed in a course.
func (h *History) stages(c *comparable, class int) []stage {
	var list []stage
	var xs []float64
	for _, id := range c.list {
		w := h.sweeps.at(id)
		x := float64(w.level[rate][class])
		if x != x || w.pairs[class] < leastPairs {
			continue
		}
		if n := len(list); n > 0 && w.at-list[n-1].at < int64(apart) {
			xs = append(xs, x)
			list[n-1].x, list[n-1].sweeps = halfway(xs), append(list[n-1].sweeps, id)
			continue
		}
		xs = append(xs[:0], x)
		list = append(list, stage{w.at, x, []uint32{id}})
	}
	return list[max(0, len(list)-mostStages):]
}

// mostStages bounds what is gone through for an answer: a past, and what came since.
const mostStages = 2 * mostPast

// leastPairs is of how many a class must be to be judged: those of three nodes.
const leastPairs = 6

// fall is a class in a slump.
type fall struct {
	class  int
	pairs  int // of the class, in the newest sweep
	base   float64
	low    float64
	slump  *levelDrop // nil where it follows from another class
	stages []stage
}

// slower is the finding that the fleet, or a sort of its pairs, became slower as a whole; nil
// where it did not. The course that was measured last is asked first.
func (h *History) slower(order []uint32) *finding.Finding {
	for _, c := range h.comparableSweeps(order) {
		if h.newest(c) < int32(len(order)-window) {
			break // nobody measures like that any more
		}
		if f := h.slowerIn(c); f != nil {
			return f
		}
	}
	return nil
}

func (h *History) slowerIn(c *comparable) *finding.Finding {
	last := h.sweeps.at(c.list[len(c.list)-1])
	var falls, rest []fall
	for class := range last.pairs {
		if last.pairs[class] < leastPairs {
			continue
		}
		f := fall{class: class, pairs: int(last.pairs[class]), stages: h.stages(c, class)}
		if f.slump = findLevelDrop(f.stages); f.slump == nil {
			rest = append(rest, f)
			continue
		}
		f.base, f.low = f.slump.base, f.slump.low
		falls = append(falls, f)
	}
	if len(falls) == 0 {
		return nil
	}
	first := slices.MaxFunc(falls, func(a, b fall) int { return a.pairs - b.pairs })
	began := first.stages[first.slump.start].at
	stayed := false
	for _, f := range rest {
		// A class whose own past is too short or too wild for a judgement fell too, if it did.
		switch {
		case !f.fellSince(began):
		case f.base-f.low >= (first.base-first.low)/2:
			falls = append(falls, f)
		default:
			stayed = true
		}
	}
	s := h.scope(falls, stayed, last)
	if s.id == acrossID && h.twoLeaves() {
		return nil
	}
	t := h.count(c, falls, began)
	if !t.most() {
		return nil
	}
	return h.wholeFinding(c, first, s, t)
}

// fellSince sets what a class had before a time and since.
func (f *fall) fellSince(began int64) bool {
	var before, since []float64
	for _, s := range f.stages {
		if s.at < began {
			before = append(before, s.x)
		} else {
			since = append(since, s.x)
		}
	}
	if len(before) < recent || len(since) == 0 {
		return false
	}
	f.base, f.low = halfway(before[max(0, len(before)-mostPast):]), halfway(since)
	return true
}

// tally is what single pairs say to a fall of their classes.
type tally struct {
	known, fell, all int
	before, since    []float32 // in the middle, of those known
}

// most tells whether it is a fall of most pairs, and not of the choice of pairs that were measured.
func (t *tally) most() bool {
	return 2*t.known >= t.all && 4*t.fell >= 3*t.known && t.known > 0
}

// count asks the pairs of classes, of a large fleet some of them.
func (h *History) count(c *comparable, falls []fall, began int64) tally {
	depth := map[int]float64{}
	for _, f := range falls {
		depth[f.class] = f.base - f.low
	}
	side := map[uint32]int{} // of the sweeps that are compared
	for _, id := range c.list {
		side[id] = 0
		if h.sweeps.at(id).at >= began {
			side[id] = 1
		}
	}
	var t tally
	step := 1 + len(h.series)/50_000
	for i := 0; i < len(h.series); i += step {
		r := &h.series[i]
		d, of := depth[h.class(r.pairKey)]
		if !of || h.node[r.from].gone || h.node[r.to].gone {
			continue
		}
		var lists [2][]float32
		for k := len(r.samples) - 1; k >= 0 && len(lists[0]) < 2*recent; k-- {
			p := r.samples[k]
			if s, ours := side[p.sweep]; ours {
				if v, ok := p.of(rate); ok {
					lists[s] = append(lists[s], float32(v))
				}
			}
		}
		if len(lists[1]) == 0 {
			continue
		}
		t.all++
		if len(lists[0]) < 2 {
			continue
		}
		t.known++
		before, since := stats.Nearest(lists[0], 0.5), stats.Nearest(lists[1], 0.5)
		t.before, t.since = append(t.before, before), append(t.since, since)
		if float64(before-since) >= d/2 {
			t.fell++
		}
	}
	return t
}

// wholeFinding puts it into words.
func (h *History) wholeFinding(c *comparable, first fall, s scope, t tally) *finding.Finding {
	began := stamp(first.stages[first.slump.start].at)
	factor := round(math.Exp(min(first.low-first.base, 0)))
	sure := 1 - 0.1*math.Exp(first.slump.need-first.slump.proof)
	f := &finding.Finding{
		ID: "slow-fleet:" + s.id, Kind: SlowFleet, Severity: severity(factor, rate), Nodes: s.nodes, Where: s.name,
		Figure: rate.String(),
		Since:  began, Factor: factor, Confidence: round(min(sure, 0.97)), Clearing: first.slump.good > 0,
	}
	f.Text = fmt.Sprintf("%s became slower as a whole: %.0f%% of the bandwidth it had, since %s, %d of %d pairs at the "+
		"same time.", s.subject, 100*factor, clock(began), t.fell, t.known)
	f.Fix = s.fix
	before, since := stats.Nearest(t.before, 0.5), stats.Nearest(t.since, 0.5)
	alike := "measured alike"
	if c.setup != "" {
		alike = c.setup
	}
	agree := first.slump.run - first.slump.good
	f.Evidence = finding.Facts(
		fmt.Sprintf("median pair: %s, before %s", unit.Rate(math.Exp(float64(since))), unit.Rate(math.Exp(float64(before)))),
		fmt.Sprintf("%d sweeps agree (%s; those within ten minutes count as one); of the %d before, the worst %d in a row "+
			"were %.0f%% down", agree, alike, first.slump.past, agree, 100*(1-math.Exp(-first.slump.worst))),
	)
	return f
}
