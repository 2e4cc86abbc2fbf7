package hang

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/finding"
)

// The sources of claims, as the document names them.
const (
	fromRecorder  = "recorder"
	fromRAS       = "ras"
	fromLog       = "log"
	fromStacks    = "stacks"
	fromInspector = "inspector"
	fromKernel    = "kernel"
	fromProcess   = "process"
)

// claim is what one source concludes.
type claim struct {
	kind    Kind
	ranks   []int
	source  string
	sure    float64 // how often such a claim of this source alone is right
	most    float64 // what other sources that say the same can raise it to; 0 is nearly all
	comm    *Communicator
	op      string
	seq     int
	waiting []int
	why     string // a sentence
	quotes  []finding.Quote
}

// rankList writes ranks for people: rank 3; ranks 0, 2 and 5; ranks 0-7.
func rankList(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	if len(ranks) == 0 {
		return "no rank"
	}
	return "ranks " + spans(ranks)
}

// spans writes sorted numbers with their runs drawn together, the first dozen of them.
func spans(ranks []int) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		switch {
		case k == i:
			parts = append(parts, fmt.Sprint(ranks[i]))
		case k == i+1:
			parts = append(parts, fmt.Sprint(ranks[i]), fmt.Sprint(ranks[k]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[k]))
		}
		i = k + 1
		if len(parts) > 12 {
			return strings.Join(parts[:12], ", ") + fmt.Sprintf(", … (%d in all)", len(ranks))
		}
	}
	return strings.Join(parts, ", ")
}

// minority are the members of the smaller groups of those that differ, where one group is larger than all others; else all.
func minority[K comparable](by map[K][]int) (few []int, clear bool) {
	most, second := 0, 0
	var key K
	for k, list := range by {
		if len(list) > most {
			most, second, key = len(list), most, k
		} else if len(list) > second {
			second = len(list)
		}
	}
	for k, list := range by {
		if k != key || most == second {
			few = append(few, list...)
		}
	}
	slices.Sort(few)
	return few, most > second
}
