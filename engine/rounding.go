package engine

import (
	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// What travels compressed arrives rounded. Where several ranks end with the same elements they
// must end with the same bits, so a sender takes over what it has sent: its own copy becomes
// what the peer gets. Rounding again changes nothing, hence it does not matter who sends a
// value first, or how often. What some ranks have rounded in the end and others have not, though
// it is the same sum, is rounded at the end.

// rounds is which chunks of the sends of a rank take over what was sent, and which chunks of
// Data are rounded at the end.
type rounds struct {
	sends [][][]bool // by lane, op and chunk of its range; nil where nothing does
	end   []bool     // by chunk of Data
}

// shared reports whether several ranks end with the same elements.
func shared(k coll.Kind) bool {
	return k == coll.AllReduce || k == coll.AllGather || k == coll.Hypercube || k == coll.Broadcast
}

// chunkFate is what a lane does next with a chunk.
type chunkFate uint8

const (
	untold  chunkFate = iota // nothing
	replace                  // writes it without having read it
	read                     // reads it, or returns it
)

// findRounds follows each lane from its end to its beginning. Sends whose elements are
// overwritten before anybody else reads them need not be rounded, which is most of a ring.
func (c *compiler) findRounds() {
	if c.wire == Uncompressed || !shared(c.s.Kind) {
		return
	}
	sizes := [3]int{schedule.Data: c.s.Layout.Chunks, schedule.Out: c.s.Layout.Chunks, schedule.Temp: c.s.Temp}
	var lanes [3][]int32 // which lane touches a chunk, plus 1; -1 several
	for b, n := range sizes {
		lanes[b] = make([]int32, n)
	}
	c.rounds = &rounds{sends: make([][][]bool, c.s.Lanes), end: make([]bool, sizes[schedule.Data])}
	c.eachAccess(func(lane, _ int, _ schedule.Op, b schedule.Buffer, chunk int32, _ bool) {
		if at := &lanes[b][chunk]; *at == 0 {
			*at = int32(lane) + 1
		} else if *at != int32(lane)+1 {
			*at = -1
		}
	})
	c.eachAccess(func(_, _ int, o schedule.Op, b schedule.Buffer, chunk int32, _ bool) {
		c.crossed = c.crossed || o.Verb.Local() && lanes[b][chunk] < 0
	})
	next := [3][]chunkFate{make([]chunkFate, sizes[0]), make([]chunkFate, sizes[1]), make([]chunkFate, sizes[2])}
	settled := make([]bool, sizes[schedule.Data])
	for lane := range c.s.Lanes {
		for b := range next {
			for i := range next[b] {
				next[b][i] = untold
			}
		}
		c.laneRounds(lane, &lanes, &next, settled)
	}
	agreed := make([]bool, len(settled))
	if cellsOf(c.s) <= prepareWork {
		if t := newTracer(c.s, c.wire, prepareWork); t.run() == nil {
			agreed = t.agreed() // the same on all ranks
		}
	}
	for chunk := range c.rounds.end {
		c.rounds.end[chunk] = (c.rounds.end[chunk] || !settled[chunk]) && !agreed[chunk]
	}
}

// laneRounds is findRounds of one lane.
func (c *compiler) laneRounds(lane int, lanes *[3][]int32, next *[3][]chunkFate, settled []bool) {
	n := min(c.s.Len(c.rank, lane), maxSteps)
	c.rounds.sends[lane] = make([][]bool, n)
	for i := n - 1; i >= 0; i-- {
		o := c.s.At(c.rank, lane, i)
		if o.Verb == schedule.Send && c.sane(-1, o) == nil {
			c.rounds.sends[lane][i] = make([]bool, o.To-o.From)
		}
		c.accesses(o, func(b schedule.Buffer, chunk int32, writes bool) {
			at := &next[b][chunk]
			if *at == untold && b == schedule.Data { // the lane's last word on it
				if o.Verb == schedule.Send || o.Verb == schedule.Recv {
					settled[chunk] = true
				} else {
					c.rounds.end[chunk] = true
				}
			}
			if *at == untold {
				*at = read
				if b == schedule.Temp {
					*at = replace
				}
			}
			switch o.Verb {
			case schedule.Send:
				c.rounds.sends[lane][i][chunk-o.From] = *at == read || lanes[b][chunk] < 0
			case schedule.Recv:
				*at = replace
			case schedule.Copy:
				*at = read
				if writes {
					*at = replace
				}
			default:
				*at = read
			}
		})
	}
}

// accesses calls f for every chunk that an op touches, within the schedule's bounds.
func (c *compiler) accesses(o schedule.Op, f func(b schedule.Buffer, chunk int32, writes bool)) {
	if o.Verb == schedule.Nop || c.sane(-1, o) != nil {
		return
	}
	for k := range o.To - o.From {
		f(o.Buf, o.From+k, o.Verb.Receives())
		if o.Verb.Local() {
			f(o.Dst, o.At+k, true)
		}
	}
}

// eachAccess is accesses of the whole rank.
func (c *compiler) eachAccess(f func(lane, i int, o schedule.Op, b schedule.Buffer, chunk int32, writes bool)) {
	for lane := range c.s.Lanes {
		for i := range c.s.Len(c.rank, lane) {
			o := c.s.At(c.rank, lane, i)
			c.accesses(o, func(b schedule.Buffer, chunk int32, writes bool) { f(lane, i, o, b, chunk, writes) })
		}
	}
}

// takesOver reports whether a chunk of a send is rounded where it lies.
func (c *compiler) takesOver(lane, i int, chunk int32, o schedule.Op) bool {
	return c.rounds != nil && i < len(c.rounds.sends[lane]) && c.rounds.sends[lane][i] != nil && c.rounds.sends[lane][i][chunk-o.From]
}

// settles is what a call rounds at its end.
func (c *compiler) settles() (segs []seg) {
	if c.rounds == nil || c.s.Ranks == 1 {
		return nil
	}
	for chunk, round := range c.rounds.end {
		if round {
			segs = c.append(segs, c.extent(schedule.Data, chunk))
		}
	}
	return segs
}

// append adds a piece to others: to the last where they touch, unless chunks keep their
// borders, as blocks of int8 need it.
func (c *compiler) append(segs []seg, x seg) []seg {
	if c.wire == Int8 && x.n > 0 {
		return append(segs, x)
	}
	return join(segs, x)
}
