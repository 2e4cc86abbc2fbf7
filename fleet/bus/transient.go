package bus

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

// maxTransient is the longest that is listened to of what nodes send and nobody keeps: none has much to say, and
// reading it costs more than sending it.
const maxTransient = 16 << 10

// decoded reads what a node sends and nobody keeps, nil where it is nothing or too much.
func decoded[T any](m *nats.Msg) *T {
	if m.Size() > maxTransient {
		return nil
	}
	v, err := fleet.Decode[T](m.Data)
	if err != nil {
		return nil
	}
	return v
}

// Transient is what a server of the fleet hears in passing. The functions must not block.
type Transient struct {
	Beat     func(*fleet.Beat)
	Progress func(*fleet.Progress)
	// Deaf, where it is set, is called while messages are lost: whoever was not heard may have spoken.
	Deaf func()
	// Flood, where it is set, is told once a second of nodes that send more than a node has to say, also of what is to
	// be kept.
	Flood func(Flood)
	// Second, where it is set, is told of names whose second agent was refused, and where the other one is.
	Second func(node fleet.Name, other string)
}

// deafEvery is how often it is looked whether messages are lost.
const deafEvery = time.Second

// queued bounds what waits for a server that hears it. It is passed over in a millisecond where it is too much, and
// then another node waits no longer.
const (
	queued      = 256 << 10
	queuedBytes = 64 << 20
)

// Transient hears what nodes send in passing, until the context ends. It has a connection of its own, so that what
// floods it ends no other.
func (b *Bus) Transient(ctx context.Context, t Transient) error {
	var cuts atomic.Int64
	nc, err := b.side(func() { cuts.Add(1) })
	if err != nil {
		return err
	}
	defer nc.Close()
	var subs []*nats.Subscription
	for _, s := range []struct {
		subject string
		receive func(*nats.Msg, fleet.Name) bool // false: it names another node, or nothing can be read
	}{
		{fleet.Beats, func(m *nats.Msg, who fleet.Name) bool {
			v := decoded[fleet.Beat](m)
			if v == nil || v.Node != who {
				return false
			}
			b.heard(v, t.Beat)
			return true
		}},
		{fleet.ProgressAll, func(m *nats.Msg, who fleet.Name) bool {
			v := decoded[fleet.Progress](m)
			if v == nil || v.Node != who {
				return false
			}
			if t.Progress != nil {
				t.Progress(v)
			}
			return true
		}},
	} {
		sub, err := nc.Subscribe(s.subject, func(m *nats.Msg) {
			who, err := fleet.OfSubject(m.Subject)
			if err == nil && b.meter.pass(who, time.Now()) && !s.receive(m, who) {
				b.meter.refuse(who, "heartbeats and progress that cannot be read or name another node")
			}
		})
		if err != nil {
			return err
		}
		if err := sub.SetPendingLimits(queued, queuedBytes); err != nil {
			return err
		}
		subs = append(subs, sub)
	}
	tick := time.NewTicker(deafEvery)
	defer tick.Stop()
	for lost := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n := cuts.Load()
		for _, sub := range subs {
			d, _ := sub.Dropped() // an error only tells that it was closed
			n += int64(d)
		}
		if t.Deaf != nil && (n > lost || !nc.IsConnected()) {
			t.Deaf()
		}
		lost = n
		for _, f := range b.meter.floods() {
			if t.Flood != nil {
				t.Flood(f)
			}
		}
		for node, other := range b.agents.takeSeconds() {
			if t.Second != nil {
				t.Second(node, other)
			}
		}
	}
}

// heard passes a beat on when its agent has the name.
func (b *Bus) heard(v *fleet.Beat, pass func(*fleet.Beat)) {
	switch {
	case pass == nil:
	case b.agents.is(v.Node, v.Agent):
		pass(v)
	case b.meter.enter(v.Node):
		go func() {
			defer b.meter.leave(v.Node)
			if _, err := fleet.ParseName(v.Agent); (err == nil || v.Agent == "") && b.admit(v.Node, v.Agent) == nil {
				pass(v)
			}
		}()
	}
}

// side is another connection with the same credentials; lost is called when it was cut.
func (b *Bus) side(lost func()) (*nats.Conn, error) {
	o := nats.GetDefaultOptions()
	opts, err := b.options()
	if err != nil {
		return nil, err
	}
	opts = append(opts, nats.RetryOnFailedConnect(true), nats.ConnectHandler(nil), nats.ReconnectErrHandler(nil),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				b.refused.Add(1)
			}
		}),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost() }), nats.ReconnectHandler(func(*nats.Conn) { lost() }))
	for _, f := range opts {
		if err := f(&o); err != nil {
			return nil, err
		}
	}
	o.Servers = b.cfg.URLs
	return o.Connect()
}
