package bench

import (
	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// exchange is the program of pairs of ranks that talk to each other and nobody else. It is no
// collective: it carries sendrecv's name because its buffers are laid out the same way.
type exchange struct {
	partner []int32 // of each rank; -1 rests
	how     exchanging
	times   int
}

// exchanging is what a pair does.
type exchanging uint8

const (
	pingPong exchanging = iota // a message there and back, times over
	upward                     // messages from the lower rank to the higher, and a word when the last has come
	downward                   // the other way
	bothWays                   // messages both ways at once
)

// schedule is the program as one that the engine runs.
func (x exchange) schedule(name string) *schedule.Schedule {
	return &schedule.Schedule{
		Name: name, Kind: coll.SendRecv, Ranks: len(x.partner), Lanes: 1, Channels: 1, Depth: 1,
		Layout: schedule.Layout{Chunks: 1, Blocks: 1, Channels: 1}, Program: x,
	}
}

// Len implements schedule.Program.
func (x exchange) Len(rank, _ int) int {
	switch {
	case x.partner[rank] < 0:
		return 0
	case x.how == pingPong || x.how == bothWays:
		return 2 * x.times
	}
	return x.times + 1
}

// At implements schedule.Program.
func (x exchange) At(rank, _, i int) schedule.Op {
	peer := x.partner[rank]
	lower := rank < int(peer)
	send := schedule.Op{Verb: schedule.Send, Peer: peer, To: 1}
	recv := schedule.Op{Verb: schedule.Recv, Buf: schedule.Out, Peer: peer, To: 1}
	switch x.how {
	case pingPong:
		if (i%2 == 0) == lower {
			return send
		}
		return recv
	case bothWays:
		if i%2 == 0 {
			return send
		}
		return recv
	}
	// The word at the end is a message without bytes.
	if i == x.times {
		send.To, recv.To = 0, 0
	}
	if (lower == (x.how == upward)) == (i < x.times) {
		return send
	}
	return recv
}
