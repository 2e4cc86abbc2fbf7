package engine

import (
	"fmt"
	"hash/fnv"
	"slices"
)

// Numbers of calls: the group in the upper bits, 0 for the whole, and the call's place in it.
const (
	callBits = 24
	maxCalls = 1<<callBits - 1
)

// part is what makes a group one over some of the ranks of another. Connections, faults and
// the goroutine that drives are the whole's.
type part struct {
	whole  *Group // nil of a group that is the whole
	ranks  []int  // by rank of the part: that of the whole
	number uint64 // tells parts apart, alike on all members

	// Of the whole: the parts that there are, by number, and how often each was made. Both are
	// guarded by inboxMu.
	names map[uint64]string
	times map[string]int
	// issued is how many calls each part has had numbers for; the driver's.
	issued map[uint64]uint64
}

// world is the group that has the connections.
func (g *Group) world() *Group {
	if g.whole != nil {
		return g.whole
	}
	return g
}

// worldRank is the number that a rank of this group has in the whole.
func (g *Group) worldRank(r int) int {
	if g.whole != nil {
		return g.ranks[r]
	}
	return r
}

// Sub makes a group of some of the ranks of this one: rank i of it is ranks[i] here. Each of
// them calls it with the same list, and the others need not know; ranks that share several
// lists make each as often as the others do. It says nothing to anybody and costs next to
// nothing.
//
// Groups of a job share connections, memory and fate: a rank that dies fails all of them, with
// its number in the whole. Calls of groups that have no rank in common, or that were only
// started, go on side by side; of groups that have, ranks must run them in one order, as calls
// of one group. Ranks and roots of a call are those of its group.
func (g *Group) Sub(ranks []int) (*Group, error) {
	w := g.world()
	if err := g.failure(); err != nil {
		return nil, err
	}
	me := -1
	all := make([]int, len(ranks))
	seen := make([]bool, g.size)
	for i, r := range ranks {
		switch {
		case r < 0 || r >= g.size:
			return nil, fmt.Errorf("rank %d of a group of %d", r, g.size)
		case seen[r]:
			return nil, fmt.Errorf("rank %d is in the list twice", r)
		case r == g.rank:
			me = i
		}
		seen[r] = true
		all[i] = g.worldRank(r)
	}
	if me < 0 {
		return nil, fmt.Errorf("rank %d is not in the list %s; only members make a group", g.rank, rankList(slices.Clone(ranks)))
	}
	number, err := w.enlist(g.number, all)
	if err != nil {
		return nil, err
	}
	s := &Group{cfg: w.cfg, rank: me, size: len(all), pid: w.pid, cached: map[callKey]*Call{}, part: part{whole: w, ranks: all, number: number}}
	s.cfg.Rank, s.cfg.Size = me, len(all)
	return s, nil
}

// enlist finds the number of a part. Members find the same without asking each other: it is
// made of the list, and of how often that list came. Two parts that have it in common would
// mistake each other's messages; ranks that are in both refuse the second.
func (g *Group) enlist(parent uint64, ranks []int) (uint64, error) {
	g.inboxMu.Lock()
	defer g.inboxMu.Unlock()
	list := fmt.Sprint(parent, ranks)
	name := fmt.Sprint(list, g.times[list])
	h := fnv.New64a()
	h.Write([]byte(name))
	number := scramble(h.Sum64()) >> callBits
	if other, ok := g.names[number]; ok || number == 0 {
		return 0, fmt.Errorf("groups %s and %s have the same number by accident; make one of them with its ranks in another order", name, other)
	}
	g.times[list]++
	g.names[number] = name
	return number, nil
}

// translate gives the steps of a call the peers' numbers in the whole.
func (g *Group) translate(c *Call) {
	for i := range c.lanes {
		for k := range c.lanes[i].steps {
			if st := &c.lanes[i].steps[k]; st.verb == send || st.verb.receives() {
				st.peer = int32(g.ranks[st.peer])
			}
		}
	}
}

// membersOf are the ranks of a part.
func (g *Group) membersOf() []Member {
	whole := g.whole.Members()
	all := make([]Member, g.size)
	for i, r := range g.ranks {
		all[i] = whole[r]
		all[i].Rank = i
	}
	return all
}

// leavePart gives back what the calls of a part hold. Those that are under way go on.
func (g *Group) leavePart() {
	w := g.whole
	w.driver.Lock()
	defer w.driver.Unlock()
	for id, c := range w.calls {
		if c.of == g && !c.busy.Load() {
			delete(w.calls, id)
			c.closeBoard()
		}
	}
}
