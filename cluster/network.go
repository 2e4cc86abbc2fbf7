package cluster

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"busbar.dev/unit"
)

// Tier is how far a switch is from the hosts.
type Tier int8

// Tiers. A switch with hosts on it is a leaf whatever else it does.
const (
	TierUnknown Tier = -1
	Leaf        Tier = 0
	Spine       Tier = 1
	Core        Tier = 2
)

func (t Tier) String() string {
	switch t {
	case Leaf:
		return "leaf"
	case Spine:
		return "spine"
	case Core:
		return "core"
	case TierUnknown:
		return "unknown"
	}
	return "tier" + string(rune('0'+t%10))
}

// Switch is a network switch, or Count equal ones that act as one.
type Switch struct {
	Name  string
	Label string // description the fabric gives, when it differs from the name
	GUID  string
	Model string
	Tier  Tier `merge:"-"`
	// Rail is the rail the switch serves in a rail-optimised network, -1 when it
	// serves them all or nobody knows.
	Rail  int `merge:"-"`
	Ports int // 0 unknown
	// Count is how many boxes this entry stands for in a described network (all
	// spines of a pod); 0 and 1 mean one.
	Count   int `merge:"-"`
	Latency Fact[unit.Time]
	// Reduction is in-network reduction (SHARP).
	Reduction Tri
	// Domain marks an entry that is not a box but a grouping a scheduler knows: a
	// Slurm block, an accelerator domain, a rack.
	Domain bool `merge:"-"`
	LID    int  // InfiniBand address; 0 unknown
}

// Span is a run of hosts: First, First+1, … (N of them), indexes into
// Cluster.Hosts.
type Span struct{ First, N int }

// End is one side of a network link: a switch, or the NIC of each host in Hosts.
type End struct {
	Switch int    // index into Network.Switches; -1 when the end is hosts
	Hosts  []Span // every one of these hosts has this link
	NIC    int    // position among the node's NICs; -1 when nobody knows which, and at a switch
	Port   int    // port number on the switch or the NIC; 0 unknown
}

// AtSwitch is the end at a port of a switch; port 0 means unknown.
func AtSwitch(sw, port int) End { return End{Switch: sw, NIC: -1, Port: port} }

// ToHosts reports whether the end is a set of hosts rather than a switch.
func (e End) ToHosts() bool { return e.Switch < 0 }

// EachHost yields the hosts of the end, of a cluster that has n.
func (e End) EachHost(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, s := range e.Hosts {
			for h := max(s.First, 0); h < min(s.First+s.N, n); h++ {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// AppendSpan adds a run of hosts, joined to the last one where it continues it.
func AppendSpan(to []Span, s Span) []Span {
	if n := len(to); n > 0 && to[n-1].First+to[n-1].N == s.First {
		to[n-1].N += s.N
		return to
	}
	return append(to, s)
}

// HostEnd are the two ends of a link between hosts and a switch; ok is false for others.
func (l *NetLink) HostEnd() (host, sw End, ok bool) {
	host, sw = l.B, l.A
	if l.A.ToHosts() {
		host, sw = l.A, l.B
	}
	return host, sw, host.ToHosts() && !sw.ToHosts()
}

// NetLink is a cable, or Count equal ones side by side, between A and B. When B
// is hosts, each host has Count of them. By convention hosts are B and the
// lower tier is B.
type NetLink struct {
	A End `json:"a" yaml:"a" merge:"-"`
	B End `json:"b" yaml:"b" merge:"-"`
	// Parallel cables; 0 and 1 mean one.
	Count int    `json:"count,omitempty" yaml:"count,omitempty" merge:"-"`
	Lanes int    `json:"lanes,omitempty" yaml:"lanes,omitempty"` // as trained, 4 for 4x; 0 unknown
	Speed string `json:"speed,omitempty" yaml:"speed,omitempty"` // "4xHDR"
	// One direction, one cable, as trained.
	Rate Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty" merge:"rate"`
	// What both ends could do.
	Max     Fact[unit.Rate] `json:"max_GBps,omitzero" yaml:"max,omitempty" merge:"largest rate"`
	Latency Fact[unit.Time] `json:"latency_s,omitzero" yaml:"latency,omitempty"` // of the cable
	State   State           `json:"state,omitempty" yaml:"state,omitempty" merge:"state"`
	// Counters are the error counters that are not zero, by end: "A.SymbolErrorCounter".
	Counters map[string]uint64 `json:"counters,omitempty" yaml:"counters,omitempty"`
}

// Loose reports a switch port of which no other end is known: nothing is plugged
// in, or the source named one port only. B is neither a switch nor hosts.
func (l *NetLink) Loose() bool { return l.B.ToHosts() && len(l.B.Hosts) == 0 }

// Cables is Count, with its zero meaning one.
func (l *NetLink) Cables() int { return max(l.Count, 1) }

// Network is everything between the nodes.
type Network struct {
	Name string  `json:"name,omitempty" yaml:"name,omitempty"`
	Kind NetKind `json:"kind,omitempty" yaml:"kind,omitempty" merge:"network kind"`
	// Rails is the number of rails of a rail-optimised network: NIC i of every
	// node goes to a leaf of rail i. 0 and 1 mean that leaves serve whole nodes.
	Rails int `json:"rails,omitempty" yaml:"rails,omitempty"`
	// Topology is how leaves are joined, as somebody described it: torus:4x4x4, dragonfly:4; "" is below spines, or nobody
	// says.
	Topology string `json:"topology,omitempty" yaml:"topology,omitempty"`
	// Routing is how traffic between switches of one tier finds its way, which is assumed: minimal ("" too) takes one
	// shortest path; adaptive spreads over all links of the two switches, so that a pair has half of them where that is
	// more.
	Routing string `json:"routing,omitempty" yaml:"routing,omitempty" merge:"-"`
	// BlockSizes are the numbers of nodes in which Slurm's topology/block plans, the smallest first: each is the first one
	// times a power of two. None means that no scheduler plans in blocks; the blocks themselves are switches with Domain.
	BlockSizes []int `json:"block_sizes,omitempty" yaml:"block_sizes,omitempty"`
	// Oversubscription is the ratio at the leaf that somebody stated (2 = 2:1);
	// where the links are known, Leaf capacities are computed instead.
	Oversubscription Fact[float64] `json:"oversubscription,omitzero" yaml:"oversubscription,omitempty" merge:"leaf ratio"`
	Reduction        Tri           `json:"reduction,omitempty" yaml:"reduction,omitempty"`
	// Scheduler is the tree of switches that a scheduler plans by (Slurm's topology.conf) where another source has the
	// cables, which may be joined otherwise; none where the network itself is that tree.
	Scheduler []SchedulerSwitch `json:"scheduler,omitempty" yaml:"scheduler,omitempty"`
	Switches  []Switch          `json:"switches,omitempty" yaml:"switches,omitempty" merge:"-"`
	Links     []NetLink         `json:"links,omitempty" yaml:"links,omitempty" merge:"-"`
}

// SchedulerSwitch is a switch as a scheduler knows it: the hosts that it counts as near each other, and the switch
// above.
type SchedulerSwitch struct {
	Name  string
	Up    string   // name of the one above; "" at the top
	Hosts []string // of a leaf
}

// SwitchByName finds a switch, or -1.
func (n *Network) SwitchByName(name string) int {
	return slices.IndexFunc(n.Switches, func(s Switch) bool { return s.Name == name })
}

// MarshalText writes leaf, spine, core, unknown or tierN.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name.
func (t *Tier) UnmarshalText(b []byte) error {
	for v := TierUnknown; v < 10; v++ {
		if v.String() == string(b) {
			*t = v
			return nil
		}
	}
	return fmt.Errorf("tier %q; one of leaf, spine, core, tier3…tier9, unknown", b)
}

// mostBlockSizes are the powers of two that Slurm knows of a block's size.
const mostBlockSizes = 16

// CheckBlockSizes refuses sizes that Slurm's topology/block refuses.
func CheckBlockSizes(list []int) error {
	for _, n := range list {
		if base := list[0]; n < 1 || base < 1 || n%base != 0 || bits.OnesCount(uint(n/base)) != 1 ||
			n/base >= 1<<mostBlockSizes {
			return fmt.Errorf("%d; expected nodes of a block, and that number times powers of two up to %d", n,
				1<<(mostBlockSizes-1))
		}
	}
	return nil
}

// Bare reports a link of which nothing is known but what it joins: a tree that
// a scheduler was told, and not cables that somebody saw.
func (l *NetLink) Bare() bool {
	for _, e := range []End{l.A, l.B} {
		if e.Port > 0 || e.ToHosts() && e.NIC >= 0 {
			return false
		}
	}
	return !l.Rate.Known() && !l.Max.Known() && l.Speed == "" && l.Lanes == 0 && l.Count <= 1 &&
		l.State == StateUnknown
}
