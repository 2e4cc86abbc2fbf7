package health

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// raised is a fault of pairs that was reported and has not ended.
type raised struct {
	finding finding.Finding
	fault
}

// enough good sweeps in a row end a finding.
const enough = 3

// findings are those of the table as of now.
func (t *table) findings() (list []finding.Finding) {
	if t.stale || t.classed[1] != t.version {
		t.settle()
		t.classify()
		t.levels()
		t.raise()
		t.whole = t.slower()
		t.stale = false
	}
	for _, r := range t.active {
		// A fault of leaves that most of them have is one of the whole.
		if t.whole == nil || !r.leaf() || r.finding.Factor <= 0.8*t.whole.Factor {
			list = append(list, r.finding)
		}
	}
	if t.whole != nil {
		list = append(list, *t.whole)
	}
	return list
}

// raise brings the reported faults up to date.
func (t *table) raise() {
	s := t.state()
	e := s.explain()
	var gone []fault // reported, and not of the present explanation
	for _, r := range t.active {
		if !e.has(r.cause) {
			gone = append(gone, r.fault)
		}
	}
	now, before := s.trials(e.faults), s.trials(gone)
	s.confirm(now, before)
	var sure []cause
	for _, r := range now {
		id := t.id(r.cause)
		switch known := t.active[id]; {
		case r.good >= enough:
			delete(t.active, id)
		case r.start == nil || known == nil && r.narrow() && t.ending(r.cause):
			// All its pairs are explained by others, or a wider fault left it in the middle of the last sweeps.
		case known != nil || r.confirmed():
			if t.oneWord(r) {
				r.sure = min(r.sure, 0.8)
			}
			t.active[id] = &raised{t.finding(s, r, known), r.fault}
			sure = append(sure, r.cause)
		}
	}
	for _, r := range before {
		id := t.id(r.cause)
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
func (t *table) oneWord(r *trial) bool {
	if !r.node() || len(t.node) > fewNodes {
		return false
	}
	for n := range t.node {
		if n == int(r.a) || t.node[n].gone {
			continue
		}
		s := t.without(int32(n)).state()
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
			rest.series = append(rest.series, s)
		}
	}
	rest.settle()
	rest.classify()
	rest.levels()
	return rest
}

// ending tells whether a wider fault that was reported covers a pair.
func (t *table) ending(c cause) bool {
	for _, r := range t.active {
		if !r.narrow() && t.covers(r.cause, pairKey{c.a, c.b, 0}) {
			return true
		}
	}
	return false
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
		ID: t.id(r.cause), Kind: r.kind, Nodes: t.nodesOf(r.cause), Figure: bandwidth, Where: t.who(r.cause),
		Since: stamp(r.start.at), Always: r.always, Factor: round(math.Exp(min(r.level, 0))),
		Confidence: round(r.sure * (1 - min(0.5, 0.05*math.Exp(r.need-r.sum)))),
		Evidence:   finding.Facts(t.evidence(s, r)...),
	}
	if r.lost {
		f.Factor = 0
	}
	if r.node() {
		_, f.Where = t.names(r.cause)
	}
	f.Severity = severity(f.Factor)
	if f.Confidence < 0.5 && f.Severity == finding.Error {
		f.Severity = finding.Warn // something is wrong, but hardly there
	}
	if old != nil {
		f.Since, f.Always, f.Clearing = old.finding.Since, old.finding.Always, r.good > 0
		f.Severity = max(f.Severity, old.finding.Severity)
	}
	since, slow, how := ", since ", "slow", fmt.Sprintf("%.0f%% of peers' bandwidth", 100*f.Factor)
	if f.Always {
		since = ", since the first sweep seen at "
	}
	if r.lost {
		slow, how = "cut off", "measurements fail"
	}
	f.Text, f.Fix = t.describe(r, slow, how+since+clock(f.Since.UnixNano()))
	return f
}

// bandwidth is the figure of findings about pairs.
const bandwidth = "bandwidth"

func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// clock prints a time of a finding, in ns.
func clock(at int64) string { return stamp(at).Format("2006-01-02 15:04:05Z") }

// severity follows from the factor. A fault by a half is an error, with room for the noise around it.
func severity(factor float64) finding.Severity {
	switch {
	case factor <= 0.6:
		return finding.Error
	case factor <= 0.8:
		return finding.Warn
	}
	return finding.Note
}

// evidence are the figures behind a fault.
func (t *table) evidence(s *state, r *trial) (list []string) {
	before, since := s.medians(r)
	switch {
	case r.lost:
		failure := t.node[t.series[r.members[0]].from].failure
		if r.node() {
			failure = t.node[r.a].failure
		}
		list = append(list, fmt.Sprintf("%d of %d pairs fail", r.slow, r.total), failure)
	case r.always:
		list = append(list, fmt.Sprintf("%d of %d pairs slow: median %s", r.slow, r.total, since))
	default:
		list = append(list, fmt.Sprintf("%d of %d pairs slow: median %s, before %s", r.slow, r.total, since, before))
	}
	return append(list, fmt.Sprintf("%d sweeps agree; log-likelihood %.0f, reported from %.0f", r.sweeps, r.sum, r.need))
}

// medians are what members of a cause showed before it began, and since.
func (s *state) medians(t *trial) (before, since unit.Rate) {
	var old, now []float32
	for m := 0; m < len(t.members); m += 1 + len(t.members)/2000 {
		for _, p := range s.series[t.members[m]].samples {
			list := &now
			if s.sweeps.at(p.sweep).order < t.start.order {
				list = &old
			}
			if v, ok := p.log(); ok {
				*list = append(*list, float32(v))
			}
		}
	}
	return unit.Rate(math.Exp(middle(old))), unit.Rate(math.Exp(middle(now)))
}
