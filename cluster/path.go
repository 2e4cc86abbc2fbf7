package cluster

import (
	"fmt"
	"strings"

	"busbar.dev/unit"
)

// Place is a device of a host.
type Place struct{ Host, Device int }

// Reach says how far a path goes.
type Reach uint8

// Reaches, nearest first.
const (
	InNode   Reach = iota
	OverLeaf       // through one leaf switch
	OverSpine
	OverCore
	OverNet // through a network nobody described
)

var reachNames = strings.Fields("node leaf spine core network")

// reachWords say how paths go that leave their node.
var reachWords = map[Reach]string{
	OverLeaf: "leaf only", OverSpine: "via spine", OverCore: "via core",
	OverNet: "over a network that no source describes",
}

func (r Reach) String() string { return nameOf(reachNames, int(r)) }

// MarshalText writes the lower-case name.
func (r Reach) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Hop is one link of a path.
type Hop struct {
	From, To string          // "node0/gpu0", "leaf3"
	Kind     string          // nvlink, pcie, smp, cable, …
	Rate     Fact[unit.Rate] // one direction
	Latency  Fact[unit.Time]
}

func (h Hop) String() string {
	s := h.From + " → " + h.To + " (" + h.Kind
	if h.Rate.Known() {
		s += ", " + h.Rate.Value.String() + " " + h.Rate.Origin.String()
	}
	return s + ")"
}

// Path is the way between two devices.
type Path struct {
	From, To Place
	// Class is the class of the path inside a node; for a path between nodes, the
	// class of its worse end (GPU to NIC).
	Class Class
	Reach Reach
	Via   string // in words: "NVLink", "P2P over PCIe", "through the host", …
	Hops  []Hop
	// Rate is the measured figure for the pair where there is one, else that of
	// the slowest hop.
	Rate Fact[unit.Rate]
	// Slowest is the index of the hop that limits the path, -1 when unknown.
	Slowest int
	// Unknown is the number of hops without a rate, links within a chip aside: with
	// any, Rate is only what the path cannot exceed.
	Unknown int
	// Latency is the sum over hops with a known latency.
	Latency unit.Time
}

// Bottleneck names what limits the path.
func (p *Path) Bottleneck() string {
	switch {
	case len(p.Hops) == 0:
		return "nothing: it is the same device, or no path is known"
	case p.Slowest < 0:
		return "unknown: no hop has a rate"
	case p.Unknown > 0 && p.Rate.Origin != Measured:
		return fmt.Sprintf("%v at the most; the rate of %d of %d hops is unknown", p.Hops[p.Slowest], p.Unknown, len(p.Hops))
	case p.Rate.Origin == Measured:
		return fmt.Sprintf("measured %v for the pair; slowest hop %v", p.Rate.Value, p.Hops[p.Slowest])
	}
	return p.Hops[p.Slowest].String()
}

func (p *Path) finish() {
	p.Slowest = -1
	for i, h := range p.Hops {
		if h.Latency.Known() {
			p.Latency += h.Latency.Value
		}
		if !h.Rate.Known() && h.Kind != OnDie.String() {
			p.Unknown++
		}
		if h.Rate.Known() && (p.Slowest < 0 || h.Rate.Value < p.Hops[p.Slowest].Rate.Value) {
			p.Slowest = i
		}
	}
	if p.Slowest >= 0 && p.Rate.Origin != Measured {
		p.Rate = p.Hops[p.Slowest].Rate
	}
}

// viaInNode says which way traffic between two devices of a node goes.
func viaInNode(kinds [2]Kind, c Class, p2p Tri) string {
	switch {
	case c.Type == Self:
		return "the same device"
	case c.Type == NV || c.Type == XG || c.Type == LK || c.Type == C2:
		return c.Meaning()
	case c.Type == PXN:
		return "NVLink to the GPU beside the NIC (PXN)"
	case c.Type == Apart:
		return "no known path"
	case kinds == [2]Kind{GPU, GPU} && (p2p == No || c.Type > PXB && p2p != Yes):
		return "through the host"
	case kinds == [2]Kind{GPU, GPU}:
		return "P2P over PCIe"
	case c.Type <= PXB:
		return "PCIe switch"
	}
	return "through the host"
}
