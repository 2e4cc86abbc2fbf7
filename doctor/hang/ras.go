package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/ras"
)

// rank is the global rank of a rank of a communicator.
func (j *job) rank(c *ras.Comm, r *ras.Rank) int {
	if g := j.ofPID(r.PID); g >= 0 && r.PID > 0 {
		return g
	}
	if c.Size == j.world && j.world > 0 {
		return r.Rank
	}
	return -1
}

// reports are the answers of RAS in the order of their time; those without one in the order they were given. What a
// running job answered stands for itself.
func (c *Case) reports() []*ras.Report {
	list := slices.DeleteFunc(slices.Clone(c.ras), func(r *ras.Report) bool { return len(c.asked) > 0 && !c.asked[r] })
	slices.SortStableFunc(list, func(a, b *ras.Report) int {
		if a.Time == "" || b.Time == "" {
			return 0
		}
		return cmp.Compare(a.Time, b.Time)
	})
	return list
}

// whole is the last answer that has all ranks: a text lists only some. nil where there are none.
func whole(list []*ras.Report) *ras.Report {
	var last *ras.Report
	for _, r := range list {
		if last == nil || r.JSON || !last.JSON {
			last = r
		}
	}
	return last
}

// looks is at how many moments RAS was asked. A text does not say when: beside an answer that does it may be the same.
func looks(list []*ras.Report) int {
	at := map[string]bool{}
	for _, r := range list {
		at[r.Time] = true
	}
	delete(at, "")
	return cmp.Or(len(at), len(list))
}

// launched is how many collectives the members of a communicator have launched, by operation and place in the
// communicator. A text lists those who differ from the most.
func launched(m *ras.Comm) map[string]map[int]uint64 {
	list := map[string]map[int]uint64{}
	add := func(op string, rank int, n uint64) {
		if list[op] == nil {
			list[op] = map[int]uint64{}
		}
		list[op][rank] = n
	}
	for i := range m.Ranks {
		for o, n := range m.Ranks[i].Counts {
			if len(m.Lags) == 0 {
				add(ras.Ops[o], m.Ranks[i].Rank, n)
			}
		}
	}
	most := map[string]ras.Lag{}
	for _, l := range m.Lags {
		if l.N > most[l.Op].N {
			most[l.Op] = l
		}
		for i := range l.Ranks {
			add(l.Op, l.Ranks[i].Rank, l.Count)
		}
	}
	for op, l := range most {
		for r := range min(m.Size, maxWorld) {
			if _, ok := list[op][r]; !ok {
				add(op, r, l.Count)
			}
		}
	}
	return list
}

// rasSet is what an answer says in the form of the recorder's dumps. What all members of a communicator have launched
// counts as its collectives; who has launched more of an operation is at the next one, which the others lack or call
// otherwise.
func (j *job) rasSet(r *ras.Report) *flightrec.Set {
	b := newSetBuilder()
	if r == nil {
		return b.Set
	}
	bySize := slices.SortedStableFunc(slices.Values(r.Comms),
		func(a, b ras.Comm) int { return cmp.Compare(a.Size, b.Size) })
	for i := range bySize {
		m := &bySize[i]
		name := fmt.Sprintf("%016x", m.Hash)
		g := b.group(name, flightrec.Group{Name: name})
		ranks := slices.Concat(m.Ranks, m.Missing)
		for _, l := range m.Lags {
			ranks = append(ranks, l.Ranks...)
		}
		for k := range ranks {
			if rank := j.rank(m, &ranks[k]); rank >= 0 {
				b.members[g][ranks[k].Rank] = rank
			}
		}
		if m.Size == j.world && len(m.Lags) > 0 {
			for rank := range j.world {
				b.members[g][rank] = rank
			}
		}
		b.counts(g, m, r.Name)
	}
	return b.finish()
}

// common is how many collectives all members of a communicator have launched, of each operation and together.
func common(list map[string]map[int]uint64) (least map[string]uint64, sum int32) {
	least = map[string]uint64{}
	for op, by := range list {
		least[op] = slices.Min(slices.Collect(maps.Values(by)))
		sum += int32(min(least[op], 1<<24))
	}
	return least, sum
}

// counts adds what the members of a communicator launched.
func (b *setBuilder) counts(g int32, m *ras.Comm, name string) {
	list := launched(m)
	least, sum := common(list)
	more := map[string]int{} // members that have launched more than others, by operation
	for op, by := range list {
		for _, n := range by {
			if n > least[op] {
				more[op]++
			}
		}
	}
	usual := "" // what others call where one alone calls what none of them ever has
	for op, n := range more {
		if n == 1 && least[op] == 0 && len(b.members[g]) > 2 {
			usual = slices.MaxFunc(slices.Sorted(maps.Keys(least)),
				func(x, y string) int { return cmp.Compare(least[x], least[y]) })
		}
	}
	ops := slices.SortedFunc(maps.Keys(more), func(x, y string) int { return cmp.Or(more[y]-more[x], cmp.Compare(x, y)) })
	gone := map[int]bool{}
	for i := range m.Missing {
		gone[m.Missing[i].Rank] = true
	}
	for _, k := range slices.Sorted(maps.Keys(b.members[g])) {
		if gone[k] {
			continue
		}
		d := b.dump(b.members[g][k], name)
		d.Last[g] = sum
		op := usual
		if i := slices.IndexFunc(ops, func(op string) bool { return list[op][k] > least[op] }); i >= 0 {
			op = ops[i]
		}
		if op != "" {
			b.launch(d, flightrec.Entry{Group: g, Seq: sum + 1, State: flightrec.Scheduled}, flightrec.Sig{Op: opWord(op)})
		}
	}
}

// moved reports whether all members of a communicator launched collectives between the first and the last of its
// answers that say when, and whether there are two of the same one.
func moved(list []*ras.Report) (yes, known bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(r *ras.Report) bool { return r.Time == "" })
	if len(list) < 2 || list[0].Time == list[len(list)-1].Time {
		return false, false
	}
	before := map[uint64]int32{}
	for i := range list[0].Comms {
		_, before[list[0].Comms[i].Hash] = common(launched(&list[0].Comms[i]))
	}
	for i := range list[len(list)-1].Comms {
		m := &list[len(list)-1].Comms[i]
		old, ok := before[m.Hash]
		_, now := common(launched(m))
		yes, known = yes || ok && now > old && len(m.Missing) == 0, known || ok // those who left do not count any more
	}
	return yes, known
}

// closed reports a rank that tells RAS that the connection to a peer is closed.
func (x *judge) closed() bool {
	return slices.ContainsFunc(x.ras, func(r *ras.Report) bool {
		return slices.ContainsFunc(r.Comms, func(m ras.Comm) bool {
			return slices.ContainsFunc(m.Ranks, func(k ras.Rank) bool { return k.PeerGone })
		})
	})
}

// rasGone says who does not answer. It is the first answer in which somebody is missing: later ones also miss who left
// because of that. RAS does not say how a process went, nor who of several went first.
func (x *judge) rasGone() (claim, bool) {
	for _, r := range x.ras {
		gone := map[int]bool{}
		var lost []ras.Process
		for i := range r.Comms {
			for _, k := range r.Comms[i].Missing {
				gone[x.job.rank(&r.Comms[i], &k)], lost = true, append(lost, k.Process)
			}
		}
		for _, p := range r.Missing {
			gone[x.job.ofPID(p.PID)], lost = true, append(lost, p)
		}
		if len(gone) == 0 {
			continue
		}
		unknown := gone[-1]
		delete(gone, -1)
		c := newClaim(Stopped, fromRAS)
		c.ranks = slices.Sorted(maps.Keys(gone))
		c.quotes = []finding.Quote{
			{File: r.Name, Text: fmt.Sprintf("no data from process %d on %s", lost[0].PID, lost[0].Host)},
		}
		c.why = rankList(c.ranks) + " does not answer the RAS service"
		if len(c.ranks) == 0 {
			c.why = "a process whose rank is not known does not answer the RAS service"
		}
		if x.closed() {
			c.become(Killed)
			c.why += ", and its connections are closed"
		}
		if len(c.ranks) != 1 || unknown {
			c.doubtful(0.5)
		}
		return c, true
	}
	return claim{}, false
}
