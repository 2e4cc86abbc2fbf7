package doctor

import (
	"cmp"
	"math"
	"slices"

	"busbar.dev/doctor/audit"
	"busbar.dev/doctor/evidence"
)

// Severity orders findings.
type Severity = audit.Severity

// Severities. A note is worth knowing and needs no action; what is expected is one.
const (
	Error = audit.Error
	Warn  = audit.Warn
	Note  = audit.Note
)

// Finding is one conclusion.
type Finding struct {
	ID         string           `json:"id"`
	Severity   Severity         `json:"severity"`
	Confidence float64          `json:"confidence"`
	Title      string           `json:"title"`
	Cause      string           `json:"cause"`
	Fix        string           `json:"fix"`
	Cost       string           `json:"cost"`
	Where      string           `json:"where,omitempty"` // hosts, ranks or devices
	Reference  string           `json:"reference,omitempty"`
	Evidence   []evidence.Quote `json:"evidence"`
	// ExplainedBy names the finding that this one follows from; roots have none.
	ExplainedBy string `json:"explained_by,omitempty"`
}

// surface are findings that say what happened and not why; causes come before them.
var surface = map[string]bool{
	"nccl-error": true, "cuda-error": true, "peer-died": true, "collective-timeout": true, "init-incomplete": true, "wire-faster-than-nccl": true, "wrong-values": true,
}

// maxEvidence is how many lines a finding quotes.
const maxEvidence = 6

// weight is how much a severity counts in the order of findings.
func weight(s Severity) float64 {
	switch s {
	case Error:
		return 1
	case Warn:
		return 0.85
	}
	return 0.3
}

// Serious reports whether any finding is more than a note.
func Serious(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Severity != Note })
}

// order puts roots before what they explain, and the surest and gravest first.
func order(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		root := func(f Finding) int {
			if f.ExplainedBy == "" {
				return 0
			}
			return 1
		}
		rank := func(f Finding) float64 {
			w := weight(f.Severity)
			if surface[f.ID] {
				w *= 0.6
			}
			return -f.Confidence * w
		}
		return cmp.Or(cmp.Compare(root(a), root(b)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

// explain marks findings that follow from others. A finding that is less sure
// than half of what it would explain explains nothing, and two findings never
// explain each other.
func explain(list []Finding, rules []Rule) {
	byID := map[string]*Finding{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for _, r := range rules {
		root := byID[r.ID]
		if root == nil || root.ExplainedBy != "" || root.Severity == Note {
			continue
		}
		for _, id := range r.Explains {
			if f := byID[id]; f != nil && f.ExplainedBy == "" && f.ID != root.ID && root.Confidence >= 0.75*f.Confidence {
				f.ExplainedBy = root.ID
			}
		}
	}
}

// tidy bounds and rounds what a rule gave.
func (f *Finding) tidy(r *Rule) {
	f.ID = r.ID
	if f.Reference == "" {
		f.Reference = r.Reference
	}
	f.Confidence = math.Round(100*min(max(f.Confidence, 0), 1)) / 100
	slices.SortStableFunc(f.Evidence, func(a, b evidence.Quote) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	f.Evidence = slices.Compact(f.Evidence)
	if len(f.Evidence) > maxEvidence {
		f.Evidence = f.Evidence[:maxEvidence]
	}
	if f.Evidence == nil {
		f.Evidence = []evidence.Quote{}
	}
}
