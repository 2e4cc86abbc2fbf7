package hang

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
	"busbar.dev/internal/lazyre"
)

// opRef names a collective of a group.
type opRef struct{ group, seq int32 }

// waits is who waits for whom.
type waits struct {
	roots   []int // have a dump, wait for nothing themselves, and others wait for them
	absent  []int // others wait for them, and there is no dump of them
	waiting []int
	cycle   []int // ranks that wait for each other
}

// waitGraph follows from every waiting rank whom it waits for, to those that wait for nobody.
func (x *table) waitGraph() waits {
	var w waits
	next := map[int][]int{}
	absent := map[int]bool{}
	asked := map[opRef][]int{} // thousands of ranks wait for the same collective
	for _, h := range x.order {
		e := h.pending()
		if e == nil {
			continue
		}
		w.waiting = append(w.waiting, h.rank)
		op := opRef{e.Group, e.Seq}
		list, ok := asked[op]
		if !ok || e.P2P {
			list = x.lacking(h, e)
			if !e.P2P {
				asked[op] = list
			}
		}
		for _, m := range list {
			if x.ranks[m] == nil {
				absent[m] = true
			} else {
				next[h.rank] = append(next[h.rank], m)
			}
		}
	}
	roots := map[int]bool{}
	state := map[int]int{}
	var walk func(r int)
	walk = func(r int) {
		state[r] = 1
		for _, m := range next[r] {
			switch {
			case x.ranks[m].pending() == nil, x.source == fromLog && len(next[m]) == 0:
				roots[m] = true
			case state[m] == 1:
				w.cycle = append(w.cycle, r, m)
			case state[m] == 0:
				walk(m)
			}
		}
		state[r] = 2
	}
	for _, r := range w.waiting {
		if state[r] == 0 {
			walk(r)
		}
	}
	for r := range roots {
		w.roots = append(w.roots, r)
	}
	for r := range absent {
		w.absent = append(w.absent, r)
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(r int) bool { return roots[r] })
	slices.Sort(w.roots)
	slices.Sort(w.absent)
	slices.Sort(w.cycle)
	w.cycle = slices.Compact(w.cycle)
	return w
}

var peerOp = lazyre.New(`(?:send|recv)\s+(\d+)\s*(?:->|<-)\s*(\d+)`)

// lacking are the members that have not launched what a rank waits for.
func (x *table) lacking(h *history, e *flightrec.Entry) []int {
	members := x.set.Groups[e.Group].Ranks
	if e.P2P {
		m := peerOp.FindStringSubmatch(x.set.Sigs[e.Sig].Op)
		if m == nil {
			return nil
		}
		for _, word := range m[1:] {
			n, _ := strconv.Atoi(word)
			if n >= len(members) || members[n] == h.rank {
				continue
			}
			if p := x.ranks[members[n]]; p == nil || p.pending() == nil || p.pending().Group != e.Group {
				return []int{members[n]}
			}
		}
		return nil
	}
	var list []int
	for _, m := range members {
		p := x.ranks[m]
		if m == h.rank {
			continue
		}
		if p == nil || p.last[e.Group] < e.Seq || x.source == fromLog && p.at(e.Group) < e.Seq {
			list = append(list, m)
		}
	}
	return list
}

// unsaid is the number of the last collective of a rank that does not say it.
const unsaid = math.MaxInt32

// at is the collective of a group that a rank is in, where it waits in one of that group first. Watchdogs give up
// long after: who is in an earlier one then than others is behind.
func (h *history) at(group int32) int32 {
	if e := h.pending(); e != nil && e.Group == group && h.last[group] != unsaid {
		return e.Seq
	}
	return unsaid
}

// firstNeeded is the collective that a rank would have launched next: of those that others wait for, the one that comes
// first in the order of a rank that has several of them, else the one whose group this rank used longest ago.
func (x *table) firstNeeded(rank int) (opRef, bool) {
	var best opRef
	found := false
	used := map[int32]int64{}
	if h := x.ranks[rank]; h != nil {
		for i := range h.entries {
			used[h.entries[i].Group] = h.entries[i].Record + 1
		}
	}
	needed, member := map[opRef]bool{}, map[int32]bool{}
	for _, h := range x.order {
		for i := max(h.head, 0); i < len(h.entries) && h.head >= 0; i++ {
			e := &h.entries[i]
			if e.P2P {
				continue
			}
			in, known := member[e.Group]
			if !known {
				in = slices.Contains(x.set.Groups[e.Group].Ranks, rank)
				member[e.Group] = in
			}
			if !in {
				continue
			}
			if p := x.ranks[rank]; p == nil || p.last[e.Group] < e.Seq {
				needed[opRef{e.Group, e.Seq}] = true
			}
		}
	}
	for op := range needed {
		if !found || x.before(op, best, used) {
			best, found = op, true
		}
	}
	return best, found
}

// before reports which of two collectives a program launches first.
func (x *table) before(a, b opRef, used map[int32]int64) bool {
	if a.group == b.group {
		return a.seq < b.seq
	}
	for _, r := range x.set.Groups[a.group].Ranks {
		h := x.ranks[r]
		if h == nil {
			continue
		}
		ea, eb := h.find(a.group, a.seq), h.find(b.group, b.seq)
		if ea != nil && eb != nil {
			return ea.Record < eb.Record
		}
	}
	if used[a.group] != used[b.group] {
		return used[a.group] < used[b.group]
	}
	na, nb := len(x.set.Groups[a.group].Ranks), len(x.set.Groups[b.group].Ranks)
	if na != nb {
		return na < nb
	}
	return a.group < b.group
}

// sigOf is what an operation is, as the first rank that has it says.
func (x *table) sigOf(op opRef) *flightrec.Sig {
	s := x.at(op.group, op.seq)
	if s == nil || s.sig == 0 {
		return nil
	}
	return &x.set.Sigs[s.sig-1]
}

// quote is the evidence about one rank's entry; nil is all that the rank did.
func (x *table) quote(h *history, e *flightrec.Entry) []finding.Quote {
	if x.cite != nil {
		return x.cite(h.rank, e)
	}
	last := ""
	if e == nil {
		if len(h.entries) == 0 {
			return nil
		}
		e, last = &h.entries[len(h.entries)-1], "the last that it launched: "
	}
	s := &x.set.Sigs[e.Sig]
	text := fmt.Sprintf("%srank %d: %s #%d on group %s is %s", last, h.rank, s.Op, e.Seq,
		groupName(&x.set.Groups[e.Group]), e.State)
	if s.Sizes != "" {
		text += fmt.Sprintf(" (record %d, %s)", e.Record, s.Sizes)
	}
	if f := x.set.Frames[e.Frame]; f != "" {
		text += ", launched by " + f
	}
	return []finding.Quote{{File: h.file, Text: text}}
}

func groupName(g *flightrec.Group) string {
	if g.Desc == "" || g.Desc == "undefined" {
		return g.Name
	}
	return g.Name + " (" + g.Desc + ")"
}
