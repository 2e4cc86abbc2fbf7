package bus

import (
	"busbar.dev/fleet"

	"github.com/nats-io/nats.go"
)

// settledTo is where agents of one name hear who of them goes on: in the node's inbox, where servers may
// speak and other nodes may not.
func settledTo(node fleet.Name) string { return inboxOf(node) + ".settled" }

// Settle tells all agents of a name which of them goes on, or calls the roll.
func (b *Bus) Settle(node fleet.Name, s *fleet.Settled) error { return b.pass(settledTo(node), s) }

// Settled hears that, as a node.
func (b *Bus) OnSettled(receive func(*fleet.Settled)) (*Subscription, error) {
	return b.subscribe(settledTo(b.node), 64, func(m *nats.Msg) {
		if s := decoded[fleet.Settled](m); s != nil {
			receive(s)
		}
	})
}
