package hang

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/words"
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
	fromProfiler  = "profiler"
)

// newClaim is what a source concludes, as sure as it is alone.
func newClaim(kind Kind, source string) claim {
	c := claim{source: source}
	c.become(kind)
	return c
}

// become changes what a claim says, and how sure that is. What the profiler and Inspector say is as good as the
// recorder's.
func (c *claim) become(kind Kind) {
	k := kindRows()[kind]
	c.kind, c.sure = kind, cmp.Or(k.alone(c.source), k.alone(fromRecorder))
}

// doubtful is a claim that has something against it.
func (c *claim) doubtful(sure float64) { c.sure = min(c.sure, sure) }

// most is what other sources that say the same can raise a claim to: a guess stays one.
func (c *claim) most() float64 {
	if c.sure < 0.7 {
		return 0.7
	}
	return 0.98
}

// claim is what one source concludes.
type claim struct {
	kind    Kind
	ranks   []int
	nodes   []string // hosts at fault whose ranks are not known
	source  string
	sure    float64 // how often such a claim of this source alone is right
	comm    *Communicator
	op      string
	seq     int
	waiting []int
	why     string // a sentence
	quotes  []finding.Quote
	doubt   bool // nothing that a host says of itself speaks against it
}

// newCommunicator is one that is known by its ranks and perhaps its hash.
func (j *job) newCommunicator(hash uint64, ranks []int) *Communicator {
	c := &Communicator{Ranks: ranks, Group: j.kindOf("", ranks)}
	if hash != 0 {
		c.Hash = fmt.Sprintf("%016x", hash)
	}
	c.Name = cmp.Or(c.Group, c.Hash, rankList(ranks))
	return c
}

// rankList writes ranks for people: rank 3; ranks 0, 2 and 5; ranks 0-7.
func rankList(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	if len(ranks) == 0 {
		return "no rank"
	}
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	return "ranks " + words.Numbers(slices.Compact(ranks))
}

// minority are the members of the smaller groups of those that differ, where one group is larger than all others; else
// all.
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
