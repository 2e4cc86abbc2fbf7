package switchtree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// Group is a place in a tree made of a network: one switch, or several that a
// tree cannot tell apart.
type Group struct {
	Name    string
	Members []int // indexes into Network.Switches; none of a group that was made up
	Tier    cluster.Tier
	Up      int // index into Forest.Groups, -1 at the top
	Down    []int
	Hosts   []int
	// Rails says that the hosts of the group hang on all of its members.
	Rails bool
}

// List names the group's switches in one line.
func (g *Group) List(c *cluster.Cluster) string {
	names := make([]string, len(g.Members))
	for i, m := range g.Members {
		names[i] = c.Network.Switches[m].Name
	}
	list := cluster.FormatHosts(names)
	if len(list) > 200 {
		list = fmt.Sprintf("%s…%s (%d switches)", names[0], names[len(names)-1], len(names))
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(list)
}

// Forest is a network as a tree, or as several where nothing joins them.
type Forest struct {
	Groups []Group // lower ones first
	Loose  []int   // hosts that no switch is known for
}

// Tops lists the groups that nothing is above.
func (f *Forest) Tops() []int {
	var tops []int
	for i := range f.Groups {
		if f.Groups[i].Up < 0 {
			tops = append(tops, i)
		}
	}
	return tops
}

// Groups makes a tree of a network. Schedulers' trees give every host one leaf
// and every switch one parent, and real networks do not: the leaves that share
// hosts (the rails of a pod) become one group, and so do the spines that share
// leaves. A network that is a tree comes out as it is. Switches with no host
// below them are left out.
func Groups(c *cluster.Cluster) *Forest {
	g := grouping{net: &c.Network, sets: cluster.NewPartition(len(c.Network.Switches))}
	leaf := g.leaves(len(c.Hosts))
	g.up = g.neighbours()
	g.joinAbove()
	return g.forest(leaf)
}

// grouping joins switches into sets.
type grouping struct {
	net  *cluster.Network
	sets cluster.Partition
	tier []cluster.Tier
	up   [][]int // per switch, its neighbours of the next higher tier it has any on
}

// usable reports whether a link counts: it is not down and no end is a grouping.
func (g *grouping) usable(l *cluster.NetLink) bool {
	for _, e := range []cluster.End{l.A, l.B} {
		if !e.ToHosts() && (e.Switch >= len(g.net.Switches) || g.net.Switches[e.Switch].Domain) {
			return false
		}
	}
	return l.State != cluster.Down && !(l.A.ToHosts() && l.B.ToHosts())
}

// leaves finds a switch of every host, -1 for none, and joins the switches that
// share a host.
func (g *grouping) leaves(hosts int) []int {
	leaf := slices.Repeat([]int{-1}, hosts)
	attached := make([]bool, len(g.net.Switches))
	for i := range g.net.Links {
		l := &g.net.Links[i]
		end, box, ok := l.HostEnd()
		if !ok || !g.usable(l) {
			continue
		}
		sw := box.Switch
		for h := range end.EachHost(hosts) {
			attached[sw] = true
			if leaf[h] < 0 {
				leaf[h] = sw
			} else {
				g.sets.Unite(leaf[h], sw)
			}
		}
	}
	g.tier = g.tiersOf(attached)
	return leaf
}

// tiersOf is the tier of every switch: zero with hosts on it, else what the
// network says, else the distance from the switches with hosts.
func (g *grouping) tiersOf(attached []bool) []cluster.Tier {
	tier := make([]cluster.Tier, len(attached))
	unknown := false
	for i := range tier {
		tier[i] = g.net.Switches[i].Tier
		if attached[i] {
			tier[i] = cluster.Leaf
		}
		unknown = unknown || tier[i] < 0
	}
	for at := cluster.Leaf; unknown && at < maxLevels; at++ {
		unknown = false
		for i := range g.net.Links {
			l := &g.net.Links[i]
			if l.A.ToHosts() || l.B.ToHosts() || !g.usable(l) {
				continue
			}
			a, b := l.A.Switch, l.B.Switch
			if tier[b] == at && tier[a] < 0 {
				tier[a], unknown = at+1, true
			} else if tier[a] == at && tier[b] < 0 {
				tier[b], unknown = at+1, true
			}
		}
	}
	return tier
}

// neighbours lists, per switch, the switches above it on the nearest tier.
func (g *grouping) neighbours() [][]int {
	up := make([][]int, len(g.net.Switches))
	for i := range g.net.Links {
		l := &g.net.Links[i]
		if l.A.ToHosts() || l.B.ToHosts() || !g.usable(l) {
			continue
		}
		a, b := l.A.Switch, l.B.Switch
		if g.tier[a] < g.tier[b] {
			a, b = b, a
		}
		if g.tier[a] == g.tier[b] || slices.Contains(up[b], a) {
			continue
		}
		switch {
		case len(up[b]) == 0 || g.tier[a] == g.tier[up[b][0]]:
			up[b] = append(up[b], a)
		case g.tier[a] < g.tier[up[b][0]]:
			up[b] = []int{a}
		}
	}
	return up
}

// joinAbove joins, tier by tier, the switches that are above the same group.
func (g *grouping) joinAbove() {
	for at := cluster.Spine; at < maxLevels; at++ {
		first := map[int]int{} // group below → a switch above it on this tier
		for i := range g.up {
			if g.tier[i] >= at || len(g.up[i]) == 0 || g.tier[g.up[i][0]] != at {
				continue
			}
			for _, a := range g.up[i] {
				if have, ok := first[g.sets.Find(i)]; ok {
					g.sets.Unite(have, a)
				} else {
					first[g.sets.Find(i)] = a
				}
			}
		}
	}
}

// forest turns the sets into groups, lower tiers first, without those that have
// no host below them.
func (g *grouping) forest(leaf []int) *Forest {
	f := &Forest{}
	members, hosts, above := map[int][]int{}, map[int][]int{}, map[int]int{}
	for i := range g.sets {
		if g.net.Switches[i].Domain {
			continue
		}
		set := g.sets.Find(i)
		members[set] = append(members[set], i)
		if len(g.up[i]) > 0 {
			// Members of a group may reach above on different tiers; the lowest counts.
			if have, ok := above[set]; !ok || g.tier[g.up[i][0]] < g.tier[have] {
				above[set] = g.up[i][0]
			}
		}
	}
	for h, sw := range leaf {
		if sw < 0 {
			f.Loose = append(f.Loose, h)
			continue
		}
		hosts[g.sets.Find(sw)] = append(hosts[g.sets.Find(sw)], h)
	}
	keep := map[int]bool{}
	for set := range hosts {
		for n := 0; !keep[set] && n <= maxLevels; n++ {
			keep[set] = true
			up, ok := above[set]
			if !ok {
				break
			}
			set = g.sets.Find(up)
		}
	}
	sets := slices.SortedFunc(maps.Keys(keep),
		func(a, b int) int { return cmp.Or(cmp.Compare(g.tier[a], g.tier[b]), a-b) })
	at := map[int]int{}
	for i, set := range sets {
		at[set] = i
		f.Groups = append(f.Groups, Group{
			Members: members[set], Tier: max(g.tier[set], cluster.Leaf), Up: -1, Hosts: hosts[set],
			Rails: len(members[set]) > 1 && len(hosts[set]) > 0,
		})
	}
	for i, set := range sets {
		if up, ok := above[set]; ok && g.sets.Find(up) != set {
			f.Groups[i].Up = at[g.sets.Find(up)]
			f.Groups[at[g.sets.Find(up)]].Down = append(f.Groups[at[g.sets.Find(up)]].Down, i)
		}
	}
	f.name(g.net)
	g.joinTops(f)
	return f
}

// joinTops puts a made-up group above tops that cables join all the same, as in
// a mesh or where a host hangs on a spine.
func (g *grouping) joinTops(f *Forest) {
	tops := f.Tops()
	if len(tops) < 2 {
		return
	}
	whole := slices.Clone(g.sets)
	for i := range g.net.Links {
		if l := &g.net.Links[i]; !l.A.ToHosts() && !l.B.ToHosts() && g.usable(l) {
			whole.Unite(l.A.Switch, l.B.Switch)
		}
	}
	parts := map[int][]int{}
	var order []int
	for _, t := range tops {
		set := whole.Find(f.Groups[t].Members[0])
		if parts[set] == nil {
			order = append(order, set)
		}
		parts[set] = append(parts[set], t)
	}
	used := map[string]bool{}
	for i := range f.Groups {
		used[f.Groups[i].Name] = true
	}
	for _, set := range order {
		if len(parts[set]) < 2 {
			continue
		}
		top := Group{Name: Unique("top", used), Up: -1, Down: parts[set]}
		for _, t := range parts[set] {
			f.Groups[t].Up = len(f.Groups)
			top.Tier = max(top.Tier, f.Groups[t].Tier+1)
		}
		f.Groups = append(f.Groups, top)
	}
}

// name gives every group a name that no other has and that schedulers accept.
func (f *Forest) name(net *cluster.Network) {
	taken := map[string]bool{}
	for i := range net.Switches {
		taken[Plain(net.Switches[i].Name, 64)] = true
	}
	used := map[string]bool{}
	count := map[string]int{}
	for i := range f.Groups {
		gr := &f.Groups[i]
		if len(gr.Members) == 1 {
			gr.Name = Unique(Plain(net.Switches[gr.Members[0]].Name, 64), used)
			continue
		}
		stem := gr.Tier.String() + "group"
		if gr.Rails {
			stem = "railgroup"
		}
		for gr.Name == "" || taken[gr.Name] || used[gr.Name] {
			count[stem]++
			gr.Name = fmt.Sprintf("%s%d", stem, count[stem])
		}
		used[gr.Name] = true
	}
}

// Plain turns a name into letters, digits, dots, dashes and underscores, at
// most so many, with a letter or digit at both ends.
func Plain(name string, most int) string {
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name) && len(b) < most; i++ {
		c := name[i]
		if !alnum(c) && c != '.' && c != '-' && c != '_' {
			c = '-'
		}
		if len(b) > 0 || alnum(c) {
			b = append(b, c)
		}
	}
	for len(b) > 0 && !alnum(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return "x"
	}
	return string(b)
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// Unique returns the name, or the name with a number when it is taken, and
// takes it.
func Unique(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[out]; n++ {
		tail := fmt.Sprintf("-%d", n)
		out = name[:min(len(name), 63-len(tail))] + tail
	}
	taken[out] = true
	return out
}
