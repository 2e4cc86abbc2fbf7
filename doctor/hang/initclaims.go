package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/input/joblog"
)

// notJoined is who has not come to where others wait. No watchdog covers the creation of a communicator, nor the
// rendezvous before it.
func (j *job) notJoined(source, op string, waiting, missing []int) claim {
	c := newClaim(NeverJoined, source)
	c.op, c.waiting, c.ranks = op, waiting, missing
	c.comm = j.newCommunicator(0, sorted(slices.Concat(waiting, missing)))
	c.why = fmt.Sprintf("%s waits in %s of %d ranks, to which %s has not come", rankList(waiting), op, len(c.comm.Ranks),
		rankList(missing))
	return c
}

// creation is a communicator as NCCL's logs tell of its making.
type creation struct {
	hash    uint64
	size    int
	started map[int]told // by global rank
	done    bool
}

// neverJoined finds who does not come to the creation of a communicator: of several that are open, one whose absent
// members wait in none, for the rest follow from it.
func (v *logView) neverJoined() (claim, bool) {
	comms := v.creations()
	absent := map[*creation][]int{}
	blocked := map[int]bool{} // ranks that wait in the creation of a communicator
	for _, c := range comms {
		if c.done || len(c.started) == 0 {
			continue
		}
		if m := v.absentFrom(c, comms); len(m) > 0 {
			absent[c] = m
		}
		for r := range c.started {
			blocked[r] = true
		}
	}
	open := slices.DeleteFunc(comms, func(c *creation) bool { return absent[c] == nil })
	if len(open) == 0 {
		return claim{}, false
	}
	follows := func(c *creation) int {
		return len(slices.DeleteFunc(slices.Clone(absent[c]), func(r int) bool { return !blocked[r] }))
	}
	first := slices.MinFunc(open, func(a, b *creation) int { return cmp.Or(follows(a)-follows(b), a.size-b.size) })
	c := v.j.notJoined(fromLog, "comm init", slices.Sorted(maps.Keys(first.started)), absent[first])
	c.comm.Hash = fmt.Sprintf("%016x", first.hash)
	for _, r := range c.waiting[:min(len(c.waiting), 3)] {
		c.quotes = append(c.quotes, quotes(first.started[r])...)
	}
	return v.unread(c), true
}

// creations collects the making of communicators from the logs.
func (v *logView) creations() []*creation {
	index := map[uint64]*creation{}
	var list []*creation
	for _, k := range []joblog.Kind{joblog.InitStart, joblog.InitComplete} {
		for _, t := range v.by[k] {
			if t.rank < 0 {
				continue
			}
			c := index[t.Comm]
			if c == nil {
				if len(list) > 1<<16 {
					continue
				}
				c = &creation{hash: t.Comm, size: t.NRanks, started: map[int]told{}}
				index[t.Comm] = c
				list = append(list, c)
			}
			if k == joblog.InitStart {
				c.started[t.rank] = t
			} else {
				c.done = true
			}
		}
	}
	return list
}

// absentFrom are the members of a communicator that did not begin to create it. Its hash does not say who they are: for
// one of all ranks it is the rest; else it is who is in no other communicator of that size that others of the same kind
// are in.
func (v *logView) absentFrom(c *creation, comms []*creation) []int {
	here := slices.Collect(maps.Keys(c.started))
	nth := v.place(c, comms)
	var siblings [][]int
	for _, o := range comms {
		if o != c && o.size == c.size && c.size < v.j.world && v.place(o, comms) == nth {
			siblings = append(siblings, slices.Collect(maps.Keys(o.started)))
		}
	}
	return except(v.j.rest(siblings, c.size, here), here)
}

// rest are the members of a communicator of which some are known, by those of its siblings: the ranks that none of them
// has. nil where they are not as many, or not those that are known and others.
func (j *job) rest(siblings [][]int, size int, known []int) []int {
	free := except(upTo(j.world), slices.Concat(siblings...))
	if missing := len(except(free, known)); len(free) != size || missing == 0 || missing != size-len(known) {
		return nil
	}
	return free
}

// except are those of ranks that are not among others.
func except(ranks, others []int) []int {
	is := map[int]bool{}
	for _, r := range others {
		is[r] = true
	}
	return slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return is[r] })
}

// place is which of its members' communicators of that size a communicator is: the first, the second. Members create
// them in one order; a log has a process's lines in that order.
func (v *logView) place(c *creation, comms []*creation) int {
	most := 0
	for r, t := range c.started {
		n := 0
		for _, o := range comms {
			if before, ok := o.started[r]; ok && o != c && o.size == c.size && before.log == t.log && before.Line < t.Line {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// rendezvous finds who did not come to the meeting of all ranks.
func (v *logView) rendezvous() (claim, bool) {
	joined := v.by[joblog.Joined]
	if len(joined) == 0 {
		return claim{}, false
	}
	last := joined[len(joined)-1]
	if last.NRanks == 0 || last.Enqueued >= last.NRanks {
		return claim{}, false
	}
	here := map[int]bool{}
	for _, list := range v.by {
		for _, t := range list {
			// a line with a rank of its own is written after the meeting; who counted the clients was there
			if t.rank >= 0 && (t.Rank >= 0 || t.Kind == joblog.Joined) {
				here[t.rank] = true
			}
		}
	}
	// Launchers that put a rank before every line do so before the meeting too: who found nobody there, and wrote nothing
	// of NCCL, was not there.
	for _, t := range v.by[joblog.StoreGone] {
		if t.rank >= 0 &&
			!slices.ContainsFunc(v.of(joblog.Joined, joblog.Process, joblog.InitStart),
				func(o told) bool { return o.rank == t.rank }) {
			delete(here, t.rank)
		}
	}
	all := upTo(last.NRanks)
	missing := except(all, slices.Collect(maps.Keys(here)))
	if len(missing) == 0 || len(missing) > last.NRanks-last.Enqueued && len(missing) > last.NRanks/2 {
		return claim{}, false
	}
	c := v.j.notJoined(fromLog, "rendezvous", except(all, missing), missing)
	c.quotes = quotes(last)
	return v.unread(c), true
}

func upTo(n int) []int {
	list := make([]int, min(n, 1<<16))
	for i := range list {
		list[i] = i
	}
	return list
}
