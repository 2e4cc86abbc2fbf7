package health

import (
	"cmp"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

// raised is a fault of pairs that was reported and has not ended.
type raised struct {
	finding finding.Finding
	cause   cause
	fig     figure
	fault   fault
}

// enough good sweeps in a row end a finding.
const enough = 3

// pairFindings are those of one figure; it keeps what was raised before until it ends.
func (h *History) pairFindings(f figure, order []uint32) {
	s := h.now(f, order)
	e := s.explain()
	var before []fault // raised, and not of the present explanation
	for _, r := range h.sorted() {
		if r.fig == f && !slices.ContainsFunc(e.faults, func(o fault) bool { return o.cause == r.cause }) {
			before = append(before, r.fault)
		}
	}
	now, old := s.confirm(e.faults, before)
	var sure []fault
	for _, t := range now {
		id := h.id(t.cause, f)
		switch known := h.active[id]; {
		case t.good >= enough:
			delete(h.active, id)
		case known == nil && narrow(t.kind) && h.ending(t.cause, f):
			// What a wider fault left in the middle of the last sweeps.
		case t.confirmed() || known != nil:
			if h.oneWord(t, f, order) {
				t.sure = min(t.sure, 0.8)
			}
			h.raise(s, t, known)
			sure = append(sure, t.fault)
		}
	}
	for _, t := range old {
		id := h.id(t.cause, f)
		if t.good >= enough || h.superseded(t.cause, sure) || h.vanished(t.cause) {
			delete(h.active, id)
			continue
		}
		h.active[id].finding.Clearing = t.good > 0
	}
}

// fewNodes is up to how many nodes one of them may outweigh the others.
const fewNodes = 12

// oneWord tells whether the fault of a node rests on the word of one other: without that one nothing of it is seen. In
// larger fleets no node has as much to say.
func (h *History) oneWord(t *trial, f figure, order []uint32) bool {
	if sides(t.kind) != 1 || len(h.node) > fewNodes {
		return false
	}
	for r := range int32(len(h.node)) {
		if r == t.a || h.node[r].gone {
			continue
		}
		rest := *h
		rest.series, rest.sweeps.list = nil, slices.Clone(h.sweeps.list)
		rest.sweeps.touch()
		for i := range h.series {
			if s := h.series[i]; s.from != r && s.to != r {
				s.rebase = 0
				rest.series = append(rest.series, s)
			}
		}
		rest.levels(order)
		s := rest.now(f, order)
		now, _ := s.confirm(s.explain().faults, nil)
		if !slices.ContainsFunc(now, func(o *trial) bool { return sides(o.kind) == 1 && o.a == t.a && o.sum > 0 }) {
			return true
		}
	}
	return false
}

// sorted are the raised faults in a fixed order.
func (h *History) sorted() []*raised {
	var list []*raised
	for _, r := range h.active {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *raised) int { return cmp.Compare(a.finding.ID, b.finding.ID) })
	return list
}

// ending tells whether a wider fault that was raised covers a pair.
func (h *History) ending(c cause, f figure) bool {
	for _, r := range h.active {
		if r.fig == f && !narrow(r.cause.kind) && h.covers(r.cause, pairKey{c.a, c.b, c.c}) {
			return true
		}
	}
	return false
}

// vanished tells whether a node of a cause was taken out.
func (h *History) vanished(c cause) bool {
	return sides(c.kind) == 1 && h.node[c.a].gone || narrow(c.kind) && (h.node[c.a].gone || h.node[c.b].gone)
}

// superseded tells whether what was one cause is now explained by another: of the same node,
// of the leaf or rail that it is part of, or of the same pair.
func (h *History) superseded(c cause, now []fault) bool {
	if narrow(c.kind) {
		k := pairKey{c.a, c.b, c.c}
		return slices.ContainsFunc(now, func(f fault) bool { return f.cause != c && h.covers(f.cause, k) })
	}
	return slices.ContainsFunc(now, func(f fault) bool {
		if narrow(f.kind) {
			return false
		}
		same := sides(c.kind) == sides(f.kind)
		return same && c.a == f.a || !same && h.overlap(c, f.cause)
	})
}

// sides groups kinds by whom their a is.
func sides(k finding.Kind) int {
	switch k {
	case pairs.SlowHost, pairs.SlowOut, pairs.SlowIn, SlowNIC, SlowNICOut, SlowNICIn:
		return 1
	case SlowLeaf, SlowLeafOut, SlowLeafIn, SlowPath:
		return 2
	}
	return 3
}

// overlap tells whether a node is of the leaf of another cause, either way round.
func (h *History) overlap(a, b cause) bool {
	if sides(a.kind) == 2 && sides(b.kind) == 1 {
		a, b = b, a
	}
	if sides(a.kind) != 1 || sides(b.kind) != 2 {
		return false
	}
	leaf := h.node[a.a].leaf
	return leaf >= 0 && (leaf == b.a || b.kind == SlowPath && leaf == b.b)
}

// raise makes or renews the finding of a fault. Its beginning and its worst severity stay.
func (h *History) raise(s *state, t *trial, old *raised) {
	f := h.finding(s, t)
	if old != nil {
		f.Since, f.Always = old.finding.Since, old.finding.Always
		if old.finding.Severity > f.Severity {
			f.Severity = old.finding.Severity
		}
		f.Clearing = t.good > 0
	}
	f.Text, f.Fix = h.describe(t, &f)
	h.active[f.ID] = &raised{finding: f, cause: t.cause, fig: s.fig, fault: t.fault}
}

// pairsNow are the faults of pairs as of now.
func (h *History) pairsNow() (list []finding.Finding) {
	if h.stale {
		order := h.settle()
		h.levels(order)
		h.pairFindings(rate, order)
		h.pairFindings(latency, order)
		h.whole = h.slower(order)
		h.daily.renew(h, order)
		h.stale = false
	}
	for _, r := range h.sorted() {
		if !h.partOfWhole(r) {
			list = append(list, r.finding)
		}
	}
	if h.whole != nil {
		list = append(list, *h.whole)
	}
	list = append(list, h.daily.list...)
	h.daily.explain(list)
	return list
}

// Findings is all that is wrong as of now, worst first. It may be called as often as is
// wanted; what it answers changes with the observations and, for silence, with now.
func (h *History) Findings(now time.Time) []finding.Finding {
	list := h.transportFindings()
	list = append(list, h.unreachable(now)...)
	list = append(list, h.portFindings(now)...)
	list = append(list, h.counterFindings(now)...)
	list = append(list, h.stragglers(now)...)
	list = relate(list)
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(
			cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(breadth(b.Kind), breadth(a.Kind)),
			cmp.Compare(a.Factor, b.Factor),
			cmp.Compare(a.ID, b.ID))
	})
	return list
}
