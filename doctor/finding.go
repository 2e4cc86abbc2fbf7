package doctor

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
)

// maxEvidence is how many lines a finding quotes.
const maxEvidence = 6

// weight is how much a severity counts in the order of findings.
func weight(s finding.Severity) float64 {
	switch s {
	case finding.Error:
		return 1
	case finding.Warn:
		return 0.85
	}
	return 0.3
}

// tier is 0 for what a live job's own dumps say, 1 for likely causes, 2 for what says only that something happened, or
// who waits for whom by the logs alone, 3 for unlikely causes that no detector found, and notes.
func tier(m *cause.Model, f *finding.Finding, dumps bool, detected map[string]bool) int {
	switch {
	case strings.HasPrefix(f.ID, hang.Prefix) && f.Confidence >= cause.Threshold:
		if !dumps {
			return 2
		}
		return 0
	case f.Severity == finding.Note:
		return 3
	case m.Consequence(f.ID):
		return 2
	case f.Confidence < cause.Threshold && !detected[f.ID]:
		return 3
	}
	return 1
}

// order puts roots before what they explain, and the surest and gravest first.
func order(m *cause.Model, list []finding.Finding, dumps bool, detected map[string]bool) {
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		root := func(f finding.Finding) int {
			if f.ExplainedBy == "" {
				return 0
			}
			return 1
		}
		rank := func(f finding.Finding) float64 { return -f.Confidence * weight(f.Severity) }
		return cmp.Or(cmp.Compare(root(a), root(b)), cmp.Compare(tier(m, &a, dumps, detected), tier(m, &b, dumps, detected)),
			cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

// explain marks findings that follow from others. A finding that is less sure
// than half of what it would explain explains nothing, and two findings never
// explain each other.
func explain(m *cause.Model, list []finding.Finding) {
	byID := map[string]*finding.Finding{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for _, r := range m.Detected() {
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
	if len(f.Evidence) > maxEvidence {
		f.Evidence = f.Evidence[:maxEvidence]
	}
	if f.Evidence == nil {
		f.Evidence = []finding.Quote{}
	}
}
