package msccl

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// maxProof limits the memory of a proof: chunks, and pairs of lanes, of all GPUs.
const maxProof = 1 << 26

// maxRoots limits the roots that Prove tries.
const maxRoots = 256

// Undecided is the error of a file that can be neither proven nor shown to be wrong.
type Undecided struct{ Reason string }

func (u *Undecided) Error() string { return u.Reason }

func undecided(format string, args ...any) error { return &Undecided{fmt.Sprintf(format, args...)} }

// Schedule is the file as a schedule, seen from one kind of call, so that its Check can prove it.
// A lane is a thread block; a step becomes one to three ops. Out of place, the input is a copy
// that a lane of its own makes before anything else.
//
// What Check cannot see is looked at here: that the parts fit, that the reader takes them, that
// with the reader's short queues no block waits for ever, and that out of place nothing is read
// from the output before it was written there.
func (a *Algo) Schedule(v View) (*schedule.Schedule, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := a.Limits(); err != nil {
		return nil, err
	}
	if v.blocked() && a.ChunksPerLoop%a.NGPUs != 0 {
		return nil, fmt.Errorf("nchunksperloop=%d does not divide by %d GPUs, and %s has a block for each", a.ChunksPerLoop, a.NGPUs, v.Kind)
	}
	cells := 0
	for i := range a.GPUs {
		g := &a.GPUs[i]
		cells += g.Input + g.Output + g.Scratch + a.ChunksPerLoop
		if in, out := v.sizes(a); g.Input > in && !v.InPlace || g.Output > out && !v.InPlace {
			return nil, fmt.Errorf("%sgpu %d has i_chunks=%d o_chunks=%d; %s with nchunksperloop=%d has %d and %d", line(g.Line), g.ID, g.Input, g.Output, v.Kind, a.ChunksPerLoop, in, out)
		}
		if cells > maxProof {
			return nil, undecided("more than %d chunks; too many to prove", maxProof)
		}
	}
	if err := a.run(v); err != nil {
		return nil, err
	}
	l := newLanes(a)
	n := l.count
	if !v.InPlace && v.Kind.InPlace() {
		n++ // the copies
	}
	n = max(n, 1)
	if n*n > maxProof/a.NGPUs {
		return nil, undecided("%d GPUs with %d lanes; too many to prove", a.NGPUs, n)
	}
	s := &schedule.Schedule{Name: a.Name, Kind: v.Kind, Ranks: a.NGPUs, Root: v.Root, Lanes: n, Channels: 1, Depth: slots(a.Proto)} // greater messages pass part by part, and run has seen them through
	s.Layout = schedule.Layout{Chunks: a.ChunksPerLoop, Blocks: 1, Channels: 1}
	if v.Kind.Blocked() {
		s.Layout.Blocks = a.NGPUs
	}
	prog := make(schedule.Stored, a.NGPUs)
	c := &converter{a: a, v: v, lanes: l, n: n}
	c.regions()
	for i := range a.GPUs {
		p, err := c.gpu(i)
		if err != nil {
			return nil, err
		}
		prog[a.GPUs[i].ID] = p
	}
	s.Temp, s.Program = c.temp, prog
	return s, nil
}

// Prove shows that a file does what its collective is defined to do, in every call that it says
// it serves, and returns these calls. Of a rooted collective one root must do.
func (a *Algo) Prove() ([]View, error) {
	views, err := a.Views()
	if err != nil {
		return nil, err
	}
	if len(views) > 2*maxRoots {
		return nil, undecided("%s over %d GPUs, and a file does not name its root; up to %d are tried", a.Coll, a.NGPUs, maxRoots)
	}
	var proven []View
	var first [2]error // of the place's views
	var done [2]bool
	for _, v := range views {
		place := 0
		if v.InPlace {
			place = 1
		}
		if done[place] && v.Kind.Rooted() {
			continue
		}
		err := a.prove(v)
		if err == nil {
			proven = append(proven, v)
			done[place] = true
		} else if first[place] == nil {
			first[place] = fmt.Errorf("%s: %w", v, err)
		}
	}
	for place, err := range first {
		if err != nil && !done[place] {
			return proven, err
		}
	}
	return proven, nil
}

func (a *Algo) prove(v View) error {
	s, err := a.Schedule(v)
	if err != nil {
		return err
	}
	return s.Check()
}

// usesOutput reports a step of a rank without an output that touches it: a reduce leaves the
// receive buffer of the others undefined.
func (v View) usesOutput(rank int, b Buffer) bool {
	return v.Kind == coll.Reduce && !v.InPlace && rank != v.Root && b == Output
}
