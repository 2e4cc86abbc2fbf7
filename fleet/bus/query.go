package bus

import (
	"context"
	"errors"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go/jetstream"
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
	q.stored = func(_ string, at time.Time) {
		late = !r.Until.IsZero() && !at.Before(r.Until)
		if !late {
			read++
		}
	}
	last, known := uint64(0), false
	q.passed = func(seq uint64, end bool) error {
		if late || r.Most > 0 && read >= r.Most || end && (seq >= last || q.believed(seq)) {
			return errRead
		}
		return nil
	}
	defer func() { b.forget(ctx, q.name) }()
	err = b.goOn(ctx, q, nil, func() error {
		if known {
			return nil
		}
		var err error
		last, q.replicated, err = b.lastOf(ctx, q.only)
		known = err == nil
		return err
	})
	if errors.Is(err, errRead) {
		err = nil
	}
	return bad, err
}

// lastOf is the last sequence stored of subjects, of all where there are none, and whether the stream has replicas.
// Where it has none the first is not asked for: what is stored can be read.
func (b *Bus) lastOf(ctx context.Context, subjects []string) (last uint64, replicated bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	s, err := b.js.Stream(ctx, fleet.Stream)
	if err != nil {
		return 0, false, err
	}
	info := s.CachedInfo()
	if info.Config.Replicas < 2 {
		return 0, false, nil
	}
	if len(subjects) == 0 {
		return info.State.LastSeq, true, nil
	}
	for _, subject := range subjects {
		m, err := s.GetLastMsgForSubject(ctx, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return 0, true, err
		default:
			last = max(last, m.Sequence)
		}
	}
	return last, true, nil
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
