package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/input/stacks"
)

// creating looks at a rank that seems late and finds it inside a collective call that neither RAS nor the recorder
// counts: it waits in the making of the communicator, for members that never come. No watchdog covers that, and the
// root's NCCL alone writes a line.
func (x *judge) creating(c claim) (claim, bool) {
	if c.kind != Late || len(c.ranks) == 0 || len(c.ranks) > 64 {
		return c, false
	}
	var quote *stacks.Stack
	for _, r := range c.ranks {
		s := x.stackOf(r)
		if s == nil {
			return c, false
		}
		if doing, _ := s.Doing(); doing != stacks.Collective || x.pendingOf(r) {
			return c, false
		}
		quote = s
	}
	waiting := sorted(c.ranks)
	out := claim{kind: NeverJoined, source: fromStacks, sure: 0.8, op: "comm init", waiting: waiting, quotes: c.quotes}
	out.why = fmt.Sprintf("%s is in %s and has launched nothing: it waits in the creation of a communicator",
		rankList(waiting), quote.Where())
	if group, missing := x.sibling(waiting); missing != nil {
		out.ranks = missing
		out.comm = x.job.newCommunicator(0, group)
		out.why += fmt.Sprintf(" for %s, which never came", rankList(missing))
	} else {
		out.sure = 0.6
	}
	return out, true
}

// pendingOf reports a rank whose dump has a collective that is not completed.
func (x *judge) pendingOf(rank int) bool {
	h := x.rec.ranks[rank]
	return h != nil && h.pending() != nil
}

// made is a communicator that exists, and how much it was used.
type made struct {
	ranks []int
	kind  string
	used  uint64
}

// made are the communicators that RAS and the recorder know.
func (x *judge) made() []made {
	var list []made
	for _, g := range slices.Sorted(maps.Keys(x.rec.slots)) {
		list = append(list, made{x.rec.set.Groups[g].Ranks, x.rec.class(g), uint64(len(x.rec.slots[g]))})
	}
	if len(x.ras) == 0 {
		return list
	}
	last := x.ras[len(x.ras)-1].report
	for i := range last.Comms {
		c := &last.Comms[i]
		m := made{kind: fmt.Sprint("RAS ", c.Size)}
		for k := range c.Ranks {
			if g := x.job.rank(c, &c.Ranks[k]); g >= 0 {
				m.ranks = append(m.ranks, g)
			}
			for _, n := range c.Ranks[k].Counts {
				m.used += n
			}
		}
		list = append(list, m)
	}
	return list
}

// sibling guesses the members of a communicator that some ranks wait to make, from those of the same kind that others
// made, the least used first: the ranks that none of them has, or one of them moved along the ranks. missing are the
// members that do not wait.
func (x *judge) sibling(waiting []int) (group, missing []int) {
	all := slices.DeleteFunc(x.made(), func(m made) bool {
		return len(m.ranks) < 2 || len(m.ranks) <= len(waiting) ||
			slices.ContainsFunc(m.ranks, func(r int) bool { return slices.Contains(waiting, r) })
	})
	slices.SortStableFunc(all, func(a, b made) int { return cmp.Compare(a.used, b.used) })
	for _, m := range all {
		free := upTo(x.job.world)
		for _, o := range all {
			if o.kind == m.kind && o.used == m.used && len(o.ranks) == len(m.ranks) {
				free = slices.DeleteFunc(free, func(r int) bool { return slices.Contains(o.ranks, r) })
			}
		}
		if len(free) == len(m.ranks) && !slices.ContainsFunc(waiting, func(r int) bool { return !slices.Contains(free, r) }) {
			group = free
		} else {
			group = moveOnto(m.ranks, waiting, x.job.world)
		}
		if group != nil {
			return group, slices.DeleteFunc(slices.Clone(group), func(r int) bool { return slices.Contains(waiting, r) })
		}
	}
	return nil, nil
}

// moveOnto moves ranks by one distance so that they have all of some others and none of their own; nil where that
// cannot be.
func moveOnto(ranks, others []int, world int) []int {
	for _, m := range ranks {
		by := others[0] - m
		moved := make([]int, 0, len(ranks))
		for _, r := range ranks {
			if r+by >= 0 && r+by < world && !slices.Contains(ranks, r+by) {
				moved = append(moved, r+by)
			}
		}
		if len(moved) == len(ranks) && !slices.ContainsFunc(others, func(r int) bool { return !slices.Contains(moved, r) }) {
			return moved
		}
	}
	return nil
}
