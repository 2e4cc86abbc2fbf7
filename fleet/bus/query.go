package bus

import (
	"context"
	"errors"
	"time"

	"busbar.dev/fleet"
)

// Range is a piece of the stream.
type Range struct {
	// Nodes are whose news to read; nil is all of it, the servers' own included. "" is the
	// servers' own.
	Nodes []fleet.Name
	// Since and Until are when it was stored; zero is no bound.
	Since, Until time.Time
	// Most is the most messages to read; 0 is no bound.
	Most int
}

// errRead ends a query that has read all there is.
var errRead = errors.New("all of it is read")

// Query reads what is stored of a range, in order, and ends. Messages that are no events are
// passed over and counted. It goes on when connections or leaders change, until the context ends.
func (b *Bus) Query(ctx context.Context, r Range, each func(seq uint64, n *fleet.Event) error) (bad int, err error) {
	read, late := 0, false
	q := &reading{
		atOnce: 256, // many want the first few
		bad: func(uint64, string, error) {
			if !late {
				bad++
			}
		},
		each: func(seq uint64, n *fleet.Event) error {
			if late {
				return errRead
			}
			return each(seq, n)
		},
	}
	if !r.Since.IsZero() {
		q.since = &r.Since
	}
	for _, n := range r.Nodes {
		subject := fleet.HubLog
		if n != "" {
			subject = fleet.LogOf(n)
		}
		q.only = append(q.only, subject)
	}
	q.stored = func(_ uint64, at time.Time) {
		late = !r.Until.IsZero() && !at.Before(r.Until)
		if !late {
			read++
		}
	}
	q.passed = func(_ uint64, end bool) error {
		if end || late || r.Most > 0 && read >= r.Most {
			return errRead
		}
		return nil
	}
	defer func() { b.forget(ctx, q.name) }()
	if err = b.goOn(ctx, q, nil, nil); errors.Is(err, errRead) {
		err = nil
	}
	return bad, err
}

// forget gives a consumer back to the server, which would keep it for a while: there are only so
// many, and questions come often.
func (b *Bus) forget(ctx context.Context, consumer string) {
	if consumer == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.js.DeleteConsumer(ctx, fleet.Stream, consumer) // or it ends by itself
}
