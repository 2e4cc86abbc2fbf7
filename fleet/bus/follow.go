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
	// Stored, where it is set, is told before each, and before what is bad, its identity and when the store took it.
	Stored func(id string, at time.Time)
	// CaughtUp, where it is set, is called once, when all that was stored at the beginning has been read, up to a
	// sequence. Of a store that was damaged that may be more than the last that Each got.
	CaughtUp func(seq uint64)
	// Bad, where it is set, hears of messages that are no events and were passed over.
	Bad func(seq uint64, subject string, err error)
	// On, where it is set, hears why reading had to begin again.
	On func(error)
}

// ErrAnotherStore tells that the stream ends before what was read from it already.
var ErrAnotherStore = errors.New("the store is shorter than what was read from it: it was replaced or restored; " +
	"reading again from 1")

// Follow reads the stream and goes on when connections or leaders change, until the context
// ends or Each returns an error.
func (b *Bus) Follow(ctx context.Context, f Following) error {
	target := uint64(0)
	caughtUp := f.CaughtUp == nil
	r := &reading{next: max(f.From, 1), atOnce: pullMost, stored: f.Stored, bad: f.Bad, each: f.Each}
	r.passed = func(seq uint64, end bool) error {
		if !caughtUp && (seq >= target || end && r.believed(seq)) {
			caughtUp = true
			f.CaughtUp(max(seq, target))
		}
		return nil
	}
	return b.goOn(ctx, r, f.On, func() error {
		ctx, cancel := context.WithTimeout(ctx, answerMost)
		defer cancel()
		s, err := b.js.Stream(ctx, fleet.Stream)
		if err != nil {
			return err
		}
		last := s.CachedInfo().State.LastSeq
		if last+1 < r.next {
			return ErrAnotherStore
		}
		target, r.replicated = max(target, last), s.CachedInfo().Config.Replicas > 1
		if !caughtUp && r.next > target {
			caughtUp = true
			f.CaughtUp(r.next - 1)
		}
		return nil
	})
}

// goOn reads with one consumer after the other, until the context or who is told ends it. before, where it is set, is
// asked before each, and on hears why another was needed.
func (b *Bus) goOn(ctx context.Context, r *reading, on func(error), before func() error) error {
	wait := firstWait
	for {
		began := r.next
		var err error
		if before != nil {
			err = before()
		}
		if err == nil {
			err = b.read(ctx, r)
		}
		if r.next > began {
			wait = firstWait
		}
		var mine *eachError
		switch {
		case errors.As(err, &mine):
			return mine.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrAnotherStore), errors.Is(err, nats.ErrConnectionClosed),
			errors.Is(err, jetstream.ErrStreamNotFound) && !b.cfg.Patient:
			return err
		}
		if on != nil {
			on(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, mostWait)
	}
}

// eachError carries the error of who is told through.
type eachError struct{ err error }

func (e *eachError) Error() string { return e.err.Error() }

// Many at once, for a server that starts has millions to read; but no more than a connection may hold.
const (
	pullMost  = 4096
	pullBytes = 8 << 20
)

// answerMost is how long the store may take to answer. A server that dies answers nobody, and then another is asked.
const answerMost = 10 * time.Second

// stillFor is how long is waited for the next message before the store is asked whether there is one. A damaged store
// may count messages that it cannot read.
const (
	stillFor  = 3 * time.Second
	stillMost = 5 // times, where the store says that there is more
)

// errStuck is that the store says there is more and none of it comes: messages under way to a server that died are
// lost, and so may be the request for them, of which another server has not heard yet who answers it. A new consumer
// gets them again. That is tried as often as the store does not have the request, and otherwise once at a place, for a
// damaged store may count what it cannot read.
var errStuck = errors.New("no message arrives although the store has more; reading again")

// reading is what is read of the stream, and who is told.
type reading struct {
	next   uint64     // the sequence that comes next; 0 is the beginning
	since  *time.Time // from when on, where next is 0
	only   []string   // subjects; none is all
	atOnce int        // messages that are asked for at a time
	stored func(id string, at time.Time)
	bad    func(seq uint64, subject string, err error)
	each   func(seq uint64, n *fleet.Event) error
	// passed is told how far it is, and whether that is the end: a store may have lost what came before its last
	// sequence. An error ends reading.
	passed func(seq uint64, end bool) error
	stuck  uint64 // where no message came although there are more
	name   string // of the consumer

	replicated bool   // the stream has replicas, of which the consumer reads one
	endAt      uint64 // where the replica last said that there is no more
	ends       int    // and how often it said so
}

// believed tells whether a replica that says there is nothing after seq, although there should be, is right. One that
// has just started, or is slow, lags behind what the others acknowledged; it is asked again twice, seconds apart.
// Without replicas what is missing is lost.
func (r *reading) believed(seq uint64) bool {
	if seq != r.endAt {
		r.endAt, r.ends = seq, 0
	}
	r.ends++
	return !r.replicated || r.ends > 2
}

// begin is where a consumer begins.
func (r *reading) begin() jetstream.OrderedConsumerConfig {
	c := jetstream.OrderedConsumerConfig{FilterSubjects: r.only, InactiveThreshold: time.Minute, MaxResetAttempts: 3}
	switch {
	case r.next > 0:
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.next
	case r.since != nil:
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, r.since
	default:
		c.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	return c
}

// read reads with one consumer, as far as that goes; another goes on at next.
func (b *Bus) read(ctx context.Context, r *reading) error {
	asking, answered := context.WithTimeout(ctx, answerMost)
	c, err := b.js.OrderedConsumer(asking, fleet.Stream, r.begin())
	answered()
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(r.atOnce, pullBytes),
		jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	if info := c.CachedInfo(); info != nil {
		r.name = info.Name
		if info.NumPending == 0 {
			if err := r.passed(max(r.next, 1)-1, true); err != nil {
				return &eachError{err}
			}
		}
	}
	stop := context.AfterFunc(ctx, it.Stop)
	defer stop()
	for still := 0; ; {
		m, err := it.Next(jetstream.NextMaxWait(stillFor))
		if errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil {
			asking, answered := context.WithTimeout(ctx, answerMost)
			info, err := c.Info(asking)
			answered()
			if err != nil {
				return err // the server that had it is gone: another makes a new one
			}
			more := info.NumPending > 0 || info.Delivered.Consumer > 0 && info.Delivered.Stream >= max(r.next, 1)
			if still++; more && (info.NumWaiting == 0 || still >= 2 && r.stuck != max(r.next, 1)) {
				r.stuck = max(r.next, 1)
				return errStuck
			}
			if err := r.passed(max(r.next, 1)-1, !more || still >= stillMost); err != nil {
				return &eachError{err}
			}
			continue
		}
		still = 0
		if err != nil {
			return err
		}
		if err := r.take(m); err != nil {
			return err
		}
	}
}

// take takes one message.
func (r *reading) take(m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	seq := meta.Sequence.Stream
	if seq < r.next {
		return nil // a consumer that was made anew may begin early
	}
	if r.stored != nil {
		r.stored(m.Headers().Get(headID), meta.Timestamp)
	}
	n, err := decode(m.Subject(), m.Data())
	if err != nil {
		if r.bad != nil {
			r.bad(seq, m.Subject(), err)
		}
	} else if err := r.each(seq, n); err != nil {
		return &eachError{err}
	}
	r.next = seq + 1
	if err := r.passed(seq, meta.NumPending == 0); err != nil {
		return &eachError{err}
	}
	return nil
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
		return nil, fmt.Errorf("event of node %q on %s", n.Node, subject)
	}
	return n, nil
}
