package health

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// raised is a fault of pairs that was reported and has not ended.
type raised struct {
	finding finding.Finding
	fault
	fig figure
}

// enough good sweeps in a row end a finding.
const enough = 3

// findings are those of the table as of now.
func (t *table) findings() (list []finding.Finding) {
	if t.stale || t.classed[1] != t.version {
		t.settle()
		t.classify()
		t.levels()
		t.raise(rate)
		t.raise(latency)
		t.whole = t.slower()
		t.daily.renew(t)
		t.stale = false
	}
	for _, r := range t.raised() {
		// A fault of leaves that all of them have is one of the whole.
		if t.whole == nil || t.whole.ID != acrossID || r.fig != rate || !r.leaf() ||
			r.finding.Factor <= 0.8*t.whole.Factor {
			list = append(list, r.finding)
		}
	}
	if t.whole != nil {
		list = append(list, *t.whole)
	}
	list = append(list, t.daily.list...)
	t.daily.explain(list)
	return list
}

// raised are the faults that were reported, in a fixed order.
func (t *table) raised() (list []*raised) {
	for _, id := range slices.Sorted(maps.Keys(t.active)) {
		list = append(list, t.active[id])
	}
	return list
}

// raise brings the reported faults of one figure up to date.
func (t *table) raise(f figure) {
	s := t.state(f)
	e := s.explain()
	var gone []fault // reported, and not of the present explanation
	for _, r := range t.raised() {
		if r.fig == f && !e.has(r.cause) {
			gone = append(gone, r.fault)
		}
	}
	now, before := s.trials(e.faults), s.trials(gone)
	s.confirm(now, before)
	var sure []cause
	for _, r := range now {
		id := t.id(r.cause, f)
		switch known := t.active[id]; {
		case r.good >= enough:
			delete(t.active, id)
		case known == nil && r.narrow() && t.ending(r.cause, f):
			// What a wider fault left in the middle of the last sweeps.
		case known != nil || r.confirmed():
			if t.oneWord(r, f) {
				r.sure = min(r.sure, 0.8)
			}
			t.active[id] = &raised{t.finding(s, r, known), r.fault, f}
			sure = append(sure, r.cause)
		}
	}
	for _, r := range before {
		id := t.id(r.cause, f)
		if r.good >= enough || t.vanished(r.cause) ||
			slices.ContainsFunc(sure, func(c cause) bool { return t.replaces(c, r.cause) }) {
			delete(t.active, id)
			continue
		}
		t.active[id].finding.Clearing = r.good > 0
	}
}

// fewNodes is up to how many nodes one of them may outweigh the others.
const fewNodes = 12

// oneWord tells whether the fault of a node rests on the word of one other: without that one nothing of it is seen. In
// larger fleets no node has as much to say.
func (t *table) oneWord(r *trial, f figure) bool {
	if !r.node() || len(t.node) > fewNodes {
		return false
	}
	for n := range t.node {
		if n == int(r.a) || t.node[n].gone {
			continue
		}
		s := t.without(int32(n)).state(f)
		now := s.trials(s.explain().faults)
		s.confirm(now, nil)
		if !slices.ContainsFunc(now, func(o *trial) bool { return o.node() && o.a == r.a && o.sum > 0 }) {
			return true
		}
	}
	return false
}

// without is the table as if a node had never been measured.
func (t *table) without(n int32) *table {
	rest := &table{History: t.History, rails: t.rails, sweeps: sweeps{base: t.sweeps.base}}
	for _, w := range t.sweeps.list {
		rest.sweeps.list = append(rest.sweeps.list, &sweep{id: w.id, at: w.at, setup: w.setup})
	}
	for _, s := range t.series {
		if s.from != n && s.to != n {
			s.rebase = 0
			rest.series = append(rest.series, s)
		}
	}
	rest.settle()
	rest.classify()
	rest.levels()
	return rest
}

// ending tells whether a wider fault that was reported covers a pair.
func (t *table) ending(c cause, f figure) bool {
	return slices.ContainsFunc(t.raised(), func(r *raised) bool {
		return r.fig == f && !r.narrow() && t.covers(r.cause, pairKey{c.a, c.b, 0})
	})
}

// vanished tells whether a node of a cause was taken out.
func (t *table) vanished(c cause) bool {
	return (c.node() || c.narrow()) && t.node[c.a].gone || c.narrow() && t.node[c.b].gone
}

// replaces tells whether what was one cause is now explained by another: of the same node,
// of the leaf or rail that it is part of, or of the same pair.
func (t *table) replaces(c, old cause) bool {
	switch {
	case old.narrow():
		return c != old && t.covers(c, pairKey{old.a, old.b, 0})
	case c.leaf() && old.node():
		c, old = old, c
		fallthrough
	case c.node() && old.leaf():
		leaf := t.node[c.a].leaf
		return leaf >= 0 && (leaf == old.a || old.domain == ofPath && leaf == old.b)
	}
	return c.node() == old.node() && c.leaf() == old.leaf() && c.narrow() == old.narrow() && c.a == old.a
}

// finding makes or renews the finding of a fault. Its beginning and its worst severity stay.
func (t *table) finding(s *state, r *trial, old *raised) finding.Finding {
	f := finding.Finding{
		ID: t.id(r.cause, s.fig), Kind: r.kind, Nodes: t.nodesOf(r.cause), Figure: s.fig.String(),
		Since: stamp(r.start.at), Always: r.always, Factor: round(math.Exp(min(r.level, 0))),
		Confidence: round(r.sure * (1 - min(0.5, 0.05*math.Exp(r.need-r.sum)))),
		Evidence:   finding.Facts(t.evidence(s, r)...),
	}
	if r.lost {
		f.Factor = 0
	}
	if !r.node() {
		f.Where = t.who(r.cause)
	} else {
		_, f.Where = t.names(r.cause)
	}
	f.Severity = severity(f.Factor, s.fig)
	if f.Confidence < 0.5 && f.Severity == finding.Error {
		f.Severity = finding.Warn // something is wrong, but hardly there
	}
	if old != nil {
		f.Since, f.Always, f.Clearing = old.finding.Since, old.finding.Always, r.good > 0
		f.Severity = max(f.Severity, old.finding.Severity)
	}
	whose, since, slow := "its", ", since ", "slow"
	if r.leaf() || r.narrow() {
		whose = "their"
	}
	if f.Always {
		since = ", since the first sweep seen at "
	}
	how := fmt.Sprintf("%.0f%% of %s peers' bandwidth", 100*f.Factor, whose)
	switch {
	case r.lost:
		slow, how = "cut off", "measurements fail"
	case s.fig == latency:
		how = fmt.Sprintf("%.1f times the latency of %s peers", 1/f.Factor, whose)
	}
	f.Text, f.Fix = t.describe(r, slow, how+since+clock(f.Since))
	return f
}

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// clock prints a time of a finding.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// severity follows from the factor. A fault by a half is an error, with room for the noise
// around it; latencies matter less.
func severity(factor float64, f figure) finding.Severity {
	bad, warn := 0.6, 0.8
	if f == latency {
		bad, warn = 0.02, 0.25
	}
	switch {
	case factor <= bad:
		return finding.Error
	case factor <= warn:
		return finding.Warn
	}
	return finding.Note
}

// share says that only some pairs of a leaf suffer.
func (t *trial) share() string {
	if !t.some() {
		return ""
	}
	return fmt.Sprintf(" (%d of %d pairs: one of several links)", t.slow, t.total)
}

// evidence are the figures behind a fault.
func (t *table) evidence(s *state, r *trial) (list []string) {
	amount := func(log float64) string {
		if s.fig == latency {
			return unit.Time(math.Exp(-log)).String()
		}
		return unit.Rate(math.Exp(log)).String()
	}
	if r.lost {
		list = append(list, fmt.Sprintf("%d of %d pairs fail", r.slow, r.total))
		if k := slices.IndexFunc(r.members, func(i int32) bool { return t.errors[i] != "" }); k >= 0 {
			i := r.members[k]
			list = append(list, fmt.Sprintf("%s to %s: %s", t.nodes.list[t.series[i].from], t.nodes.list[t.series[i].to],
				t.errors[i]))
		}
	} else {
		own, peers, _ := s.typical(r, true)
		line := fmt.Sprintf("%d of %d pairs slow: median %s", r.slow, r.total, amount(own))
		if own-peers < r.level/2 { // else the whole class fell with them
			line += ", their peers " + amount(peers)
		}
		list = append(list, line)
	}
	if own, _, n := s.typical(r, false); n > 0 && !r.always {
		list = append(list, fmt.Sprintf("before: %s, over %d sweeps", amount(own), n))
	}
	list = append(list, fmt.Sprintf("%d sweeps agree; log-likelihood %.0f, reported from %.0f", r.sweeps, r.sum, r.need))
	if r.other != nil && r.sure < 0.95 {
		list = append(list, "otherwise: "+t.id(*r.other, s.fig))
	}
	return list
}

// typical is what members of a cause showed in the middle since it began, or before, what their classes did, and in how
// many sweeps.
func (s *state) typical(t *trial, since bool) (own, peers float64, n int) {
	var of, level []float32
	seen := map[*sweep]bool{}
	for m := 0; m < len(t.members); m += 1 + len(t.members)/2000 {
		r := &s.series[t.members[m]]
		for _, p := range r.samples {
			v, ok := p.of(s.fig)
			w := s.sweeps.at(p.sweep)
			if l := w.level[s.fig][r.class]; ok && l == l && (w.order >= t.start.order) == since {
				of, level = append(of, float32(v)), append(level, l)
				seen[w] = true
			}
		}
	}
	return middle(of), middle(level), len(seen)
}
