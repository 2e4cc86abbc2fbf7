package bus

import (
	"context"
	"time"

	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

// maxTransient is the longest that is listened to of what nodes send and nobody keeps: none has much to say, and
// reading it costs more than sending it.
const maxTransient = 16 << 10

// Transient is what a server of the fleet hears in passing. The functions must not block; those that are nil are not
// called.
type Transient struct {
	Beat     func(*fleet.Beat)
	Progress func(*fleet.Progress)
	// Deaf is called while messages are lost: whoever was not heard may have spoken.
	Deaf func()
	// Flood is told once a second of nodes that send more than a node has to say, also of what is to be kept.
	Flood func(Flood)
	// Second is told of a name whose second agent was refused, and where the other one is.
	Second func(node fleet.Name, other string)
}

// deafEvery is how often it is looked whether messages are lost.
const deafEvery = time.Second

// Transient hears what nodes send in passing, until the context ends. The stream must be there; see Ensure.
func (b *Bus) Transient(ctx context.Context, t Transient) error {
	b.transient.Store(&t)
	defer b.transient.Store(nil)
	tick := time.NewTicker(deafEvery)
	defer tick.Stop()
	for lost := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n := b.cuts.Load()
		for _, sub := range b.heard {
			d, _ := sub.Dropped() // an error only tells that it was closed
			n += int64(d)
		}
		if t.Deaf != nil && (n > lost || !b.side.IsConnected()) {
			t.Deaf()
		}
		lost = n
		floods := b.nodes.floods
		if s := b.cfg.server; s != nil {
			floods = func() []Flood { return s.shutOut(&b.nodes) }
		}
		for _, f := range floods() {
			if t.Flood != nil {
				t.Flood(f)
			}
		}
	}
}

// passing reads what a node sends in passing, nil where it is nothing, too much, or names another node.
func passing[T any](b *Bus, node fleet.Name, m *nats.Msg, of func(*T) fleet.Name) *T {
	if !b.nodes.take(node, "heartbeats and progress", func(s *sender) bool { return s.passing.Allow() }) {
		return nil
	}
	if m.Size() <= maxTransient {
		if v, err := fleet.Decode[T](m.Data); err == nil && of(v) == node {
			return v
		}
	}
	b.nodes.refuse(node, "heartbeats and progress that cannot be read or name another node")
	return nil
}

// beat passes a beat on when its agent has the name.
func (b *Bus) beat(node fleet.Name, m *nats.Msg) {
	v := passing(b, node, m, func(v *fleet.Beat) fleet.Name { return v.Node })
	t := b.transient.Load()
	switch {
	case v == nil || t == nil || t.Beat == nil:
	case b.isAgent(node, v.Agent):
		t.Beat(v)
	default:
		b.nodes.later(node, func() {
			if _, err := fleet.ParseName(v.Agent); (err == nil || v.Agent == "") && b.admit(node, v.Agent) == nil {
				t.Beat(v)
			}
		})
	}
}

func (b *Bus) progress(node fleet.Name, m *nats.Msg) {
	v := passing(b, node, m, func(v *fleet.Progress) fleet.Name { return v.Node })
	if t := b.transient.Load(); v != nil && t != nil && t.Progress != nil {
		t.Progress(v)
	}
}
