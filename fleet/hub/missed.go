package hub

import (
	"cmp"
	"slices"

	"busbar.dev/fleet"
)

// missed is a part that was not measured, and why.
type missed struct {
	group
	left bool // it did not begin
	node fleet.Name
	why  string
}

// miss notes a part that was not measured. The caller holds mu.
func (w *sweep) miss(m missed) {
	if w.missed == nil {
		w.missed = map[string]missed{}
	}
	w.missed[m.key()] = m
}

// key tells groups apart.
func (g group) key() string {
	var b []byte
	for _, n := range g.ranks {
		b = append(append(b, n...), ' ')
	}
	return string(b)
}

// mostNamed is how many nodes a reason names.
const mostNamed = 32

// reasons are why parts were not measured, the commonest first. Those that failed in the eyes of nodes alone, such
// as before this server began, are counted without a reason.
func (w *sweep) reasons(s fleet.OrderState) []fleet.Reason {
	w.mu.Lock()
	defer w.mu.Unlock()
	type sort struct {
		left bool
		why  string
	}
	by := map[sort]*fleet.Reason{}
	add := func(k sort, n int, node fleet.Name) {
		r := by[k]
		if r == nil {
			r = &fleet.Reason{LeftOut: k.left, Why: k.why}
			by[k] = r
		}
		r.Parts += n
		if node != "" && len(r.Nodes) < mostNamed && !slices.Contains(r.Nodes, node) {
			r.Nodes = append(r.Nodes, node)
		}
	}
	unnamed := s.Failed
	for _, m := range w.missed {
		good, failed := w.h.view.became(w.o.ID, w.o.Sweep, m.ranks)
		if good {
			continue // it was told late
		}
		if failed {
			unnamed--
		}
		add(sort{m.left && !failed, cut(m.why)}, 1, m.node)
	}
	if unnamed > 0 {
		add(sort{why: "other nodes report it, and not to this server"}, unnamed, "")
	}
	list := make([]fleet.Reason, 0, len(by))
	for _, r := range by {
		slices.SortFunc(r.Nodes, byNumber)
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b fleet.Reason) int {
		return cmp.Or(cmp.Compare(b.Parts, a.Parts), cmp.Compare(a.Why, b.Why))
	})
	return fewer(list)
}

// fewer keeps the commonest, and what the others count for: failed or left out.
func fewer(list []fleet.Reason) []fleet.Reason {
	if len(list) <= fleet.MaxReasons {
		return list
	}
	const most = fleet.MaxReasons - 2
	kept := slices.Clone(list[:most])
	for _, left := range []bool{false, true} {
		rest := fleet.Reason{LeftOut: left, Why: "other reasons"}
		for _, r := range list[most:] {
			if r.LeftOut == left {
				rest.Parts += r.Parts
			}
		}
		if rest.Parts > 0 {
			kept = append(kept, rest)
		}
	}
	return kept
}

// became tells what the stream says of a part of the running sweep.
func (v *View) became(id string, sweep int, ranks []fleet.Name) (good, failed bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	o := v.orders[id]
	switch {
	case o == nil || o.Sweep != sweep:
		return false, false
	case o.What.Measure != fleet.MeasurePairs:
		return o.good > 0, o.bad > 0
	}
	x, ok1 := v.numbers[ranks[0]]
	y, ok2 := v.numbers[ranks[1]]
	if !ok1 || !ok2 {
		return false, false
	}
	was, known := o.done[uint64(min(x, y))<<32|uint64(max(x, y))]
	return known && was, known && !was
}
