package report

import (
	"slices"
	"strconv"

	"busbar/cluster"
	"busbar/unit"
)

// netView is the network sorted by tier, with what every switch has below and
// above it.
type netView struct {
	c     *cluster.Cluster
	tier  []int   // per switch; a tier nobody stated is its distance from the hosts
	tiers [][]int // boxes of each tier, lowest first
	down  []trunk // per switch: towards the hosts
	up    []trunk
	hosts []int // per switch: cables to hosts
}

// trunk is the cables of a switch in one direction.
type trunk struct {
	cables  int
	rate    unit.Rate // all together, one direction
	each    unit.Rate // of one cable; 0 when they differ or nobody knows
	unknown bool      // a cable without a rate is among them
}

func (t *trunk) add(n int, r cluster.Fact[unit.Rate]) {
	if !r.Known() {
		t.unknown = true
		t.cables += n
		return
	}
	if t.cables == 0 {
		t.each = r.Value
	} else if t.each != r.Value {
		t.each = 0
	}
	t.cables += n
	t.rate += r.Value * unit.Rate(n)
}

func (t trunk) String() string {
	switch {
	case t.cables == 0:
		return "–"
	case t.unknown:
		return plural(t.cables, "cable")
	case t.each > 0:
		return strconv.Itoa(t.cables) + " × " + t.each.Bits()
	}
	return plural(t.cables, "cable") + ", " + t.rate.Bits()
}

func newNetView(c *cluster.Cluster) *netView {
	n := len(c.Network.Switches)
	v := &netView{c: c, tier: make([]int, n), down: make([]trunk, n), up: make([]trunk, n), hosts: make([]int, n)}
	v.findTiers()
	for i := range c.Network.Links {
		v.addLink(&c.Network.Links[i])
	}
	for s, t := range v.tier {
		if c.Network.Switches[s].Domain {
			continue
		}
		for len(v.tiers) <= t {
			v.tiers = append(v.tiers, nil)
		}
		v.tiers[t] = append(v.tiers[t], s)
	}
	v.tiers = slices.DeleteFunc(v.tiers, func(t []int) bool { return len(t) == 0 })
	return v
}

// findTiers takes the stated tiers, and for the rest the distance from the hosts.
func (v *netView) findTiers() {
	net := &v.c.Network
	next := make([][]int, len(net.Switches))
	var queue []int
	seen := make([]bool, len(net.Switches))
	reach := func(s, tier int) {
		if seen[s] {
			return
		}
		seen[s] = true
		v.tier[s] = tier
		if stated := net.Switches[s].Tier; stated != cluster.TierUnknown {
			v.tier[s] = max(0, int(stated))
		}
		queue = append(queue, s)
	}
	for i := range net.Links {
		a, b := net.Links[i].A, net.Links[i].B
		if !v.usable(&net.Links[i]) {
			continue
		}
		switch {
		case a.ToHosts() && !b.ToHosts():
			reach(b.Switch, 0)
		case b.ToHosts() && !a.ToHosts():
			reach(a.Switch, 0)
		case !a.ToHosts():
			next[a.Switch] = append(next[a.Switch], b.Switch)
			next[b.Switch] = append(next[b.Switch], a.Switch)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, to := range next[s] {
			reach(to, v.tier[s]+1)
		}
	}
	for s := range net.Switches {
		reach(s, 0)
	}
}

// usable reports whether both ends of a link exist.
func (v *netView) usable(l *cluster.NetLink) bool {
	n := len(v.c.Network.Switches)
	return l.A.Switch < n && l.B.Switch < n && !(l.A.ToHosts() && l.B.ToHosts())
}

func (v *netView) addLink(l *cluster.NetLink) {
	if l.State == cluster.Down || !v.usable(l) {
		return
	}
	for _, e := range [2][2]cluster.End{{l.A, l.B}, {l.B, l.A}} {
		self, far := e[0], e[1]
		if self.ToHosts() {
			continue
		}
		if far.ToHosts() {
			n := l.Cables() * spanLen(far.Hosts)
			v.hosts[self.Switch] += n
			v.down[self.Switch].add(n, l.Rate)
			continue
		}
		switch a, b := v.tier[self.Switch], v.tier[far.Switch]; {
		case b > a:
			v.up[self.Switch].add(l.Cables(), l.Rate)
		case b < a:
			v.down[self.Switch].add(l.Cables(), l.Rate)
		}
	}
}

func spanLen(spans []cluster.Span) int {
	n := 0
	for _, s := range spans {
		n += s.N
	}
	return n
}

// oversubscription is the ratio of a switch's capacity towards the hosts to that
// away from them, 0 when either is missing or not fully known.
func (v *netView) oversubscription(s int) float64 {
	d, u := v.down[s], v.up[s]
	if d.unknown || u.unknown || d.rate == 0 || u.rate == 0 {
		return 0
	}
	return float64(d.rate / u.rate)
}

// ratio prints 2 as 2:1 and 0.5 as 0.5:1.
func ratio(r float64) string {
	if r == 0 {
		return ""
	}
	return strconv.FormatFloat(r, 'g', 3, 64) + ":1"
}

// tierName is how a tier is called: by its own name where that is stated.
func (v *netView) tierName(s int) string { return cluster.Tier(v.tier[s]).String() }
