package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Entry is one message of the stream.
type Entry struct {
	Seq    uint64    // of the stream
	Stored time.Time // when the store took it
	// Publisher is whose credentials sent it, by its subject; empty for a server.
	Publisher fleet.Name
	Event     *fleet.Event // nil for what is no event of its publisher
}

// Following is how somebody reads along.
type Following struct {
	// From is the stream's sequence to begin with; 0 and 1 are the beginning.
	From uint64
	// Each gets every message in order, once.
	Each func(Entry)
	// CaughtUp, where it is set, is called once, when all that was stored at the beginning has been read, up to a
	// sequence. Of a store that was damaged that may be more than the last that Each got.
	CaughtUp func(seq uint64)
	// On, where it is set, hears why reading had to begin again.
	On func(error)
}

// ErrAnotherStore tells that the stream ends before what was read from it already.
var ErrAnotherStore = errors.New("the store is shorter than what was read from it: it was replaced or restored; " +
	"reading again from 1")

// Many at once, for a server that starts has millions to read; but no more than a connection may hold.
const (
	pullMost  = 4096
	pullBytes = 8 << 20
	readAhead = 1024 // messages that are read while those before them are folded
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

// follower is what is read of the stream, and who is told.
type follower struct {
	Following
	bus    *Bus
	pass   func(func()) // has something done after all that came before
	next   uint64       // the sequence that comes next
	at     time.Time    // when the one before it was stored
	target uint64       // the last there was at the beginning
	read   bool         // CaughtUp was called
	stuck  uint64       // where no message came although there are more

	replicated bool   // the stream has replicas, of which the consumer reads one
	trims      bool   // it drops what is old
	endAt      uint64 // where the replica last said that there is no more
	ends       int    // and how often it said so
}

// Follow reads the stream and goes on when connections or leaders change, until the context ends. Reading and what Each
// does go on side by side.
func (b *Bus) Follow(ctx context.Context, f Following) error {
	todo := make(chan func(), readAhead)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(todo)
	wg.Go(func() {
		for do := range todo {
			if ctx.Err() == nil {
				do()
			}
		}
	})
	r := &follower{Following: f, bus: b, next: max(f.From, 1), pass: func(do func()) { todo <- do }}
	wait := firstWait
	for {
		began := r.next
		err := r.begin(ctx)
		if err == nil {
			err = r.consume(ctx)
		}
		if r.next > began {
			wait = firstWait
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrAnotherStore), errors.Is(err, nats.ErrConnectionClosed),
			errors.Is(err, jetstream.ErrStreamNotFound) && !b.cfg.Patient:
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

// begin looks how far the stream goes, before each consumer.
func (r *follower) begin(ctx context.Context) error {
	info, err := r.bus.info(ctx)
	if err != nil {
		return err
	}
	if info.State.LastSeq+1 < r.next {
		return ErrAnotherStore
	}
	r.target, r.replicated, r.trims = max(r.target, info.State.LastSeq), info.Config.Replicas > 1, trims(info)
	if r.next > r.target {
		r.caughtUp()
	}
	return nil
}

// passed tells how far it is, and whether that is the end: a store may have lost what came before its last sequence. A
// replica that has just started, or is slow, lags behind what the others acknowledged; it is asked again twice, seconds
// apart. Without replicas what is missing is lost.
func (r *follower) passed(end bool) {
	seq := r.next - 1
	if end && seq < r.target && r.replicated {
		if seq != r.endAt {
			r.endAt, r.ends = seq, 0
		}
		r.ends++
		end = r.ends > 2
	}
	if end || seq >= r.target {
		r.caughtUp()
	}
}

func (r *follower) caughtUp() {
	if r.read {
		return
	}
	r.read = true
	r.bus.mark.compare(r.next-1, r.at, r.trims, r.target)
	if upTo := max(r.next-1, r.target); r.CaughtUp != nil {
		r.pass(func() { r.CaughtUp(upTo) })
	}
}

// consume reads with one consumer, as far as that goes; another goes on at next.
func (r *follower) consume(ctx context.Context) error {
	asking, answered := context.WithTimeout(ctx, answerMost)
	c, err := r.bus.js.OrderedConsumer(asking, fleet.Stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.next, InactiveThreshold: time.Minute,
		MaxResetAttempts: 3,
	})
	answered()
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(pullMost, pullBytes),
		jetstream.PullHeartbeat(5*time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	if info := c.CachedInfo(); info != nil && info.NumPending == 0 {
		r.passed(true)
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
			more := info.NumPending > 0 || info.Delivered.Consumer > 0 && info.Delivered.Stream >= r.next
			if still++; more && (info.NumWaiting == 0 || still >= 2 && r.stuck != r.next) {
				r.stuck = r.next
				return errStuck
			}
			r.passed(!more || still >= stillMost)
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
func (r *follower) take(m jetstream.Msg) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	e := Entry{Seq: meta.Sequence.Stream, Stored: meta.Timestamp}
	if e.Seq < r.next {
		return nil // a consumer that was made anew may begin early
	}
	own := uint64(0)
	e.Publisher, e.Event, err = decode(m.Subject(), m.Data())
	if err == nil && e.Publisher == "" {
		own = e.Event.Seq
	}
	r.bus.mark.note(e.Seq, e.Stored, own)
	r.pass(func() { r.Each(e) })
	r.next, r.at = e.Seq+1, e.Stored
	r.passed(meta.NumPending == 0)
	return nil
}

// decode reads an event and refuses what came under another's name.
func decode(subject string, data []byte) (fleet.Name, *fleet.Event, error) {
	who, err := fleet.OfSubject(subject)
	if err != nil {
		return "", nil, err
	}
	n, err := fleet.Decode[fleet.Event](data)
	if err != nil {
		return who, nil, err
	}
	if n.Node != who {
		return who, nil, fmt.Errorf("event of node %q on %s", n.Node, subject)
	}
	return who, n, nil
}
