package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/words"
)

// netView is the network sorted by tier, with what every switch has below and
// above it.
type netView struct {
	c      *cluster.Cluster
	sides  []cluster.Sides
	tiers  [][]int            // boxes of each tier, lowest first, by name
	trunks []*cluster.NetLink // between switches
}

func newNetView(c *cluster.Cluster) *netView {
	net := &c.Network
	v := &netView{c: c, sides: net.Sides()}
	for s := range net.Switches {
		for len(v.tiers) <= int(v.tier(s)) {
			v.tiers = append(v.tiers, nil)
		}
		if !net.Switches[s].Domain {
			v.tiers[v.tier(s)] = append(v.tiers[v.tier(s)], s)
		}
	}
	for _, t := range v.tiers {
		slices.SortStableFunc(t, func(a, b int) int { return natural.Compare(net.Switches[a].Name, net.Switches[b].Name) })
	}
	v.tiers = slices.DeleteFunc(v.tiers, func(t []int) bool { return len(t) == 0 })
	for i := range net.Links {
		l, n := &net.Links[i], len(net.Switches)
		if l.A.Switch < n && l.B.Switch < n && !l.A.ToHosts() && !l.B.ToHosts() {
			v.trunks = append(v.trunks, l)
		}
	}
	return v
}

// tier is that of a switch; one that nobody knows has hosts.
func (v *netView) tier(s int) cluster.Tier { return max(cluster.Leaf, v.c.Network.Switches[s].Tier) }

// downWords says what a switch has towards the hosts: "20 hosts" where only that
// is known, else its cables, with what they lead to when where is set.
func (v *netView) downWords(s int, where bool) string {
	boxes := v.c.Network.Switches[s].Count
	h, d := v.sides[s].Hosts.Each(boxes), v.sides[s].Down.Each(boxes)
	parts := nonEmpty(cablesText(h))
	if parts != nil && where {
		parts[0] += " to hosts"
	}
	if h.Members > 0 {
		parts = append(parts, words.Plural(h.Members, "host"))
	}
	if c := cablesText(d); c != "" {
		parts = append(parts, c+when(where && parts != nil, " to switches"))
	}
	if d.Members > 0 {
		parts = append(parts, tierCount(d.Members, d.Tier))
	}
	return cmp.Or(strings.Join(parts, ", "), "–")
}

// upWords says what a switch has away from the hosts: "under a spine" where only
// that is known.
func (v *netView) upWords(s int) string {
	u := v.sides[s].Up.Each(v.c.Network.Switches[s].Count)
	parts := nonEmpty(cablesText(u))
	switch {
	case u.Members == 1:
		parts = append(parts, "under a "+strings.TrimPrefix(tierCount(1, u.Tier), "1 "))
	case u.Members > 1:
		parts = append(parts, "under "+tierCount(u.Members, u.Tier))
	}
	return cmp.Or(strings.Join(parts, ", "), "–")
}

// grouped reports whether nothing but belonging is known of a switch.
func (v *netView) grouped(s int) bool {
	x := &v.sides[s]
	return len(x.Hosts.Speeds)+len(x.Down.Speeds)+len(x.Up.Speeds) == 0 && x.Hosts.Members+x.Down.Members+x.Up.Members > 0
}

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

// maxSpeeds is how many rates are told apart in one cell of a table.
const maxSpeeds = 3

// cablesText says how many cables there are of which rate.
func cablesText(t *cluster.Trunk) string {
	n := t.Faster(-1)
	switch {
	case n == 0:
		return ""
	case !t.Rated():
		return words.Plural(n, "cable")
	case len(t.Speeds) > maxSpeeds:
		low := cmp.Or(when(t.Speeds[0].Rate > 0, t.Speeds[0].Rate.Bits()), "unknown")
		return fmt.Sprintf("%s, %s to %s", words.Plural(n, "cable"), low, t.Speeds[len(t.Speeds)-1].Rate.Bits())
	}
	var parts []string
	for _, s := range t.Speeds {
		parts = append(parts, fmt.Sprintf("%d × %s", s.N, cmp.Or(when(s.Rate > 0, s.Rate.Bits()), "?")))
	}
	if t.Uneven {
		parts[0] = "up to " + parts[0]
	}
	return strings.Join(parts, ", ")
}

// tierCount counts the switches of a tier: "20 leaves".
func tierCount(n int, tier cluster.Tier) string {
	name := tier.String()
	switch {
	case tier > cluster.Core:
		return words.Plural(n, name+" switch")
	case tier == cluster.Leaf && n != 1:
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
