package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/input/flightrec"
)

// communicator describes a process group for the verdict.
func (x *table) communicator(g int32) *Communicator {
	group := &x.set.Groups[g]
	c := &Communicator{Ranks: slices.Clone(group.Ranks), Group: x.job.kindOf(group.Desc, group.Ranks)}
	c.Name, c.Least = cmp.Or(c.Group, group.Name), x.job.least && c.Group == "world"
	if x.source == fromRAS || x.source == fromProfiler {
		c.Hash = group.Name
	}
	return c
}

// kindOf is what a group of ranks is for, by its description; "" where nobody gave one.
func (j *job) kindOf(desc string, ranks []int) string {
	switch {
	case desc == "default_pg", j.world > 1 && len(ranks) == j.world:
		return "world"
	case desc == "undefined":
		return ""
	}
	return desc
}

// sameSize are operations whose sizes must be equal on all ranks; gathers of lists, scatters and exchanges may differ.
func sameSize(op string) bool {
	switch op {
	case "all_reduce", "broadcast", "reduce", "_all_gather_base", "_reduce_scatter_base", "all_reduce_barrier",
		"_broadcast_oop", "_reduce_oop", "allreduce_coalesced", "all_gather_into_tensor", "reduce_scatter_tensor":
		return true
	}
	return false
}

// mismatch finds a collective that ranks call differently: one that somebody still waits for before one that ended,
// another operation before another size, the first before later ones.
func (x *table) mismatch() (claim, bool) {
	var best claim
	value := func(c *claim) (n int) {
		if c.kind == OpMismatch {
			n++
		}
		if len(c.waiting) > 0 {
			n += 2
		}
		return n
	}
	for op, s := range x.slots {
		if !s.differs {
			continue
		}
		c, ok := x.mismatchAt(op.group, op.seq)
		if ok && (best.kind == "" || cmp.Or(value(&best)-value(&c), c.seq-best.seq, len(c.comm.Ranks)-len(best.comm.Ranks),
			slices.Compare(c.comm.Ranks, best.comm.Ranks)) < 0) {
			best = c
		}
	}
	return best, best.kind != ""
}

// mismatchAt says who calls a collective differently from the others.
func (x *table) mismatchAt(g, seq int32) (claim, bool) {
	calls := map[int]flightrec.Sig{}
	ops, sizes := map[string][]int{}, map[flightrec.Sig][]int{}
	var waiting []int
	for _, r := range x.set.Groups[g].Ranks {
		e := x.ranks[r].find(g, seq)
		if e == nil {
			continue
		}
		s := x.set.Sigs[e.Sig]
		calls[r], ops[s.Op] = s, append(ops[s.Op], r)
		if sameSize(s.Op) {
			s.Sizes = "" // the same numbers in another shape are alike
			sizes[s] = append(sizes[s], r)
		}
		if e.State != flightrec.Completed {
			waiting = append(waiting, r)
		}
	}
	c, how := newClaim(OpMismatch, x.source), "calls another than the rest"
	c.comm, c.seq = x.communicator(g), int(seq)
	few, clear := minority(ops)
	if len(ops) < 2 {
		c.become(SizeMismatch)
		how = "calls it with another size or type"
		if few, clear = minority(sizes); len(sizes) < 2 {
			return claim{}, false
		}
	}
	c.ranks = few
	if !clear {
		c.doubtful(0.6)
	}
	odd := func(r int) bool { return slices.Contains(c.ranks, r) }
	quoted := c.ranks[:min(len(c.ranks), 4)]
	if i := slices.IndexFunc(x.set.Groups[g].Ranks, func(r int) bool { _, ok := calls[r]; return ok && !odd(r) }); i >= 0 {
		quoted = slices.Insert(slices.Clone(quoted), 0, x.set.Groups[g].Ranks[i])
	}
	c.op = opWord(calls[quoted[0]].Op)
	for _, r := range quoted {
		c.quotes = append(c.quotes, x.quote(x.ranks[r], x.ranks[r].find(g, seq))...)
	}
	c.waiting = slices.DeleteFunc(waiting, odd)
	c.why = fmt.Sprintf("of %s %s %s", c.what(), rankList(c.ranks), how)
	if len(waiting) == 0 {
		c.why += "; it ended, and its result is wrong"
	}
	return c, true
}

// opWord is an operation in busbar's word.
func opWord(op string) string {
	op = strings.ToLower(strings.TrimPrefix(op, "_"))
	switch op {
	case "allreduce":
		return "all_reduce"
	case "all_gather_base", "allgather", "allgather_base", "all_gather_into_tensor":
		return "all_gather"
	case "reduce_scatter_base", "reducescatter", "reduce_scatter_tensor":
		return "reduce_scatter"
	case "alltoall_base", "alltoall", "all_to_all_single":
		return "all_to_all"
	}
	return op
}

// straggler says who has not launched what others wait for.
func (x *table) straggler() (claim, bool) {
	w := x.waits
	if len(w.roots) == 0 || x.running || x.source == fromLog && len(w.roots) > max(1, x.job.world/2) {
		return claim{}, false
	}
	c := x.waitFor(Late, w.roots)
	c.why = fmt.Sprintf("%s has not launched %s", rankList(w.roots), c.what())
	for _, r := range w.roots[:min(len(w.roots), 3)] {
		c.quotes = append(c.quotes, x.quote(x.ranks[r], nil)...)
	}
	if len(w.roots) > 1 && len(w.roots) > len(w.waiting) {
		c.doubtful(0.5)
	}
	return c, true
}

// waitFor is a claim about ranks that others wait for, with what they wait in.
func (x *table) waitFor(kind Kind, ranks []int) claim {
	c := newClaim(kind, x.source)
	c.ranks, c.waiting = ranks, x.waits.waiting
	if op, ok := x.waits.needed[ranks[0]]; ok {
		x.describe(&c, op)
	}
	return c
}

// describe fills in the collective.
func (x *table) describe(c *claim, op opRef) {
	c.comm, c.seq = x.communicator(op.group), int(op.seq)
	if s := x.slots[op]; s != nil {
		c.op = opWord(s.sig.Op)
	}
	n := 0
	for _, r := range x.set.Groups[op.group].Ranks {
		h := x.ranks[r]
		if e := h.find(op.group, op.seq); e != nil && e.State != flightrec.Completed && n < 2 {
			c.quotes = append(c.quotes, x.quote(h, e)...)
			n++
		}
	}
}

// what names the collective of a claim.
func (c *claim) what() string {
	if c.comm == nil && c.seq == 0 {
		return "the collective that the others wait in"
	}
	op := cmp.Or(c.op, "the collective")
	if c.seq > 0 {
		op += fmt.Sprintf(" #%d", c.seq)
	}
	if c.comm == nil {
		return op
	}
	if op += " on " + c.comm.Name + " ("; c.comm.Least {
		op += "at least "
	}
	return op + rankList(c.comm.Ranks) + ")"
}

// missing says which ranks others wait for of which nothing is there. More than a few were not collected.
func (x *table) missing() (claim, bool) {
	w := x.waits
	if len(w.absent) == 0 || len(w.roots) > 0 || x.running || len(x.order) < 2 ||
		len(x.absent) > max(1, len(x.order)/2) {
		return claim{}, false
	}
	c := x.waitFor(NoReport, w.absent)
	what := "dump"
	if x.source == fromLog {
		what = "line"
	}
	c.why = fmt.Sprintf("%s waits for %s, and there is no %s of %[2]s: it may be late, stopped or gone, or what it wrote "+
		"was not collected", c.what(), rankList(w.absent), what)
	return c, true
}

// deadlock finds ranks that launched collectives of two groups in opposite orders: each waits for one that is queued
// behind another on a member.
func (x *table) deadlock() (claim, bool) {
	w := x.waits
	if len(w.roots) > 0 || len(w.absent) > 0 || x.running || w.crossed == nil {
		return claim{}, false
	}
	a, b := w.crossed[0], w.crossed[1]
	orders := map[bool][]int{}
	classA, classB := x.class(a.group), x.class(b.group)
	for _, h := range x.order {
		if first, ok := h.order(x, classA, classB, a, b); ok {
			orders[first] = append(orders[first], h.rank)
		}
	}
	c := newClaim(Order, x.source)
	clear := false
	if c.ranks, clear = minority(orders); !clear {
		c.doubtful(0.6)
	}
	c.waiting = w.waiting
	x.describe(&c, a)
	other := x.communicator(b.group)
	c.why = fmt.Sprintf("%s launched its collectives on %s and %s in the other order than the rest, and each side waits "+
		"for the other", rankList(c.ranks), c.comm.Name, other.Name)
	for _, r := range c.ranks[:min(len(c.ranks), 2)] {
		if h := x.ranks[r]; h != nil && h.pending() != nil {
			c.quotes = append(c.quotes, x.quote(h, h.pending())...)
		}
	}
	return c, len(c.ranks) > 0
}

// class is what groups that play the same part for different ranks have in common.
func (x *table) class(g int32) string {
	group := &x.set.Groups[g]
	if group.Desc != "" && group.Desc != "undefined" {
		return group.Desc
	}
	return fmt.Sprint(len(group.Ranks))
}

// order reports whether a rank launched a collective of the first class of groups before one of the second: those with
// the same numbers as the two that wait for each other.
func (h *history) order(x *table, first, second string, a, b opRef) (before, known bool) {
	var recA, recB int64 = -1, -1
	for i := len(h.entries) - 1; i >= 0; i-- {
		e := &h.entries[i]
		switch class := x.class(e.Group); {
		case e.P2P:
		case class == first && e.Seq == a.seq && recA < 0:
			recA = e.Record
		case class == second && e.Seq == b.seq && recB < 0:
			recB = e.Record
		}
	}
	return recA < recB, recA >= 0 && recB >= 0
}

// stuck finds a collective that all members launched, that is the first thing all of them wait for, and that does not
// end: a GPU is busy with something else before it, or the data does not move.
func (x *table) stuck() (claim, bool) {
	w := x.waits
	if len(w.roots) > 0 || len(w.absent) > 0 || w.stuck == nil || x.running {
		return claim{}, false
	}
	op := *w.stuck
	c := newClaim(Kernel, x.source)
	c.waiting = w.waiting
	x.describe(&c, op)
	var scheduled, started []int
	for _, r := range x.set.Groups[op.group].Ranks {
		if x.ranks[r].find(op.group, op.seq).State == flightrec.Started {
			started = append(started, r)
		} else {
			scheduled = append(scheduled, r)
		}
	}
	switch {
	case len(started) == 0:
		c.doubtful(0.4)
		c.why = fmt.Sprintf("all members have launched %s in the same order and none ends: a GPU is busy with a kernel "+
			"that was queued before it", c.what())
		if r, ok := x.oddGap(op, scheduled); ok {
			c.ranks, c.sure = []int{r}, 0.65
			c.why += fmt.Sprintf("; rank %d spent longer before launching it than any other member", r)
		}
	case len(scheduled) == 0:
		c.become(Network)
		c.why = fmt.Sprintf("all members of %s have started it and none ends: the data does not move", c.what())
	default:
		c.ranks = scheduled
		c.why = fmt.Sprintf("%s runs on the GPUs of %s; on %s it is queued behind something that does not end", c.what(),
			rankList(started), rankList(scheduled))
	}
	return c, true
}

// oddGap finds the member that spent much longer than the others between the launch before a collective and that
// launch: who ran something else there is likely who put it on the GPU.
func (x *table) oddGap(op opRef, members []int) (rank int, ok bool) {
	var longest, second int64
	for _, r := range members {
		h := x.ranks[r]
		i := slices.IndexFunc(h.entries,
			func(e flightrec.Entry) bool { return e.Group == op.group && e.Seq == op.seq && !e.P2P })
		if i < 1 {
			return 0, false
		}
		gap := h.entries[i].Created - h.entries[i-1].Created
		if gap > longest {
			rank, longest, gap = r, gap, longest
		}
		second = max(second, gap)
	}
	return rank, len(members) > 1 && longest >= max(5e6, 5*second)
}

// idle reports dumps in which every entry is completed, and that have some.
func (x *table) idle() bool {
	entries := 0
	for _, h := range x.order {
		if h.head >= 0 {
			return false
		}
		entries += len(h.entries)
	}
	return entries > 0
}
