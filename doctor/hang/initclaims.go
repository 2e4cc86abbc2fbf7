package hang

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
)

// creation is a communicator as NCCL's logs tell of its making.
type creation struct {
	hash    uint64
	size    int
	started map[int]told // by global rank
	done    map[int]bool
}

// neverJoined finds who does not come to the creation of a communicator or to the rendezvous. No watchdog covers
// either.
func (v *logView) neverJoined() (claim, bool) {
	comms := v.creations()
	open := slices.DeleteFunc(slices.Clone(comms), func(c *creation) bool {
		return len(c.started) == 0 || len(c.done) > 0 || len(c.started) >= c.size
	})
	if len(open) == 0 {
		return claim{}, false
	}
	blocked := map[int]bool{} // ranks that wait in the creation of a communicator
	for _, c := range open {
		for r := range c.started {
			blocked[r] = true
		}
	}
	// Of several that are open, the one whose absent members wait in none: the rest follow from it.
	var best *creation
	var missing []int
	for _, c := range open {
		m := v.absentFrom(c, comms)
		if len(m) == 0 {
			continue
		}
		free := slices.DeleteFunc(slices.Clone(m), func(r int) bool { return blocked[r] })
		better := best == nil || c.size < best.size
		if len(free) == len(m) && best != nil {
			for _, r := range missing {
				better = better || blocked[r] && c.size <= best.size
			}
		}
		if better {
			best, missing = c, m
		}
	}
	if best == nil {
		return claim{}, false
	}
	c := v.unread(claim{kind: NeverJoined, ranks: missing, source: fromLog, sure: 0.8, op: "comm init"})
	for _, r := range slices.Sorted(maps.Keys(best.started)) {
		c.waiting = append(c.waiting, r)
		if len(c.quotes) < 3 {
			c.quotes = append(c.quotes, best.started[r].quote())
		}
	}
	c.comm = v.j.newCommunicator(best.hash, sorted(slices.Concat(c.waiting, missing)))
	c.why = fmt.Sprintf("%s began to create a communicator of %d ranks and waits for %s, which never came",
		rankList(c.waiting), best.size, rankList(missing))
	return c, true
}

// cameLate finds who came late to the creation of a communicator that was made in the end: the others waited long in
// its bootstrap, it did not, and it waited in no other.
func (v *logView) cameLate() (claim, float64, bool) {
	const long = 10 // seconds; processes that start together differ by less
	waits, waited := map[uint64]map[int]told{}, map[int]bool{}
	for _, t := range v.by[joblog.InitTimed] {
		if t.rank < 0 || t.Comm == 0 {
			continue
		}
		if waits[t.Comm] == nil {
			waits[t.Comm] = map[int]told{}
		}
		waits[t.Comm][t.rank] = t
		waited[t.rank] = waited[t.rank] || t.Wait >= long
	}
	var best claim
	most := 0.0
	for _, comm := range slices.Sorted(maps.Keys(waits)) {
		members := waits[comm]
		var late, waiting []int
		wait := 0.0
		var quotes []finding.Quote
		for _, r := range slices.Sorted(maps.Keys(members)) {
			t := members[r]
			if t.Wait >= long {
				waiting = append(waiting, r)
				wait = max(wait, t.Wait)
				quotes = append(quotes, t.quote())
			} else if t.Wait < long/2 && !waited[r] {
				late = append(late, r)
			}
		}
		if len(late) == 0 || len(waiting) == 0 || wait < most {
			continue
		}
		most = wait
		best = claim{
			kind: NeverJoined, ranks: late, source: fromLog, sure: 0.8, op: "comm init", waiting: waiting,
			quotes: quotes[:min(len(quotes), 3)],
			comm:   v.j.newCommunicator(comm, sorted(slices.Concat(late, waiting))),
		}
		best.why = fmt.Sprintf("%s came %.0f s late to the creation of a communicator with %s", rankList(late), wait,
			rankList(waiting))
	}
	return best, most, most > 0
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
				c = &creation{hash: t.Comm, size: t.NRanks, started: map[int]told{}, done: map[int]bool{}}
				index[t.Comm] = c
				list = append(list, c)
			}
			if k == joblog.InitStart {
				c.started[t.rank] = t
			} else {
				c.done[t.rank] = true
			}
		}
	}
	return list
}

// absentFrom are the members of a communicator that did not begin to create it. Its hash does not say who they are: for
// one of all ranks it is the rest; else it is who is in no other communicator of that size that others of the same kind
// are in.
func (v *logView) absentFrom(c *creation, comms []*creation) []int {
	need := c.size - len(c.started)
	if need <= 0 || need > v.j.world {
		return nil
	}
	var free []int
	for r := range v.j.world {
		if _, ok := c.started[r]; !ok {
			free = append(free, r)
		}
	}
	if c.size == v.j.world {
		return free
	}
	nth := v.place(c, comms)
	taken := map[int]bool{}
	for _, o := range comms {
		if o == c || o.size != c.size || v.place(o, comms) != nth {
			continue
		}
		for r := range o.started {
			taken[r] = true
		}
	}
	free = slices.DeleteFunc(free, func(r int) bool { return taken[r] })
	if len(free) == need {
		return free
	}
	return v.byStride(c, comms, free, need)
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

// byStride guesses the absent from the distances of ranks in complete communicators of that size.
func (v *logView) byStride(c *creation, comms []*creation, free []int, need int) []int {
	for _, o := range comms {
		if o.size != c.size || len(o.started) != o.size || o.size < 2 {
			continue
		}
		ranks := slices.Sorted(maps.Keys(o.started))
		for _, r := range slices.Sorted(maps.Keys(c.started)) {
			t := c.started[r]
			var guess []int
			for i := range ranks {
				if at := r + ranks[i] - ranks[min(t.CommRank, len(ranks)-1)]; slices.Contains(free, at) {
					guess = append(guess, at)
				}
			}
			if len(guess) == need {
				return guess
			}
		}
	}
	return nil
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
	var missing []int
	for r := range min(last.NRanks, maxWorld) {
		if !here[r] {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 || len(missing) > last.NRanks-last.Enqueued && len(missing) > last.NRanks/2 {
		return claim{}, false
	}
	c := claim{
		kind: NeverJoined, ranks: missing, source: fromLog, sure: 0.8, op: "rendezvous",
		quotes: []finding.Quote{last.quote()},
		comm:   &Communicator{Name: "world", Group: "world", Ranks: upTo(last.NRanks)},
	}
	c.why = fmt.Sprintf("%d of %d ranks came to the rendezvous in time; %s did not", last.Enqueued, last.NRanks,
		rankList(missing))
	for _, t := range v.by[joblog.StoreGone] {
		if slices.Contains(missing, t.rank) {
			c.sure = 0.88
			c.why += ", and came when it was over"
			c.quotes = append(c.quotes, t.quote())
			break
		}
	}
	return v.unread(c), true
}

func upTo(n int) []int {
	list := make([]int, min(n, 1<<16))
	for i := range list {
		list[i] = i
	}
	return list
}
