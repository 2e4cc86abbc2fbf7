package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	codeNoPeers        jetstream.ErrorCode = 10005 // too few servers for the replicas
	codeNotClustered   jetstream.ErrorCode = 10074 // replicas without a cluster
	codeNoRoom         jetstream.ErrorCode = 10047 // less storage than the stream may take
	codeInsufficient   jetstream.ErrorCode = 10023
	codeNoLeader       jetstream.ErrorCode = 10009
	codeUnavailable    jetstream.ErrorCode = 10008
	streamAttemptPause                     = 500 * time.Millisecond
)

// Ensure makes the stream, or fits it to the configuration, and from then on brings to it what
// nodes send. A server of the fleet calls it before all else. It waits until the context ends for
// a cluster that is not ready.
func (b *Bus) Ensure(ctx context.Context) error {
	for {
		err := b.ensure(ctx)
		if err == nil {
			return b.relay()
		}
		switch {
		case !transient(err):
			return err
		case b.Refused() > 0: // nobody would ever answer
			return errors.New("these credentials lack rights that a server needs; busbar serve token hub makes some that " +
				"have them")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the stream: %w", errors.Join(err, context.Cause(ctx)))
		case <-time.After(streamAttemptPause):
		}
	}
}

func (b *Bus) ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	want := b.streamConfig()
	info, err := b.info(ctx)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		want.Replicas = b.cfg.Replicas
		want.Replicas = cmp.Or(want.Replicas, 3)
		if b.cfg.Replicas == 0 && b.nc.ConnectedClusterName() == "" {
			want.Replicas = 1
		}
		_, err = b.js.CreateStream(ctx, want)
		if b.cfg.Replicas == 0 && is(err, codeNotClustered) {
			want.Replicas = 1
			_, err = b.js.CreateStream(ctx, want)
		}
		if is(err, codeNoRoom) {
			err = fmt.Errorf("%w: the account needs JetStream storage of %v for the stream (each replica counts) and 1 MiB "+
				"for leases",
				err, unit.Bytes(want.MaxBytes)*unit.Bytes(want.Replicas))
		}
		return err
	case err != nil:
		return err
	}
	have := info.Config
	want.Replicas = have.Replicas
	if b.cfg.Replicas != 0 {
		want.Replicas = b.cfg.Replicas
	}
	if have.Replicas == want.Replicas && have.MaxAge == want.MaxAge && have.MaxBytes == want.MaxBytes &&
		have.MaxMsgsPerSubject == want.MaxMsgsPerSubject && have.AllowDirect && have.Duplicates == want.Duplicates {
		return nil
	}
	_, err = b.js.UpdateStream(ctx, want)
	return err
}

func (b *Bus) streamConfig() jetstream.StreamConfig {
	most := cmp.Or(b.cfg.MaxBytes, defaultStreamBytes)
	dup := window
	if b.cfg.Keep != 0 {
		dup = min(dup, b.cfg.Keep)
	}
	return jetstream.StreamConfig{
		Name: fleet.Stream, Description: "what a fleet of busbar agents has to tell",
		Subjects: []string{fleet.Log + ">"},
		Storage:  jetstream.FileStorage, Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld,
		MaxBytes: most, MaxAge: b.cfg.Keep, MaxMsgsPerSubject: perSubject, MaxMsgSize: maxPayload,
		Duplicates: dup, AllowDirect: true, DenyDelete: true, DenyPurge: true,
	}
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

func is(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode == code
	}
	var js jetstream.JetStreamError
	return errors.As(err, &js) && js.APIError() != nil && js.APIError().ErrorCode == code
}

// transient tells errors of a server that starts or of a cluster without a leader from others.
func transient(err error) bool {
	for _, code := range []jetstream.ErrorCode{codeNoPeers, codeInsufficient, codeNoLeader, codeUnavailable} {
		if is(err, code) {
			return true
		}
	}
	return errors.Is(err, context.DeadlineExceeded) || Retryable(err)
}
