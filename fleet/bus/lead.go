package bus

import (
	"context"
	"errors"
	"sync"
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

// leader is the lease's name.
const leader = "hub"

// Lead runs a function whenever this server leads those of the bus, with a context that ends when it no longer does,
// until the context ends. Servers choose by a lease in JetStream's key-value store, which is given back at the end.
func (b *Bus) Lead(ctx context.Context, run func(context.Context)) error {
	kv, err := b.leases(ctx)
	if err != nil {
		return err
	}
	l := &lease{bus: b, kv: kv, owner: []byte(NewOrigin()), work: run}
	defer l.stop()
	tick := time.NewTicker(leaseTurn)
	defer tick.Stop()
	for {
		l.turn(ctx)
		select {
		case <-ctx.Done():
			leads := l.leads
			l.stop()
			if leads { // the next leader should not have to wait
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				_ = l.kv.Purge(last, leader, jetstream.LastRevision(l.revision))
			}
			return nil
		case <-tick.C:
		}
	}
}

func (b *Bus) leases(ctx context.Context) (kv jetstream.KeyValue, err error) {
	info, err := b.info(ctx)
	if err != nil {
		return nil, err
	}
	for {
		kv, err = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, Description: "who of several servers leads", TTL: leaseTime, History: 1,
			MaxBytes: 1 << 20, Replicas: info.Config.Replicas,
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
	owner    []byte
	revision uint64
	until    time.Time
	leads    bool

	work   func(context.Context)
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start begins to lead, and stop ends it and waits.
func (l *lease) start(ctx context.Context) {
	l.leads = true
	ctx, l.cancel = context.WithCancel(ctx)
	l.done.Go(func() { l.work(ctx) })
}

func (l *lease) stop() {
	if l.leads {
		l.leads = false
		l.cancel()
		l.done.Wait()
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
		rev, err = l.kv.Update(ask, leader, l.owner, l.revision)
	} else {
		rev, err = l.kv.Create(ask, leader, l.owner)
	}
	switch {
	case err == nil:
		l.revision, l.until = rev, now.Add(leaseTime)
		if !l.leads {
			l.start(ctx)
		}
	case l.leads && time.Now().Add(leaseTurn+leaseAsk).After(l.until):
		l.stop() // the next turn would come too late
	case !l.leads && (errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound)):
		if kv, err := l.bus.leases(ask); err == nil { // the bucket is gone, with the disk that it was on
			l.kv = kv
		}
	}
}
