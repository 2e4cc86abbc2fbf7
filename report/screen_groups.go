package report

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
)

// hostGroup is hosts that hang on the same switches.
type hostGroup struct {
	hosts  []int
	leaves []int
	box    box
}

// hostGroups puts hosts on the same switches together; those without a switch by their kind.
func hostGroups(c *cluster.Cluster) []hostGroup {
	on := make([][]int, len(c.Hosts)) // per host: its switches, in the order of links
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		sw, hosts := l.A, l.B
		if l.A.ToHosts() {
			sw, hosts = l.B, l.A
		}
		if sw.ToHosts() || sw.Switch >= len(c.Network.Switches) || c.Network.Switches[sw.Switch].Domain {
			continue
		}
		for _, s := range hosts.Hosts {
			for h := s.First; h < s.First+s.N && h < len(on); h++ {
				if !slices.Contains(on[h], sw.Switch) {
					on[h] = append(on[h], sw.Switch)
				}
			}
		}
	}
	var list []hostGroup
	index := make(map[string]int)
	for h := range c.Hosts {
		key := fmt.Sprint(on[h])
		if len(on[h]) == 0 {
			key = fmt.Sprint("kind ", c.Hosts[h].Type)
		}
		k, ok := index[key]
		if !ok {
			k = len(list)
			index[key] = k
			list = append(list, hostGroup{leaves: on[h]})
		}
		list[k].hosts = append(list[k].hosts, h)
	}
	return list
}

// groupList is the groups as a page knows them.
func groupList(groups []hostGroup, c *cluster.Cluster) []Group {
	list := make([]Group, len(groups))
	for i, g := range groups {
		names := hostNames(c, g.hosts)
		list[i] = Group{ID: fmt.Sprintf("pod%d", i), Name: hostList(names, 40), Hosts: cluster.FormatHosts(names), Leaves: switchNames(c, g.leaves)}
	}
	return list
}

// cellForm is how nodes are drawn as cells: fewer are larger.
type cellForm struct {
	w, h, gap float64
	name      bool    // cells have room for the names of nodes
	head      float64 // room above the cells for the name of the group
	chip      float64 // height of a switch of the group
	gutter    float64 // between groups
	least     float64 // width of a group
	pad       float64 // between its edge and what it holds
}

func formFor(hosts int) cellForm {
	switch {
	case hosts <= 96:
		return cellForm{w: 78, h: 30, gap: 6, name: true, head: 24, chip: 20, gutter: 24, least: 150, pad: 8}
	case hosts <= 2000:
		return cellForm{w: 15, h: 15, gap: 4, head: 22, chip: 17, gutter: 22, least: 104, pad: 8}
	}
	return cellForm{w: 4, h: 4, gap: 1, head: 8, chip: 4, gutter: 6, least: 44, pad: 3}
}

// groupGrid is groups of nodes as boxes with a cell for each node, and, where a row of the leaves would be too long, with
// their leaves.
type groupGrid struct {
	cellForm
	net    *strip
	row    *hostRow // for its caption
	groups []hostGroup
	out    []Group // what the page is told about them
	leaves caption // of the tier that stands in the groups; no text where it stands above
	chips  bool
	cols   int // cells in a row of a group
	across int // groups in a row
	frame  box
	of     []int // per host: its group
}

func newGroupGrid(net *strip, row *hostRow, groups []hostGroup, out []Group) *groupGrid {
	g := &groupGrid{cellForm: formFor(len(net.v.c.Hosts)), net: net, row: row, groups: groups, out: out, cols: 1, across: 1}
	g.of = make([]int, len(net.v.c.Hosts))
	for i, x := range groups {
		for _, h := range x.hosts {
			g.of[h] = i
		}
	}
	g.takeLeaves()
	g.arrange()
	return g
}

// takeLeaves moves the lowest tier of switches from its row into the groups, where the row had to fold it.
func (g *groupGrid) takeLeaves() {
	last := len(g.net.rows) - 1
	if last < 0 || !slices.ContainsFunc(g.net.rows[last], func(n netBox) bool { return len(n.ids) > 1 }) {
		return
	}
	in := make(map[int]bool)
	for _, x := range g.groups {
		for _, id := range x.leaves {
			in[id] = true
		}
	}
	for _, n := range g.net.rows[last] {
		for _, id := range n.ids {
			if !in[id] {
				return // a switch without nodes would not be drawn at all
			}
		}
	}
	g.chips, g.leaves = true, g.net.captions()[last]
	g.net.drop()
}

// size is the box of a group of so many nodes.
func (g *groupGrid) size(hosts, cols int) box {
	rows := (hosts + cols - 1) / cols
	return box{w: math.Max(float64(cols)*(g.w+g.gap)-g.gap+2*g.pad, g.least), h: g.top() + float64(rows)*(g.h+g.gap) - g.gap + g.pad}
}

// top is the room above the cells of a group.
func (g *groupGrid) top() float64 {
	if g.chips {
		return g.head + g.chip + g.gap + g.pad/2
	}
	return g.head
}

// most is the number of nodes of the largest group.
func (g *groupGrid) most() int {
	n := 1
	for _, x := range g.groups {
		n = max(n, len(x.hosts))
	}
	return n
}

// arrange chooses how many cells stand in a row of a group and how many groups side by side, so that the whole is about as
// wide as a screen and groups are neither towers nor ribbons.
func (g *groupGrid) arrange() {
	n, most := len(g.groups), g.most()
	above := float64(len(g.net.rows)) * (switchBH + 90)
	best := math.Inf(1)
	off := func(b box, ideal float64) float64 { return math.Abs(math.Log(b.w / b.h / ideal)) }
	for cols := 1; cols <= min(most, 64); cols++ {
		one := g.size(most, cols)
		for across := 1; across <= n; across++ {
			rows := (n + across - 1) / across
			all := box{w: float64(across)*(one.w+g.gutter) + captionW, h: float64(rows)*(one.h+g.gutter) + above}
			bad := off(all, 1.7) + 0.35*off(one, 1.5) + 0.3*unfilled(n, across) + unfilled(most, cols)
			if across == n && !g.chips && !g.net.empty() {
				bad -= 0.6 // in one row each can hang on its own switches
			}
			if bad < best {
				best, g.cols, g.across = bad, cols, across
			}
		}
	}
}

// unfilled is the share of rows of so many places that n things leave empty.
func unfilled(n, places int) float64 {
	all := (n + places - 1) / places * places
	return float64(all-n) / float64(all)
}

func (g *groupGrid) width() float64 {
	return float64(g.across)*(g.size(g.most(), g.cols).w+g.gutter) - g.gutter
}

func (g *groupGrid) lay(x, y, w float64) float64 {
	one := g.size(g.most(), g.cols)
	gutter := math.Min(3*g.gutter, (w-float64(g.across)*one.w)/float64(max(1, g.across-1)))
	left := x + (w-float64(g.across)*(one.w+gutter)+gutter)/2
	bar := y
	if g.rows() > 1 && !g.net.empty() {
		y += g.gutter
	}
	top, bottom := y, y
	for i := range g.groups {
		if i > 0 && i%g.across == 0 {
			top = bottom + g.gutter
		}
		b := g.size(len(g.groups[i].hosts), g.cols)
		g.groups[i].box = box{left + float64(i%g.across)*(one.w+gutter), top, one.w, b.h}
		bottom = math.Max(bottom, top+b.h)
		o := &g.out[i]
		o.X, o.Y, o.W, o.H = cent(g.groups[i].box.x), cent(top), cent(one.w), cent(b.h)
	}
	g.below()
	g.frame = box{left - g.side() - 4, bar, float64(g.across)*(one.w+gutter) - gutter + g.side() + 4, bottom - bar}
	g.leaves.y = y + 20
	return bottom
}

// below moves groups that hang on one drawn switch each to below it.
func (g *groupGrid) below() {
	if g.chips || g.across < len(g.groups) || g.net.empty() {
		return
	}
	mid := make([]float64, len(g.groups))
	for i := range g.groups {
		if len(g.groups[i].leaves) != 1 {
			return
		}
		mid[i] = g.net.boxOf(g.groups[i].leaves[0]).box.mid()
		if i > 0 && mid[i] < mid[i-1] {
			return
		}
	}
	w := g.groups[0].box.w
	last := g.net.rows[len(g.net.rows)-1]
	spread(mid, w+g.gutter, math.Min(last[0].box.x, g.groups[0].box.x), math.Max(last[len(last)-1].box.right(), g.groups[len(g.groups)-1].box.right()))
	for i := range g.groups {
		g.groups[i].box.x, g.out[i].X = mid[i]-w/2, cent(mid[i]-w/2)
	}
}
