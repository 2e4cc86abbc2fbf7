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

// resendTo is where a node is asked to send again what the store lost.
func resendTo(node fleet.Name) string { return inboxOf(node) + ".resend" }

// AskResend asks a node to send again what the store does not have.
func (b *Bus) AskResend(node fleet.Name, r *fleet.Resend) error { return b.pass(resendTo(node), r) }

// OnResend hears that, as a node.
func (b *Bus) OnResend(receive func(*fleet.Resend)) (*Subscription, error) {
	return b.subscribe(resendTo(b.node), 8, func(m *nats.Msg) {
		if r := decoded[fleet.Resend](m); r != nil {
			receive(r)
		}
	})
}

// OnSettled hears that, as a node.
func (b *Bus) OnSettled(receive func(*fleet.Settled)) (*Subscription, error) {
	return b.subscribe(settledTo(b.node), 64, func(m *nats.Msg) {
		if s := decoded[fleet.Settled](m); s != nil {
			receive(s)
		}
	})
}
