package report

import (
	"busbar.dev/cluster"
)

// maxGroupWires is how many cables are drawn to groups one by one.
const maxGroupWires = 160

// wires joins the groups with the switches above them: each where they stand in one row, else all as one.
func (g *groupGrid) wires(cloud *box) []wire {
	single := g.across >= len(g.groups)
	out := g.collect(cloud, single)
	if single && len(out) > maxGroupWires {
		out = g.collect(cloud, false)
	}
	return out
}

func (g *groupGrid) collect(cloud *box, single bool) []wire {
	var out []wire
	if cloud != nil {
		for i := range g.groups {
			if single {
				out = append(out, wire{up: cloud, down: &g.groups[i].box, member: true, cables: 1, plumb: true})
			}
		}
		return out
	}
	of := make([]int, len(g.net.v.c.Network.Switches)) // per switch: its group, with one added
	several := make([]bool, len(of))
	for i, x := range g.groups {
		for _, id := range x.leaves {
			several[id] = of[id] > 0
			of[id] = i + 1
		}
	}
	index := make(map[[2]*box]int)
	add := func(up *netBox, group int, l *cluster.NetLink, n int, what string) {
		down, id, plumb := &g.frame, "all", true
		if single && group >= 0 {
			down, id, plumb = &g.groups[group].box, g.out[group].ID, false
		}
		k, ok := index[[2]*box{&up.box, down}]
		if !ok {
			k = len(out)
			index[[2]*box{&up.box, down}] = k
			out = append(out, wire{up: &up.box, down: down, off: true, plumb: plumb, key: what + "/" + id + "/" + g.net.first(up)})
		}
		out[k].add(l, n)
	}
	links := g.net.v.c.Network.Links
	for i := range links {
		l := &links[i]
		switch {
		case !g.net.v.usable(l):
		case l.A.ToHosts() || l.B.ToHosts():
			sw, hosts := l.A, l.B
			if l.A.ToHosts() {
				sw, hosts = l.B, l.A
			}
			if up := g.net.boxOf(sw.Switch); up != nil && !g.chips {
				g.toHosts(hosts, func(group, n int) { add(up, group, l, n*l.Cables(), "cables") })
			}
		case g.chips:
			for _, e := range [][2]int{{l.A.Switch, l.B.Switch}, {l.B.Switch, l.A.Switch}} {
				if up := g.net.boxOf(e[0]); up != nil && of[e[1]] > 0 && g.net.boxOf(e[1]) == nil {
					group := of[e[1]] - 1
					if several[e[1]] {
						group = -1
					}
					add(up, group, l, l.Cables(), "uplinks")
				}
			}
		}
	}
	return out
}

// toHosts says to how many nodes of which group a link goes.
func (g *groupGrid) toHosts(e cluster.End, say func(group, n int)) {
	count := make(map[int]int)
	var order []int
	for _, s := range e.Hosts {
		for h := s.First; h < s.First+s.N && h < len(g.of); h++ {
			k := g.of[h]
			if count[k] == 0 {
				order = append(order, k)
			}
			count[k]++
		}
	}
	for _, k := range order {
		say(k, count[k])
	}
}
