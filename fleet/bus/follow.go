package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Following is how somebody reads along.
type Following struct {
	// From is the stream's sequence to begin with; 0 and 1 are the beginning.
	From uint64
	// Each gets everything in order, once. An error ends it.
	Each func(seq uint64, n *fleet.Event) error
	// Stored, where it is set, is told before each, and before what is bad, when the store took it.
	Stored func(seq uint64, at time.Time)
	// CaughtUp, where it is set, is called once, when all that was stored at the beginning has been read, up to a
	// sequence. Of a store that was damaged that may be more than the last that Each got.
	CaughtUp func(seq uint64)
	// Bad, where it is set, hears of messages that are no events and were passed over.
	Bad func(seq uint64, subject string, err error)
	// On, where it is set, hears why reading had to begin again.
	On func(error)
}

// ErrAnotherStore tells that the stream ends before what was read from it already.
var ErrAnotherStore = errors.New("the store ends before what was read from it: it is another one, or was restored; begin at 1")

// Follow reads the stream and goes on when connections or leaders change, until the context
// ends or Each returns an error.
func (b *Bus) Follow(ctx context.Context, f Following) error {
	next, stuck := max(f.From, 1), uint64(0)
	target := uint64(0)
	caughtUp := f.CaughtUp == nil
	wait := firstWait
	for {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			s, err := b.js.Stream(ctx, fleet.Stream)
			if err != nil {
				return err
			}
			last := s.CachedInfo().State.LastSeq
			if last+1 < next {
				return ErrAnotherStore
			}
			target = max(target, last)
			return nil
		}()
		if err == nil {
			if !caughtUp && next > target {
				caughtUp = true
				f.CaughtUp(next - 1)
			}
			began := next
			next, err = b.read(ctx, &f, next, &stuck, func(seq uint64, end bool) {
				if !caughtUp && (end || seq >= target) {
					caughtUp = true
					f.CaughtUp(max(seq, target))
				}
			})
			if next > began {
				wait = firstWait
			}
		}
		var mine *eachError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &mine):
			return mine.err
		case errors.Is(err, ErrAnotherStore), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrStreamNotFound) && !b.patient():
			return err
		}
		if f.On != nil {
			f.On(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, mostWait)
	}
}

func (b *Bus) patient() bool { return b.cfg.Patient }

// eachError carries the reader's own error through.
type eachError struct{ err error }

func (e *eachError) Error() string { return e.err.Error() }

// Many at once, for a server that starts has millions to read; but no more than a connection may hold.
const (
	pullMost  = 4096
	pullBytes = 8 << 20
)

// stillFor is how long is waited for the next message before the store is asked whether there is one. A damaged store may
// count messages that it cannot read.
const (
	stillFor  = 3 * time.Second
	stillMost = 5 // times, where the store says that there is more
)

// errStuck is that the store says there is more and none of it comes: messages under way to a server that died are lost,
// and a new consumer gets them again. That is tried once at a place, for a damaged store may count what it cannot read.
var errStuck = errors.New("no message comes although the store has more; reading anew")

// read reads from a sequence on with one consumer, and returns what comes next. passed is told how far it is, and
// whether that is the end: a store may have lost what came before its last sequence.
func (b *Bus) read(ctx context.Context, f *Following, next uint64, stuck *uint64, passed func(seq uint64, end bool)) (uint64, error) {
	c, err := b.js.OrderedConsumer(ctx, fleet.Stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		InactiveThreshold: time.Minute, MaxResetAttempts: 3,
	})
	if err != nil {
		return next, err
	}
	it, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(pullMost, pullBytes), jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return next, err
	}
	defer it.Stop()
	if info := c.CachedInfo(); info != nil && info.NumPending == 0 {
		passed(next-1, true)
	}
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	for still := 0; ; {
		m, err := it.Next(jetstream.NextMaxWait(stillFor))
		if errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
			info, err := c.Info(ctx)
			if err != nil {
				return next, err // the server that had it is gone: another makes a new one
			}
			more := info.NumPending > 0 || info.Delivered.Stream >= next
			if still++; more && still >= 2 && *stuck != next {
				*stuck = next
				return next, errStuck
			}
			passed(next-1, !more || still >= stillMost)
			continue
		}
		still = 0
		if err != nil {
			return next, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return next, err
		}
		seq := meta.Sequence.Stream
		if seq < next {
			continue // a consumer that was made anew may begin early
		}
		if f.Stored != nil {
			f.Stored(seq, meta.Timestamp)
		}
		n, err := decode(m.Subject(), m.Data())
		if err != nil {
			if f.Bad != nil {
				f.Bad(seq, m.Subject(), err)
			}
		} else if err := f.Each(seq, n); err != nil {
			return next, &eachError{err}
		}
		next = seq + 1
		passed(seq, meta.NumPending == 0)
	}
}

// decode reads an event and refuses what came under another's name.
func decode(subject string, data []byte) (*fleet.Event, error) {
	n, err := fleet.DecodeEvent(data)
	if err != nil {
		return nil, err
	}
	who, err := fleet.OfSubject(subject)
	if err != nil {
		return nil, err
	}
	if n.Node != who {
		return nil, fmt.Errorf("news of node %q on %s", n.Node, subject)
	}
	return n, nil
}

// forget gives a consumer back to the server, which would keep it for a while: there are only so
// many, and questions come often.
func (b *Bus) forget(ctx context.Context, consumer string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.js.DeleteConsumer(ctx, fleet.Stream, consumer) // or it ends by itself
}

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

// Query reads what is stored of a range, in order, and ends. Messages that are no events are
// passed over and counted.
func (b *Bus) Query(ctx context.Context, r Range, each func(seq uint64, n *fleet.Event) error) (bad int, err error) {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, InactiveThreshold: 30 * time.Second}
	if !r.Since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.Since
	}
	for _, n := range r.Nodes {
		subject := fleet.HubLog
		if n != "" {
			subject = fleet.LogOf(n)
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, subject)
	}
	c, err := b.js.OrderedConsumer(ctx, fleet.Stream, cfg)
	if err != nil {
		return 0, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return 0, err
	}
	defer b.forget(ctx, info.Name)
	if info.NumPending == 0 {
		return 0, nil
	}
	it, err := c.Messages(jetstream.PullMaxMessages(512))
	if err != nil {
		return 0, err
	}
	defer it.Stop()
	for read := 0; r.Most == 0 || read < r.Most; read++ {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return bad, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return bad, err
		}
		if !r.Until.IsZero() && !meta.Timestamp.Before(r.Until) {
			return bad, nil
		}
		n, err := decode(m.Subject(), m.Data())
		if err != nil {
			bad++
		} else if err := each(meta.Sequence.Stream, n); err != nil {
			return bad, err
		}
		if meta.NumPending == 0 {
			return bad, nil
		}
	}
	return bad, nil
}
