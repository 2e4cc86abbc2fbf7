package trace

import (
	"cmp"
	"math/bits"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Summary is where the time of a trace went. Times are those of one step where steps were marked, else of the whole
// trace. Compute, Exposed, Copy and Idle add up to Step.
type Summary struct {
	Steps   int       `json:"steps"` // that were marked; 0: times are of the whole trace
	Step    unit.Span `json:"step_s"`
	Compute unit.Span `json:"compute_s"`               // at least one kernel that is no collective's runs
	Comm    unit.Span `json:"comm_s"`                  // at least one collective runs
	Exposed unit.Span `json:"exposed_comm_s"`          // of that, nothing is computed meanwhile
	Copy    unit.Span `json:"copy_s"`                  // only copies run
	Idle    unit.Span `json:"idle_s"`                  // nothing runs
	FP32    unit.Span `json:"fp32_matmul_s,omitempty"` // of Compute, matrix products in 32 bits without tensor cores
	// Profiler is what the profiler says that its own work takes of the host's time; Step has what of it is not hidden.
	Profiler unit.Span `json:"profiler_s,omitempty"`
}

// GroupTime is the calls of one collective of one group, of sizes within a factor of two.
type GroupTime struct {
	Call

	Class   int        // the power of two of the size; -1 is unknown
	Bytes   unit.Bytes // the mean
	Count   float64    // of a step
	Time    unit.Span  // of a step
	Exposed unit.Span  // of a step: while this runs, nothing is computed
	Median  unit.Time  // of a call
	BusBW   unit.Rate  // of the median call; 0 is unknown
	times   []int64
}

// Summarize says where the time went, and in which collectives.
func (t *Trace) Summarize() (Summary, []GroupTime) {
	w := t.Window()
	s := Summary{Steps: len(t.Steps)}
	per := 1e9 * float64(max(1, s.Steps))
	compute := t.union(w, func(e *Event) bool { return e.Kind == Compute })
	comm := t.union(w, func(e *Event) bool { return e.Kind == Comm })
	busy := t.union(w, func(*Event) bool { return true })
	exposed := length(comm) - overlap(comm, compute)
	span := func(ns int64) unit.Span { return unit.Span(float64(ns) / per) }
	s.Step, s.Compute, s.Comm, s.Exposed = span(w.End-w.Start), span(length(compute)), span(length(comm)), span(exposed)
	s.Copy, s.Idle = span(length(busy)-length(compute)-exposed), span(w.End-w.Start-length(busy))
	s.FP32 = span(length(t.union(w, func(e *Event) bool { return e.FP32 })))
	var own []Interval
	for _, x := range t.Overhead {
		own = join(own, w, x)
	}
	s.Profiler = span(length(own))
	return s, t.groups(w, compute, per)
}

// union is the time in which an event of the kind runs, as intervals that do not touch.
func (t *Trace) union(w Interval, of func(*Event) bool) []Interval {
	var list []Interval
	for i := range t.Events {
		if e := &t.Events[i]; of(e) {
			list = join(list, w, e.Interval)
		}
	}
	return list
}

// join adds the part of an interval that is in the window to a list in order, which stays one without overlaps.
func join(list []Interval, w, x Interval) []Interval {
	a, b := max(x.Start, w.Start), min(x.End, w.End)
	switch n := len(list); {
	case b <= a:
	case n > 0 && a <= list[n-1].End:
		list[n-1].End = max(list[n-1].End, b)
	default:
		list = append(list, Interval{a, b})
	}
	return list
}

func length(list []Interval) (ns int64) {
	for _, x := range list {
		ns += x.End - x.Start
	}
	return ns
}

// overlap is the time that is in both.
func overlap(a, b []Interval) (ns int64) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		if both := min(a[i].End, b[k].End) - max(a[i].Start, b[k].Start); both > 0 {
			ns += both
		}
		if a[i].End < b[k].End {
			i++
		} else {
			k++
		}
	}
	return ns
}

// groups adds the calls up by operation, group and size.
func (t *Trace) groups(w Interval, compute []Interval, per float64) []GroupTime {
	type key struct {
		op          coll.Kind
		p2p         bool
		group, algo string
		size, class int
	}
	index := map[key]int{}
	var list []GroupTime
	k := 0 // the first interval of compute that may touch what follows
	for i := range t.Events {
		e := &t.Events[i]
		if e.Call < 0 || e.End > w.End || e.Start < w.Start {
			continue
		}
		c := t.Calls[e.Call]
		class := Class(c.Bytes)
		id := key{c.Op, c.P2P, c.Group, c.Algo, c.Size, class}
		at, ok := index[id]
		if !ok {
			at = len(list)
			index[id] = at
			list = append(list, GroupTime{Call: c, Class: class})
		}
		for k < len(compute) && compute[k].End <= e.Start {
			k++
		}
		g := &list[at]
		ns := e.End - e.Start
		hidden := overlap([]Interval{e.Interval}, compute[k:])
		g.Count++
		g.Bytes += c.Bytes
		g.Time += unit.Span(float64(ns) / per)
		g.Exposed += unit.Span(float64(ns-hidden) / per)
		g.times = append(g.times, ns)
	}
	for i := range list {
		list[i].finish(per / 1e9)
	}
	slices.SortStableFunc(list, func(a, b GroupTime) int {
		return cmp.Or(cmp.Compare(b.Exposed, a.Exposed), cmp.Compare(b.Time, a.Time))
	})
	return list
}

// finish turns sums into means.
func (g *GroupTime) finish(steps float64) {
	g.Bytes /= unit.Bytes(len(g.times))
	g.Count /= steps
	slices.Sort(g.times)
	g.Median = unit.Time(g.times[len(g.times)/2]) * unit.Nanosecond
	g.BusBW = g.Bandwidth(g.Median)
}

// Bandwidth is the bus bandwidth of a call of the mean size that takes t; 0 is unknown.
func (g *GroupTime) Bandwidth(t unit.Time) unit.Rate {
	if g.Bytes == 0 || g.Size < 2 || g.Op == coll.None || t <= 0 {
		return 0
	}
	return coll.Op{Kind: g.Op, Bytes: g.Bytes, Type: coll.Uint8}.BusBW(g.Size, t)
}

// Class is the power of two of a size; -1 is unknown.
func Class(b unit.Bytes) int { return bits.Len64(uint64(max(b, 0))) - 1 }
