package bus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
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

const (
	attempt   = 5 * time.Second // for one answer of the store
	firstWait = 50 * time.Millisecond
	mostWait  = 3 * time.Second
)

// Backlog is what a publisher has to say: all that is not known to be stored, oldest first. Only
// the publisher's goroutine uses it while PublishAll runs, and everything may be appended to.
type Backlog interface {
	// Len counts what waits.
	Len() int
	// ID is the identity of what waits at a place. It stays the same however often a thing is
	// sent and whatever number it gets, also after a restart, and nothing else ever has it.
	ID(i int) string
	// Event is the oldest.
	Event() (*fleet.Event, error)
	// Stored takes the n oldest off the list. number is that of the last of them.
	Stored(n int, number uint64) error
}

// Publisher says things on one subject of the stream.
type Publisher struct {
	bus       *Bus
	subject   string // in the stream
	publishTo string // where it is said, for the store to keep
	lastTo    string // where the last is asked for
	// On, where it is set, is told why something has to be tried again. It must not block.
	On func(error)

	turn  chan struct{} // one publishes at a time; it guards following
	fresh bool          // what follows is known to be so
	at    uint64        // the stream's sequence of the subject's last message, 0 for none
	last  uint64        // its number
	id    string        // its identity
	// unread is the sequence of the subject's last message as the store says that refuses, and refused how often it
	// said so of the same: a store that was damaged may have a last message that it cannot read.
	unread  uint64
	refused int
}

// Publisher makes a publisher on the subject of who connected: a node's, or the servers'.
func (b *Bus) Publisher() *Publisher {
	s := &Publisher{
		bus: b, subject: fleet.HubLog, publishTo: fleet.HubLog, lastTo: directGet + fleet.HubLog,
		turn: make(chan struct{}, 1),
	}
	if t := b.node.Token(); t != "" {
		s.subject, s.publishTo, s.lastTo = fleet.LogOf(b.node), publishTo+t, lastTo+t
	}
	return s
}

// NewOrigin is a word that nobody else has, for identities to begin with.
func NewOrigin() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// After tells the publisher of a number that is known to be taken: it was acknowledged before this process began. What
// follows gets greater ones, even when the store has lost all of its events.
func (s *Publisher) After(number uint64) { s.bus.mark.note(0, time.Time{}, number) }

// maxCounted is a number that no publisher reaches by counting.
const maxCounted = fleet.MaxSeq / 2

// Publish gives an event its number and stores it. It tries until the context ends; then the event may
// be stored or not.
func (s *Publisher) Publish(ctx context.Context, n *fleet.Event) error {
	return s.PublishAll(ctx, &single{NewOrigin(), n})
}

// single is a backlog of one.
type single struct {
	id string
	n  *fleet.Event
}

func (o *single) ID(int) string                { return o.id }
func (o *single) Event() (*fleet.Event, error) { return o.n, nil }

func (o *single) Len() int {
	if o.id == "" {
		return 0
	}
	return 1
}

func (o *single) Stored(_ int, number uint64) error {
	o.id, o.n.Seq = "", number
	return nil
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
	wait := firstWait
	for all.Len() > 0 {
		err := s.next(ctx, all)
		switch {
		case err == nil:
			wait = firstWait
			continue
		case ctx.Err() != nil:
			return err
		case errors.Is(err, errBehind):
		case Retryable(err):
			if s.On != nil {
				s.On(err)
			}
		default:
			return fmt.Errorf("%s: %w", s.subject, err)
		}
		s.fresh = false // it may be stored or not
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", s.subject, errors.Join(context.Cause(ctx), err))
		case <-s.bus.held.Done():
			return context.Cause(s.bus.held)
		case <-time.After(wait):
		}
		wait = min(2*wait, mostWait)
	}
	return nil
}

// next brings the oldest into the store, or finds it there with what is before it: things are sent in order.
func (s *Publisher) next(ctx context.Context, all Backlog) error {
	if !s.fresh {
		if err := s.readLast(ctx); err != nil {
			return err
		}
		for i := all.Len() - 1; i >= 0 && s.id != ""; i-- {
			if all.ID(i) == s.id {
				return all.Stored(i+1, s.last)
			}
		}
	}
	n, err := all.Event()
	if err != nil {
		return err
	}
	number, err := s.store(ctx, all.ID(0), n)
	if err != nil {
		return err
	}
	return all.Stored(1, number)
}

// unreadable is how often the store must say that a message is the last of the subject, and not show it.
const unreadable = 6

// behind takes note of which message the store has as the last.
func (s *Publisher) behind(text string) {
	_, number, _ := strings.Cut(text, ": ")
	at, err := strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil || at <= s.at:
		s.unread, s.refused = 0, 0
	case at == s.unread:
		s.refused++
	default:
		s.unread, s.refused = at, 1
	}
}

// errBehind is the store's word that something newer is on the subject.
var errBehind = errors.New("something newer is stored")

// request asks the store, a node through a relay.
func (s *Publisher) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if s.bus.node != "" {
		m.Header.Set(headAgent, s.bus.agent)
	}
	answer, err := s.bus.request(ctx, m, attempt)
	if err != nil {
		return nil, err
	}
	if status := answer.Header.Get("Status"); status != "" && status != statusNone {
		return nil, fmt.Errorf("the server answers %s %s: %w", status, answer.Header.Get("Description"),
			nats.ErrNoResponders)
	}
	return answer, nil
}

// statusNone is the store's answer where a subject has no message, or none any more.
const statusNone = "404"

// readLast reads the subject's last message.
func (s *Publisher) readLast(ctx context.Context) error {
	m, err := s.request(ctx, nats.NewMsg(s.lastTo))
	if err != nil {
		return err
	}
	s.at, s.id = 0, ""
	if m.Header.Get("Status") == "" {
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

// pubAck is the store's answer to a message.
type pubAck struct {
	Stream    string              `json:"stream"`
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
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
	m.Header.Set(nats.MsgIdHdr, id)
	m.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(s.at, 10))
	answer, err := s.request(ctx, m)
	if err != nil {
		s.fresh = false
		return 0, err
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("the store's answer: %w", err)
	}
	switch {
	case ack.Error != nil:
		switch ack.Error.ErrorCode {
		case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			s.behind(ack.Error.Description)
			return 0, errBehind
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			return 0, ack.Error
		}
		return 0, fmt.Errorf("%w: %w", ack.Error, nats.ErrNoResponders)
	case ack.Stream != fleet.Stream || ack.Seq == 0:
		return 0, fmt.Errorf("the store acknowledges %d of stream %q; %q was expected", ack.Seq, ack.Stream, fleet.Stream)
	case ack.Duplicate:
		// It lies further back, behind what another said: the number it has there is not
		// the one that it was to get now.
		s.fresh = false
		return s.last, nil
	}
	s.at, s.last, s.id, s.refused = ack.Seq, n.Seq, id, 0
	s.bus.mark.note(ack.Seq, time.Now().UTC(), n.Seq)
	return n.Seq, nil
}
