package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
)

// communicator describes a process group for the verdict.
func (x *recorder) communicator(g int32) *Communicator {
	group := &x.set.Groups[g]
	c := &Communicator{
		Name: group.Desc, Ranks: slices.Clone(group.Ranks), Group: parallelGroup(group.Desc, group.Ranks, x.job.world),
	}
	if c.Name == "" || c.Name == "undefined" || c.Name == "default_pg" {
		c.Name = c.Group
	}
	c.Name = cmp.Or(c.Name, group.Name)
	return c
}

// parallelGroup is the kind of parallelism that a group is of: what its description says, else what its ranks look
// like. Consecutive ranks are tensor or expert neighbours, equal strides data or pipeline ones: the shape alone cannot
// say more.
func parallelGroup(desc string, ranks []int, world int) string {
	low := strings.ToLower(desc)
	switch {
	case low == "default_pg" || world > 1 && len(ranks) == world:
		return "world"
	case strings.Contains(low, "undefined") || low == "":
	default:
		for _, word := range []string{
			"tp", "dp", "pp", "ep", "cp", "fsdp", "hsdp", "sp", "mp", "tensor", "data", "pipe", "expert", "context",
		} {
			if low == word || strings.HasPrefix(low, word+"_") || strings.HasSuffix(low, "_"+word) ||
				strings.Contains(low, "_"+word+"_") || strings.HasPrefix(low, "mesh_"+word) ||
				len(word) > 3 && strings.Contains(low, word) {
				return word
			}
		}
		return desc
	}
	if len(ranks) < 2 {
		return ""
	}
	stride := ranks[1] - ranks[0]
	for i := 1; i < len(ranks); i++ {
		if ranks[i]-ranks[i-1] != stride {
			return ""
		}
	}
	if stride == 1 {
		return "consecutive ranks (tp or ep)"
	}
	return fmt.Sprintf("every %d ranks (dp or pp)", stride)
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

// mismatches finds collectives that ranks call differently, the ones that somebody still waits for first.
func (x *recorder) mismatches() (claim, bool) {
	var best claim
	found := false
	rank := 0 // how telling the best is
	for _, g := range slices.Sorted(maps.Keys(x.slots)) {
		list := x.slots[g]
		for i := range list {
			if !list[i].differs {
				continue
			}
			c, ok := x.mismatch(g, x.base[g]+int32(i))
			if !ok {
				continue
			}
			value := 1
			if list[i].busy {
				value += 4
			}
			if c.kind == OpMismatch {
				value += 2
			}
			if !found || value > rank ||
				value == rank && (c.seq < best.seq || c.seq == best.seq && len(c.comm.Ranks) < len(best.comm.Ranks)) {
				best, found, rank = c, true, value
			}
		}
	}
	return best, found
}

// mismatch says who calls a collective differently from the others.
func (x *recorder) mismatch(g, seq int32) (claim, bool) {
	ops, sizes := map[string][]int{}, map[string][]int{}
	var quotes []finding.Quote
	var waiting []int
	byRank := map[int]*flightrec.Entry{}
	for _, r := range x.set.Groups[g].Ranks {
		h := x.ranks[r]
		if h == nil {
			continue
		}
		e := h.find(g, seq)
		if e == nil {
			continue
		}
		byRank[r] = e
		s := &x.set.Sigs[e.Sig]
		ops[s.Op] = append(ops[s.Op], r)
		if sameSize(s.Op) {
			sizes[s.Op+" "+s.Dtypes+fmt.Sprint(s.In, s.Out)] = append(sizes[s.Op+" "+s.Dtypes+fmt.Sprint(s.In, s.Out)], r)
		}
		if e.State != flightrec.Completed {
			waiting = append(waiting, r)
		}
	}
	c := claim{source: x.source, comm: x.communicator(g), seq: int(seq), sure: 0.93}
	var few []int
	clear := true
	switch {
	case len(ops) > 1:
		c.kind = OpMismatch
		few, clear = minority(ops)
	case len(sizes) > 1:
		c.kind = SizeMismatch
		few, clear = minority(sizes)
	default:
		return claim{}, false
	}
	if !clear {
		few, clear = x.unlikeOthers(g, seq, byRank, few)
	}
	if !clear {
		c.sure = 0.6
	}
	c.ranks = few
	for _, r := range slices.Sorted(maps.Keys(byRank)) {
		if !slices.Contains(few, r) {
			c.op = opWord(x.set.Sigs[byRank[r].Sig].Op)
			quotes = append(quotes, x.quote(x.ranks[r], byRank[r]))
			break
		}
	}
	for _, r := range few[:min(len(few), 4)] {
		quotes = append(quotes, x.quote(x.ranks[r], byRank[r]))
		if c.op == "" {
			c.op = opWord(x.set.Sigs[byRank[r].Sig].Op)
		}
	}
	c.quotes = quotes
	for _, r := range waiting {
		if !slices.Contains(few, r) {
			c.waiting = append(c.waiting, r)
		}
	}
	if c.kind == OpMismatch {
		c.why = fmt.Sprintf("%s launched %s as collective %d of group %s, the others %s", rankList(few),
			opWord(x.set.Sigs[byRank[few[0]].Sig].Op), seq, c.comm.Name, c.op)
	} else {
		c.why = fmt.Sprintf("%s launched %s, collective %d of group %s, with %s; the others with another size or type",
			rankList(few), c.op, seq, c.comm.Name, x.set.Sigs[byRank[few[0]].Sig].Sizes)
	}
	if len(waiting) == 0 {
		c.why += "; it ended, and its result is wrong"
	}
	return c, true
}

// unlikeOthers decides between members of a group that call a collective differently, one each: who calls what neither
// this group's earlier collectives nor other groups of the same kind have at this number is the one.
func (x *recorder) unlikeOthers(g, seq int32, byRank map[int]*flightrec.Entry, all []int) ([]int, bool) {
	votes := map[int]int{}
	group := &x.set.Groups[g]
	for other := range x.slots {
		o := &x.set.Groups[other]
		if other == g || o.Desc != group.Desc || len(o.Ranks) != len(group.Ranks) {
			continue
		}
		s := x.at(other, seq)
		if s == nil || s.sig == 0 || s.differs {
			continue
		}
		for r, e := range byRank {
			if e.Sig+1 == s.sig {
				votes[r]++
			}
		}
	}
	for r, e := range byRank {
		for _, h := range x.order {
			if h.rank != r {
				continue
			}
			for i := range h.entries {
				if h.entries[i].Group == g && h.entries[i].Sig == e.Sig && h.entries[i].Seq < seq {
					votes[r]++
					break
				}
			}
		}
	}
	most := 0
	for _, n := range votes {
		most = max(most, n)
	}
	var few []int
	for _, r := range all {
		if votes[r] < most {
			few = append(few, r)
		}
	}
	if len(few) == 0 || len(few) == len(all) {
		return all, false
	}
	return few, true
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
func (x *recorder) straggler() (claim, bool) {
	w := x.waits
	if len(w.roots) == 0 || x.running > 0 {
		return claim{}, false
	}
	c := claim{kind: Late, ranks: w.roots, source: x.source, sure: 0.9, waiting: w.waiting}
	op, ok := x.firstNeeded(w.roots[0])
	if ok {
		x.describe(&c, op)
	}
	c.why = fmt.Sprintf("%s has not launched %s", rankList(w.roots), c.what())
	for _, r := range w.roots[:min(len(w.roots), 3)] {
		h := x.ranks[r]
		if n := len(h.entries); n > 0 {
			q := x.quote(h, &h.entries[n-1])
			q.Text = "the last that it launched: " + q.Text
			c.quotes = append(c.quotes, q)
		}
	}
	if len(w.roots) > 1 && len(w.roots) > len(w.waiting) {
		c.sure = 0.5
	}
	return c, true
}

// describe fills in the collective.
func (x *recorder) describe(c *claim, op opRef) {
	c.comm, c.seq = x.communicator(op.group), int(op.seq)
	if s := x.sigOf(op); s != nil {
		c.op = opWord(s.Op)
	}
	n := 0
	for _, r := range x.set.Groups[op.group].Ranks {
		h := x.ranks[r]
		if h == nil {
			continue
		}
		if e := h.find(op.group, op.seq); e != nil && e.State != flightrec.Completed && n < 3 {
			c.quotes = append(c.quotes, x.quote(h, e))
			n++
		}
	}
}

// what names the collective of a claim.
func (c *claim) what() string {
	if c.comm == nil {
		return "the collective that the others wait in"
	}
	op := cmp.Or(c.op, "the collective")
	if c.seq > 0 {
		op += fmt.Sprintf(" #%d", c.seq)
	}
	return op + " on " + c.comm.Name + " (" + rankList(c.comm.Ranks) + ")"
}

// missing says which ranks others wait for that left no dump.
func (x *recorder) missing() (claim, bool) {
	w := x.waits
	if len(w.absent) == 0 || len(w.roots) > 0 || x.running > 0 || len(x.order) < 2 ||
		len(x.absent) > max(1, len(x.order)/2) {
		return claim{}, false // more than a few: they were not collected
	}
	if slices.ContainsFunc(x.torn, func(f tornFile) bool { return slices.Contains(w.absent, f.rank) }) {
		return claim{}, false // it left a dump, which nobody can read
	}
	c := claim{kind: NoReport, ranks: w.absent, source: x.source, sure: 0.5, most: 0.7, waiting: w.waiting}
	if op, ok := x.firstNeeded(w.absent[0]); ok {
		x.describe(&c, op)
	}
	c.why = fmt.Sprintf("%s waits for %s, of which there is no dump: it may be late, stopped or gone, or its dump was "+
		"not collected", c.what(), rankList(w.absent))
	return c, true
}

// deadlock finds ranks that launched collectives of two groups in opposite orders: each waits for one that is queued
// behind another on a member.
func (x *recorder) deadlock() (claim, bool) {
	if x.running > 0 {
		return claim{}, false
	}
	w := x.waits
	if len(w.roots) > 0 || len(w.absent) > 0 {
		return claim{}, false
	}
	a, b, ok := x.crossed()
	if !ok {
		return claim{}, false
	}
	orders := map[bool][]int{}
	classA, classB := x.class(a.group), x.class(b.group)
	for _, h := range x.order {
		if first, ok := h.order(x, classA, classB, a, b); ok {
			orders[first] = append(orders[first], h.rank)
		}
	}
	few, clear := minority(orders)
	c := claim{kind: Order, ranks: few, source: x.source, sure: 0.9, waiting: w.waiting}
	if !clear {
		c.sure = 0.6
		c.ranks = x.againstHabit(few, classA, classB, a, b)
	}
	x.describe(&c, a)
	other := x.communicator(b.group)
	c.why = fmt.Sprintf("%s launched its collectives on %s and %s in the other order than the rest, and each side waits "+
		"for the other", rankList(c.ranks), c.comm.Name, other.Name)
	for _, r := range c.ranks[:min(len(c.ranks), 2)] {
		if h := x.ranks[r]; h != nil && h.pending() != nil {
			c.quotes = append(c.quotes, x.quote(h, h.pending()))
		}
	}
	return c, len(c.ranks) > 0
}

// class is what groups that play the same part for different ranks have in common.
func (x *recorder) class(g int32) string {
	group := &x.set.Groups[g]
	if group.Desc != "" && group.Desc != "undefined" {
		return group.Desc
	}
	return fmt.Sprint(len(group.Ranks))
}

// crossed finds two collectives, each at the head of one rank and queued behind the other on another.
func (x *recorder) crossed() (a, b opRef, ok bool) {
	heads := map[opRef][]int{}
	for _, h := range x.order {
		if e := h.pending(); e != nil && !e.P2P {
			heads[opRef{e.Group, e.Seq}] = append(heads[opRef{e.Group, e.Seq}], h.rank)
		}
	}
	ops := make([]opRef, 0, len(heads))
	for op := range heads {
		ops = append(ops, op)
	}
	sort.Slice(ops, func(i, k int) bool {
		na, nb := len(x.set.Groups[ops[i].group].Ranks), len(x.set.Groups[ops[k].group].Ranks)
		return na < nb || na == nb && ops[i].group < ops[k].group
	})
	for _, p := range ops {
		for _, m := range x.set.Groups[p.group].Ranks {
			h := x.ranks[m]
			if h == nil || h.pending() == nil || h.pending().P2P {
				continue
			}
			q := opRef{h.pending().Group, h.pending().Seq}
			if q == p || h.find(p.group, p.seq) == nil {
				continue
			}
			// m waits for q and has p queued; is there somebody who waits for p and has q queued?
			for _, r := range heads[p] {
				if e := x.ranks[r].find(q.group, q.seq); e != nil && e.State != flightrec.Completed {
					return p, q, true
				}
			}
		}
	}
	return a, b, false
}

// order reports whether a rank launched a collective of the first class of groups before one of the second: those with
// the same numbers as the two that wait for each other.
func (h *history) order(x *recorder, first, second string, a, b opRef) (before, known bool) {
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

// againstHabit are those of some ranks whose order differs from that of their own earlier rounds.
func (x *recorder) againstHabit(ranks []int, first, second string, a, b opRef) []int {
	var few []int
	for _, r := range ranks {
		h := x.ranks[r]
		if h == nil {
			continue
		}
		now, ok := h.order(x, first, second, a, b)
		before, known := h.habit(x, first, second)
		if ok && known && now != before {
			few = append(few, r)
		}
	}
	if len(few) == 0 {
		return ranks
	}
	return few
}

// habit is the order of two classes in a rank's completed entries: which of them the first one after the last of the
// other is.
func (h *history) habit(x *recorder, first, second string) (bool, bool) {
	end := h.head
	if end < 0 {
		end = len(h.entries)
	}
	for i := end - 1; i >= 0; i-- { // the class that comes last in a round is the second
		switch x.class(h.entries[i].Group) {
		case first:
			return false, true
		case second:
			return true, true
		}
	}
	return false, false
}

// stuck finds a collective that all members launched, that is the first thing all of them wait for, and that does not
// end: a GPU is busy with something else before it, or the data does not move.
func (x *recorder) stuck() (claim, bool) {
	if x.running > 0 {
		return claim{}, false
	}
	w := x.waits
	if len(w.roots) > 0 || len(w.absent) > 0 || len(w.waiting) == 0 {
		return claim{}, false
	}
	op, ok := x.commonHead()
	if !ok {
		return claim{}, false
	}
	c := claim{source: x.source, waiting: w.waiting}
	x.describe(&c, op)
	var scheduled, started []int
	for _, r := range x.set.Groups[op.group].Ranks {
		h := x.ranks[r]
		e := h.find(op.group, op.seq)
		switch e.State {
		case flightrec.Started:
			started = append(started, r)
		default:
			scheduled = append(scheduled, r)
		}
	}
	switch {
	case len(started) > 0 && len(scheduled) > 0:
		c.kind, c.ranks, c.sure = Kernel, scheduled, 0.9
		c.why = fmt.Sprintf("%s runs on the GPUs of %s; on %s it is queued behind something that does not end", c.what(),
			rankList(started), rankList(scheduled))
	case len(started) > 0:
		c.kind, c.ranks, c.sure = Network, nil, 0.5
		c.why = fmt.Sprintf("all members of %s have started it and none ends: the data does not move", c.what())
	default:
		c.kind, c.sure = Kernel, 0.4
		c.why = fmt.Sprintf("all members have launched %s in the same order and none ends: a GPU is busy with a kernel "+
			"that was queued before it", c.what())
		if r, gap, ok := x.oddGap(op, scheduled); ok {
			c.ranks, c.sure = []int{r}, 0.65
			c.why += fmt.Sprintf("; rank %d spent %v before launching it, which no other member did", r,
				gap.Round(time.Millisecond))
			c.quotes = append(c.quotes, finding.Quote{
				File: x.ranks[r].file,
				Text: fmt.Sprintf("rank %d: %v between this launch and the one before it", r, gap.Round(time.Millisecond)),
			})
		} else if len(scheduled) <= 8 {
			c.ranks = scheduled
		}
	}
	return c, true
}

// commonHead is a collective that every member has a dump of and waits for before anything else; of several the
// smallest.
func (x *recorder) commonHead() (opRef, bool) {
	var best opRef
	found := false
	count := map[opRef]int{}
	for _, h := range x.order {
		if e := h.pending(); e != nil && !e.P2P {
			count[opRef{e.Group, e.Seq}]++
		}
	}
	for op, n := range count {
		size := len(x.set.Groups[op.group].Ranks)
		if n != size || size < 2 {
			continue
		}
		old := len(x.set.Groups[best.group].Ranks)
		if !found || size < old || size == old && op.group < best.group {
			best, found = op, true
		}
	}
	return best, found
}

// oddGap finds the member that spent much longer than the others, and than it does itself, between the launch before a
// collective and that launch: who ran something else there is likely who put it on the GPU.
func (x *recorder) oddGap(op opRef, members []int) (int, time.Duration, bool) {
	var gaps []time.Duration
	best, at := time.Duration(0), -1
	for _, r := range members {
		h := x.ranks[r]
		gap := time.Duration(-1)
		for i := 1; i < len(h.entries); i++ {
			if e := &h.entries[i]; e.Group == op.group && e.Seq == op.seq && !e.P2P {
				gap = time.Duration(e.Created - h.entries[i-1].Created)
			}
		}
		if gap < 0 {
			return 0, 0, false
		}
		gaps = append(gaps, gap)
		if gap > best {
			best, at = gap, r
		}
	}
	slices.Sort(gaps)
	if len(gaps) < 2 || best < 5*time.Millisecond || best < 5*gaps[len(gaps)-2] {
		return 0, 0, false
	}
	return at, best, true
}

// stall finds a wait of seconds that is over: a rank that launched a collective long after the others.
func (x *recorder) stall() (claim, time.Duration, bool) {
	var best claim
	most := time.Duration(0)
	for _, g := range slices.Sorted(maps.Keys(x.slots)) {
		list := x.slots[g]
		members := x.set.Groups[g].Ranks
		for i := range list {
			s := &list[i]
			wait := time.Duration(s.latest - s.earliest)
			if int(s.have) < len(members) || len(members) < 2 || s.earliest == 0 || wait < 5*time.Second ||
				i == 0 && x.base[g] <= 1 {
				continue
			}
			if op := (opRef{g, x.base[g] + int32(i)}); wait > most {
				most = wait
				best = claim{
					kind: Late, ranks: []int{int(s.last)}, source: x.source, sure: 0.8, comm: x.communicator(g),
					seq: int(op.seq),
				}
				if sig := x.sigOf(op); sig != nil {
					best.op = opWord(sig.Op)
				}
				h := x.ranks[int(s.last)]
				if e := h.find(op.group, op.seq); e != nil {
					best.quotes = []finding.Quote{x.quote(h, e)}
				}
			}
		}
	}
	if most > 0 {
		best.why = fmt.Sprintf("%s launched %s %v after the first member; the job went on then", rankList(best.ranks),
			best.what(), most.Round(time.Second/10))
	}
	return best, most, most > 0
}

// idle reports dumps in which every entry is completed, and that have some.
func (x *recorder) idle() bool {
	entries := 0
	for _, h := range x.order {
		if h.head >= 0 {
			return false
		}
		entries += len(h.entries)
	}
	return entries > 0
}
