package engine

import (
	"fmt"
	"hash/fnv"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// memory is one of the memories of a call.
type memory uint8

// Memories: those of the schedule, and two of the engine's own.
const (
	dataMem memory = iota
	outMem
	tempMem
	padMem  // what travels beside short chunks so that all are of one length; nobody reads it
	sideMem // contributions that wait for their turn, where the order of a sum matters
	// srcMem is the contribution where it has not been copied to Data: the send buffer, or Data
	// itself in place.
	srcMem
	memories
)

// seg is one piece of memory of an op.
type seg struct {
	mem    memory
	first  bool // the first write to this part of Data: what it adds to lies in srcMem
	off, n int64
}

// step is an op of a lane, bound to places in memory.
type step struct {
	verb  verb
	ref   bool // a send that may be a reference
	peer  int32
	link  *link // of Send and the receives
	segs  []seg // read by Send and the local ops, written by the receives
	dst   []seg // of the local ops, as long as segs piece by piece
	bytes int64 // of the message
	op    schedule.Op
}

// verb is what a step does: the schedule's verbs, and one more.
type verb uint8

const (
	nop        = verb(schedule.Nop)
	send       = verb(schedule.Send)
	recv       = verb(schedule.Recv)
	recvReduce = verb(schedule.RecvReduce)
	copies     = verb(schedule.Copy)
	fold       = verb(schedule.Fold)
	// sumAll comes after a run of receives of everybody's contribution and adds them in the
	// order of ranks, so that all ranks get the same bits.
	sumAll verb = 100
)

func (v verb) receives() bool { return v == recv || v == recvReduce }

// maxSteps limits the program of a rank.
const maxSteps = 1 << 24

// compiler turns the programs of one rank into steps.
type compiler struct {
	s      *schedule.Schedule
	op     coll.Op
	rank   int
	elem   int64
	pieces int
	padded bool       // chunks that differ in length travel as slots of equal length
	slot   int64      // bytes of a chunk of scratch, and of every chunk when padded
	base   [2][]int64 // where blocks of Data and Out begin, of all_to_all_v
	size   [memories]int64
	writes bool // something writes Data
	// untouched tells, of a reduction, which chunks of Data have not been written yet and need
	// not be copied from the contribution before the program begins.
	untouched []bool
	initial   []seg // those that must be
	added     int   // where the lane has a step that is no op of the schedule; 0 is nowhere
}

func newCompiler(s *schedule.Schedule, op coll.Op, rank int) (*compiler, error) {
	if err := op.Check(s.Ranks); err != nil {
		return nil, err
	}
	switch {
	case s.Program == nil:
		return nil, fmt.Errorf("the schedule has no program")
	case len(s.Switches) > 0:
		return nil, fmt.Errorf("%s by %s computes in %d switches (%s), which are hardware that this engine does not have; "+
			"take another algorithm", s.Kind, s.Name, len(s.Switches), s.Switches[0].Kind)
	case s.Kind != op.Kind:
		return nil, fmt.Errorf("the schedule does %s, the call asks for %s", s.Kind, op.Kind)
	case s.Kind.Rooted() && s.Root != op.Root:
		return nil, fmt.Errorf("the schedule has root %d, the call root %d", s.Root, op.Root)
	case s.Lanes < 1 || s.Lanes > maxLanes:
		return nil, fmt.Errorf("a schedule of %d lanes; 1 to %d are possible", s.Lanes, maxLanes)
	}
	l := s.Layout
	if l.Blocks < 1 || l.Channels < 1 || l.Chunks < 0 || l.Chunks%(l.Blocks*l.Channels) != 0 || s.Temp < 0 {
		return nil, fmt.Errorf("%d chunks do not divide into %d blocks of %d channels", l.Chunks, l.Blocks, l.Channels)
	}
	c := &compiler{s: s, op: op, rank: rank, elem: int64(op.Type.Size()), pieces: max(l.Pieces(), 1)}
	block := int64(op.Block(s.Ranks))
	c.size[dataMem] = int64(l.Blocks) * block
	if !s.Kind.InPlace() {
		c.size[outMem] = c.size[dataMem]
	}
	if op.Kind == coll.AllToAllV {
		c.layPairs()
	}
	n := block / c.elem
	c.slot = (n + int64(c.pieces) - 1) / int64(c.pieces) * c.elem
	c.padded = s.Temp > 0 && n%int64(c.pieces) != 0
	c.size[tempMem] = int64(s.Temp) * c.slot
	c.size[padMem] = 16
	if s.Temp > 0 && op.Sizes != nil {
		return nil, fmt.Errorf("%s by %s uses scratch with blocks of different sizes, whose place in it is unknown; take "+
			"another algorithm", s.Kind, s.Name)
	}
	return c, nil
}

// layPairs finds where the blocks of an all_to_all_v begin.
func (c *compiler) layPairs() {
	n := c.s.Ranks
	for b := range c.base {
		c.base[b] = make([]int64, n+1)
		for i := range n {
			from, to := c.rank, i
			if memory(b) == outMem {
				from, to = i, c.rank
			}
			c.base[b][i+1] = c.base[b][i] + int64(c.op.Pair(n, from, to))
		}
		c.size[b] = c.base[b][n]
	}
}

// extent is where a chunk lies.
func (c *compiler) extent(buf schedule.Buffer, chunk int) seg {
	if buf == schedule.Temp {
		return seg{mem: tempMem, off: int64(chunk) * c.slot, n: c.slot}
	}
	block, piece := c.s.Layout.Place(chunk)
	size := int64(c.op.Block(c.s.Ranks))
	at := int64(block) * size
	if c.base[buf] != nil {
		at, size = c.base[buf][block], c.base[buf][block+1]-c.base[buf][block]
	}
	from, to := schedule.Elements(size/c.elem, piece, c.pieces)
	return seg{mem: memory(buf), off: at + from*c.elem, n: (to - from) * c.elem}
}

// message appends the pieces of a range as they travel.
func (c *compiler) message(o schedule.Op) (segs []seg) {
	if c.op.Kind == coll.Barrier {
		return nil
	}
	for chunk := o.From; chunk < o.To; chunk++ {
		x := c.extent(o.Buf, int(chunk))
		if o.Buf == schedule.Data && c.untouched != nil && c.untouched[chunk] {
			if o.Verb == schedule.Send {
				x.mem = srcMem
			} else {
				x.first = o.Verb == schedule.RecvReduce
				c.untouched[chunk] = false
			}
		}
		segs = join(segs, x)
		if c.padded && x.n < c.slot {
			segs = append(segs, seg{mem: padMem, n: c.slot - x.n})
		}
	}
	return segs
}

// join appends a piece, to the last one where they touch.
func join(segs []seg, x seg) []seg {
	if x.n == 0 {
		return segs
	}
	if k := len(segs) - 1; k >= 0 && segs[k].mem == x.mem && segs[k].first == x.first && x.mem != padMem &&
		segs[k].off+segs[k].n == x.off {
		segs[k].n += x.n
		return segs
	}
	return append(segs, x)
}

// local appends the pieces of a Copy or Fold, in pairs.
func (c *compiler) local(o schedule.Op, st *step) error {
	if c.op.Kind == coll.Barrier {
		return nil
	}
	for k := range o.To - o.From {
		a, b := c.extent(o.Buf, int(o.From+k)), c.extent(o.Dst, int(o.At+k))
		if o.Buf == schedule.Temp || o.Dst == schedule.Temp {
			n := min(a.n, b.n) // a chunk of scratch may be one element longer than what it holds
			a.n, b.n = n, n
		}
		if a.n != b.n {
			return fmt.Errorf("%s: chunk %d has %d bytes, chunk %d has %d", o, o.From+k, a.n, o.At+k, b.n)
		}
		if a.n > 0 {
			st.segs, st.dst = append(st.segs, a), append(st.dst, b)
		}
	}
	return nil
}

// sane holds an op to the bounds of the schedule.
func (c *compiler) sane(lane int, o schedule.Op) error {
	s := c.s
	chunks := func(b schedule.Buffer) int32 {
		switch {
		case b == schedule.Temp:
			return int32(s.Temp)
		case b == schedule.Data, b == schedule.Out && !s.Kind.InPlace():
			return int32(s.Layout.Chunks)
		}
		return -1
	}
	switch {
	case o.From < 0 || o.To < o.From || o.To > chunks(o.Buf):
		return fmt.Errorf("range %d to %d of %s, which has %d chunks", o.From, o.To, o.Buf, chunks(o.Buf))
	case o.Verb.Local() && (o.At < 0 || int64(o.At)+int64(o.Len()) > int64(chunks(o.Dst))):
		return fmt.Errorf("range from %d of %s, which has %d chunks", o.At, o.Dst, chunks(o.Dst))
	case (o.Verb == schedule.Send || o.Verb.Receives()) && (o.Peer < 0 || int(o.Peer) >= s.Ranks || int(o.Peer) == c.rank):
		return fmt.Errorf("peer %d of %d ranks", o.Peer, s.Ranks)
	case o.Verb > schedule.Fold:
		return fmt.Errorf("unknown verb %d", o.Verb)
	case o.After.Count > 0 && (o.After.Lane < 0 || int(o.After.Lane) >= s.Lanes || int(o.After.Lane) == lane):
		return fmt.Errorf("waits for lane %d of %d", o.After.Lane, s.Lanes)
	}
	return nil
}

// lane makes the steps of a lane.
func (c *compiler) lane(lane int) ([]step, error) {
	n := c.s.Len(c.rank, lane)
	if n > maxSteps {
		return nil, fmt.Errorf("rank %d lane %d has %d ops; at most %d are possible", c.rank, lane, n, maxSteps)
	}
	c.added = 0
	steps := make([]step, 0, n)
	for i := range n {
		o := c.s.At(c.rank, lane, i)
		err := c.sane(lane, o)
		st := step{verb: verb(o.Verb), peer: o.Peer, op: o}
		if err == nil && o.Verb.Local() {
			err = c.local(o, &st)
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d lane %d op %d (%s): %w", c.rank, lane, i, o, err)
		}
		if o.Verb == schedule.Send || o.Verb.Receives() {
			st.segs = c.message(o)
			for _, x := range st.segs {
				st.bytes += x.n
			}
		}
		if o.Verb.Receives() && o.Buf == schedule.Data || o.Verb.Local() && o.Dst == schedule.Data {
			c.writes = true
		}
		steps = append(steps, st)
	}
	steps = c.ordered(steps)
	markReferences(steps)
	return steps, nil
}

// ordered finds runs of receives in which a rank adds everybody's contribution to one range,
// as every other rank does for itself, and makes them sums in the order of ranks: rounding
// would otherwise differ from rank to rank.
func (c *compiler) ordered(steps []step) []step {
	others := c.s.Ranks - 1
	if c.s.Kind != coll.AllReduce || others < 2 {
		return steps
	}
	var sent int
	for i := 0; i < len(steps); i++ {
		st := &steps[i]
		if st.verb == send {
			if sent == 0 || st.op.From != steps[i-1].op.From || st.op.To != steps[i-1].op.To {
				sent = 0
			}
			sent++
			continue
		}
		if st.verb == recvReduce && sent == others && i+others <= len(steps) && c.sameRange(steps[i:i+others]) {
			return c.receiveTogether(steps, i, others)
		}
		sent = 0
	}
	return steps
}

func (c *compiler) sameRange(run []step) bool {
	for _, st := range run {
		if st.verb != recvReduce || st.op.Buf != run[0].op.Buf || st.op.From != run[0].op.From || st.op.To != run[0].op.To ||
			st.op.After.Count > 0 {
			return false
		}
	}
	return true
}

// receiveTogether lets the receives of a run land beside each other and appends the sum to the last.
func (c *compiler) receiveTogether(steps []step, at, n int) []step {
	own := steps[at]
	base := c.size[sideMem]
	c.size[sideMem] += own.bytes * int64(n)
	all := step{
		verb: sumAll, peer: -1, op: schedule.Op{
			Verb: schedule.Fold, Buf: own.op.Buf, Dst: own.op.Buf, From: own.op.From, To: own.op.To, At: own.op.From,
		}, dst: own.segs, bytes: own.bytes,
	}
	for k := range n {
		st := &steps[at+k]
		st.verb = recv
		slot := int(st.peer)
		if slot > c.rank {
			slot--
		}
		st.segs = join(nil, seg{mem: sideMem, off: base + int64(slot)*own.bytes, n: own.bytes})
	}
	all.segs = []seg{{mem: sideMem, off: base, n: own.bytes * int64(n)}}
	c.added = at + n
	out := append(steps[:at+n:at+n], all)
	return append(out, steps[at+n:]...)
}

// fingerprint tells programs apart that ranks should have in common.
func fingerprint(s *schedule.Schedule, op coll.Op) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %d %d %d %d %d %d %d %d %v %d %d", s.Name, s.Kind, s.Ranks, s.Root, s.Lanes, s.Channels,
		s.Layout.Chunks, s.Temp, op.Bytes, op.Sizes, op.Type, op.Reduce)
	return max(h.Sum32(), 1) // 0 is the engine's own
}
