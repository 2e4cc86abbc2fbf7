package bus

import (
	"context"
	"crypto/rand"
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
// until the context ends. Servers choose by a lease in JetStream's key-value store.
func (b *Bus) Lead(ctx context.Context, run func(context.Context)) error {
	l := &lease{bus: b, owner: []byte(rand.Text()), work: run}
	defer l.giveBack()
	tick := time.NewTicker(leaseTurn)
	defer tick.Stop()
	for {
		if err := l.turn(ctx); err != nil && !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

type lease struct {
	bus      *Bus
	kv       jetstream.KeyValue // nil where the bucket is not there, or gone with the disk that it was on
	owner    []byte
	revision uint64
	until    time.Time

	work   func(context.Context)
	cancel context.CancelFunc // nil while another leads
	done   sync.WaitGroup
}

// stop ends leading, and waits for it.
func (l *lease) stop() {
	if l.cancel != nil {
		l.cancel()
		l.done.Wait()
		l.cancel = nil
	}
}

// giveBack ends leading, and lets another lead at once.
func (l *lease) giveBack() {
	if l.cancel == nil {
		return
	}
	l.stop()
	ctx, cancel := context.WithTimeout(context.Background(), leaseAsk)
	defer cancel()
	_ = l.kv.Delete(ctx, leader, jetstream.LastRevision(l.revision)) // a store that is away: it runs out
}

// turn renews the lease, or tries to get it.
func (l *lease) turn(ctx context.Context) (err error) {
	// The lease is counted from before it was asked for, so that ours ends first.
	now := time.Now()
	ask, cancel := context.WithTimeout(ctx, leaseAsk)
	defer cancel()
	if l.kv == nil {
		info, err := l.bus.info(ask)
		if err != nil {
			return err
		}
		if l.kv, err = l.bus.js.CreateOrUpdateKeyValue(ask, jetstream.KeyValueConfig{
			Bucket: bucket, Description: "who of several servers leads", TTL: leaseTime, History: 1,
			MaxBytes: 1 << 20, Replicas: info.Config.Replicas,
		}); err != nil {
			l.kv = nil
			return err
		}
	}
	var rev uint64
	if l.cancel != nil {
		rev, err = l.kv.Update(ask, leader, l.owner, l.revision)
	} else {
		rev, err = l.kv.Create(ask, leader, l.owner)
	}
	switch {
	case err == nil:
		l.revision, l.until = rev, now.Add(leaseTime)
		if l.cancel == nil {
			ctx, l.cancel = context.WithCancel(ctx)
			l.done.Go(func() { l.work(ctx) })
		}
	case l.cancel == nil && !errors.Is(err, jetstream.ErrKeyExists):
		l.kv = nil
	case l.cancel != nil && time.Now().Add(leaseTurn+leaseAsk).After(l.until):
		l.stop() // the next turn would come too late
	}
	return nil
}
