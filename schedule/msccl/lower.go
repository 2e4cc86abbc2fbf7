package msccl

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// Lowering turns a schedule into thread blocks in passes:
//
//	linearise  the ops of a rank in one order that respects lanes and waits; empty ones go
//	match      the k-th send of a connection with its k-th receive
//	pair       the connections of a lane into blocks; a receive followed by a send of the
//	           same chunks is one instruction where both are in one block
//	locate     chunks in the buffers of a call
//	cut        messages where memory is not contiguous, alike at both ends
//	emit       steps, with the waits that memory needs
type lowering struct {
	s     *schedule.Schedule
	set   Settings
	kind  coll.Kind // hypercube is an all_gather to the reader
	ranks []*rank
	msgs  []message
	cuts  join // of messages that must be cut alike
}

// message is a send and its receive.
type message struct {
	n  int
	ok bool   // received
	at []bool // chunks that begin a new step; of the root of a set only
}

// rank is one participant's program on its way down.
type rank struct {
	id     int
	ops    []op
	blocks []*block
	send   map[peer]int // block of a connection
	recv   map[peer]int
	local  map[int]int // block of a lane's local ops
	spare  int         // first chunk of scratch that holds stored data
	kept   map[int]int // chunk of data to chunk of scratch
}

// peer is an end of a connection.
type peer struct{ lane, rank int }

// op is an op of the schedule and what becomes of it.
type op struct {
	schedule.Op
	lane  int
	msg   int    // of a send or receive
	next  int    // of a receive: the send that it is one instruction with, or -1
	taken bool   // of a send: part of the instruction before
	pass  bool   // of a reduction that is sent on: nobody needs the sum here
	spots []spot // by chunk
}

// spot is where one chunk of an op comes from and goes to.
type spot struct{ src, dst place }

// place is a chunk of a buffer; buf 0 is none.
type place struct {
	buf Buffer
	off int
}

// maxOps limits the ops of all ranks; the schedules that fit have far fewer.
const maxOps = 1 << 21

// lower runs the passes.
func lower(s *schedule.Schedule, set Settings, how sharing) (*Algo, error) {
	l := &lowering{s: s, set: set, kind: s.Kind}
	if s.Kind == coll.Hypercube {
		l.kind = coll.AllGather
	}
	if err := l.accept(); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("the schedule is wrong: %w", err)
	}
	for r := range s.Ranks {
		x, err := l.linearise(r)
		if err != nil {
			return nil, err
		}
		l.ranks = append(l.ranks, x)
	}
	if err := l.match(); err != nil {
		return nil, err
	}
	for _, x := range l.ranks {
		x.pair(how)
		if err := x.peers(); err != nil {
			return nil, err
		}
		l.dead(x)
		l.locate(x)
		if x.spare+len(x.kept) > maxOffset {
			return nil, fmt.Errorf("rank %d needs %d chunks of scratch; the reader takes %d", x.id, x.spare+len(x.kept), maxOffset)
		}
	}
	l.cut()
	return l.emit()
}

// accept refuses what the format cannot say.
func (l *lowering) accept() error {
	s := l.s
	chunks := s.Layout.Chunks
	switch {
	case s.Kind == coll.AllToAllV:
		return fmt.Errorf("%s: blocks of different sizes; a file's chunks are equal", s.Kind)
	case word(l.kind) == "":
		return fmt.Errorf("%s: a file serves all_reduce, reduce_scatter, all_gather, all_to_all, broadcast and reduce", s.Kind)
	case s.Kind.Rooted() && !l.set.Rooted:
		return fmt.Errorf("%s: the reader picks a file by collective and size whatever the root, so that calls with a root other than %d would go wrong; allow it where there are none", s.Kind, s.Root)
	case len(s.Switches) > 0:
		return fmt.Errorf("%s by %s: a switch computes, and a file has programs for GPUs only", s.Kind, s.Name)
	case s.Ranks < 2:
		return fmt.Errorf("%d rank; a file needs two that exchange something", s.Ranks)
	case s.Ranks > maxOffset:
		return fmt.Errorf("%d ranks; the reader takes %d", s.Ranks, maxOffset)
	case s.Lanes > maxChannels:
		return fmt.Errorf("%d lanes, each a channel of its own; the reader takes %d", s.Lanes, maxChannels)
	case chunks > maxOffset || s.Temp > maxOffset:
		return fmt.Errorf("%d chunks of data and %d of scratch; the reader takes %d", chunks, s.Temp, maxOffset)
	}
	if _, ok := s.Program.(schedule.Stored); ok {
		return nil // it is in memory already
	}
	total := 0
	for r := range s.Ranks {
		for lane := range s.Lanes {
			n := s.Len(r, lane)
			if total += n; total <= maxOps {
				continue
			}
			return fmt.Errorf("rank %d lane %d has %d ops, and there are %d ranks; %d thread blocks of %d steps do not hold that", r, lane, n, s.Ranks, maxBlocks, maxBlockSteps)
		}
	}
	return nil
}

// linearise puts the ops of a rank into one order. A lane goes on until it must wait, so that a
// receive and the send behind it stay together.
func (l *lowering) linearise(r int) (*rank, error) {
	s := l.s
	x := &rank{id: r, send: map[peer]int{}, recv: map[peer]int{}, local: map[int]int{}, spare: s.Temp, kept: map[int]int{}}
	at := make([]int, s.Lanes)
	for moved := true; moved; {
		moved = false
		for lane := range s.Lanes {
			for at[lane] < s.Len(r, lane) {
				o := s.At(r, lane, at[lane])
				if w := o.After; w.Count > 0 && (int(w.Lane) >= s.Lanes || at[w.Lane] < int(w.Count)) {
					break
				}
				at[lane]++
				moved = true
				if o.Verb != schedule.Nop && o.Len() > 0 {
					x.ops = append(x.ops, op{Op: o, lane: lane, next: -1})
				}
			}
		}
	}
	for lane := range s.Lanes {
		if at[lane] < s.Len(r, lane) {
			return nil, fmt.Errorf("rank %d lane %d waits for ever at op %d (%s)", r, lane, at[lane], s.At(r, lane, at[lane]))
		}
	}
	return x, nil
}

// match numbers the messages.
func (l *lowering) match() error {
	type line struct{ from, to, lane int }
	sent := map[line][]int{}
	for _, x := range l.ranks {
		for i := range x.ops {
			if o := &x.ops[i]; o.Verb == schedule.Send {
				k := line{x.id, int(o.Peer), o.lane}
				o.msg = len(l.msgs)
				l.msgs = append(l.msgs, message{n: o.Len()})
				sent[k] = append(sent[k], o.msg)
			}
		}
	}
	for _, x := range l.ranks {
		for i := range x.ops {
			o := &x.ops[i]
			if !o.Verb.Receives() {
				continue
			}
			k := line{int(o.Peer), x.id, o.lane}
			if len(sent[k]) == 0 || l.msgs[sent[k][0]].n != o.Len() {
				return fmt.Errorf("rank %d lane %d: %s has no message of its length from there", x.id, o.lane, o.Op)
			}
			o.msg = sent[k][0]
			l.msgs[o.msg].ok = true
			sent[k] = sent[k][1:]
		}
	}
	for _, x := range l.ranks {
		for i := range x.ops {
			if o := &x.ops[i]; o.Verb == schedule.Send && !l.msgs[o.msg].ok {
				return fmt.Errorf("rank %d lane %d: %s is never received", x.id, o.lane, o.Op)
			}
		}
	}
	return nil
}
