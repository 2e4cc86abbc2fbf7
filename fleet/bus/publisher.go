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
	"sync"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of what is kept, beside NATS' own.
const (
	headSeq = "Busbar-Seq" // the greatest number of the publisher so far
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

// ConflictError tells that somebody else speaks on the subject: two agents have one name, or
// another server took over. The publisher knows the newest number again; what it had to say is
// not stored, and may be said again.
type ConflictError struct {
	Subject string
	Number  uint64 // the other's
	ID      string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: number %d was published by another process (%s): two use one name", e.Subject, e.Number, e.ID)
}

// Publisher says things on one subject of the stream.
type Publisher struct {
	bus       *Bus
	subject   string // in the stream
	publishTo string // where it is said, for the store to keep
	lastTo    string // where the last is asked for
	origin    string // of identities of what Publish sends
	// On, where it is set, is told why something has to be tried again. It must not block.
	On func(error)
	// Journal, where it is set, keeps what was stored, for Resend.
	Journal *Journal

	mu    sync.Mutex
	fresh bool   // what follows is known to be so
	at    uint64 // the stream's sequence of the subject's last message, 0 for none
	last  uint64 // its number
	id    string // its identity
	sent  string // the identity of what was sent last, stored or not
	begun bool   // something of ours is known to be stored
	count int    // of what Publish has sent
	// known is the newest sequence that is accounted for: ours, or another's that was told of. A
	// replica that lags may show an older one, and what the next shows is then nothing new.
	known uint64
	// unread is the sequence of the subject's last message as the store says that refuses, and refused how often it
	// said so of the same: a store that was damaged may have a last message that it cannot read.
	unread  uint64
	refused int
}

// Publisher makes a publisher on the subject of who connected: a node's, or the servers'.
func (b *Bus) Publisher() *Publisher {
	s := &Publisher{
		bus: b, subject: fleet.HubLog, publishTo: fleet.HubLog, lastTo: directGet + fleet.HubLog, origin: NewOrigin(),
	}
	if t := b.node.Token(); t != "" {
		s.subject, s.publishTo, s.lastTo = fleet.LogOf(b.node), publishTo+t, lastTo+t
	}
	return s
}

// NewOrigin is an origin that nobody else has.
func NewOrigin() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// After tells the publisher of a number that is known to be taken: it was acknowledged before this process began, or
// was seen in the stream. What follows gets greater ones, even when the store has lost all of its events.
func (s *Publisher) After(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number <= maxCounted {
		s.last = max(s.last, number)
	}
}

// maxCounted is a number that no publisher reaches by counting.
const maxCounted = fleet.MaxSeq / 2

// Publish gives an event its number and stores it. It tries until the context ends; then the event may
// be stored or not.
func (s *Publisher) Publish(ctx context.Context, n *fleet.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.publish(ctx, &single{fmt.Sprintf("%s.%d", s.origin, s.count), n})
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
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publish(ctx, all)
}

func (s *Publisher) publish(ctx context.Context, all Backlog) error {
	wait := firstWait
	for all.Len() > 0 {
		err := s.turn(ctx, all)
		var conflict *ConflictError
		switch {
		case err == nil:
			wait = firstWait
			continue
		case errors.As(err, &conflict) || ctx.Err() != nil:
			return err
		case errors.Is(err, errBehind):
			s.fresh = false
		case Retryable(err):
			s.fresh = false
			if s.On != nil {
				s.On(err)
			}
		default:
			return fmt.Errorf("%s: %w", s.subject, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", s.subject, errors.Join(context.Cause(ctx), err))
		case <-time.After(wait):
		}
		wait = min(2*wait, mostWait)
	}
	return nil
}

// turn brings the oldest into the store, or finds it there.
func (s *Publisher) turn(ctx context.Context, all Backlog) error {
	if !s.fresh {
		was := s.begun
		if err := s.readLast(ctx); err != nil {
			return err
		}
		for i := all.Len() - 1; i >= 0 && s.id != ""; i-- {
			if all.ID(i) == s.id {
				s.begun, s.known = true, max(s.known, s.at)
				return s.found(all, i)
			}
		}
		// To a newcomer a replica that lags may have shown less than there was.
		newer := s.at > s.known
		s.known = max(s.known, s.at)
		if was && newer && s.id != s.sent {
			return &ConflictError{s.subject, s.last, s.id}
		}
	}
	n, err := all.Event()
	if err != nil {
		return err
	}
	if _, again := all.(*resends); !again {
		n.Seq = 0
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

// found takes off the list what is in the store up to a place. Things are sent in order, so those before it are there
// too.
func (s *Publisher) found(all Backlog, place int) error {
	for ; place >= 0; place-- {
		number := s.last - min(s.last, uint64(place))
		if _, again := all.(*resends); !again && s.Journal != nil {
			if n, err := all.Event(); err == nil {
				n.Seq = number
				s.journal(all.ID(0), n)
			}
		}
		if err := all.Stored(1, number); err != nil {
			return err
		}
	}
	return nil
}

// journal keeps what is stored. Where it cannot, that is only told.
func (s *Publisher) journal(id string, n *fleet.Event) {
	if err := s.Journal.add(id, n); err != nil && s.On != nil {
		s.On(fmt.Errorf("the journal: %w", err))
	}
}

// Resend stores again, under their old numbers, the events of some spans that the journal holds, and tells how many.
// The store gets each once: what it has of the last minutes it refuses, and what it has from before nobody asks for.
func (s *Publisher) Resend(ctx context.Context, spans []fleet.Span) (int, error) {
	list, err := s.Journal.find(spans)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &resends{list: list}
	err = s.publish(ctx, all)
	return len(list) - len(all.list), err
}

// resends is a backlog of events that keep their numbers.
type resends struct{ list []numbered }

func (r *resends) Len() int                     { return len(r.list) }
func (r *resends) ID(i int) string              { return r.list[i].id }
func (r *resends) Event() (*fleet.Event, error) { return r.list[0].n, nil }

func (r *resends) Stored(n int, _ uint64) error {
	r.list = r.list[n:]
	return nil
}

// errBehind is the store's word that something newer is on the subject.
var errBehind = errors.New("something newer is stored")

// readLast reads the subject's last message.
func (s *Publisher) readLast(ctx context.Context) error {
	m, err := s.bus.request(ctx, nats.NewMsg(s.lastTo), attempt)
	if err != nil {
		return err
	}
	at, last, id := uint64(0), s.last, ""
	switch status := m.Header.Get("Status"); status {
	case "":
		if at, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
			return fmt.Errorf("the store's answer has no sequence: %w", err)
		}
		id = m.Header.Get(headID)
		if n, err := strconv.ParseUint(m.Header.Get(headSeq), 10, 64); err == nil && n <= maxCounted {
			last = max(last, n)
		}
	case "404": // nothing there, or nothing any more
	default:
		return fmt.Errorf("the store answers %s %s: %w", status, m.Header.Get("Description"), nats.ErrNoResponders)
	}
	if s.refused >= unreadable && s.unread > at {
		at, id = s.unread, "" // what cannot be read is lost, and what follows it is not
	}
	s.fresh, s.at, s.last, s.id = true, at, last, id
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
	again := n.Seq != 0
	if !again {
		n.Seq = s.last + 1
	}
	data, err := fleet.Encode(n)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(s.publishTo)
	m.Data = data
	// The greatest number so far: who reads the last message to go on behind it must not go on behind an old one.
	m.Header.Set(headSeq, strconv.FormatUint(max(s.last, n.Seq), 10))
	m.Header.Set(headID, id)
	m.Header.Set(nats.MsgIdHdr, id)
	m.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(s.at, 10))
	s.sent = id
	answer, err := s.bus.request(ctx, m, attempt)
	if err != nil {
		s.fresh = false // it may be stored or not
		return 0, err
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("the store's answer: %w", err)
	}
	switch {
	case ack.Error != nil:
		s.fresh = false
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
	s.begun, s.at, s.last, s.id, s.refused = true, ack.Seq, max(s.last, n.Seq), id, 0
	s.known = max(s.known, ack.Seq)
	if !again {
		s.journal(id, n)
	}
	return n.Seq, nil
}
