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
	fromGPU       = "gpu"
)

// confidence is how often a claim of one kind by one source alone is right, and what others that say the same can
// raise it to: an estimate.
type confidence struct{ alone, agreed float64 }

var confidences = map[Kind]map[string]confidence{
	OpMismatch: {
		fromRecorder: {0.93, 0.98}, fromProfiler: {0.93, 0.98}, fromInspector: {0.93, 0.98}, fromLog: {0.8, 0.98},
		fromRAS: {0.88, 0.98},
	},
	SizeMismatch: {
		fromRecorder: {0.93, 0.98}, fromProfiler: {0.93, 0.98}, fromInspector: {0.93, 0.98}, fromLog: {0.8, 0.98},
	},
	Late: {fromRecorder: {0.9, 0.98}, fromProfiler: {0.9, 0.98}, fromRAS: {0.8, 0.98}, fromLog: {0.75, 0.98}},
	// a file that is not there says nothing of the process
	NoReport: {fromRecorder: {0.5, 0.7}, fromProfiler: {0.5, 0.7}, fromLog: {0.5, 0.7}},
	Order:    {fromRecorder: {0.9, 0.98}, fromProfiler: {0.9, 0.98}},
	Kernel:   {fromRecorder: {0.9, 0.98}, fromProfiler: {0.9, 0.98}},
	Network:  {fromRecorder: {0.5, 0.98}, fromProfiler: {0.5, 0.98}, fromLog: {0.8, 0.98}},
	Stopped:  {fromRAS: {0.8, 0.98}, fromProcess: {0.97, 0.98}},
	// RAS does not say how a process went
	Killed:   {fromRAS: {0.65, 0.7}, fromLog: {0.85, 0.98}, fromProcess: {0.93, 0.98}, fromKernel: {0.95, 0.98}},
	Exited:   {fromLog: {0.9, 0.98}, fromProcess: {0.93, 0.98}},
	GPUFault: {fromLog: {0.9, 0.98}, fromKernel: {0.92, 0.98}, fromGPU: {0.85, 0.98}},
	// a rank that has not come may still come
	NeverJoined: {fromLog: {0.8, 0.98}, fromStacks: {0.6, 0.98}, fromProcess: {0.6, 0.98}},
}

// newClaim is what a source concludes, as sure as it is alone.
func newClaim(kind Kind, source string) claim {
	c := claim{source: source}
	c.become(kind)
	return c
}

// become changes what a claim says, and how sure that is.
func (c *claim) become(kind Kind) {
	x := confidences[kind][c.source]
	c.kind, c.sure, c.most = kind, x.alone, x.agreed
}

// doubtful is a claim that others cannot make sure.
func (c *claim) doubtful(sure float64) { c.sure, c.most = min(c.sure, sure), min(c.most, sure+0.1) }

// claim is what one source concludes.
type claim struct {
	kind    Kind
	ranks   []int
	nodes   []string // hosts at fault whose ranks are not known
	source  string
	sure    float64 // how often such a claim of this source alone is right
	most    float64 // what other sources that say the same can raise it to
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
	c.Name = cmp.Or(c.Group, c.Hash)
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
