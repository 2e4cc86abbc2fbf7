package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// Measures of the picture of a run's traffic, and how much of it is shown before the rest is only counted.
const (
	trafficW     = 1280.0
	maxHostCards = 16
	maxRings     = 16
	maxTrees     = 12
	maxTreeRanks = 64 // up to where every rank of a tree is drawn; beyond, every host
	maxStretches = 32 // changes of host of one ring
)

// trafficView is a run with what its parts have in common.
type trafficView struct {
	*traffic.Run
	most float64 // load of the busiest NIC
	tree bool    // no ring leaves a host: loads are those of trees
	// hops finds a ring's hop by channel and ranks.
	hops map[[3]int]*traffic.Hop
}

func newTrafficView(r *traffic.Run) *trafficView {
	v := &trafficView{Run: r, hops: map[[3]int]*traffic.Hop{}}
	v.tree = !slices.ContainsFunc(r.NICs, func(n traffic.NIC) bool { return n.Ring.Out > 0 || n.Ring.In > 0 })
	for i := range r.NICs {
		v.most = math.Max(v.most, v.busy(i))
	}
	for i := range v.Hops {
		if h := &v.Hops[i]; h.Ring {
			v.hops[[3]int{h.Channel, h.From, h.To}] = h
		}
	}
	return v
}

// load is a NIC's traffic by the ring, or by the tree where no ring leaves a host.
func (v *trafficView) load(nic int) traffic.Load {
	if v.tree {
		return v.NICs[nic].Tree
	}
	return v.NICs[nic].Ring
}

func (v *trafficView) busy(nic int) float64 { return math.Max(v.load(nic).Out, v.load(nic).In) }

// unlike reports whether NICs carry different loads: else all are the busiest.
func (v *trafficView) unlike() bool {
	for i := range v.NICs {
		if v.NICs[i].Hops > 0 && v.busy(i) < 0.999*v.most {
			return true
		}
	}
	return false
}

// what is how large the communicator is, and how much of it the log shows.
func (v *trafficView) what() string {
	seen := fmt.Sprintf(" on %s", words.Plural(len(v.Hosts), "host"))
	if n := len(v.Unseen); n > 0 {
		seen = fmt.Sprintf(", %d of them on %s in the log", v.NRanks-n, words.Plural(len(v.Hosts), "host"))
	}
	return fmt.Sprintf("%s%s, %s", words.Plural(v.NRanks, "rank"), seen, words.Plural(len(v.Channels), "channel"))
}

// facts are the few words below a title.
func (v *trafficView) facts() string {
	list := []string{filepath.Base(v.Source)}
	if v.NCCL != "" {
		list = append(list, "NCCL "+v.NCCL)
	}
	if v.Comm != "" {
		list = append(list, "communicator "+v.Comm)
	}
	for _, t := range v.Transports[:min(4, len(v.Transports))] {
		list = append(list, fmt.Sprintf("%s %s", words.Plural(t.Hops, "hop"), t.Via))
	}
	return strings.Join(list, " · ")
}

// Traffic draws a communicator on its hosts: which GPUs talk, through which NIC,
// how much passes each, its rings and its trees, and what is odd.
func Traffic(r *traffic.Run) *svg.Picture {
	v, c := newTrafficView(r), &svg.Canvas{}
	y := heading(c, trafficW, "Traffic of an all-reduce: "+v.what(), v.facts())
	y = drawSamples(c, edge, y, trafficW-2*edge, v.samples())
	y = v.drawHosts(c, y)
	y = v.drawRings(c, y)
	y = v.drawTrees(c, y)
	if len(v.Odd) > 0 {
		y = drawSection(c, y, "Noteworthy", "")
	}
	for _, o := range v.Odd[:min(12, len(v.Odd))] {
		ty := svg.Type{Size: 12, Fill: ink}
		for k, text := range svg.Wrap(o.Text, ty, trafficW-2*edge-20, 2) {
			if k == 0 {
				c.Rect(edge+2.5, y-1.5, 5, 5, 2.5, svg.Paint{Fill: amber})
			}
			c.Text(edge+16, y+5, text, ty)
			y += 18
		}
	}
	return c.Picture("traffic of "+words.Plural(r.NRanks, "rank")+" on "+words.Plural(len(r.Hosts), "host"), trafficW,
		y+10)
}

// hopLook is how a hop is drawn: with what it passes.
func hopLook(h *traffic.Hop) Sample {
	line := func(text, color, dash string) Sample {
		return Sample{Text: text, Paint: svg.Paint{Stroke: color, Width: 2.5, Dash: dash}}
	}
	switch {
	case h.Transport == "SHM":
		return line("through host memory (SHM)", amber, "")
	case h.Transport == "P2P":
		return line("P2P between GPUs", nvGreen, "")
	case h.Transport != "NET":
		return line("not in the log", idleLine, "")
	case !h.GDR:
		return line("to the NIC through host memory", red, "2 4")
	case h.Proxy >= 0:
		return line("through another GPU's NIC (PXN)", netViol, "7 4")
	}
	return line("to the NIC, GPUDirect RDMA", netViol, "")
}

// samples explain the hops that there are, and the figures of the NICs.
func (v *trafficView) samples() []Sample {
	var list []Sample
	for i := range v.Hops {
		if s := hopLook(&v.Hops[i]); !slices.ContainsFunc(list, func(o Sample) bool { return o.Text == s.Text }) {
			list = append(list, s)
		}
	}
	if len(v.NICs) == 0 {
		return list
	}
	by := "ring"
	if v.tree {
		by = "tree"
	}
	return append(list, Sample{
		Text:  "NIC: bytes out and in per byte of the all-reduce (" + by + "); so coloured: the busiest",
		Paint: svg.Paint{Fill: amberBg, Stroke: amber, Width: 1.5}, Solid: true,
	})
}

// drawSection writes a heading inside the picture.
func drawSection(c *svg.Canvas, y float64, title, tail string) float64 {
	big, small := svg.Type{Size: 14, Bold: true, Fill: ink}, svg.Type{Size: 12, Fill: inkSoft}
	c.Text(edge, y+26, title, big)
	c.Text(edge+svg.TextWidth(title, big)+10, y+26, svg.Fit(tail, small, 1000), small)
	return y + 44
}

// hostFill tells hosts apart; colours come again when there are more.
func hostFill(host int) string {
	fills := []string{
		"#cfe3f7", "#fbe0c3", "#d6ecc9", "#e6d8f5", "#fbd5d5", "#d2efee", "#f4ebb6", "#e0e0e0",
		"#b9cfee", "#f3c9a3", "#bfe0ad", "#d3bfec", "#f3bcbc", "#b5e0dc", "#e6d98a", "#c9c9c9",
	}
	if host < 0 {
		return idleFill
	}
	return fills[host%len(fills)]
}

// drawHosts draws the hosts beside each other: each, or where they are many one of those whose NICs carry the same.
func (v *trafficView) drawHosts(c *svg.Canvas, y float64) float64 {
	groups := v.likeHosts(maxHostCards)
	most, left, height := 4, 0, 214.0
	for i, g := range groups {
		most = max(most, len(v.Hosts[g[0]].Ranks), len(v.Hosts[g[0]].NICs))
		if i >= maxHostCards {
			left += len(g)
		}
	}
	if len(v.NICs) == 0 {
		height = 116
	}
	groups = groups[:min(len(groups), maxHostCards)]
	all := trafficW - 2*edge
	across := max(1, min(len(groups), int(all/math.Min(float64(most)*62, all))))
	pitch := (all + pad) / float64(across)
	for i, g := range groups {
		v.drawHost(c, g, box{
			edge + float64(i%across)*pitch, y + float64(i/across)*(height+pad), math.Min(pitch-pad, 900), height,
		})
	}
	y += float64((len(groups)+across-1)/across) * (height + pad)
	if left > 0 {
		c.Text(edge, y+10, fmt.Sprintf("and %s that are not drawn; --json has them", words.Plural(left, "host")),
			svg.Type{Fill: inkSoft})
		y += 20
	}
	return y
}

// drawHost draws a host: links between its GPUs above them, NICs below.
func (v *trafficView) drawHost(c *svg.Canvas, alike []int, b box) {
	host := alike[0]
	h := &v.Hosts[host]
	name := h.Name
	if n := len(alike) - 1; n > 0 {
		name += fmt.Sprintf(" and %d alike", n)
	}
	c.Open("host", h.Name, "")
	c.Rect(b.x, b.y, b.w, b.h, 8, svg.Paint{Fill: panelFill, Stroke: panelLine})
	bold, soft := svg.Type{Size: 13, Bold: true, Fill: ink}, svg.Type{Size: 11, Fill: inkSoft, Anchor: svg.End}
	c.Text(b.x+pad, b.y+20, svg.FitEnds(name, bold, b.w*0.55), bold)
	c.Text(b.right()-pad, b.y+20, svg.Fit("ranks "+words.Numbers(h.Ranks), soft, b.w*0.38), soft)
	gpus, nics := map[int]box{}, map[int]box{}
	for i, k := range h.Ranks {
		gpus[k] = place(b, i, len(h.Ranks), b.y+74, 32, 54)
	}
	for i, n := range v.nearFirst(h) {
		nics[n] = place(b, i, len(h.NICs), b.y+146, 60, 118)
	}
	v.drawHops(c, gpus, nics)
	for _, k := range h.Ranks {
		paint, device := svg.Paint{Fill: hostFill(host), Stroke: nvGreen, Width: 1.2}, ""
		if !v.Ranks[k].Logged {
			paint.Dash = "3 3"
		}
		if v.Ranks[k].Device != "" {
			device = "GPU " + v.Ranks[k].Device
		}
		c.Open("gpu", fmt.Sprintf("rank %d %s", k, device), "")
		c.Rect(gpus[k].x, gpus[k].y, gpus[k].w, gpus[k].h, 5, paint)
		drawLines(c, gpus[k], 9.5, ink, fmt.Sprint(k), device)
		c.Close()
	}
	for _, n := range h.NICs {
		v.drawNIC(c, n, nics[n])
	}
	c.Close()
}

// place is the i-th of n boxes that stand evenly in another, no wider than most.
func place(b box, i, n int, y, h, most float64) box {
	step := (b.w - 2*pad) / float64(n)
	w := math.Min(step-6, most)
	return box{b.x + pad + step*(float64(i)+0.5) - w/2, y, w, h}
}

// nearFirst orders a host's NICs by the ranks they serve, idle ones last, so that
// few wires cross.
func (v *trafficView) nearFirst(h *traffic.Host) []int {
	middle := func(nic int) float64 {
		sum, n := 0, len(v.NICs[nic].Ranks)
		for _, k := range v.NICs[nic].Ranks {
			sum += slices.Index(h.Ranks, k)
		}
		if n == 0 {
			return math.Inf(1)
		}
		return float64(sum) / float64(n)
	}
	return slices.SortedStableFunc(slices.Values(h.NICs),
		func(a, b int) int { return cmp.Compare(middle(a), middle(b)) })
}

// drawHops joins GPUs that talk to each other, and GPUs to the NICs they send and receive through: the thicker, the
// more hops.
func (v *trafficView) drawHops(c *svg.Canvas, gpus, nics map[int]box) {
	type way struct {
		from, to box
		Sample
	}
	count := map[way]int{}
	var ways []way
	add := func(look Sample, from box, okFrom bool, to box, okTo bool) {
		w := way{from, to, look}
		if okFrom && okTo {
			if count[w]++; count[w] == 1 {
				ways = append(ways, w)
			}
		}
	}
	for i := range v.Hops {
		h := v.Hops[i]
		look := hopLook(&h)
		a, okA := gpus[h.From]
		b, okB := gpus[h.To]
		out, okOut := nics[h.Out]
		in, okIn := nics[h.In]
		if h.Out < 0 && h.In < 0 {
			if a.x > b.x {
				a, b = b, a
			}
			add(look, a, okA, b, okB)
			continue
		}
		add(look, a, okA, out, okOut)
		h.Proxy = -1
		add(hopLook(&h), b, okB, in, okIn)
	}
	for _, w := range ways {
		paint := w.Paint
		paint.Width, paint.Round, paint.Opacity = math.Min(1+0.35*float64(count[w]), 6), true, 0.75
		x1, y1, x2, y2 := w.from.mid(), w.from.y, w.to.mid(), w.to.y
		bend, lift := (x2-x1)*0.15, y1-math.Min(56, 14+(x2-x1)*0.16)
		c.Open("link", words.Plural(count[w], "hop")+" "+w.Text, "")
		if y1 == y2 {
			c.Path(paint, "M", x1, y1, "C", x1+bend, lift, x2-bend, lift, x2, y2)
		} else {
			y1 = w.from.bottom()
			c.Path(paint, "M", x1, y1, "C", x1, y1+26, x2, y2-26, x2, y2)
		}
		c.Close()
	}
}

// drawNIC draws a NIC with what leaves and enters it.
func (v *trafficView) drawNIC(c *svg.Canvas, i int, b box) {
	n, l := &v.NICs[i], v.load(i)
	c.Open("nic", fmt.Sprintf("%s: ring %.3f out, %.3f in; tree %.3f out, %.3f in; channels %s; ranks %s", v.NICName(i),
		n.Ring.Out, n.Ring.In, n.Tree.Out, n.Tree.In, words.Numbers(n.Channels), words.Numbers(n.Ranks)), "")
	texts := []string{
		v.NICName(i), fmt.Sprintf("out %.2f", l.Out), fmt.Sprintf("in %.2f", l.In), "channels " + words.Numbers(n.Channels),
	}
	paint := svg.Paint{Fill: netFill, Stroke: netViol}
	switch {
	case n.Hops == 0:
		paint, texts = svg.Paint{Fill: paper, Stroke: panelLine, Dash: "3 3"}, []string{v.NICName(i), "idle"}
	case n.Busiest && v.unlike():
		paint = svg.Paint{Fill: amberBg, Stroke: amber, Width: 2}
	}
	c.Rect(b.x, b.y, b.w, b.h, 5, paint)
	drawLines(c, b, 10, ink, texts...)
	c.Close()
}

// channelsBy puts channels together for which a function says the same; those for which it says -1 are left out.
func (v *trafficView) channelsBy(like func(*traffic.Channel) int) [][]*traffic.Channel {
	var list [][]*traffic.Channel
	at := map[int]int{-1: -1}
	for i := range v.Channels {
		key := like(&v.Channels[i])
		k, known := at[key]
		if !known {
			k, at[key] = len(list), len(list)
			list = append(list, nil)
		}
		if k >= 0 {
			list[k] = append(list[k], &v.Channels[i])
		}
	}
	return list
}

func ringLike(c *traffic.Channel) int {
	if len(c.Ring) == 0 {
		return -1
	}
	return c.RingLike
}

func treeLike(c *traffic.Channel) int {
	if c.Parent == nil {
		return -1
	}
	return c.TreeLike
}

// indexes lists the numbers of channels.
func indexes(list []*traffic.Channel) string {
	var ids []int
	for _, c := range list {
		ids = append(ids, c.Index)
	}
	return words.Numbers(ids)
}

func channelLabel(list []*traffic.Channel) string {
	if len(list) == 1 {
		return "channel " + indexes(list)
	}
	return "channels " + indexes(list)
}

// channelType is how the channels of a ring or tree are set.
var channelType = svg.Type{Size: 11, Bold: true, Fill: ink}

// drawMore counts what is not drawn.
func drawMore(c *svg.Canvas, y float64, n int) float64 {
	if n <= 0 {
		return y
	}
	c.Text(edge, y+4, fmt.Sprintf("and %d more that differ", n), svg.Type{Fill: inkSoft})
	return y + 18
}

// drawRings draws every different ring as a strip of ranks, coloured by host; between
// hosts stand the NICs it leaves and enters by.
func (v *trafficView) drawRings(c *svg.Canvas, y float64) float64 {
	rings := v.channelsBy(ringLike)
	if len(rings) == 0 {
		return y
	}
	tail := "ranks in the order that bytes travel, the last sends to the first"
	if len(v.Flows) > 0 {
		tail += "; between hosts: the NIC that it leaves by, the NIC that it enters by"
	}
	y = drawSection(c, y, "Rings", tail)
	for _, list := range rings[:min(len(rings), maxRings)] {
		y = v.drawRing(c, list, y)
	}
	return drawMore(c, y, len(rings)-maxRings)
}

func (v *trafficView) drawRing(c *svg.Canvas, list []*traffic.Channel, y float64) float64 {
	const left, cell, high, between = 210.0, 24.0, 20.0, 36.0
	c.Open("ring", channelLabel(list), "")
	c.Text(edge, y+14, svg.Fit(channelLabel(list), channelType, left-edge-6), channelType)
	x, net := left, svg.Type{Size: 9, Fill: netViol, Anchor: svg.Middle}
	room := func(w float64) {
		if x+w > trafficW-edge {
			x, y = left, y+high+6
		}
	}
	say := func(text string) {
		room(260)
		c.Text(x+4, y+14, text, svg.Type{Size: 11, Italic: true, Fill: inkSoft})
	}
	stretches := v.stretches(list[0])
	for i, s := range stretches {
		if i == maxStretches {
			say(fmt.Sprintf("… and on, %d times more to another host", len(stretches)-i))
			break
		}
		for _, k := range s.ranks {
			room(cell)
			c.Rect(x, y, cell-1, high, 2, svg.Paint{Fill: hostFill(s.host), Stroke: panelLine, Width: 0.6})
			c.Text(x+cell/2-0.5, y+14, fmt.Sprint(k), svg.Type{Size: 9.5, Fill: ink, Anchor: svg.Middle})
			x += cell
		}
		if len(stretches) > 1 {
			room(between)
			c.Path(svg.Paint{Stroke: netViol, Width: 1.4}, "M", x+2, y+14, "L", x+between-4, y+14, "L", x+between-8, y+11)
			c.Text(x+between/2-1, y+9, s.nics, net)
			x += between
		}
	}
	if list[0].Cut {
		say("… cut in the log")
	}
	c.Close()
	return y + high + 9
}

// stretch is a run of ranks of one host in a ring.
type stretch struct {
	host  int
	ranks []int
	nics  string // that it leaves by and enters the next by, as NCCL numbers them: 0›1
}

// stretches cuts a ring where it changes hosts.
func (v *trafficView) stretches(c *traffic.Channel) []stretch {
	number := func(nic int) string {
		if nic < 0 {
			return "?"
		}
		return fmt.Sprint(v.NICs[nic].Dev)
	}
	var list []stretch
	for i, k := range c.Ring {
		host := v.Ranks[k].Host
		if i > 0 {
			before := &list[len(list)-1]
			h := v.hops[[3]int{c.Index, c.Ring[i-1], k}]
			if host == before.host && !(host < 0 && h != nil && h.Transport == "NET") {
				before.ranks = append(before.ranks, k)
				continue
			}
		}
		list = append(list, stretch{host: host, ranks: []int{k}, nics: "?›?"})
	}
	for i := range list {
		s, next := &list[i], list[(i+1)%len(list)].ranks[0]
		if h := v.hops[[3]int{c.Index, s.ranks[len(s.ranks)-1], next}]; h != nil {
			s.nics = number(h.Out) + "›" + number(h.In)
		}
	}
	return list
}

// drawTrees draws every different tree from its root at the left.
func (v *trafficView) drawTrees(c *svg.Canvas, y float64) float64 {
	trees := v.channelsBy(treeLike)
	if len(trees) == 0 {
		return y
	}
	what, most, step := "ranks, the root at the left; bytes go to the root and back; thick: between hosts", maxTrees, 46.0
	if v.byHost() {
		what, step = "hosts, the root at the left; bytes go to the root and back", 120
	}
	if len(v.Hosts) > maxTreeRanks {
		most = 2 // a picture of all would be meters high
	}
	y = drawSection(c, y, "Trees", what)
	x, tall := edge, 0.0
	for _, list := range trees[:min(len(trees), most)] {
		f := v.forest(list[0])
		step := math.Min(step, (trafficW-2*edge)/float64(max(f.depth, 1)))
		wide := math.Max(step*float64(f.depth), svg.TextWidth(channelLabel(list), channelType)) + edge
		if x > edge && x+wide > trafficW {
			x, y, tall = edge, y+tall, 0
		}
		tall = math.Max(tall, f.draw(c, channelLabel(list), x, y, step)+12)
		x += wide
	}
	return drawMore(c, y+tall, len(trees)-most)
}

// byHost reports whether trees show hosts and not ranks, which are too many.
func (v *trafficView) byHost() bool { return v.NRanks > maxTreeRanks && len(v.Hosts) > 0 }

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
	if v.byHost() {
		all := make([]int, len(v.Hosts))
		for i := range all {
			all[i] = i
		}
		short := shortNames(v.hostNames(all))
		parent, name, host = v.hostTree(c), func(i int) string { return short[i] }, func(i int) int { return i }
	}
	kids := make([][]int, len(parent))
	var roots, broken []int
	for i, p := range parent {
		switch {
		case p >= 0 && p < len(parent):
			kids[p] = append(kids[p], i)
		case p == -1:
			roots = append(roots, i)
		default: // of a branch, whose upper part the log does not show
			broken = append(broken, i)
		}
	}
	var f forest
	seen := make([]bool, len(parent))
	var walk func(i, up, depth int) int
	walk = func(i, up, depth int) int {
		seen[i] = true
		at := len(f.nodes)
		f.nodes = append(f.nodes, treeSpot{
			name: name(i), host: host(i), up: up, depth: depth, crosses: up >= 0 && f.nodes[up].host != host(i),
		})
		f.depth = max(f.depth, depth+1)
		row := -1
		// Children of the same host come first, so that a host's chain runs straight on.
		for _, own := range []bool{true, false} {
			for _, k := range kids[i] {
				if seen[k] || depth > 4*maxTreeRanks || (host(k) == host(i)) != own {
					continue
				}
				if r := walk(k, at, depth+1); row < 0 {
					row = r
				}
			}
		}
		if row < 0 {
			row = f.rows
			f.rows++
		}
		f.nodes[at].row = row
		return row
	}
	for _, i := range append(roots, broken...) {
		if !seen[i] && (parent[i] == -1 || len(kids[i]) > 0) {
			walk(i, -1, 0)
		}
	}
	return f
}

// hostTree is the tree between hosts: each hangs from the host that one of its
// ranks sends to.
func (v *trafficView) hostTree(c *traffic.Channel) []int {
	up := slices.Repeat([]int{-2}, len(v.Hosts))
	for k, p := range c.Parent {
		h := v.Ranks[k].Host
		switch {
		case h < 0:
		case p == -1:
			up[h] = -1
		case p >= 0 && v.Ranks[p].Host >= 0 && v.Ranks[p].Host != h:
			up[h] = v.Ranks[p].Host
		}
	}
	return up
}

// draw draws the tree of some channels, a level every step, and returns its height.
func (f *forest) draw(c *svg.Canvas, channels string, x, y, step float64) float64 {
	const rowH = 19.0
	w := math.Min(step-14, 106)
	c.Open("tree", channels, "")
	c.Text(x, y+10, channels, channelType)
	at := func(n *treeSpot) box { return box{x + float64(n.depth)*step, y + 18 + float64(n.row)*rowH, w, 15} }
	for i := range f.nodes {
		n := &f.nodes[i]
		b, paint := at(n), svg.Paint{Stroke: nvGreen, Width: 1.1}
		if n.crosses {
			paint = svg.Paint{Stroke: netViol, Width: 2.2}
		}
		if n.up >= 0 {
			up := at(&f.nodes[n.up])
			bend := up.right() + (step-w)/2
			c.Path(paint, "M", up.right(), up.y+7.5, "L", bend, up.y+7.5, "L", bend, b.y+7.5, "L", b.x, b.y+7.5)
		}
		ty := svg.Type{Size: 9.5, Fill: ink, Anchor: svg.Middle}
		c.Rect(b.x, b.y, b.w, b.h, 3, svg.Paint{Fill: hostFill(n.host), Stroke: panelLine, Width: 0.7})
		c.Text(b.mid(), b.y+11, svg.FitEnds(n.name, ty, w), ty)
	}
	c.Close()
	return 18 + rowH*float64(f.rows)
}
