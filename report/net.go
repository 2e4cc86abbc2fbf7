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
	c       *cluster.Cluster
	tier    []int   // per switch; a tier nobody stated is its distance from the hosts
	tiers   [][]int // boxes of each tier, lowest first, by name
	toHosts []trunk // per switch
	down    []trunk // per switch: to switches of lower tiers
	up      []trunk
	across  []trunk // to switches of its own tier
}

func newNetView(c *cluster.Cluster) *netView {
	n := len(c.Network.Switches)
	v := &netView{
		c: c, tier: make([]int, n), toHosts: make([]trunk, n), down: make([]trunk, n), up: make([]trunk, n),
		across: make([]trunk, n),
	}
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
	for _, t := range v.tiers {
		slices.SortStableFunc(t, func(a, b int) int {
			return natural.Compare(c.Network.Switches[a].Name, c.Network.Switches[b].Name)
		})
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
		n, to := l.Cables(), &v.toHosts[self.Switch]
		switch {
		case far.ToHosts():
			n *= spanLen(far.Hosts)
		case v.tier[far.Switch] > v.tier[self.Switch]:
			to = &v.up[self.Switch]
		case v.tier[far.Switch] < v.tier[self.Switch]:
			to = &v.down[self.Switch]
		default:
			to = &v.across[self.Switch]
		}
		switch {
		case !belongs(l):
			to.add(n, l.Rate.Value)
		case far.ToHosts():
			to.join(n, 0)
		default:
			to.join(n, v.tier[far.Switch])
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

// downWords says what a switch has towards the hosts: "20 hosts" where only that
// is known, else its cables, with what they lead to when where is set.
func (v *netView) downWords(s int, where bool) string {
	boxes := v.c.Network.Switches[s].Count
	h, d := v.toHosts[s].each(boxes), v.down[s].each(boxes)
	var parts []string
	if c := h.cables(); c != "" {
		if where {
			c += " to hosts"
		}
		parts = append(parts, c)
	}
	if h.members > 0 {
		parts = append(parts, words.Plural(h.members, "host"))
	}
	if c := d.cables(); c != "" {
		if where && len(parts) > 0 {
			c += " to switches"
		}
		parts = append(parts, c)
	}
	if d.members > 0 {
		parts = append(parts, tierCount(d.members, d.tier))
	}
	return orDash(strings.Join(parts, ", "))
}

// upWords says what a switch has away from the hosts: "under a spine" where only
// that is known.
func (v *netView) upWords(s int) string {
	u := v.up[s].each(v.c.Network.Switches[s].Count)
	parts := nonEmpty(u.cables())
	switch {
	case u.members == 1:
		parts = append(parts, "under a "+strings.TrimPrefix(tierCount(1, u.tier), "1 "))
	case u.members > 1:
		parts = append(parts, "under "+tierCount(u.members, u.tier))
	}
	return orDash(strings.Join(parts, ", "))
}

// grouped reports whether nothing but belonging is known of a switch.
func (v *netView) grouped(s int) bool {
	return len(v.toHosts[s].speeds)+len(v.down[s].speeds)+len(v.up[s].speeds) == 0 &&
		v.toHosts[s].members+v.down[s].members+v.up[s].members > 0
}

// rated reports whether the rate of any cable is known.
func (v *netView) rated() bool {
	for s := range v.tier {
		if v.toHosts[s].rated() || v.down[s].rated() || v.up[s].rated() {
			return true
		}
	}
	return false
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// tierName is how a tier is called: by its own name where that is stated.
func (v *netView) tierName(s int) string { return cluster.Tier(v.tier[s]).String() }

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

// join adds hosts or switches to which no cable is known.
func (t *trunk) join(n, tier int) {
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
	n := 0
	for _, s := range t.speeds {
		n += s.n
	}
	switch {
	case n == 0:
		return ""
	case !t.rated():
		return words.Plural(n, "cable")
	case len(t.speeds) > maxSpeeds:
		low, high := t.speeds[0].rate.Bits(), t.speeds[len(t.speeds)-1].rate.Bits()
		if t.speeds[0].rate == 0 {
			low = "unknown"
		}
		return fmt.Sprintf("%s, %s to %s", words.Plural(n, "cable"), low, high)
	}
	parts := make([]string, len(t.speeds))
	for i, s := range t.speeds {
		parts[i] = fmt.Sprintf("%d × %s", s.n, s.rate.Bits())
		if s.rate == 0 {
			parts[i] = fmt.Sprintf("%d × ?", s.n)
		}
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

// belongs reports a link of which nothing is known but what it joins: a tree that
// a scheduler was told, and not cables that somebody saw.
func belongs(l *cluster.NetLink) bool {
	for _, e := range []cluster.End{l.A, l.B} {
		if e.Port > 0 || e.ToHosts() && e.NIC >= 0 {
			return false
		}
	}
	return !l.Rate.Known() && !l.Max.Known() && l.Speed == "" && l.Lanes == 0 && l.Count <= 1 &&
		l.State == cluster.StateUnknown
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
