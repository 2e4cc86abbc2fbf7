package cluster

import (
	"cmp"
	"slices"

	"busbar.dev/unit"
)

// Sides is what a switch has in each direction. Down and Up lead to switches of other tiers, Across to those of its
// own.
type Sides struct{ Hosts, Down, Up, Across Trunk }

// Trunk is the cables of a switch in one direction, or, where a scheduler only says what belongs to what, hosts or
// switches without a cable being known.
type Trunk struct {
	Speeds  []CableSpeed // slowest first; a rate of 0 is one that nobody knows
	Members int          // hosts or switches to which no cable is known
	Tier    Tier         // of the switches among them; the lowest
	Uneven  bool         // some boxes have fewer
}

// CableSpeed is how many cables run at a rate.
type CableSpeed struct {
	Rate unit.Rate
	N    int
}

// Sides counts the cables of every switch that are not down.
func (n *Network) Sides() []Sides {
	sides := make([]Sides, len(n.Switches))
	for i := range n.Links {
		l := &n.Links[i]
		if l.State == Down || max(l.A.Switch, l.B.Switch) >= len(n.Switches) {
			continue
		}
		n.addEnd(sides, l, l.A, l.B)
		n.addEnd(sides, l, l.B, l.A)
	}
	return sides
}

// addEnd counts a link at one of its ends.
func (n *Network) addEnd(sides []Sides, l *NetLink, self, far End) {
	if self.ToHosts() {
		return
	}
	s, cables, tier := &sides[self.Switch], l.Cables(), Leaf
	to := &s.Hosts
	if far.ToHosts() {
		hosts := 0
		for _, span := range far.Hosts {
			hosts += span.N
		}
		cables *= hosts
	} else {
		tier = max(Leaf, n.Switches[far.Switch].Tier)
		to = []*Trunk{&s.Down, &s.Across, &s.Up}[1+cmp.Compare(tier, max(Leaf, n.Switches[self.Switch].Tier))]
	}
	to.AddLink(l, cables, tier)
}

// Add adds so many cables of a rate.
func (t *Trunk) Add(n int, r unit.Rate) {
	if n == 0 {
		return
	}
	at, ok := slices.BinarySearchFunc(t.Speeds, r, func(s CableSpeed, r unit.Rate) int { return cmp.Compare(s.Rate, r) })
	if !ok {
		t.Speeds = slices.Insert(t.Speeds, at, CableSpeed{Rate: r})
	}
	t.Speeds[at].N += n
}

// AddLink adds so many cables like a link, or where no cable is known hosts or switches of a tier.
func (t *Trunk) AddLink(l *NetLink, n int, tier Tier) {
	if !l.Bare() {
		t.Add(n, l.Rate.Value)
		return
	}
	if t.Members == 0 || tier < t.Tier {
		t.Tier = tier
	}
	t.Members += n
}

// Rate is all cables together, one direction; ok is false when a cable's rate is not known or when it is not known what
// the cables are.
func (t *Trunk) Rate() (sum unit.Rate, ok bool) {
	for _, s := range t.Speeds {
		sum += s.Rate * unit.Rate(s.N)
	}
	return sum, t.Members == 0 && (len(t.Speeds) == 0 || t.Speeds[0].Rate > 0)
}

// Rated reports whether the rate of any cable is known.
func (t *Trunk) Rated() bool { return t.Faster(0) > 0 }

// Faster is how many of the cables are faster than a rate.
func (t *Trunk) Faster(than unit.Rate) int {
	n := 0
	for _, s := range t.Speeds {
		if s.Rate > than {
			n += s.N
		}
	}
	return n
}

// Slowest is the rate of the slowest cable, 0 where none is known.
func (t *Trunk) Slowest() unit.Rate {
	for _, s := range t.Speeds {
		if s.Rate > 0 {
			return s.Rate
		}
	}
	return 0
}

// Each is the part of one of several boxes that an entry of the network stands for; the greatest where they cannot have
// equal parts.
func (t *Trunk) Each(boxes int) *Trunk {
	if boxes < 2 {
		return t
	}
	one := *t
	one.Speeds = slices.Clone(t.Speeds)
	for i := range one.Speeds {
		one.Uneven = one.Uneven || one.Speeds[i].N%boxes != 0
		one.Speeds[i].N = (one.Speeds[i].N + boxes - 1) / boxes
	}
	return &one
}

// Oversubscription is what a switch has towards the hosts as a multiple of what it has upwards; 0 where that is
// unknown.
func (s *Sides) Oversubscription() float64 {
	h, ok1 := s.Hosts.Rate()
	d, ok2 := s.Down.Rate()
	u, ok3 := s.Up.Rate()
	if !ok1 || !ok2 || !ok3 || u == 0 {
		return 0
	}
	return float64((h + d) / u)
}

// EachHostLink calls a function for every host that a link of the network joins to a switch.
func (c *Cluster) EachHostLink(call func(l *NetLink, sw, host int)) {
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		hosts, sw, ok := l.HostEnd()
		if !ok || sw.Switch >= len(c.Network.Switches) || c.Network.Switches[sw.Switch].Domain {
			continue
		}
		for h := range hosts.EachHost(len(c.Hosts)) {
			call(l, sw.Switch, h)
		}
	}
}

// UnderSame parts switches of a tier by what they hang on: as rails that are not joined do.
func (c *Cluster) UnderSame(tier []int) [][]int {
	above, all := map[int][]int{}, c.Network.Switches
	for _, l := range c.Network.Links {
		for _, e := range [][2]int{{l.A.Switch, l.B.Switch}, {l.B.Switch, l.A.Switch}} {
			if min(e[0], e[1]) >= 0 && max(e[0], e[1]) < len(all) && all[e[0]].Tier < all[e[1]].Tier {
				above[e[0]] = append(above[e[0]], e[1])
			}
		}
	}
	return joined(tier, above)
}

// AboveSame parts leaves by their hosts.
func (c *Cluster) AboveSame(tier []int) [][]int {
	hosts := map[int][]int{}
	c.EachHostLink(func(_ *NetLink, sw, h int) { hosts[sw] = append(hosts[sw], h) })
	return joined(tier, hosts)
}

// OfSameRail parts switches of a tier by their rails.
func (c *Cluster) OfSameRail(tier []int) [][]int {
	rails := map[int][]int{}
	for _, id := range tier {
		rails[id] = []int{c.Network.Switches[id].Rail}
	}
	return joined(tier, rails)
}

// joined puts switches together that have a neighbour in common.
func joined(tier []int, near map[int][]int) [][]int {
	sets := NewPartition(len(tier))
	first := make(map[int]int) // of a neighbour: where its first switch stands in the tier
	for i, id := range tier {
		for _, n := range near[id] {
			if k, known := first[n]; known {
				sets.Unite(i, k)
			} else {
				first[n] = i
			}
		}
	}
	parts := groupsOf(sets.roots())
	for _, part := range parts {
		for k, i := range part {
			part[k] = tier[i]
		}
	}
	return parts
}
