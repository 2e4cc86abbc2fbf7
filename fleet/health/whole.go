package health

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// course is sweeps that can be compared as a whole: measured alike, and with about as many pairs,
// for pairs that are measured at once share the network.
type course struct {
	setup string
	pairs int      // of the newest
	list  []*sweep // in the order of time
}

func (c *course) newest() *sweep { return c.list[len(c.list)-1] }

// courses sorts sweeps into those that can be compared, the one of the newest sweep first. A sweep
// that is under way has fewer pairs than the others, and is a course of its own until it has most.
func (t *table) courses() (list []*course) {
	for _, w := range t.sweeps.order {
		n := 0
		for _, m := range w.pairs {
			n += int(m)
		}
		if n == 0 {
			continue
		}
		k := slices.IndexFunc(list, func(c *course) bool {
			return c.setup == w.setup && 3*n >= 2*c.pairs && 3*c.pairs >= 2*n
		})
		if k < 0 {
			k, list = len(list), append(list, &course{setup: w.setup})
		}
		list[k].pairs, list[k].list = n, append(list[k].list, w)
	}
	slices.SortFunc(list, func(a, b *course) int { return int(b.newest().order - a.newest().order) })
	return list
}

const (
	mostStages = 2 * mostPast // that are gone through for an answer: a past, and what came since
	leastPairs = 6            // that a class must have to be judged: those of three nodes
)

// stages are what a class showed in a course.
func (c *course) stages(class int) (list []stage) {
	var xs []float64
	for _, w := range c.list {
		x := float64(w.level[rate][class])
		if x != x || w.pairs[class] < leastPairs {
			continue
		}
		if n := len(list); n > 0 && w.at-list[n-1].at < int64(apart) {
			xs = append(xs, x)
			list[n-1].x = medianOf(xs)
			continue
		}
		xs = append(xs[:0], x)
		list = append(list, stage{w.at, x})
	}
	return list[max(0, len(list)-mostStages):]
}

// slower is the finding that the fleet, or a sort of its pairs, became slower as a whole; nil
// where it did not. The course that was measured last is asked first, and none that nobody measures any more.
func (t *table) slower() *finding.Finding {
	for _, c := range t.courses() {
		if int(c.newest().order) < len(t.sweeps.order)-window {
			break
		}
		if f := t.slowerIn(c); f != nil {
			return f
		}
	}
	return nil
}

// slowerIn finds the classes of a course that fell, and asks the pairs of all classes: a class whose own past is too
// short or too wild for a judgement fell too, if its pairs did. Measuring other pairs is no slowdown.
func (t *table) slowerIn(c *course) *finding.Finding {
	var first *levelDrop // of the class with the most pairs
	pairs, classes := c.newest().pairs, map[int16]*votes{}
	most := int32(0)
	for class, n := range pairs {
		if n < leastPairs {
			continue
		}
		stages := c.stages(class)
		v := &votes{}
		classes[int16(class)] = v
		if d := findLevelDrop(stages); d != nil {
			d.began, v.depth = stages[d.start].at, d.base-d.low
			if n > most {
				first, most = d, n
			}
		}
	}
	if first == nil {
		return nil
	}
	t.ask(c, first, classes)
	down, all, stayed := map[int]bool{}, votes{}, false
	for class, v := range classes {
		switch {
		case 2*v.known >= v.all && 4*v.fell >= 3*v.known && v.known > 0:
			down[int(class)] = true
			all.known, all.fell = all.known+v.known, all.fell+v.fell
			all.before, all.since = append(all.before, v.before...), append(all.since, v.since...)
		case v.depth > 0:
			return nil // what fell is the choice of pairs that were measured
		default:
			stayed = stayed || v.known > 0
		}
	}
	s := t.scope(down, stayed, pairs)
	if s.id == acrossID && t.onePath() {
		return nil // which has its own name
	}
	return wholeFinding(c, first, s, all)
}

// votes are what single pairs of a class say to a fall.
type votes struct {
	depth            float64 // of the class; 0 where it is that of another
	known, fell, all int
	before, since    []float32 // in the middle, of those known
}

// ask asks the pairs of classes, of a large fleet some of them.
func (t *table) ask(c *course, first *levelDrop, classes map[int16]*votes) {
	side := map[*sweep]int{} // of the sweeps that are compared
	for _, w := range c.list {
		side[w] = 0
		if w.at >= first.began {
			side[w] = 1
		}
	}
	for i := 0; i < len(t.series); i += 1 + len(t.series)/50_000 {
		r := &t.series[i]
		v := classes[r.class]
		if v == nil {
			continue
		}
		var lists [2][]float32
		for k := len(r.samples) - 1; k >= 0 && len(lists[0]) < 2*recent; k-- {
			s, ours := side[t.sweeps.at(r.samples[k].sweep)]
			if x, ok := r.samples[k].of(rate); ok && ours {
				lists[s] = append(lists[s], float32(x))
			}
		}
		if len(lists[1]) == 0 {
			continue
		}
		v.all++
		if len(lists[0]) < 2 {
			continue
		}
		v.known++
		before, since := stats.Nearest(lists[0], 0.5), stats.Nearest(lists[1], 0.5)
		v.before, v.since = append(v.before, before), append(v.since, since)
		if float64(before-since) >= cmp.Or(v.depth, first.base-first.low)/2 {
			v.fell++
		}
	}
}

// wholeFinding puts it into words.
func wholeFinding(c *course, d *levelDrop, s scope, v votes) *finding.Finding {
	factor := round(math.Exp(min(d.low-d.base, 0)))
	setup := c.setup
	if setup == "" {
		setup = "measured alike"
	}
	agree := len(d.since) - d.good
	middle := func(list []float32) unit.Rate { return unit.Rate(math.Exp(middle(list))) }
	f := found(SlowFleet, s.subject, "", d.began, []string{
		fmt.Sprintf("median pair: %s, before %s", middle(v.since), middle(v.before)),
		fmt.Sprintf("%d sweeps agree (%s; those within ten minutes count as one); of the %d before, the worst %d in a row "+
			"were %.0f%% down", agree, setup, d.past, agree, 100*(1-math.Exp(-d.worst))),
	}, 100*factor, clock(stamp(d.began)), v.fell, v.known)
	f.ID, f.Nodes, f.Where, f.Fix, f.Figure = s.id, s.nodes, s.name, s.fix, rate.String()
	f.Severity, f.Factor, f.Clearing = severity(factor, rate), factor, d.good > 0
	f.Confidence = round(min(1-0.1*math.Exp(d.need-d.proof), 0.97))
	return &f
}

// scope is whom a fall of whole classes is about.
type scope struct {
	id, name string
	subject  string // the subject of a sentence
	fix      string
	nodes    []string
}

const (
	acrossID = "slow-fleet:across-leaves"
	changed  = "Look for what changed on all of them at that time: driver, firmware, kernel or NCCL, MTU, congestion " +
		"control, PFC and ECN of hosts and switches, power or clock limits, another tenant or job. " + repeat
	spines = "Pairs inside leaves are healthy, so look at what the others share: spine switches and their load, uplinks " +
		"that are down, ECMP or adaptive routing, settings of switches that changed at that time, another tenant's " +
		"traffic. " + repeat
	repeat = "Then measure again while nothing else runs, with the same message size and --max-rate as before."
)

// scope finds the least that the fallen classes are: those across leaves or inside them, those of one
// type of node, or all pairs where no class is known to have stayed as it was.
func (t *table) scope(down map[int]bool, stayed bool, pairs []int32) scope {
	// covers tells whether what fell is most of some classes, and hardly anything else.
	covers := func(in func(class int) bool) bool {
		of, fell, both := 0, 0, 0
		for class, n := range pairs {
			if in(class) {
				of += int(n)
			}
			if down[class] {
				fell += int(n)
			}
			if in(class) && down[class] {
				both += int(n)
			}
		}
		return 4*both >= 3*of && 10*both >= 9*fell
	}
	path := func(kind int) func(int) bool { return func(c int) bool { return c%pathKinds == kind } }
	all, leaves := func(*node) bool { return true }, func(n *node) bool { return n.leaf >= 0 }
	switch {
	case !stayed:
		return scope{"slow-fleet:", "", "The fleet", changed, t.members(all)}
	case covers(path(acrossLeaves)):
		return scope{acrossID, "across leaves", "All that crosses leaves", spines, t.members(leaves)}
	case covers(path(sameLeaf)):
		return scope{
			"slow-fleet:inside-leaves", "inside leaves", "All that stays inside leaves", changed, t.members(leaves),
		}
	}
	types := len(t.types.list) + 1
	for kind, name := range t.types.list {
		if covers(func(c int) bool { return c/pathKinds/types == kind+1 || c/pathKinds%types == kind+1 }) {
			return scope{
				"slow-fleet:type/" + name, name, "All nodes of type " + name, changed,
				t.members(func(n *node) bool { return n.kind == int32(kind) }),
			}
		}
	}
	return scope{"slow-fleet:part", "part of the fleet", "A part of the fleet", changed, t.members(all)}
}

// onePath tells that what crosses leaves is one path, which is found and named as such.
func (t *table) onePath() bool {
	return len(t.leaves.list) < 3 && slices.ContainsFunc(t.raised(), func(r *raised) bool {
		return r.fig == rate && r.domain == ofPath
	})
}
