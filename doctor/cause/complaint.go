package cause

import (
	"slices"
	"strings"
)

// Complains reports a text that tells of a fault.
func Complains(text string) bool {
	for line := range strings.Lines(text[:min(len(text), maxTold)]) {
		for _, s := range sentences(line) {
			if n := normalise(s); anyIn(wordList().complaints, n) && !anyIn(wordList().polarity[InOrder], n) {
				return true
			}
		}
	}
	return false
}

// Contented reports a text that only says that something is in order, maybe with thanks: it describes no problem.
func Contented(text string) bool {
	fine := false
	for _, o := range Tell(text).Observations {
		if o.Polarity == InOrder {
			fine = true
			continue
		}
		for w := range strings.FieldsSeq(o.norm) {
			if !slices.Contains(stopWords, w) && !slices.Contains(courtesies, w) {
				return false
			}
		}
		fine = fine || o.Polarity == Helped
	}
	return fine
}

// courtesies are words that name nothing that could be wrong.
var courtesies = strings.Fields("hi hello thank thanks cheers great good nice ok okay fine now again everything " +
	"works work runs")
