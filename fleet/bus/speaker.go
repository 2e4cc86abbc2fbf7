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

	"busbar/fleet"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of what is kept, beside NATS' own.
const (
	headSeq = "Busbar-Seq" // the news' number
	headID  = "Busbar-Id"  // its identity, as Nats-Msg-Id
)

const (
	attempt   = 5 * time.Second // for one answer of the store
	firstWait = 50 * time.Millisecond
	mostWait  = 3 * time.Second
)

// Saying is news with an identity that stays the same however often it is sent and whatever
// number it gets: an origin, a dot, and anything that tells it from the origin's others and from
// other words under the same number.
type Saying struct {
	ID   string
	News *fleet.News
}

// ConflictError tells that somebody else speaks on the subject: two agents have one name, or
// another server took over. The speaker knows the newest number again; what it had to say is
// not stored, and may be said again.
type ConflictError struct {
	Subject string
	Number  uint64 // the other's
	ID      string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: number %d was said by another (%s): two speak under one name", e.Subject, e.Number, e.ID)
}

// Speaker says things on one subject of the stream.
type Speaker struct {
	bus     *Bus
	subject string
	origin  string
	// On, where it is set, is told why something has to be tried again. It must not block.
	On func(error)

	mu    sync.Mutex
	fresh bool   // what follows is known to be so
	at    uint64 // the stream's sequence of the subject's last message, 0 for none
	last  uint64 // its number
	id    string // its identity
	begun bool   // something was learned before
	count int    // of sayings without an identity
}

// Speaker makes a speaker on the subject of who connected: a node's, or the servers'. origin
// is the beginning of the identities of what it says, "" for one of its own; an agent that
// keeps what it has to say on disk gives the same after a restart.
func (b *Bus) Speaker(origin string) *Speaker {
	s := &Speaker{bus: b, subject: fleet.HubLog, origin: origin}
	if b.node != "" {
		s.subject = fleet.LogOf(b.node)
	}
	if origin == "" {
		s.origin = NewOrigin()
	}
	return s
}

// NewOrigin is an origin that nobody else has.
func NewOrigin() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// After tells the speaker which number was acknowledged before this process began. It begins
// behind it even when the store has dropped all of its news.
func (s *Speaker) After(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, number)
}

// Last is the number of the subject's last news, as far as is known.
func (s *Speaker) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Say gives news its number and stores it. It tries until the context ends; then the news may
// be stored or not.
func (s *Speaker) Say(ctx context.Context, n *fleet.News) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	_, err := s.say(ctx, []Saying{{fmt.Sprintf("%s.%d", s.origin, s.count), n}})
	return err
}

// SayAll gives sayings their numbers and stores them in their order, those left out that are
// stored already. It returns how many are stored. They must be the origin's oldest that are not
// known to be stored, so that one that is found proves those before it.
func (s *Speaker) SayAll(ctx context.Context, all []Saying) (stored int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.say(ctx, all)
}

func (s *Speaker) say(ctx context.Context, all []Saying) (done int, err error) {
	wait := firstWait
	for done < len(all) {
		if !s.fresh {
			err = s.learn(ctx)
			if err == nil {
				found := s.find(all[done:])
				if found > 0 {
					done += found
					continue
				}
			}
		}
		if err == nil {
			err = s.store(ctx, all[done])
		}
		var conflict *ConflictError
		switch {
		case err == nil:
			done++
			wait = firstWait
			continue
		case errors.As(err, &conflict) || ctx.Err() != nil:
			return done, err
		case errors.Is(err, errBehind):
			s.fresh = false // look again at once
		case retryable(err):
			s.fresh = false
		default:
			return done, fmt.Errorf("%s: %w", s.subject, err)
		}
		if s.On != nil && !errors.Is(err, errBehind) {
			s.On(err)
		}
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("%s: %w", s.subject, errors.Join(context.Cause(ctx), err))
		case <-time.After(wait):
		}
		wait, err = min(2*wait, mostWait), nil
	}
	return done, nil
}

// errBehind is the store's word that something newer is on the subject.
var errBehind = errors.New("something newer is stored")

// find looks for the last message among sayings and returns how many are stored with it.
func (s *Speaker) find(all []Saying) int {
	for i, one := range all {
		if one.ID != s.id {
			continue
		}
		for j := range i + 1 {
			if back := uint64(i - j); back < s.last {
				all[j].News.Seq = s.last - back
			}
		}
		return i + 1
	}
	return 0
}

// learn reads the subject's last message.
func (s *Speaker) learn(ctx context.Context) error {
	m, err := s.bus.request(ctx, nats.NewMsg(directGet+s.subject), attempt)
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
		if n, err := strconv.ParseUint(m.Header.Get(headSeq), 10, 64); err == nil {
			last = max(last, n)
		}
	case "404":
	default:
		return fmt.Errorf("the store answers %s %s: %w", status, m.Header.Get("Description"), nats.ErrNoResponders)
	}
	was, wasAt := s.begun, s.at
	s.fresh, s.begun, s.at, s.last, s.id = true, true, at, last, id
	if was && at > wasAt && !s.own(id) {
		return &ConflictError{s.subject, last, id}
	}
	return nil
}

// own reports whether an identity is of this speaker's origin.
func (s *Speaker) own(id string) bool { return strings.HasPrefix(id, s.origin+".") }

// pubAck is the store's answer to a message.
type pubAck struct {
	Stream    string              `json:"stream"`
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
}

// store sends one saying under the condition that nothing came between.
func (s *Speaker) store(ctx context.Context, one Saying) error {
	one.News.Seq = s.last + 1
	data, err := fleet.Encode(one.News)
	if err != nil {
		return err
	}
	m := nats.NewMsg(s.subject)
	m.Data = data
	m.Header.Set(headSeq, strconv.FormatUint(one.News.Seq, 10))
	m.Header.Set(headID, one.ID)
	m.Header.Set(nats.MsgIdHdr, one.ID)
	m.Header.Set(nats.ExpectedStreamHdr, fleet.Stream)
	m.Header.Set(nats.ExpectedLastSubjSeqHdr, strconv.FormatUint(s.at, 10))
	answer, err := s.bus.request(ctx, m, attempt)
	if err != nil {
		s.fresh = false // it may be stored or not
		return err
	}
	var ack pubAck
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return fmt.Errorf("the store's answer: %w", err)
	}
	switch {
	case ack.Error != nil:
		s.fresh = false
		switch ack.Error.ErrorCode {
		case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
			return errBehind
		case jetstream.JSErrCodeStreamMessageExceedsMaximum:
			return ack.Error
		}
		return fmt.Errorf("%w: %w", ack.Error, nats.ErrNoResponders)
	case ack.Stream != fleet.Stream || ack.Seq == 0:
		return fmt.Errorf("the store acknowledges %d of stream %q; %q was expected", ack.Seq, ack.Stream, fleet.Stream)
	case ack.Duplicate:
		// It lies further back, behind what another said: the number it has there is not
		// the one that it was to get now.
		s.fresh = false
		return nil
	}
	s.at, s.last, s.id = ack.Seq, one.News.Seq, one.ID
	return nil
}
