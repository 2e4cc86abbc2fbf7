package hub

import (
	"context"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// Entry is one piece of the stream.
type Entry struct {
	Seq    uint64    // of the stream
	Stored time.Time // when the store took it
	// Publisher is whose credentials said it, empty for a server.
	Publisher fleet.Name
	Event     *fleet.Event
}

// Bus is what a hub needs of the transport.
type Bus interface {
	// Publish appends an event of the server and returns when it is kept. It gives it its number.
	Publish(ctx context.Context, n *fleet.Event) error
	// Last is the number of the newest entry.
	Last(ctx context.Context) (uint64, error)
	// Follow calls each with every entry above a number, in order, until the context ends, and read when those that
	// were there at the beginning have been read, up to a number. A damaged store may end before it.
	Follow(ctx context.Context, above uint64, each func(Entry), read func(upTo uint64)) error
	// Trimmed tells whether the store drops the oldest entries, or did so.
	Trimmed(ctx context.Context) (bool, error)
	// AskResend asks a node for what the store lost. Resend stores again what it lost of the server's own, as far as
	// the server has it; Published is the last number that the server knows to have been stored.
	AskResend(node fleet.Name, r *fleet.Resend) error
	Resend(ctx context.Context, spans []fleet.Span) (int, error)
	Published() uint64
	// Ask asks a node to do a part or to stop one.
	Ask(ctx context.Context, node fleet.Name, p *fleet.Part) (*fleet.Answer, error)
	// Transient calls back with what nodes send and nobody keeps, until the context ends.
	Transient(ctx context.Context, t bus.Transient) error
	// Settle tells all agents of a name which of them goes on, or has them beat.
	Settle(node fleet.Name, s *fleet.Settled) error
	// Lead runs a function whenever this hub leads those of the bus, with a context that ends
	// when it no longer does, until the context ends.
	Lead(ctx context.Context, run func(context.Context)) error
}
