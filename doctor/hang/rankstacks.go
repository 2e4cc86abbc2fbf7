package hang

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input/stacks"
)

// kinds of what a late rank's stack shows.
var activityKind = map[stacks.Activity]Kind{
	stacks.Loading: DataLoading, stacks.Checkpoint: Checkpoint, stacks.Compiling: Compiling, stacks.Evaluation: Evaluation,
}

// lookAtStacks says what the culprits do. For a late rank that is the kind of the fault; what saves, compiles or
// evaluates will come.
func (x *judge) lookAtStacks(v *Verdict, c claim) {
	for _, r := range c.ranks {
		s := x.stackOf(r)
		if s == nil {
			if p := x.processOf(r); p != nil && v.Kind == Late {
				v.Evidence = append(v.Evidence, processQuote(p))
			}
			continue
		}
		doing, _ := s.Doing()
		v.Stack = s.Where()
		v.Evidence = append(v.Evidence, finding.Quote{
			File: s.Name, Line: s.Line, Text: fmt.Sprintf("rank %d is in %s", r, v.Stack),
		})
		kind, ok := activityKind[doing]
		if v.Kind != Late || !ok || v.State == Slow {
			return
		}
		v.Kind = kind
		if kind != DataLoading && !x.timedOut() {
			v.State = Stalled
		}
		v.Confidence = min(0.97, v.Confidence+0.02)
		return
	}
}

// creating looks at ranks that seem late and finds them inside a collective call that neither RAS nor the recorder
// counts: they wait in the making of a communicator, for members that never come. No watchdog covers that, and the
// root's NCCL alone writes a line.
func (x *judge) creating(late claim) (claim, bool) {
	c := newClaim(NeverJoined, fromStacks)
	c.op, c.waiting, c.quotes = "comm init", late.ranks, late.quotes
	for _, r := range late.ranks {
		s := x.stackOf(r)
		if s == nil {
			return claim{}, false
		}
		h := x.rec.ranks[r]
		if doing, _ := s.Doing(); doing != stacks.Collective || h != nil && h.pending() != nil {
			return claim{}, false
		}
		c.why = fmt.Sprintf("%s is in %s and has launched nothing: it waits in the creation of a communicator",
			rankList(late.ranks), s.Where())
	}
	if group := x.sibling(c.waiting); group != nil {
		c.ranks, c.comm, c.sure = except(group, c.waiting), x.job.newCommunicator(0, group), 0.8
		c.why += fmt.Sprintf(" for %s, which has not come", rankList(c.ranks))
	}
	return c, true
}

// sibling guesses the members of a communicator that some ranks wait to make, by those of the same kind that others
// made. Inspector's lines and rings need not be there of all members.
func (x *judge) sibling(waiting []int) []int {
	for _, t := range []*table{x.of(fromRecorder), x.of(fromRAS)} {
		made := map[string][][]int{}
		for g := range t.set.Groups {
			class := t.class(int32(g))
			made[class] = append(made[class], t.set.Groups[g].Ranks)
		}
		for _, class := range slices.Sorted(maps.Keys(made)) {
			if group := x.job.rest(made[class], len(made[class][0]), waiting); group != nil {
				return group
			}
		}
	}
	return nil
}

// stackOf is the stack of a rank's own thread: by the rank of its lines, its process, or its file's name.
func (x *judge) stackOf(rank int) (named *stacks.Stack) {
	for i := range x.c.stacks {
		f := &x.c.stacks[i]
		main := stacks.Main(f.list)
		if main == nil {
			continue
		}
		if main.Rank == rank || main.PID > 0 && x.job.ofPID(main.PID) == rank {
			return main
		}
		if r, ok := x.job.files[f.name]; ok && r == rank && named == nil {
			named = main
		}
	}
	return named
}
