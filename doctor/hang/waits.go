package hang

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
	"busbar.dev/internal/lazyre"
)

// opRef names a collective of a group, or a rank's own send or receive.
type opRef struct {
	group, seq int32
	rank       int // -1 of a collective
}

// waits is who waits for whom.
type waits struct {
	roots   []int // have a dump, wait for nothing themselves, and others wait for them
	absent  []int // others wait for them, and there is no dump of them
	waiting []int
	needed  map[int]opRef // what others wait for a rank in; of several the one of the smallest group
	stuck   *opRef        // all members are at it, and it does not end; of several the one of the smallest group
	crossed []opRef       // two that ranks are at which have the other behind it
}

// waitsOf finds what ranks are at, and whom they wait for there.
func (x *table) waitsOf() waits {
	w := waits{needed: map[int]opRef{}}
	first := map[opRef]*history{} // thousands of ranks wait for the same collective
	for _, h := range x.order {
		if h.pending() == nil {
			continue
		}
		w.waiting = append(w.waiting, h.rank)
		if op := h.at(); first[op] == nil {
			first[op] = h
		}
	}
	size := func(op opRef) int { return len(x.set.Groups[op.group].Ranks) }
	smaller := func(a, b opRef) int {
		return cmp.Or(size(a)-size(b), int(a.group-b.group), int(a.seq-b.seq), a.rank-b.rank)
	}
	ops := thinned(slices.SortedFunc(maps.Keys(first), smaller))
	lacks := map[opRef][]int{}
	for _, op := range ops {
		lacks[op] = x.lacking(first[op], first[op].pending())
	}
	roots, absent, behind := map[int]bool{}, map[int]bool{}, map[[2]opRef]bool{}
	for _, op := range ops {
		if len(lacks[op]) == 0 && op.rank < 0 && size(op) > 1 && w.stuck == nil {
			w.stuck = &op
		}
		for _, m := range lacks[op] {
			if _, ok := w.needed[m]; !ok && op.rank < 0 {
				w.needed[m] = op
			}
			switch h := x.ranks[m]; {
			case h == nil:
				absent[m] = true
			case h.pending() == nil, x.source == fromLog && nobodyLacks(lacks, h.at()): // watchdogs give up long after
				roots[m] = true
			case op.rank < 0 && h.at().rank < 0:
				behind[[2]opRef{op, h.at()}] = true
				if behind[[2]opRef{h.at(), op}] && w.crossed == nil {
					w.crossed = []opRef{h.at(), op}
				}
			}
		}
	}
	w.waiting = slices.DeleteFunc(w.waiting, func(r int) bool { return roots[r] })
	w.roots, w.absent = slices.Sorted(maps.Keys(roots)), slices.Sorted(maps.Keys(absent))
	return w
}

// someOps are the collectives of a group whose waits are followed one by one, at either end of them.
const someOps = 32

// thinned leaves out what lies between the first and the last collectives of a group, of operations in the order of
// their groups: who lacks one lacks all later ones of the group, so that the last tells who is lacking and the first
// whom nobody lacks. Ranks that each wait in another one would else cost their square.
func thinned(ops []opRef) []opRef {
	all, seen := map[int32]int{}, map[int32]int{}
	for _, op := range ops {
		if op.rank < 0 {
			all[op.group]++
		}
	}
	return slices.DeleteFunc(ops, func(op opRef) bool {
		if op.rank < 0 {
			seen[op.group]++
		}
		return op.rank < 0 && seen[op.group] > someOps && seen[op.group] <= all[op.group]-someOps
	})
}

// nobodyLacks reports a collective that was looked at and that no member lacks.
func nobodyLacks(lacks map[opRef][]int, op opRef) bool {
	list, ok := lacks[op]
	return ok && len(list) == 0
}

// at is the operation that a rank waits for.
func (h *history) at() opRef {
	e := h.pending()
	if e.P2P {
		return opRef{e.Group, e.Seq, h.rank}
	}
	return opRef{e.Group, e.Seq, -1}
}

var peerOp = lazyre.New(`(?:send|recv)\s+(\d+)\s*(?:->|<-)\s*(\d+)`)

// lacking are the members that are not at what a rank waits for: they have not launched it, or have it behind another.
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
	return slices.DeleteFunc(slices.Clone(members), func(m int) bool {
		p := x.ranks[m]
		return m == h.rank || p != nil && p.last[e.Group] >= e.Seq && !x.queued(p, e)
	})
}

// unsaid is the number of the last collective of a rank that does not say it.
const unsaid = math.MaxInt32

// queued reports a collective that a rank has behind another one that does not end. Watchdogs' lines do not tell the
// order of two groups.
func (x *table) queued(h *history, e *flightrec.Entry) bool {
	at := h.pending()
	switch {
	case at == nil || h.last[e.Group] == unsaid:
		return false
	case at.Group == e.Group || x.source == fromLog:
		return at.Group == e.Group && at.Seq < e.Seq
	}
	own := h.find(e.Group, e.Seq)
	return own != nil && own.State != flightrec.Completed
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
