package doctor

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
)

// Bounds of what is shown.
const (
	maxEvidence = 6 // lines of a finding
	leading     = 3 // causes that are named where none is known
)

// grade gives findings the confidence of their evidence's grade.
func (c *Case) grade(list []finding.Finding) {
	for i := range list {
		list[i].Confidence = c.how[list[i].ID].Confidence()
	}
}

// rank gives findings the confidence of their cause, and adds the likeliest of which no line says anything. In a text
// in which programs printed more than somebody wrote, what a line states keeps its own, unless a remedy was tried in
// vain.
func (c *Case) rank(m *cause.Model, found []finding.Finding, clauses []told.Clause) []finding.Finding {
	weighed := c.weighed(found, clauses)
	list := slices.DeleteFunc(m.Weigh(weighed),
		func(h cause.Hypothesis) bool { return h.Cause == nil })
	log := c.mostlyPrinted()
	for i := range found {
		f := &found[i]
		at := slices.IndexFunc(list, func(h cause.Hypothesis) bool { return h.ID == f.ID })
		own := c.how[f.ID].Confidence()
		switch {
		case at < 0:
			f.Confidence = own
		case list[at].Tried == cause.InVain:
			f.Confidence, f.Severity = list[at].P, finding.Note
		case log && f.Severity == finding.Note: // what is printed comes before what is guessed and not likely
			f.Confidence = max(min(own, cause.Threshold-0.01), list[at].P)
		case log && c.how[f.ID] != cause.Suggests:
			f.Confidence = max(own, list[at].P)
		case c.how[f.ID] == cause.States:
			f.Confidence = max(m.Share(weighed, f.ID), list[at].P)
		default:
			if f.Confidence = list[at].P; f.Confidence < cause.Threshold {
				f.Severity = finding.Note
			} else {
				f.Severity = max(f.Severity, finding.Warn)
			}
		}
		f.Confidence = math.Round(100*f.Confidence) / 100
	}
	shown := found
	for _, h := range list {
		known := func(f finding.Finding) bool { return f.ID == h.ID || log && h.Finds(f.ID) }
		if slices.ContainsFunc(shown, known) {
			continue
		}
		if len(found) >= leading && h.P < cause.Threshold {
			break
		}
		f := c.finding(&h)
		for i := range shown { // a line that may be of several causes is of the likeliest
			if g := &found[i]; h.Finds(g.ID) && h.P >= max(g.Confidence, cause.Threshold) {
				f.Severity, g.ExplainedBy = max(f.Severity, g.Severity), h.ID
				f.Evidence = append(f.Evidence, g.Evidence...)
			}
		}
		found = append(found, f)
	}
	return found
}

// weighed is the case as the model sees it: a note suggests.
func (c *Case) weighed(found []finding.Finding, clauses []told.Clause) *cause.Case {
	x := &cause.Case{Told: clauses, Shown: maps.Clone(c.how), Without: c.without}
	for i := range found {
		if found[i].Severity == finding.Note && c.how[found[i].ID] != cause.Expects {
			x.Shown[found[i].ID] = cause.Suggests
		}
	}
	return x
}

// finding is a hypothesis of which no line says anything: never an error, and a note where it is not likely.
func (c *Case) finding(h *cause.Hypothesis) finding.Finding {
	f := finding.Finding{
		ID: h.ID, Severity: finding.Warn, Title: h.Title, Cause: h.Why, Fix: h.Fix, Cost: h.Cause.Cost, Reference: h.See,
		Confirm: h.Test, Confidence: math.Round(100*h.P) / 100, Evidence: []finding.Quote{},
	}
	if h.P < cause.Threshold {
		f.Severity = finding.Note
	}
	if h.Basis != nil {
		q := finding.Quote{Text: h.Basis.Text}
		if len(c.Sources) == 1 {
			q.File = c.Sources[0]
		}
		f.Evidence = append(f.Evidence, q)
	}
	return f
}

// wordsOfLine are those of a written line that weighs as much as a printed one.
const wordsOfLine = 8

// mostlyPrinted reports a text in which programs printed more than somebody wrote.
func (c *Case) mostlyPrinted() bool {
	written := 0
	for line := range strings.Lines(sentences(c.Words)) {
		written += max(2, strings.Count(line, " ")/wordsOfLine)
	}
	return written < c.Lines || written == c.Lines &&
		!slices.ContainsFunc(strings.Split(c.Words, "\n"), evidence.English)
}

// order puts roots before what they explain, and the surest and gravest first.
func order(m *cause.Model, list []finding.Finding, dumps bool) {
	weight := [...]float64{finding.Note: 0.3, finding.Warn: 0.85, finding.Error: 1}
	root := func(f *finding.Finding) int {
		if f.ExplainedBy == "" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(root(&a), root(&b)), cmp.Compare(tier(m, &a, dumps), tier(m, &b, dumps)),
			cmp.Compare(b.Confidence*weight[b.Severity], a.Confidence*weight[a.Severity]), cmp.Compare(a.ID, b.ID))
	})
}

// explain marks findings that follow from others. A finding that is less sure than three quarters of what it would
// explain explains nothing, and two findings never explain each other.
func explain(m *cause.Model, list []finding.Finding) {
	byID := map[string]*finding.Finding{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for _, r := range m.Detected {
		root := byID[r.ID]
		if root == nil || root.ExplainedBy != "" {
			continue
		}
		for _, id := range r.Follows {
			f := byID[id]
			if f == nil || root.Severity == finding.Note && f.Severity != finding.Note { // a note explains notes only
				continue
			}
			if f.ExplainedBy == "" && f.ID != root.ID &&
				(root.Confidence >= 0.75*f.Confidence || m.Consequence(f.ID) && root.Confidence >= cause.Threshold) {
				f.ExplainedBy = root.ID
			}
		}
	}
}

// tidy puts the lines in order.
func tidy(f *finding.Finding) {
	slices.SortStableFunc(f.Evidence, func(a, b finding.Quote) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	f.Evidence = slices.CompactFunc(f.Evidence, func(a, b finding.Quote) bool {
		return a.File == b.File && a.Line == b.Line && (a.Line > 0 || a.Text == b.Text)
	})
	f.Evidence = append([]finding.Quote{}, first(f.Evidence, maxEvidence)...)
}

// CaseOf is what is known of a fault, as causes are weighed by it.
func CaseOf(m *cause.Model, s *evidence.Set) *cause.Case {
	c := newCase(s)
	causes, _ := split(m, c.detect(m))
	return c.weighed(causes, c.clauses)
}
