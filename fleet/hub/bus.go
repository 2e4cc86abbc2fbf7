package hub

import (
	"context"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// Entry is one message of the stream.
type Entry = bus.Entry

// Bus is what a hub needs of the transport.
type Bus interface {
	// Publish appends an event of the server and returns when it is kept. It gives it its number.
	Publish(ctx context.Context, n *fleet.Event) error
	// Last is the number of the newest entry.
	Last(ctx context.Context) (uint64, error)
	// Follow reads the stream in order until the context ends.
	Follow(ctx context.Context, f bus.Following) error
	// Trimmed tells whether the store drops the oldest entries, or did so.
	Trimmed(ctx context.Context) (bool, error)
	// Mark is what is known of the store apart from it.
	Mark() *bus.Mark
	// Ask asks a node to do a part or to stop one.
	Ask(ctx context.Context, node fleet.Name, p *fleet.Part) (*fleet.Answer, error)
	// Transient calls back with what nodes send and nobody keeps, until the context ends.
	Transient(ctx context.Context, t bus.Transient) error
	// Lead runs a function whenever this hub leads those of the bus, with a context that ends
	// when it no longer does, until the context ends.
	Lead(ctx context.Context, run func(context.Context)) error
}
