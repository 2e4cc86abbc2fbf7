package finding

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/internal/words"
)

// AtLeast reports whether any finding is as severe as least, or more.
func AtLeast(list []Finding, least Severity) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Severity >= least })
}

// Serious reports whether any finding is more than a note.
func Serious(list []Finding) bool { return AtLeast(list, Warn) }

// BySeverity compares two findings for sorting: the more severe comes first.
func BySeverity(a, b Finding) int { return cmp.Compare(b.Severity, a.Severity) }

// Counts is how many findings there are of each severity.
type Counts [len(severities)]int

// Count counts findings by severity.
func Count(list []Finding) (c Counts) {
	for _, f := range list {
		c[f.Severity]++
	}
	return c
}

// Serious is how many are more than a note.
func (c Counts) Serious() int { return c[Warn] + c[Error] }

// String lists the counts, the most severe first: "1 error, 3 warnings". It is empty where there
// are none.
func (c Counts) String() string {
	var parts []string
	for s, noun := range []string{Error: "error", Warn: "warning", Note: "note"} {
		if n := c[s]; n > 0 {
			parts = append(parts, words.Plural(n, noun))
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, ", ")
}
