package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// leaseTime is how long a lease holds without its owner, who renews it every leaseTurn and
// waits leaseAsk for the answer, and who gives up leading before the store may give the lease
// to another.
const (
	leaseTime = 15 * time.Second
	leaseTurn = leaseTime / 5
	leaseAsk  = leaseTime / 6
)

// Lead takes part in choosing one leader among the servers that use the same name, by a lease
// in JetStream's key-value store. The channel says whether this one leads, when that changes,
// and is closed when the context has ended; the lease is then given back.
func (b *Bus) Lead(ctx context.Context, name string) (<-chan bool, error) {
	kv, err := b.leases(ctx)
	if err != nil {
		return nil, err
	}
	out := make(chan bool, 1)
	l := &lease{bus: b, kv: kv, name: name, owner: []byte(NewOrigin()), out: out}
	go func() {
		defer close(out)
		l.run(ctx)
	}()
	return out, nil
}

func (b *Bus) leases(ctx context.Context) (kv jetstream.KeyValue, err error) {
	replicas, err := b.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	for {
		kv, err = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, Description: "who of several servers leads", TTL: leaseTime, History: 1,
			MaxBytes: 1 << 20, Replicas: replicas,
		})
		if err == nil || !transient(err) {
			return kv, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(streamAttemptPause):
		}
	}
}

type lease struct {
	bus      *Bus
	kv       jetstream.KeyValue
	name     string
	owner    []byte
	out      chan bool
	revision uint64
	until    time.Time
	leads    bool
}

func (l *lease) run(ctx context.Context) {
	tick := time.NewTicker(leaseTurn)
	defer tick.Stop()
	for {
		l.turn(ctx)
		select {
		case <-ctx.Done():
			if l.leads {
				// The context has ended, and the next leader should not have to wait.
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				_ = l.kv.Purge(last, l.name, jetstream.LastRevision(l.revision))
				cancel()
			}
			l.set(false)
			return
		case <-tick.C:
		}
	}
}

// turn renews the lease, or tries to get it.
func (l *lease) turn(ctx context.Context) {
	// The lease is counted from before it was asked for, so that ours ends first.
	now := time.Now()
	ask, cancel := context.WithTimeout(ctx, leaseAsk)
	defer cancel()
	var rev uint64
	var err error
	if l.leads {
		rev, err = l.kv.Update(ask, l.name, l.owner, l.revision)
	} else {
		rev, err = l.kv.Create(ask, l.name, l.owner)
	}
	switch {
	case err == nil:
		l.revision, l.until = rev, now.Add(leaseTime)
		l.set(true)
	case l.leads &&
		(errors.Is(err, jetstream.ErrKeyExists) || is(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant)):
		l.renewed(ask, now)
	case l.leads && time.Now().Add(leaseTurn+leaseAsk).After(l.until):
		l.set(false) // the next turn would come too late
	case !l.leads && (errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)):
		if kv, err := l.bus.leases(ask); err == nil { // the bucket is gone, with the disk that it was on
			l.kv = kv
		}
	}
}

// renewed looks whether a renewal that was refused had been stored after all.
func (l *lease) renewed(ctx context.Context, now time.Time) {
	e, err := l.kv.Get(ctx, l.name)
	if err == nil && string(e.Value()) == string(l.owner) {
		l.revision = e.Revision()
		// It holds for longer than until, by a clock that is not ours; the next renewal will say.
		if now.Add(leaseTurn + leaseAsk).Before(l.until) {
			return
		}
	}
	l.set(false)
}

func (l *lease) set(leads bool) {
	if leads == l.leads {
		return
	}
	l.leads = leads
	select { // only the newest matters to who did not look in between
	case <-l.out:
	default:
	}
	l.out <- leads
}
