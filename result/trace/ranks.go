package trace

import (
	"cmp"
	"slices"

	"busbar.dev/unit"
)

// Waiting is what the ranks of a job waited for each other in collectives, from their traces together. A collective ends for
// all at about the same time, so that who comes last spends least time in it, and that time is the transfer.
type Waiting struct {
	Matched int // calls that all members with a trace recorded
	Ranks   []RankWaiting
	// Transfer is the time of a matched call without waiting, by the groups of Summary.
	Transfer map[WaitKey]unit.Time
}

// WaitKey names calls of one operation, group and size class.
type WaitKey struct {
	Call  string
	Group string
	Class int
}

// RankWaiting is one rank's part.
type RankWaiting struct {
	Rank int
	Wait unit.Span // in matched calls, for others
	Last float64   // share of matched calls in which it came last by more than a tenth of the call
	Held unit.Span // what the others waited for it, in the mean
}

type matchKey struct {
	group string
	seq   int64
}

type arrival struct {
	trace, call int
	ns          int64
}

// Wait matches the calls of several ranks.
func Wait(traces []*Trace) Waiting {
	calls := map[matchKey][]arrival{}
	for i, t := range traces {
		order := map[string]int64{}
		for k := range t.Events {
			e := &t.Events[k]
			if e.Call < 0 {
				continue
			}
			c := &t.Calls[e.Call]
			if c.P2P || c.Size < 2 {
				continue
			}
			id := matchKey{c.Group, e.Seq}
			if e.Seq < 0 {
				id.seq = -1 - order[c.Group] // by order, apart from numbers
				order[c.Group]++
			}
			calls[id] = append(calls[id], arrival{i, int(e.Call), e.End - e.Start})
		}
	}
	w := Waiting{Ranks: make([]RankWaiting, len(traces)), Transfer: map[WaitKey]unit.Time{}}
	for i, t := range traces {
		w.Ranks[i].Rank = t.Rank
	}
	transfers := map[WaitKey][]int64{}
	for _, list := range calls {
		w.match(traces, list, transfers)
	}
	for k, list := range transfers {
		slices.Sort(list)
		w.Transfer[k] = unit.Time(list[len(list)/2]) * unit.Nanosecond
	}
	for i := range w.Ranks {
		w.Ranks[i].Last /= float64(max(1, w.Matched))
	}
	slices.SortFunc(w.Ranks, func(a, b RankWaiting) int { return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Rank, b.Rank)) })
	return w
}

// match adds one call of several ranks. Ranks that recorded something else under the same number started the profiler at
// another time; their calls are not comparable.
func (w *Waiting) match(traces []*Trace, list []arrival, transfers map[WaitKey][]int64) {
	if len(list) < 2 {
		return
	}
	first := &traces[list[0].trace].Calls[list[0].call]
	least, sum := 0, int64(0)
	for i, a := range list {
		c := &traces[a.trace].Calls[a.call]
		if c.Op != first.Op || c.Bytes != first.Bytes || i > 0 && a.trace == list[i-1].trace {
			return
		}
		if a.ns < list[least].ns {
			least = i
		}
		sum += a.ns
	}
	w.Matched++
	low := list[least].ns
	for _, a := range list {
		w.Ranks[a.trace].Wait += unit.Span(float64(a.ns-low) / 1e9)
	}
	held := float64(sum-low)/float64(len(list)-1) - float64(low)
	w.Ranks[list[least].trace].Held += unit.Span(held / 1e9)
	if held > 0.1*float64(low) {
		w.Ranks[list[least].trace].Last++
	}
	k := first.Key()
	transfers[k] = append(transfers[k], low)
}

// Key names the calls that this one is compared with.
func (c *Call) Key() WaitKey { return WaitKey{c.Op.String(), c.Group, Class(c.Bytes)} }
