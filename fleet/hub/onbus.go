package hub

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// OnBus is NATS as a hub needs it. The stream must be there; see bus.Ensure. journal keeps what the server itself has
// said, for a store that loses it; nil for one that somebody else looks after.
func OnBus(b *bus.Bus, journal *bus.Journal) Bus {
	o := &onBus{Bus: b, publisher: b.Publisher(), journal: journal, turn: make(chan struct{}, 1)}
	o.publisher.Journal = journal
	return o
}

// Published is the last number of the journal.
func (o *onBus) Published() uint64 { return o.journal.Last() }

// Resend stores again what the journal has of some spans.
func (o *onBus) Resend(ctx context.Context, spans []fleet.Span) (int, error) {
	if o.journal == nil {
		return 0, nil
	}
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-o.turn }()
	return o.publisher.Resend(ctx, spans)
}

type onBus struct {
	*bus.Bus
	publisher *bus.Publisher
	journal   *bus.Journal
	turn      chan struct{} // one says something at a time
	read      atomic.Uint64 // the greatest number of a server's event that was read
}

// Publish appends an event. Several servers speak on one subject: who was overtaken says it again. Its number is above
// all that the store, the journal and those who follow the stream know of; the store alone may have lost the last ones.
func (o *onBus) Publish(ctx context.Context, n *fleet.Event) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done(): // the store takes nothing from who speaks now
		return context.Cause(ctx)
	}
	defer func() { <-o.turn }()
	o.publisher.After(max(o.journal.Last(), o.read.Load()))
	for {
		err := o.publisher.Publish(ctx, n)
		var other *bus.ConflictError
		if !errors.As(err, &other) || ctx.Err() != nil {
			return err
		}
	}
}

// readAhead is how many entries are read while those before them are folded.
const readAhead = 1024

// Follow reads the stream; what is no event comes as an entry without any. Reading and folding go on side by
// side, for a server that starts has millions to read.
func (o *onBus) Follow(ctx context.Context, above uint64, fold func(Entry), caughtUp func(uint64)) error {
	read := make(chan func(), readAhead)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(read)
	wg.Go(func() {
		for do := range read {
			if ctx.Err() == nil {
				do()
			}
		}
	})
	each := func(e Entry) { read <- func() { fold(e) } }
	var stored time.Time
	var identity string
	return o.Bus.Follow(ctx, bus.Following{
		From:     above + 1,
		CaughtUp: func(seq uint64) { read <- func() { caughtUp(seq) } },
		Stored:   func(id string, at time.Time) { identity, stored = id, at },
		Each: func(seq uint64, n *fleet.Event) error {
			if n.Node == "" {
				o.read.Store(max(o.read.Load(), n.Seq))
				_ = o.journal.Read(identity, n) // a disk that is full; what is not in it cannot be sent again
			}
			each(Entry{Seq: seq, Stored: stored, Publisher: n.Node, Event: n}) // the bus compared it with the subject
			return nil
		},
		Bad: func(seq uint64, _ string, _ error) { each(Entry{Seq: seq, Stored: stored}) },
	})
}

// Lead runs a function while the lease is ours, and waits for it when it no longer is.
func (o *onBus) Lead(ctx context.Context, run func(context.Context)) error {
	turns, err := o.Bus.Lead(ctx, "hub")
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	cancel := func() {}
	for leads := range turns {
		cancel()
		wg.Wait()
		if leads {
			var own context.Context
			own, cancel = context.WithCancel(ctx)
			wg.Go(func() { run(own) })
		}
	}
	cancel()
	return nil
}
