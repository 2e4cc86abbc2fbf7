package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

// maxCells limits the memory of Check: chunks of all ranks.
const maxCells = 1 << 26

// Fault is what Check finds: where, and what is wrong there.
type Fault struct {
	Class          FaultClass
	Rank, Lane, Op int // -1 where the fault has no such place
	What           string
}

// FaultClass sorts faults.
type FaultClass string

// Classes of faults.
const (
	Malformed FaultClass = "malformed" // an op that means nothing: no such peer, chunk, lane
	Deadlock  FaultClass = "deadlock"  // a lane waits for ever
	Unmatched FaultClass = "unmatched" // a message nobody receives, or of another length
	Early     FaultClass = "early"     // read before it is there
	Lost      FaultClass = "lost"      // overwritten before anyone read it
	Race      FaultClass = "race"      // two lanes at one chunk with nothing to order them
	Doubled   FaultClass = "doubled"   // a contribution counted twice
	Mixed     FaultClass = "mixed"     // different chunks added to each other
	Wrong     FaultClass = "wrong"     // the result is not the collective's
	TooBig    FaultClass = "too big"   // more than Check can hold
)

func (f *Fault) Error() string {
	switch {
	case f.Rank < 0:
		return f.What
	case f.Lane < 0:
		return fmt.Sprintf("rank %d %s", f.Rank, f.What)
	}
	return fmt.Sprintf("rank %d lane %d %s", f.Rank, f.Lane, f.What)
}

// Check proves a schedule, or returns a *Fault. It runs the programs on sets of contributions
// ("rank 3's part of chunk 7, once") over queues that hold Depth messages, and shows that every
// rank ends with what the collective's definition says: each contribution exactly once, nothing
// read before it was there, nothing overwritten unread, no two lanes at one chunk without an
// order between them, every send received, no lane waiting for ever.
//
// Programs block on receives of named peers only, so what one order of running finds holds for
// all orders. The order between two lanes of a rank counts only where an After states it
// directly; one that would follow from other ranks' doings, or from a chain of waits, is
// reported as a race.
//
// The cost is that of touching every chunk of every message once.
func (s *Schedule) Check() error {
	if err := s.checkHeader(); err != nil {
		return err
	}
	c := newChecker(s)
	if err := c.run(); err != nil {
		return err
	}
	return c.verify()
}

func (s *Schedule) checkHeader() error {
	bad := func(format string, args ...any) error {
		return &Fault{Malformed, -1, -1, -1, fmt.Sprintf(format, args...)}
	}
	l := s.Layout
	switch {
	case s.Program == nil:
		return bad("the schedule has no program")
	case s.Ranks < 1 || s.Lanes < 1 || s.Channels < 1 || s.Temp < 0:
		return bad("the schedule has %d ranks, %d lanes, %d channels, %d chunks of scratch; at least one rank, lane and channel are needed", s.Ranks, s.Lanes, s.Channels, s.Temp)
	case s.Depth < 0:
		return bad("depth %d is negative", s.Depth)
	case s.Root < 0 || s.Root >= s.Ranks:
		return bad("root %d; ranks are 0 to %d", s.Root, s.Ranks-1)
	case !l.ok():
		return bad("%d chunks do not divide into %d blocks of %d channels", l.Chunks, l.Blocks, l.Channels)
	case s.Kind.Blocked() && l.Blocks != s.Ranks, !s.Kind.Blocked() && l.Blocks != 1:
		return bad("%s over %d ranks with %d blocks", s.Kind, s.Ranks, l.Blocks)
	case l.Channels != s.Channels:
		return bad("the layout has %d channels, the schedule %d", l.Channels, s.Channels)
	case s.Lanes > 1<<laneBits-1 || s.Nodes() > 1<<24:
		return bad("%d lanes and %d participants; at most %d and %d", s.Lanes, s.Nodes(), 1<<laneBits-1, 1<<24)
	}
	if p, ok := s.Program.(Stored); ok {
		if len(p) != s.Nodes() {
			return bad("programs for %d participants; there are %d", len(p), s.Nodes())
		}
		for r, lanes := range p {
			if len(lanes) != s.Lanes {
				return bad("rank %d has %d lanes; the schedule has %d", r, len(lanes), s.Lanes)
			}
		}
	}
	seen := make([]bool, len(l.Order))
	for _, b := range l.Order {
		if b < 0 || int(b) >= len(seen) || seen[b] {
			return bad("the layout's order of blocks is no permutation: block %d", b)
		}
		seen[b] = true
	}
	per := int64(l.Chunks)*2 + int64(s.Temp)
	if s.Kind.InPlace() {
		per -= int64(l.Chunks)
	}
	if per*int64(s.Nodes()) > maxCells {
		return &Fault{TooBig, -1, -1, -1, fmt.Sprintf("%d participants with %d chunks each; check fewer ranks, the programs are the same", s.Nodes(), per)}
	}
	return nil
}

// initial reports whether a rank's Data holds its contribution to a block at first.
func (s *Schedule) initial(rank, block int) bool {
	switch s.Kind {
	case coll.AllGather, coll.Gather, coll.Hypercube:
		return block == rank
	case coll.Broadcast, coll.Scatter:
		return rank == s.Root
	}
	return true
}

// result tells what a rank must hold of a block in the end: nothing (need false), one rank's
// contribution, or all ranks' (from -1).
func (s *Schedule) result(rank, block int) (need bool, from int) {
	switch s.Kind {
	case coll.AllReduce, coll.Barrier:
		return true, -1
	case coll.ReduceScatter:
		return block == rank, -1
	case coll.Reduce:
		return rank == s.Root, -1
	case coll.AllGather, coll.Hypercube, coll.AllToAll, coll.AllToAllV:
		return true, block
	case coll.Gather:
		return rank == s.Root, block
	case coll.Broadcast:
		return true, s.Root
	case coll.Scatter:
		return block == rank, s.Root
	case coll.SendRecv:
		return true, (rank - 1 + s.Ranks) % s.Ranks
	}
	return false, 0
}

// verify compares what every rank holds in the end with the definition.
func (c *checker) verify() error {
	s := c.s
	buf := Data
	if !s.Kind.InPlace() {
		buf = Out
	}
	for r := range s.Ranks {
		for chunk := range s.Layout.Chunks {
			block, piece := s.Layout.Place(chunk)
			need, from := s.result(r, block)
			if !need {
				continue
			}
			v := c.cell(r, buf, chunk)
			want := c.all(int32(chunk))
			if from >= 0 {
				want = value{origin: int32(chunk), lo: int32(from), count: 1}
			}
			if s.Kind == coll.AllToAll || s.Kind == coll.AllToAllV {
				if b, p := s.Layout.Place(int(v.origin)); v.count > 0 && (b != r || p != piece) {
					return c.wrong(r, buf, chunk, fmt.Sprintf("holds piece %d of the block for rank %d; want piece %d of the block for rank %d", p, b, piece, r))
				}
				want.origin = v.origin
			}
			if v.count == 0 {
				return c.wrong(r, buf, chunk, "holds nothing; want "+c.describe(want))
			}
			if v.origin != want.origin {
				return c.wrong(r, buf, chunk, fmt.Sprintf("holds chunk %d in its place", v.origin))
			}
			if !c.equal(*v, want) {
				return c.wrong(r, buf, chunk, fmt.Sprintf("holds %s; want %s", c.describe(*v), c.describe(want)))
			}
		}
	}
	return nil
}

func (c *checker) wrong(rank int, buf Buffer, chunk int, what string) error {
	return &Fault{Wrong, rank, -1, -1, fmt.Sprintf("ends wrong: %s[%d] %s", buf, chunk, what)}
}
