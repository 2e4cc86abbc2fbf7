// Package schedule holds collectives as programs over ranks: builders for the known algorithms,
// which tests prove.
//
// A schedule is one program for each rank and lane. The ops of a lane run in order; lanes run
// side by side. The k-th send from a to b on a lane meets the k-th receive from a on that lane
// of b; there are no tags. An op may wait for another lane of its own rank (Op.After); nothing
// else orders two lanes. A lane may change its peer from op to op.
//
// Programs are computed, not stored: Len and At are pure, cheap and do not allocate, so a ring
// over a million ranks costs no memory and a simulator can suspend a lane by keeping a number.
//
// # What an op means
//
// Every connection (a to b on one lane) is a queue. A send is done when its buffer may be used
// again: the message has been taken over by the queue, whether or not anyone has read it. A
// receive is done when the data lies in its buffer. A queue must hold at least Schedule.Depth
// unread messages before a send waits; with Depth 0 a send waits until its receive is reached.
// Programs are deterministic, so more depth than Depth never does harm, and the order in which
// lanes happen to run never changes a result.
//
// # Memory
//
// A rank has up to three buffers, cut into chunks. Data holds its contribution at first, and
// the result at the end. Out holds the result of the collectives that cannot work in place
// (all_to_all, all_to_all_v, sendrecv). Temp is scratch. Chunks are equal parts; Layout tells
// where in memory a chunk lies, and a range of chunks need not be one piece of memory. A range
// may be empty, and is a message nevertheless.
//
// # Switches
//
// Reduction and multicast in a switch (NVLS, SHARP) are programs of switches, participants
// numbered from Ranks on that have neither contribution nor result. A member that is read by
// NVLS's multimem.ld_reduce "sends" to its switch; multimem.st is a send to the switch, which
// sends to all. The loads on every link are thus those of the hardware. A switch's consecutive
// receives of one range from its members are one reduction and its consecutive sends of one
// range are one multicast: a simulator lets them run at once. A switch keeps nothing of what it
// has passed on. An engine without such a switch refuses Switches > 0, or runs the program
// somewhere.
//
// Topology, protocol, slicing and cost are no part of a schedule.
package schedule

import (
	"busbar.dev/coll"
)

// Program computes ops. Both methods are pure and safe for concurrent use.
type Program interface {
	// Len is the number of ops of a lane of a rank (or switch).
	Len(rank, lane int) int
	// At is op i of a lane, 0 <= i < Len.
	At(rank, lane, i int) Op
}

// Schedule is a collective as a program. A schedule made by Build is correct.
type Schedule struct {
	Name     string // of the algorithm
	Kind     coll.Kind
	Ranks    int
	Root     int // of the rooted kinds
	Lanes    int
	Channels int // parts of the data that lanes work on; lane l serves channel l·Channels/Lanes
	Depth    int // unread messages that a connection must be able to hold
	Layout   Layout
	Temp     int      // chunks of scratch a rank needs
	Switches []Switch // participants from Ranks on
	Program
}

// Switch is a participant in the network that reduces and multicasts.
type Switch struct {
	Kind    SwitchKind
	Members []int // ranks that are joined to it
}

// SwitchKind tells what a switch stands for.
type SwitchKind uint8

// The kinds of switches.
const (
	Multimem  SwitchKind = iota // the NVLink switches of a group: NVLS
	InNetwork                   // the aggregation tree of a network: CollNet, SHARP
)

func (k SwitchKind) String() string {
	if k == Multimem {
		return "nvls"
	}
	return "collnet"
}

// Nodes is the number of participants: ranks and switches.
func (s *Schedule) Nodes() int { return s.Ranks + len(s.Switches) }

// MoreOps reports whether a schedule has more than so many ops, without counting the rest.
func (s *Schedule) MoreOps(than int) bool {
	total := 0
	for r := range s.Nodes() {
		for l := range s.Lanes {
			if total += s.Len(r, l); total > than {
				return true
			}
		}
	}
	return false
}

// Channel is the channel that a lane serves.
func (s *Schedule) Channel(lane int) int { return lane * s.Channels / max(s.Lanes, 1) }

// Op is one instruction.
type Op struct {
	Verb Verb
	Buf  Buffer // what the op reads (Send, Copy, Fold) or writes (Recv, RecvReduce)
	Dst  Buffer // what Copy and Fold write
	Peer int32  // the other participant of Send, Recv and RecvReduce
	// From and To are the range [From, To) of chunks of Buf; At is where the range begins in
	// Dst.
	From, To, At int32
	// Class is 0 where chunks are equal parts. Else the chunks are parts of the pair of ranks
	// (source, destination) = Class-1 divided by Ranks, and the remainder: all_to_all_v.
	Class int32
	After Wait
}

// Wait names ops of another lane of the same rank: the op waits until Lane has done its first
// Count ops. The zero value is no wait.
type Wait struct {
	Lane  int32
	Count int32
}

// Len is the number of chunks.
func (o Op) Len() int { return int(o.To - o.From) }

// Verb is what an op does.
type Verb uint8

// Verbs. There are no fusions of receiving and sending: an exporter or an engine that wants
// them finds them by looking at neighbouring ops.
const (
	Nop        Verb = iota // does nothing but wait
	Send                   // Buf[From:To] to Peer
	Recv                   // from Peer into Buf[From:To]
	RecvReduce             // from Peer, added to Buf[From:To]
	Copy                   // Buf[From:To] to Dst[At:]
	Fold                   // Buf[From:To] added to Dst[At:]: a local reduction
	verbs
)

var verbNames = [verbs]string{"nop", "send", "recv", "recvReduce", "copy", "reduce"}

func (v Verb) String() string {
	if v >= verbs {
		return "verb?"
	}
	return verbNames[v]
}

// Receives reports whether the op takes a message.
func (v Verb) Receives() bool { return v == Recv || v == RecvReduce }

// Local reports whether the op touches memory of its own rank only.
func (v Verb) Local() bool { return v == Copy || v == Fold }

// Buffer is one of the memories of a rank.
type Buffer uint8

// Buffers.
const (
	Data Buffer = iota // the contribution, and the result of the kinds that work in place
	Out                // the result of the others
	Temp               // scratch
	buffers
)

var bufferNames = [buffers]string{"data", "out", "temp"}

func (b Buffer) String() string {
	if b >= buffers {
		return "buffer?"
	}
	return bufferNames[b]
}
