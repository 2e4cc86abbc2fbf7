package evidence

import (
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// Figure is a rate that perftest reached, in GB/s (1e9 bytes a second).
type Figure struct {
	GBps   float64
	Device string
	Small  unit.Bytes // messages that do not fill a port; 0: they are large
	Quote  finding.Quote
}

// anyOf reports that one of some words is in a text.
func anyOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
