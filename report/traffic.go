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
	"busbar.dev/unit"
)

// Measures of the picture of a run's traffic, and how much of it is shown before the rest is only counted.
const (
	trafficW     = 1280.0
	maxHostCards = 16
	maxRings     = 16 // and trees
	maxTreeRanks = 64 // up to where every rank of a tree is shown; beyond, every host
	maxStretches = 32 // changes of host of one ring
)

// trafficView is a run with what its parts have in common.
type trafficView struct {
	*traffic.Run
	most   float64    // load of the busiest NIC
	tree   bool       // no ring leaves a host: loads are those of trees
	unlike bool       // NICs carry different loads: else all are the busiest
	size   unit.Bytes // of the all-reduce whose bytes are printed
	// hops finds a ring's hop by channel and ranks.
	hops map[[3]int]*traffic.Hop
}

func newTrafficView(r *traffic.Run) *trafficView {
	v := &trafficView{Run: r, hops: map[[3]int]*traffic.Hop{}}
	v.tree = !slices.ContainsFunc(r.NICs, func(n traffic.NIC) bool { return n.Ring.Out > 0 || n.Ring.In > 0 })
	least := math.Inf(1)
	for i := range r.NICs {
		busy := max(v.load(i).Out, v.load(i).In)
		if v.most = max(v.most, busy); r.NICs[i].Hops > 0 {
			least = min(least, busy)
		}
	}
	v.unlike = least < 0.999*v.most
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

// what is how large the communicator is, and how much of it the log shows.
func (v *trafficView) what() string {
	hosts := " on " + words.Plural(len(v.Hosts), "host")
	if n := len(v.Unseen); n > 0 {
		hosts = fmt.Sprintf(", %d of them%s in the log", v.NRanks-n, hosts)
	}
	return fmt.Sprintf("%s%s, %s", words.Plural(v.NRanks, "rank"), hosts, words.Plural(len(v.Channels), "channel"))
}

// facts are the few words below a title.
func (v *trafficView) facts() string {
	list := nonEmpty(filepath.Base(v.Source), when(v.NCCL != "", "NCCL "+v.NCCL),
		when(v.Comm != "", "communicator "+v.Comm))
	for _, t := range v.Transports[:min(4, len(v.Transports))] {
		list = append(list, words.Plural(t.Hops, "hop")+" "+t.Via)
	}
	return strings.Join(list, " · ")
}

// Traffic draws a communicator on its hosts: which GPUs talk, through which NIC,
// how much passes each, its rings and its trees, and what is odd.
func Traffic(r *traffic.Run) *Picture {
	v, c := newTrafficView(r), &picture{}
	y := c.heading(trafficW, "Traffic of an all-reduce: "+v.what(), v.facts())
	y = c.samples(edge, y, trafficW-2*edge, v.samples())
	y = v.drawHosts(c, y)
	for _, s := range v.channels() {
		y = s.draw(c, y)
	}
	if len(v.Odd) > 0 {
		y = drawSection(c, y, "Noteworthy", "")
	}
	for _, o := range v.Odd[:min(12, len(v.Odd))] {
		ty := font{Size: 12, Fill: ink}
		for k, text := range svg.Wrap(o.Text, ty, trafficW-2*edge-20, 2) {
			if k == 0 {
				c.Rect(edge+2.5, y-1.5, 5, 5, 2.5, brush{Fill: amber})
			}
			c.Text(edge+16, y+5, text, ty)
			y += 18
		}
	}
	return c.Picture("traffic of "+words.Plural(r.NRanks, "rank")+" on "+words.Plural(len(r.Hosts), "host"), trafficW,
		y+10)
}

// channelLines is the rings or the trees of a run, those of channels that are alike once.
type channelLines struct {
	title, tail string
	columns     int // of the picture
	text        func(*traffic.Channel) string
	drawOne     func(c *picture, of *traffic.Channel, x, y float64) float64
	like        grouped[int, *traffic.Channel]
}

// channels are the rings and the trees, each where there are some.
func (v *trafficView) channels() []channelLines {
	rings := channelLines{
		title: "Rings", columns: 1, text: v.ringText, drawOne: v.drawRing,
		tail: "ranks in the order that bytes travel, the last sends to the first; between hosts the " +
			"NIC that it leaves by and the NIC that it enters by",
	}
	trees := channelLines{
		title: "Trees", columns: 2, text: v.treeText, drawOne: v.drawTree,
		tail: "the root first, what sends to it behind it; thick: between hosts",
	}
	for i := range v.Channels {
		c := &v.Channels[i]
		if len(c.Ring) > 0 {
			rings.like.put(c.RingLike, c)
		}
		if c.Parent != nil {
			trees.like.put(c.TreeLike, c)
		}
	}
	return slices.DeleteFunc([]channelLines{rings, trees}, func(s channelLines) bool { return s.like.order == nil })
}

// channelNumbers are those of some channels.
func channelNumbers(list []*traffic.Channel) string {
	var ids []int
	for _, c := range list {
		ids = append(ids, c.Index)
	}
	return words.Numbers(ids)
}

func (s *channelLines) draw(c *picture, y float64) float64 {
	y = drawSection(c, y, s.title, s.tail)
	next, lists := y, s.like.lists()
	for i, list := range lists[:min(len(lists), maxRings)] {
		if i%s.columns == 0 {
			y = next
		}
		x := edge + float64(i%s.columns)*trafficW/2
		c.say(x, y, 100, either(len(list) > 1, "channels ", "channel ")+channelNumbers(list),
			font{Size: 11, Bold: true, Fill: ink})
		next = max(next, s.drawOne(c, list[0], x+106, y)+26)
	}
	if n := len(lists) - maxRings; n > 0 {
		c.Text(edge, next, fmt.Sprintf("and %d more that differ", n), font{Fill: inkSoft})
		next += 18
	}
	return next
}

// hostFills tell hosts apart; they come again where there are more.
var hostFills = []string{
	"#cfe3f7", "#fbe0c3", "#d6ecc9", "#e6d8f5", "#fbd5d5", "#d2efee", "#f4ebb6", "#e0e0e0",
}

// hostPaint is how what belongs to a host is filled; one that the log does not show is left white.
func hostPaint(host int, line string) brush {
	fill := paper
	if host >= 0 {
		fill = hostFills[host%len(hostFills)]
	}
	return brush{Fill: fill, Stroke: line}
}

// drawChip draws ranks of a host on a line of text, and returns where they end.
func drawChip(c *picture, x, y float64, text string, host int) float64 {
	ty := font{Size: 11, Fill: ink, Anchor: svg.Middle}
	text = svg.Fit(text, ty, trafficW-edge-x-12)
	b := box{x, y - 13, svg.TextWidth(text, ty) + 12, 18}
	c.rect(b, 3, hostPaint(host, panelLine))
	c.Text(b.mid(), y, text, ty)
	return b.right()
}

// drawRing draws the ranks that a ring passes, in the colours of their hosts, and between hosts its NICs.
func (v *trafficView) drawRing(c *picture, ring *traffic.Channel, left, y float64) float64 {
	x := left
	for _, s := range v.stretches(ring) {
		if x > left && x+svg.TextWidth(s.ranks, font{Size: 11})+60 > trafficW-edge {
			x, y = left, y+24
		}
		if x = drawChip(c, x, y, s.ranks, s.host); s.nics != "" {
			c.Path(brush{Stroke: netViol, Width: 1.5}, "M", x+2, y-2, "L", x+34, y-2, "m", -5.0, -3.0, "l", 5.0, 3.0, "l", -5.0,
				3.0)
			c.Text(x+17, y-6, s.nics, font{Size: 9, Fill: netViol, Anchor: svg.Middle})
		}
		x += 38
	}
	return y
}

// drawTree draws a tree with its root at the left; ranks of a host that send to each other stand together.
func (v *trafficView) drawTree(c *picture, tree *traffic.Channel, x, y float64) float64 {
	t := v.treeOf(tree)
	for k, i := range t.roots {
		if k > 0 {
			y += 22
		}
		y = t.draw(c, i, x, y)
	}
	return y
}

// draw draws what hangs on a rank and returns the last line that it takes.
func (t *rankTree) draw(c *picture, i int, x, y float64) float64 {
	text := t.names[i]
	for len(t.kids[i]) == 1 && t.host[t.kids[i][0]] == t.host[i] {
		i = t.kids[i][0]
		text += " " + t.names[i]
	}
	x = drawChip(c, x, y, text, t.host[i])
	if x > trafficW-2*edge {
		return y
	}
	last := y
	for n, k := range t.kids[i] {
		if n > 0 {
			last += 22
		}
		paint := brush{Stroke: nvGreen, Width: 1.4}
		if t.host[k] != t.host[i] {
			paint = brush{Stroke: netViol, Width: 2.4}
		}
		c.Path(paint, "M", x, y-4, "H", x+10, "V", last-4, "H", x+22)
		last = t.draw(c, k, x+22, last)
	}
	return last
}

// hopLook is how a hop is drawn: with what it passes.
func hopLook(h *traffic.Hop) Sample {
	line := func(text, color, dash string) Sample {
		return Sample{Text: text, Paint: brush{Stroke: color, Width: 2.5, Dash: dash}}
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
	by := cmp.Or(when(v.tree, "tree"), "ring")
	return append(list, Sample{
		Text:  "NIC: bytes out and in per byte of the all-reduce (" + by + "); so coloured: the busiest",
		Paint: brush{Fill: amberBg, Stroke: amber, Width: 1.5}, Solid: true,
	})
}

// drawSection writes a heading inside the picture.
func drawSection(c *picture, y float64, title, tail string) float64 {
	big, small := font{Size: 14, Bold: true, Fill: ink}, font{Size: 12, Fill: inkSoft}
	c.Text(edge, y+26, title, big)
	c.say(edge+svg.TextWidth(title, big)+10, y+26, 1000, tail, small)
	return y + 44
}

// drawHosts draws the hosts beside each other: each, or where they are many one of those whose NICs carry the same.
func (v *trafficView) drawHosts(c *picture, y float64) float64 {
	groups := v.likeHosts(maxHostCards)
	shown, most, height := groups[:min(len(groups), maxHostCards)], 4, 214.0
	for _, g := range shown {
		most = max(most, len(v.Hosts[g[0]].Ranks), len(v.Hosts[g[0]].NICs))
	}
	if len(v.NICs) == 0 {
		height = 116
	}
	all := trafficW - 2*edge
	across := max(1, min(len(shown), int(all/min(float64(most)*62, all))))
	pitch := (all + pad) / float64(across)
	for i, g := range shown {
		v.drawHost(c, g, box{
			edge + float64(i%across)*pitch, y + float64(i/across)*(height+pad), min(pitch-pad, 900), height,
		})
	}
	y += float64((len(shown)+across-1)/across) * (height + pad)
	if left := slices.Concat(groups[len(shown):]...); left != nil {
		c.Text(edge, y+10, fmt.Sprintf("and %s that are not drawn; --json has them", words.Plural(len(left), "host")),
			font{Fill: inkSoft})
		y += 20
	}
	return y
}

// drawHost draws a host: links between its GPUs above them, NICs below.
func (v *trafficView) drawHost(c *picture, alike []int, b box) {
	h := &v.Hosts[alike[0]]
	name := h.Name + andMore(len(alike)-1, "alike")
	c.Open("host", h.Name, "")
	c.rect(b, 8, brush{Fill: panelFill, Stroke: panelLine})
	c.Rect(b.x, b.y, 6, b.h, 3, hostPaint(alike[0], ""))
	bold, soft := font{Size: 13, Bold: true, Fill: ink}, font{Size: 11, Fill: inkSoft, Anchor: svg.End}
	c.Text(b.x+pad, b.y+20, svg.FitEnds(name, bold, b.w*0.55), bold)
	c.say(b.right()-pad, b.y+20, b.w*0.38, "ranks "+words.Numbers(h.Ranks), soft)
	gpus, nics := map[int]box{}, map[int]box{}
	for i, k := range h.Ranks {
		gpus[k] = place(box{b.x, b.y + 74, b.w, 32}, i, len(h.Ranks), 54)
	}
	for i, n := range h.NICs {
		nics[n] = place(box{b.x, b.y + 146, b.w, 60}, i, len(h.NICs), 118)
	}
	v.drawHops(c, gpus, nics)
	for _, k := range h.Ranks {
		paint := hostPaint(alike[0], nvGreen)
		if !v.Ranks[k].Logged {
			paint.Dash = "3 3"
		}
		device := when(v.Ranks[k].Device != "", "GPU "+v.Ranks[k].Device)
		c.Open("gpu", fmt.Sprintf("rank %d %s", k, device), "")
		c.rect(gpus[k], 5, paint)
		c.lines(gpus[k], 9.5, ink, fmt.Sprint(k), device)
		c.Close()
	}
	for _, n := range h.NICs {
		v.drawNIC(c, n, nics[n])
	}
	c.Close()
}

// drawHops joins GPUs that talk to each other, and GPUs to the NICs they send and receive through: the thicker, the
// more hops.
func (v *trafficView) drawHops(c *picture, gpus, nics map[int]box) {
	type way struct {
		from, to box
		Sample
	}
	var ways grouped[way, *traffic.Hop]
	add := func(h *traffic.Hop, from, to box) {
		if from.w > 0 && to.w > 0 { // both are of this host
			ways.put(way{from, to, hopLook(h)}, h)
		}
	}
	for _, h := range v.Hops {
		from, to := gpus[h.From], gpus[h.To]
		if h.Out < 0 && h.In < 0 {
			if from.x > to.x {
				from, to = to, from
			}
			add(&h, from, to)
			continue
		}
		add(&h, from, nics[h.Out])
		h.Proxy = -1
		add(&h, to, nics[h.In])
	}
	for w, hops := range ways.all() {
		paint := w.Paint
		paint.Width, paint.Round, paint.Opacity = min(1+0.35*float64(len(hops)), 6), true, 0.75
		x1, y1, x2, y2 := w.from.mid(), w.from.y, w.to.mid(), w.to.y
		bend, lift := (x2-x1)*0.15, y1-min(56, 14+(x2-x1)*0.16)
		c.Open("link", words.Plural(len(hops), "hop")+" "+w.Text, "")
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
func (v *trafficView) drawNIC(c *picture, i int, b box) {
	n, l := &v.NICs[i], v.load(i)
	c.Open("nic", fmt.Sprintf("%s: ring %.3f out, %.3f in; tree %.3f out, %.3f in; channels %s; ranks %s", v.NICName(i),
		n.Ring.Out, n.Ring.In, n.Tree.Out, n.Tree.In, words.Numbers(n.Channels), words.Numbers(n.Ranks)), "")
	texts := []string{
		v.NICName(i), fmt.Sprintf("out %.2f", l.Out), fmt.Sprintf("in %.2f", l.In), "channels " + words.Numbers(n.Channels),
	}
	paint := brush{Fill: netFill, Stroke: netViol}
	switch {
	case n.Hops == 0:
		paint, texts = brush{Fill: paper, Stroke: panelLine, Dash: "3 3"}, []string{v.NICName(i), "idle"}
	case n.Busiest && v.unlike:
		paint = brush{Fill: amberBg, Stroke: amber, Width: 2}
	}
	c.rect(b, 5, paint)
	c.lines(b, 10, ink, texts...)
	c.Close()
}
