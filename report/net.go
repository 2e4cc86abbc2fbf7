package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// netView is the network sorted by tier, with what every switch has below and
// above it.
type netView struct {
	c        *cluster.Cluster
	switches []netSwitch
	tiers    [][]int            // boxes of each tier, lowest first, by name
	trunks   []*cluster.NetLink // between switches
}

// netSwitch is what a switch has in each direction.
type netSwitch struct {
	tier                    int
	hosts, down, up, across trunk // down and up: switches of other tiers; across: of its own
}

func newNetView(c *cluster.Cluster) *netView {
	net := &c.Network
	v := &netView{c: c, switches: make([]netSwitch, len(net.Switches))}
	for s := range net.Switches {
		tier := max(0, int(net.Switches[s].Tier))
		v.switches[s].tier = tier
		for len(v.tiers) <= tier {
			v.tiers = append(v.tiers, nil)
		}
		if !net.Switches[s].Domain {
			v.tiers[tier] = append(v.tiers[tier], s)
		}
	}
	for _, t := range v.tiers {
		slices.SortStableFunc(t, func(a, b int) int { return natural.Compare(net.Switches[a].Name, net.Switches[b].Name) })
	}
	v.tiers = slices.DeleteFunc(v.tiers, func(t []int) bool { return len(t) == 0 })
	for i := range net.Links {
		l, n := &net.Links[i], len(net.Switches)
		if l.A.Switch >= n || l.B.Switch >= n {
			continue
		}
		if !l.A.ToHosts() && !l.B.ToHosts() {
			v.trunks = append(v.trunks, l)
		}
		if l.State != cluster.Down {
			v.addEnd(l, l.A, l.B)
			v.addEnd(l, l.B, l.A)
		}
	}
	return v
}

// addEnd counts a link at one of its ends.
func (v *netView) addEnd(l *cluster.NetLink, self, far cluster.End) {
	if self.ToHosts() {
		return
	}
	s, n, tier := &v.switches[self.Switch], l.Cables(), 0
	to := &s.hosts
	if far.ToHosts() {
		hosts := 0
		for _, span := range far.Hosts {
			hosts += span.N
		}
		n *= hosts
	} else {
		tier = v.switches[far.Switch].tier
		to = []*trunk{&s.down, &s.across, &s.up}[1+cmp.Compare(tier, s.tier)]
	}
	to.addLink(l, n, tier)
}

// downWords says what a switch has towards the hosts: "20 hosts" where only that
// is known, else its cables, with what they lead to when where is set.
func (v *netView) downWords(s int, where bool) string {
	boxes := v.c.Network.Switches[s].Count
	h, d := v.switches[s].hosts.each(boxes), v.switches[s].down.each(boxes)
	parts := nonEmpty(h.cables())
	if parts != nil && where {
		parts[0] += " to hosts"
	}
	if h.members > 0 {
		parts = append(parts, words.Plural(h.members, "host"))
	}
	if c := d.cables(); c != "" {
		parts = append(parts, c+when(where && parts != nil, " to switches"))
	}
	if d.members > 0 {
		parts = append(parts, tierCount(d.members, d.tier))
	}
	return cmp.Or(strings.Join(parts, ", "), "–")
}

// upWords says what a switch has away from the hosts: "under a spine" where only
// that is known.
func (v *netView) upWords(s int) string {
	u := v.switches[s].up.each(v.c.Network.Switches[s].Count)
	parts := nonEmpty(u.cables())
	switch {
	case u.members == 1:
		parts = append(parts, "under a "+strings.TrimPrefix(tierCount(1, u.tier), "1 "))
	case u.members > 1:
		parts = append(parts, "under "+tierCount(u.members, u.tier))
	}
	return cmp.Or(strings.Join(parts, ", "), "–")
}

// grouped reports whether nothing but belonging is known of a switch.
func (v *netView) grouped(s int) bool {
	x := &v.switches[s]
	return len(x.hosts.speeds)+len(x.down.speeds)+len(x.up.speeds) == 0 && x.hosts.members+x.down.members+x.up.members > 0
}

// rated reports whether the rate of any cable is known.
func (v *netView) rated() bool {
	return slices.ContainsFunc(v.switches,
		func(s netSwitch) bool { return s.hosts.rated() || s.down.rated() || s.up.rated() })
}

// tierName is how a tier is called: by its own name where that is stated.
func (v *netView) tierName(s int) string { return cluster.Tier(v.switches[s].tier).String() }

// mostly is the text that more than half of a list have, said as such when others
// differ; nothing when there is none or when it says that there is nothing.
func mostly(list []string) string {
	count := make(map[string]int)
	for _, s := range list {
		count[s]++
	}
	for _, s := range list {
		switch n := count[s]; {
		case s == "" || s == "–" || 2*n <= len(list):
		case n == len(list):
			return s
		default:
			return "mostly " + s
		}
	}
	return ""
}

// trunk is what a switch has in one direction: cables, or, where a scheduler only
// says what belongs to what, hosts or switches without a cable being known.
type trunk struct {
	speeds  []speed // slowest first; a rate of 0 is one that nobody knows
	members int     // hosts or switches to which no cable is known
	tier    int     // of the switches among them; the lowest
	most    bool    // some boxes have fewer
}

// speed is how many cables run at a rate.
type speed struct {
	rate unit.Rate
	n    int
}

func (t *trunk) add(n int, r unit.Rate) {
	if n == 0 {
		return
	}
	at, ok := slices.BinarySearchFunc(t.speeds, r, func(s speed, r unit.Rate) int { return cmp.Compare(s.rate, r) })
	if !ok {
		t.speeds = slices.Insert(t.speeds, at, speed{rate: r})
	}
	t.speeds[at].n += n
}

// addLink adds so many cables like a link, or where no cable is known hosts or switches of a tier.
func (t *trunk) addLink(l *cluster.NetLink, n, tier int) {
	if !l.Bare() {
		t.add(n, l.Rate.Value)
		return
	}
	if t.members == 0 || tier < t.tier {
		t.tier = tier
	}
	t.members += n
}

// rate is all cables together, one direction; ok is false when a cable's rate is
// not known or when it is not known what the cables are.
func (t *trunk) rate() (sum unit.Rate, ok bool) {
	for _, s := range t.speeds {
		if s.rate == 0 {
			return 0, false
		}
		sum += s.rate * unit.Rate(s.n)
	}
	return sum, t.members == 0
}

// rated reports whether the rate of any cable is known.
func (t *trunk) rated() bool { return len(t.speeds) > 0 && t.speeds[len(t.speeds)-1].rate > 0 }

// each is the part of one of several boxes that an entry of the network stands for; the greatest where they cannot have
// equal parts.
func (t *trunk) each(boxes int) *trunk {
	if boxes < 2 {
		return t
	}
	one := trunk{members: t.members, tier: t.tier, speeds: slices.Clone(t.speeds)}
	for i := range one.speeds {
		one.most = one.most || one.speeds[i].n%boxes != 0
		one.speeds[i].n = (one.speeds[i].n + boxes - 1) / boxes
	}
	return &one
}

// maxSpeeds is how many rates are told apart in one cell of a table.
const maxSpeeds = 3

// cables says how many cables there are of which rate.
func (t *trunk) cables() string {
	n := t.count(-1)
	switch {
	case n == 0:
		return ""
	case !t.rated():
		return words.Plural(n, "cable")
	case len(t.speeds) > maxSpeeds:
		low := cmp.Or(when(t.speeds[0].rate > 0, t.speeds[0].rate.Bits()), "unknown")
		return fmt.Sprintf("%s, %s to %s", words.Plural(n, "cable"), low, t.speeds[len(t.speeds)-1].rate.Bits())
	}
	var parts []string
	for _, s := range t.speeds {
		parts = append(parts, fmt.Sprintf("%d × %s", s.n, cmp.Or(when(s.rate > 0, s.rate.Bits()), "?")))
	}
	if t.most {
		parts[0] = "up to " + parts[0]
	}
	return strings.Join(parts, ", ")
}

// tierCount counts the switches of a tier: "20 leaves".
func tierCount(n, tier int) string {
	name := cluster.Tier(tier).String()
	switch {
	case tier > int(cluster.Core):
		return words.Plural(n, name+" switch")
	case tier == int(cluster.Leaf) && n != 1:
		return fmt.Sprint(n, " leaves")
	}
	return words.Plural(n, name)
}

// apartWords say of networks without links across that this is meant so.
var apartWords = map[string]string{
	"rail-only": "rail-only: rails are not joined", "planes": "planes: a network per NIC",
}

// topologyWords names a network that is not leaves below spines, with its routing, which is assumed.
func topologyWords(n *cluster.Network) string {
	if n.Topology == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s routing", n.Topology, cmp.Or(n.Routing, "minimal"))
}
