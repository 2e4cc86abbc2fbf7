// Package trace is what the GPU of one rank did, as a profiler recorded it, and where the time of a real step went:
// computing, communication that nothing hides, copies, nothing at all.
//
// input/kineto reads PyTorch's profiler.
package trace

import (
	"cmp"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// MaxEvents bounds the events of one trace: 64 bytes each.
const MaxEvents = 8 << 20

// Kind is what occupies the GPU.
type Kind uint8

// Kinds of events.
const (
	Compute Kind = iota
	Comm         // a collective's kernel, or a copy between GPUs
	Copy         // between host and GPU, or inside its memory
)

// Interval is a time in ns on the profiler's own clock.
type Interval struct{ Start, End int64 }

// Event is a kernel or a copy.
type Event struct {
	Interval

	Kind   Kind
	FP32   bool // a matrix product in 32 bits that does not use the tensor cores
	Device int32
	Stream int32
	Call   int32 // of the trace's Calls; -1 where it is none
	Seq    int64 // counts the calls of a group; -1 where the profiler does not say
}

// Call is a collective as its kernel and the profiler describe it. Bytes are counted as nccl-tests counts the size of
// the operation; 0 is unknown.
type Call struct {
	Op    coll.Kind
	P2P   bool // a send or a receive between two ranks
	Bytes unit.Bytes
	Group string // the process group's name, "" where the profiler does not say
	Desc  string // its description: default_pg, tp
	Size  int    // of the group; 0 is unknown
	Ranks []int  // of the group as far as the profiler writes them
	Algo  string // as far as the kernel's name tells: tree
}

// Trace is one rank's GPU.
type Trace struct {
	File   string
	Tool   string
	Rank   int // -1 is unknown
	World  int // 0 is unknown
	Device int
	GPU    string
	NCCL   string
	Steps  []Interval // as the program marked them
	Whole  bool       // only what the marked steps started was recorded, which may end after them
	Events []Event    // by start
	Calls  []Call
	// Overhead is what the profiler says of its own work: flushing and asking for buffers, loading.
	Overhead []Interval

	begin int64 // when the ranks of the job begin, by this one's clock; 0 is unknown
}

// Sort brings events and steps into order.
func (t *Trace) Sort() {
	slices.SortFunc(t.Events,
		func(a, b Event) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	for _, list := range [][]Interval{t.Steps, t.Overhead} {
		slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a.Start, b.Start) })
	}
}

// Align lets the windows of a job's ranks begin together: who starts its first kernel late was idle until then. Clocks
// need not agree, for all ranks end a collective of all at nearly the same time. Without one that all traces have, they
// stay as they are.
func Align(list []*Trace) {
	ends, longest := make([]int64, len(list)), int64(0)
	var first Call
	var seq int64
	for i, t := range list {
		at := slices.IndexFunc(t.Events, func(e Event) bool {
			return e.Call >= 0 && !t.Calls[e.Call].P2P && t.Calls[e.Call].Size == len(list)
		})
		if at < 0 {
			return
		}
		c := t.Calls[t.Events[at].Call]
		if i == 0 {
			first, seq = c, t.Events[at].Seq
		} else if c.Op != first.Op || c.Bytes != first.Bytes || t.Events[at].Seq != seq {
			return
		}
		ends[i] = t.Events[at].End
		longest = max(longest, ends[i]-t.Window().Start)
	}
	for i, t := range list {
		t.begin = ends[i] - longest
	}
}

// Window is the time that is looked at: from the first marked step to the end of the last, or all that was recorded.
func (t *Trace) Window() Interval {
	if len(t.Events) == 0 {
		return Interval{}
	}
	w := Interval{t.Events[0].Start, t.Events[0].End}
	for i := range t.Events {
		w.End = max(w.End, t.Events[i].End)
	}
	if t.begin != 0 {
		w.Start = min(w.Start, t.begin)
	}
	if len(t.Steps) == 0 || t.Whole {
		return w
	}
	last := t.Steps[0].End
	for _, s := range t.Steps {
		last = max(last, s.End)
	}
	return Interval{max(w.Start, t.Steps[0].Start), max(min(w.End, last), w.Start)}
}
