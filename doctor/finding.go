package doctor

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
)

// surface are findings that say what happened and not why; causes come before them.
var surface = map[string]bool{
	"nccl-error": true, "cuda-error": true, "peer-died": true, "collective-timeout": true, "init-incomplete": true, "wire-faster-than-nccl": true, "wrong-values": true,
}

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

// tier is 0 for what a live job's own dumps say, 1 for likely causes, 2 for what says only that something happened, or who waits for whom by the logs
// alone, 3 for unlikely causes that no detector found, and notes.
func tier(f *finding.Finding, dumps bool, detected map[string]bool) int {
	switch {
	case strings.HasPrefix(f.ID, hang.Prefix) && f.Confidence >= cause.Threshold:
		if !dumps {
			return 2
		}
		return 0
	case f.Severity == finding.Note:
		return 3
	case surface[f.ID]:
		return 2
	case f.Confidence < cause.Threshold && !detected[f.ID]:
		return 3
	}
	return 1
}

// order puts roots before what they explain, and the surest and gravest first.
func order(list []finding.Finding, dumps bool, detected map[string]bool) {
	slices.SortStableFunc(list, func(a, b finding.Finding) int {
		root := func(f finding.Finding) int {
			if f.ExplainedBy == "" {
				return 0
			}
			return 1
		}
		rank := func(f finding.Finding) float64 { return -f.Confidence * weight(f.Severity) }
		return cmp.Or(cmp.Compare(root(a), root(b)), cmp.Compare(tier(&a, dumps, detected), tier(&b, dumps, detected)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

// explain marks findings that follow from others. A finding that is less sure
// than half of what it would explain explains nothing, and two findings never
// explain each other.
func explain(list []finding.Finding, rules []Rule) {
	byID := map[string]*finding.Finding{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for _, r := range rules {
		root := byID[r.ID]
		if root == nil || root.ExplainedBy != "" || root.Severity == finding.Note {
			continue
		}
		for _, id := range r.Explains {
			if f := byID[id]; f != nil && f.ExplainedBy == "" && f.ID != root.ID && (root.Confidence >= 0.75*f.Confidence || surface[f.ID] && root.Confidence >= cause.Threshold) {
				f.ExplainedBy = root.ID
			}
		}
	}
}

// tidy bounds and rounds what a rule gave.
func tidy(f *finding.Finding, r *Rule) {
	f.ID = r.ID
	if f.Reference == "" {
		f.Reference = r.Reference
	}
	f.Confidence = math.Round(100*min(max(f.Confidence, 0), 1)) / 100
	slices.SortStableFunc(f.Evidence, func(a, b finding.Quote) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	f.Evidence = slices.Compact(f.Evidence)
	if len(f.Evidence) > maxEvidence {
		f.Evidence = f.Evidence[:maxEvidence]
	}
	if f.Evidence == nil {
		f.Evidence = []finding.Quote{}
	}
}
