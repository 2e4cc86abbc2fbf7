package report

import (
	"fmt"
	"math"

	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/svg"
)

// maxTreeRanks is up to where every rank of a tree is drawn; beyond, every host.
const maxTreeRanks = 64

// trees draws every different tree from its root at the left.
func (v *trafficView) trees(y float64) float64 {
	like := map[int][]int{}
	var list []*traffic.Channel
	for i := range v.Channels {
		c := &v.Channels[i]
		if c.Parent == nil {
			continue
		}
		if c.TreeLike == c.Index {
			list = append(list, c)
		}
		like[c.TreeLike] = append(like[c.TreeLike], c.Index)
	}
	if len(list) == 0 {
		return y
	}
	what := "ranks, the root at the left; bytes go to the root and back; thick: between hosts"
	if v.NRanks > maxTreeRanks {
		what = "hosts, the root at the left; bytes go to the root and back"
	}
	y = v.section(y, "Trees", what)
	most := maxTrees
	if v.NRanks > maxTreeRanks && len(v.Hosts) > maxTreeRanks {
		most = 2 // a picture of all would be meters high
	}
	shown := list[:min(len(list), most)]
	forests := make([]forest, len(shown))
	deep := 0
	for i, c := range shown {
		forests[i] = v.forest(c)
		deep = max(deep, forests[i].depth)
	}
	per := 3
	if deep > 14 {
		per = 2
	}
	if deep <= 8 && (v.NRanks <= 8 || len(shown)%4 == 0) {
		per = 4
	}
	wide := (trafficW - 2*trafficPad) / float64(per)
	for from := 0; from < len(shown); from += per {
		tall := 0.0
		for k := from; k < min(from+per, len(shown)); k++ {
			tall = math.Max(tall, v.drawTree(&forests[k], like[shown[k].Index], box{trafficPad + float64(k-from)*wide, y, wide - 14, 0}))
		}
		y += tall + 12
	}
	if n := len(list) - len(shown); n > 0 {
		v.c.Text(trafficPad, y+4, fmt.Sprintf("and %d more that differ", n), svg.Type{Size: 12, Fill: inkSoft})
		y += 18
	}
	return y
}

// forest is a tree laid out: nodes with a depth and a row.
type forest struct {
	nodes []treeSpot
	depth int
	rows  int
}

// treeSpot is a rank, or a host where ranks are too many.
type treeSpot struct {
	name       string
	host       int
	up         int // index of the parent, or -1
	depth, row int
	crosses    bool
}

// forest lays a channel's tree out, leaves on rows of their own.
func (v *trafficView) forest(c *traffic.Channel) forest {
	parent, name, host := c.Parent, func(i int) string { return fmt.Sprint(i) }, func(i int) int { return v.Ranks[i].Host }
	if v.NRanks > maxTreeRanks && len(v.Hosts) > 0 {
		parent, name, host = v.hostTree(c), func(i int) string { return v.short[i] }, func(i int) int { return i }
	}
	kids := make([][]int, len(parent))
	var roots []int
	for i, p := range parent {
		switch {
		case p >= 0 && p < len(parent):
			kids[p] = append(kids[p], i)
		case p == -1:
			roots = append(roots, i)
		}
	}
	for i, p := range parent { // a branch whose upper part the log does not show
		if p == -2 && len(kids[i]) > 0 {
			roots = append(roots, i)
		}
	}
	var f forest
	seen := make([]bool, len(parent))
	var walk func(i, up, depth int) int
	walk = func(i, up, depth int) int {
		seen[i] = true
		at := len(f.nodes)
		f.nodes = append(f.nodes, treeSpot{name: name(i), host: host(i), up: up, depth: depth, crosses: up >= 0 && f.nodes[up].host != host(i)})
		f.depth = max(f.depth, depth+1)
		row := -1
		for _, k := range inHostFirst(kids[i], host(i), host) {
			if seen[k] || depth > 4*maxTreeRanks {
				continue
			}
			if r := walk(k, at, depth+1); row < 0 {
				row = r
			}
		}
		if row < 0 {
			row = f.rows
			f.rows++
		}
		f.nodes[at].row = row
		return row
	}
	for _, i := range roots {
		if !seen[i] {
			walk(i, -1, 0)
		}
	}
	return f
}

// inHostFirst puts children of the same host before others, so that a host's
// chain runs straight on.
func inHostFirst(kids []int, host int, of func(int) int) []int {
	var near, far []int
	for _, k := range kids {
		if of(k) == host {
			near = append(near, k)
		} else {
			far = append(far, k)
		}
	}
	return append(near, far...)
}

// hostTree is the tree between hosts: each hangs from the host that one of its
// ranks sends to.
func (v *trafficView) hostTree(c *traffic.Channel) []int {
	up := make([]int, len(v.Hosts))
	for i := range up {
		up[i] = -2
	}
	for k, p := range c.Parent {
		h := v.Ranks[k].Host
		if h < 0 {
			continue
		}
		switch {
		case p == -1:
			up[h] = -1
		case p >= 0 && v.Ranks[p].Host >= 0 && v.Ranks[p].Host != h:
			up[h] = v.Ranks[p].Host
		}
	}
	return up
}

// drawTree draws a tree into a box and returns its height.
func (v *trafficView) drawTree(f *forest, channels []int, b box) float64 {
	v.c.Open("tree", ringLabel(channels))
	defer v.c.Close()
	v.c.Text(b.x, b.y+10, svg.Fit(ringLabel(channels), ringType, b.w), ringType)
	step := math.Min(46, b.w/float64(max(f.depth, 1)))
	rowH, w := 19.0, math.Min(step-8, 26)
	if v.NRanks > maxTreeRanks {
		step = math.Min(120, b.w/float64(max(f.depth, 1)))
		w = step - 14
	}
	at := func(n *treeSpot) (x, y float64) { return b.x + float64(n.depth)*step, b.y + 18 + float64(n.row)*rowH }
	for i := range f.nodes {
		n := &f.nodes[i]
		if n.up < 0 {
			continue
		}
		x1, y1 := at(&f.nodes[n.up])
		x2, y2 := at(n)
		p := svg.Paint{Stroke: nvGreen, Width: 1.1}
		if n.crosses {
			p = svg.Paint{Stroke: netViol, Width: 2.2}
		}
		mid := x1 + w + (step-w)/2
		v.c.Path(new(svg.Pen).Move(x1+w, y1+7.5).Line(mid, y1+7.5).Line(mid, y2+7.5).Line(x2, y2+7.5).String(), p)
	}
	for i := range f.nodes {
		n := &f.nodes[i]
		x, y := at(n)
		v.c.Rect(x, y, w, 15, 3, svg.Paint{Fill: hostFill(n.host), Stroke: panelLine, Width: 0.7})
		v.c.Text(x+w/2, y+11, svg.FitEnds(n.name, svg.Type{Size: 9.5}, w), svg.Type{Size: 9.5, Fill: ink, Anchor: svg.Middle})
	}
	return 18 + float64(f.rows)*rowH
}
