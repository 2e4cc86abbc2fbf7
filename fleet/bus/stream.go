package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/unit"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	defaultStreamBytes = 7 << 30
	// perSubject is the most that one node keeps, so that a node that floods the stream
	// drives out its own events first.
	perSubject = 1_000_000
	// window is how long the store remembers identities, beside the condition on sequences.
	window = 10 * time.Minute
)

// Codes of errors that package jetstream has no names for.
const (
	codeNoPeers      jetstream.ErrorCode = 10005 // too few servers for the replicas
	codeNoRoom       jetstream.ErrorCode = 10047 // less storage than the stream may take
	codeInsufficient jetstream.ErrorCode = 10023
	codeNoLeader     jetstream.ErrorCode = 10009
	codeUnavailable  jetstream.ErrorCode = 10008
)

// Ensure makes the stream, or fits it to the configuration, and from then on brings to it what
// nodes send. A server of the fleet calls it before all else. It waits until the context ends for
// a cluster that is not ready.
func (b *Bus) Ensure(ctx context.Context) error {
	var pause patience
	for {
		err := b.ensure(ctx)
		if err == nil {
			return b.listen()
		}
		switch {
		case !transient(err):
			return err
		case b.Refused() > 0: // nobody would ever answer
			return errors.New("these credentials lack rights that a server needs; docs/fleet.md lists them")
		}
		if over := pause.wait(ctx); over != nil {
			return fmt.Errorf("the stream: %w", errors.Join(err, over))
		}
	}
}

func (b *Bus) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	info, err := b.info(ctx)
	switch {
	case err == nil:
		want := b.shape(info.Config)
		if !reflect.DeepEqual(want, info.Config) {
			_, err = b.js.UpdateStream(ctx, want)
		}
		return err
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	}
	want := b.shape(jetstream.StreamConfig{
		Name: fleet.Stream, Description: "what a fleet of busbar agents has to tell", Subjects: []string{fleet.Log + ">"},
		Storage: jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, Replicas: 3,
	})
	if b.nc.ConnectedClusterName() == "" {
		want.Replicas = 1
	}
	if _, err = b.js.CreateStream(ctx, want); code(err) == codeNoRoom {
		err = fmt.Errorf("%w: the account needs JetStream storage of %v for the stream (each replica counts) and 1 MiB for "+
			"leases", err, unit.Bytes(want.MaxBytes)*unit.Bytes(want.Replicas))
	}
	return err
}

// shape sets the stream's bounds.
func (b *Bus) shape(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.MaxBytes, c.MaxAge, c.Duplicates = cmp.Or(b.cfg.MaxBytes, defaultStreamBytes), b.cfg.Keep, window
	if c.MaxAge != 0 {
		c.Duplicates = min(window, c.MaxAge)
	}
	c.MaxMsgsPerSubject, c.MaxMsgSize = perSubject, maxPayload
	c.AllowDirect, c.DenyDelete, c.DenyPurge = true, true, true
	return c
}

// Last is the sequence of the newest message of the stream, 0 where none is left: nobody must wait for
// one that was dropped.
func (b *Bus) Last(ctx context.Context) (uint64, error) {
	info, err := b.info(ctx)
	if err != nil || info.State.Msgs == 0 {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// info is the stream as it is now.
func (b *Bus) info(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	s, err := b.js.Stream(ctx, fleet.Stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// Trimmed tells whether the stream drops its oldest messages by one of its bounds, or may have done so.
func (b *Bus) Trimmed(ctx context.Context) (bool, error) {
	info, err := b.info(ctx)
	return err == nil && trims(info), err
}

func trims(info *jetstream.StreamInfo) bool {
	return info.Config.MaxAge > 0 || info.State.Bytes > uint64(info.Config.MaxBytes)*3/4 || info.State.Msgs >= perSubject
}

// code is that of the store's error, 0 for another.
func code(err error) jetstream.ErrorCode {
	var js jetstream.JetStreamError
	if errors.As(err, &js) && js.APIError() != nil {
		return js.APIError().ErrorCode
	}
	return 0
}

// transient tells errors of a server that starts or of a cluster without a leader from others.
func transient(err error) bool {
	starting := []jetstream.ErrorCode{codeNoPeers, codeInsufficient, codeNoLeader, codeUnavailable}
	return Retryable(err) || slices.Contains(starting, code(err))
}
