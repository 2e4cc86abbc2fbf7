package hub

import "busbar.dev/fleet/bus"

// OnBus is NATS as a hub needs it. The stream must be there; see bus.Ensure.
func OnBus(b *bus.Bus) Bus { return onBus{b, b.Publisher()} }

type onBus struct {
	*bus.Bus
	*bus.Publisher
}
