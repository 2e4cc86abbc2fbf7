package bus

import (
	"context"
	"errors"
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
}

// errAnotherStore tells that the stream ends before what was read from it already.
var errAnotherStore = errors.New("the store is shorter than what was read from it: it was replaced or restored; " +
	"reading again from 1")

// Many at once, for a server that starts has millions to read; but no more than a connection may hold.
const (
	pullMost  = 4096
	pullBytes = 8 << 20
	readAhead = 1024 // messages that are read while those before them are folded
)

// answerMost is how long the store may take to answer. A server that dies answers nobody, and then another is asked.
const answerMost = 10 * time.Second

// stillFor is how long is waited for the next message before the store is asked whether there is one, and stillMost how
// often it may say so at a place where none comes. Messages under way to a server that died are lost, and so may be the
// request for them; a new consumer gets them. A replica that has just started lags behind what the others acknowledged,
// and a damaged store may count messages that it cannot read.
const (
	stillFor  = 3 * time.Second
	stillMost = 3
)

var errStuck = errors.New("no message arrives although the store has more; reading again")

// follower is what is read of the stream, and who is told.
type follower struct {
	Following
	bus    *Bus
	todo   chan func() // what is done with it, in order
	next   uint64      // the sequence that comes next
	at     time.Time   // when the one before it was stored
	target uint64      // the last there was at the beginning
	read   bool        // CaughtUp was called
	still  int         // how often no message came at this place although there are more

	replicated bool // the consumer reads one replica, which may lag behind what the others acknowledged
	trims      bool // it drops what is old
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
	r := &follower{Following: f, bus: b, next: max(f.From, 1), todo: todo}
	var pause patience
	for {
		began := r.next
		err := r.consume(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errAnotherStore), errors.Is(err, nats.ErrConnectionClosed),
			errors.Is(err, jetstream.ErrStreamNotFound):
			return err
		}
		if r.next > began {
			pause = 0
		}
		if err := pause.wait(ctx); err != nil {
			return err
		}
	}
}

// more looks how far the stream goes, and whether there is more to read.
func (r *follower) more(ctx context.Context) (bool, error) {
	info, err := r.bus.info(ctx)
	if err != nil {
		return false, err
	}
	last := info.State.LastSeq
	if last+1 < r.next {
		return false, errAnotherStore
	}
	r.replicated, r.trims = info.Config.Replicas > 1, trims(info)
	if !r.read {
		r.target = max(r.target, last)
	}
	return info.State.Msgs > 0 && last >= r.next, nil
}

// passed tells how far it is, and whether that is the end: a store may have lost what came before its last sequence.
func (r *follower) passed(end bool) {
	if r.read || r.next <= r.target && !end {
		return
	}
	r.read = true
	r.bus.mark.compare(r.next-1, r.at, r.trims, r.target)
	if upTo := max(r.next-1, r.target); r.CaughtUp != nil {
		r.todo <- func() { r.CaughtUp(upTo) }
	}
}

// consume reads with one consumer, as far as that goes; another goes on at next.
func (r *follower) consume(ctx context.Context) error {
	if _, err := r.more(ctx); err != nil {
		return err
	}
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
	info := c.CachedInfo()
	r.passed(info != nil && info.NumPending == 0 && !r.replicated)
	defer context.AfterFunc(ctx, it.Stop)()
	for {
		m, err := it.Next(jetstream.NextMaxWait(stillFor))
		switch {
		case errors.Is(err, nats.ErrTimeout) && ctx.Err() == nil:
			more, err := r.more(ctx)
			if err != nil {
				return err
			}
			if more {
				r.still++
			}
			if r.passed(!more || r.still >= stillMost); more {
				return errStuck
			}
		case err != nil:
			return err
		default:
			if err := r.take(m); err != nil {
				return err
			}
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
	if e.Publisher, err = fleet.OfSubject(m.Subject()); err == nil {
		n, err := fleet.Decode[fleet.Event](m.Data())
		if err == nil && n.Node == e.Publisher { // else it is none, or came under another's name
			e.Event = n
		}
		if e.Event != nil && n.Node == "" {
			own = n.Seq
		}
	}
	r.bus.mark.note(e.Seq, e.Stored, own)
	r.todo <- func() { r.Each(e) }
	r.next, r.at, r.still = e.Seq+1, e.Stored, 0
	r.passed(meta.NumPending == 0 && !r.replicated)
	return nil
}
