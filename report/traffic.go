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
	maxRings     = 16 // and trees
	maxTreeRanks = 64 // up to where every rank of a tree is shown; beyond, every host
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
	v, c := newTrafficView(r), &picture{}
	y := c.heading(trafficW, "Traffic of an all-reduce: "+v.what(), v.facts())
	y = c.samples(edge, y, trafficW-2*edge, v.samples())
	y = v.drawHosts(c, y)
	y = v.drawChannels(c, y, "Rings",
		"ranks in the order that bytes travel, the last sends to the first; in brackets the "+
			"NIC that it leaves a host by and the NIC that it enters the next by", ringLike, v.ringText)
	y = v.drawChannels(c, y, "Trees", "the root first, what sends to it behind it; = between hosts, - within one",
		treeLike,
		v.treeText)
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

// drawChannels writes the rings or trees of channels, those that are alike once.
func (v *trafficView) drawChannels(c *picture, y float64, title, tail string, like func(*traffic.Channel) int,
	text func(*traffic.Channel) string,
) float64 {
	all := v.channelsBy(like)
	if len(all) > 0 {
		y = drawSection(c, y, title, tail)
	}
	for i, list := range all[:min(len(all), maxRings)] {
		bold, plain := svg.Type{Size: 11, Bold: true, Fill: ink}, svg.Type{Size: 11, Fill: ink}
		c.say(edge, y, 150, "channels "+indexes(list), bold)
		for _, line := range svg.Wrap(text(list[0]), plain, trafficW-2*edge-160, 4) {
			c.Text(edge+160, y, line, plain)
			y += 15
		}
		if y += 3; i == maxRings-1 && len(all) > maxRings {
			c.Text(edge, y, fmt.Sprintf("and %d more that differ", len(all)-maxRings), svg.Type{Fill: inkSoft})
			y += 18
		}
	}
	return y
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
func drawSection(c *picture, y float64, title, tail string) float64 {
	big, small := svg.Type{Size: 14, Bold: true, Fill: ink}, svg.Type{Size: 12, Fill: inkSoft}
	c.Text(edge, y+26, title, big)
	c.say(edge+svg.TextWidth(title, big)+10, y+26, 1000, tail, small)
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
func (v *trafficView) drawHosts(c *picture, y float64) float64 {
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
func (v *trafficView) drawHost(c *picture, alike []int, b box) {
	host := alike[0]
	h := &v.Hosts[host]
	name := h.Name
	if n := len(alike) - 1; n > 0 {
		name += fmt.Sprintf(" and %d alike", n)
	}
	c.Open("host", h.Name, "")
	c.rect(b, 8, svg.Paint{Fill: panelFill, Stroke: panelLine})
	bold, soft := svg.Type{Size: 13, Bold: true, Fill: ink}, svg.Type{Size: 11, Fill: inkSoft, Anchor: svg.End}
	c.Text(b.x+pad, b.y+20, svg.FitEnds(name, bold, b.w*0.55), bold)
	c.say(b.right()-pad, b.y+20, b.w*0.38, "ranks "+words.Numbers(h.Ranks), soft)
	gpus, nics := map[int]box{}, map[int]box{}
	for i, k := range h.Ranks {
		gpus[k] = place(box{b.x, b.y + 74, b.w, 32}, i, len(h.Ranks), 54)
	}
	for i, n := range v.nearFirst(h) {
		nics[n] = place(box{b.x, b.y + 146, b.w, 60}, i, len(h.NICs), 118)
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
		c.lines(gpus[k], 9.5, ink, fmt.Sprint(k), device)
		c.Close()
	}
	for _, n := range h.NICs {
		v.drawNIC(c, n, nics[n])
	}
	c.Close()
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
func (v *trafficView) drawHops(c *picture, gpus, nics map[int]box) {
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
func (v *trafficView) drawNIC(c *picture, i int, b box) {
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
	c.rect(b, 5, paint)
	c.lines(b, 10, ink, texts...)
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
