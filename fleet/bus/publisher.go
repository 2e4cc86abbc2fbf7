package bus

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of what is kept, beside NATS' own.
const (
	headSeq = "Busbar-Seq" // its number
	headID  = "Busbar-Id"  // its identity, as Nats-Msg-Id
)

// attempt is how long is waited for one answer of the store. One that went to a connection that was lost never comes.
const attempt = 3 * time.Second

// Backlog is what a publisher has to say: all that is not known to be stored. Only the publisher's goroutine uses it
// while PublishAll runs, and everything may be appended to.
type Backlog interface {
	// Next is the oldest and its identity, which is empty where nothing waits. The identity stays the same however often
	// a thing is sent and whatever number it gets, also after a restart, and nothing else ever has it.
	Next() (id string, n *fleet.Event, err error)
	// Stored takes off the list what is stored, up to an identity that has a number. It is false where that does not wait.
	Stored(id string, number uint64) bool
}

// Publisher says things on one subject of the stream.
type Publisher struct {
	bus       *Bus
	subject   string // in the stream
	publishTo string // where it is said, for the store to keep
	lastTo    string // where the last is asked for

	turn  chan struct{} // one publishes at a time; it guards following
	fresh bool          // what follows is known to be so
	at    uint64        // the stream's sequence of the subject's last message, 0 for none
	last  uint64        // its number
	id    string        // its identity
	// unread is the sequence of the subject's last message as the store says that refuses, and refused how often it
	// said so since it took something: a store that was damaged may have a last message that it cannot read.
	unread  uint64
	refused int
}

// Publisher makes a publisher on the subject of who connected: a node's, or the servers'.
func (b *Bus) Publisher() *Publisher {
	s := &Publisher{
		bus: b, subject: fleet.HubLog, publishTo: fleet.HubLog, lastTo: directGet + fleet.HubLog,
		turn: make(chan struct{}, 1),
	}
	if node := b.cfg.Node; node != "" {
		s.subject, s.publishTo, s.lastTo = fleet.LogOf(node), publishTo+node.Token(), lastTo+node.Token()
	}
	return s
}

// After tells the publisher of a number that is known to be taken: it was acknowledged before this process began. What
// follows gets greater ones, even when the store has lost all of its events.
func (s *Publisher) After(number uint64) { s.bus.mark.note(0, time.Time{}, number) }

// maxCounted is a number that no publisher reaches by counting.
const maxCounted = fleet.MaxSeq / 2

// Publish gives an event its number and stores it. It tries until the context ends; then the event may
// be stored or not.
func (s *Publisher) Publish(ctx context.Context, n *fleet.Event) error {
	return s.PublishAll(ctx, &single{rand.Text(), n})
}

// single is a backlog of one.
type single struct {
	id string
	n  *fleet.Event
}

func (o *single) Next() (string, *fleet.Event, error) { return o.id, o.n, nil }

func (o *single) Stored(id string, number uint64) bool {
	if id != o.id {
		return false
	}
	o.id, o.n.Seq = "", number
	return true
}

// PublishAll gives what waits its numbers and stores it, oldest first, until nothing waits or the
// context ends. What turns out to be stored already is taken off the list.
func (s *Publisher) PublishAll(ctx context.Context, all Backlog) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done(): // the store takes nothing from who publishes now
		return context.Cause(ctx)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.bus.held, func() { stop(context.Cause(s.bus.held)) })()
	var pause patience
	for {
		more, err := s.next(ctx, all)
		if err == nil {
			if !more {
				return nil
			}
			pause = 0
			continue
		}
		s.fresh = false // it may be stored or not
		// A store that answers with an error may take the event later, unless it is too long.
		c := code(err)
		if ctx.Err() == nil && (c == jetstream.JSErrCodeStreamMessageExceedsMaximum || c == 0 && !Retryable(err)) {
			return fmt.Errorf("%s: %w", s.subject, err)
		}
		if over := pause.wait(ctx); over != nil {
			return fmt.Errorf("%s: %w (%w)", s.subject, over, err)
		}
	}
}

// next brings the oldest into the store, or finds it there with what is before it: things are sent in order. It is
// false where nothing waits.
func (s *Publisher) next(ctx context.Context, all Backlog) (bool, error) {
	id, n, err := all.Next()
	if err != nil || id == "" {
		return false, err
	}
	if !s.fresh {
		if err := s.readLast(ctx); err != nil {
			return false, err
		}
		if s.id != "" && all.Stored(s.id, s.last) {
			return true, nil
		}
	}
	number, err := s.store(ctx, id, n)
	if err == nil {
		all.Stored(id, number)
	}
	return true, err
}

// unreadable is how often the store must say that a message is the last of the subject, and not show it.
const unreadable = 6

// statusNone is the store's answer where a subject has no message, or none any more.
const statusNone = "404"

// readLast reads the subject's last message.
func (s *Publisher) readLast(ctx context.Context) error {
	ask := nats.NewMsg(s.lastTo)
	ask.Header.Set(headAgent, s.bus.agent)
	m, err := s.bus.request(ctx, ask, attempt)
	if err != nil {
		return err
	}
	s.at, s.id = 0, ""
	switch status := m.Header.Get("Status"); status {
	default:
		return fmt.Errorf("the server answers %s %s: %w", status, m.Header.Get("Description"), nats.ErrNoResponders)
	case statusNone:
	case "":
		if s.at, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
			return fmt.Errorf("the store's answer has no sequence: %w", err)
		}
		s.id = m.Header.Get(headID)
		if s.last, err = strconv.ParseUint(m.Header.Get(headSeq), 10, 64); err == nil {
			s.After(s.last)
		}
	}
	if s.refused >= unreadable && s.unread > s.at {
		s.at, s.id = s.unread, "" // what cannot be read is lost, and what follows it is not
	}
	s.fresh = true
	return nil
}

// store sends one thing under the condition that nothing came between, and returns its number.
func (s *Publisher) store(ctx context.Context, id string, n *fleet.Event) (uint64, error) {
	n.Seq = s.bus.mark.own() + 1
	data, err := fleet.Encode(n)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(s.publishTo)
	m.Data = data
	m.Header.Set(headSeq, strconv.FormatUint(n.Seq, 10))
	m.Header.Set(headID, id)
	m.Header.Set(headAgent, s.bus.agent)
	asked, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	ack, err := s.bus.js.PublishMsg(asked, m, jetstream.WithMsgID(id), jetstream.WithExpectStream(fleet.Stream),
		jetstream.WithExpectLastSequencePerSubject(s.at), jetstream.WithRetryAttempts(0))
	switch code(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		text := err.Error() // which ends with the sequence of the last
		s.unread, _ = strconv.ParseUint(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
		s.refused++
	}
	if err != nil {
		return 0, err
	}
	if ack.Duplicate {
		// It lies further back, behind what another server said: the number it has there is not
		// the one that it was to get now.
		s.fresh = false
		return s.last, nil
	}
	s.at, s.last, s.id, s.refused = ack.Sequence, n.Seq, id, 0
	s.bus.mark.note(ack.Sequence, time.Now().UTC(), n.Seq)
	return n.Seq, nil
}
