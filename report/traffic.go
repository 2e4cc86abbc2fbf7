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

// Measures of the picture of a run's traffic.
const (
	trafficW      = 1280.0
	trafficPad    = 24.0
	maxHostCards  = 16
	maxRingStrips = 16
	maxTrees      = 12
	trafficGPU    = 62.0 // a GPU and the room around it
	arcH          = 44.0
	wireH         = 46.0
	trafficNICH   = 74.0
	cardH         = 30 + arcH + 32 + wireH + trafficNICH + 12
)

// trafficView is a run with what its parts have in common.
type trafficView struct {
	*traffic.Run
	c     *svg.Canvas
	most  float64  // load of the busiest NIC
	short []string // names of hosts
	tree  bool     // no ring leaves a host: loads are those of trees
	// hops finds a ring's hop by channel and ranks.
	hops map[[3]int]int
}

// Traffic draws a communicator on its hosts: which GPUs talk, through which NIC,
// how much passes each, its rings and its trees, and what is odd.
func Traffic(r *traffic.Run) *svg.Picture {
	v := newTrafficView(r)
	y := v.heading()
	y = v.cards(y)
	y = v.rings(y)
	y = v.trees(y)
	y = v.oddities(y)
	return v.c.Picture(trafficW, y+10,
		"traffic of "+words.Plural(r.NRanks, "rank")+" on "+words.Plural(len(r.Hosts), "host"), paper)
}

func newTrafficView(r *traffic.Run) *trafficView {
	v := &trafficView{Run: r, c: &svg.Canvas{}, tree: true}
	names := make([]string, len(r.Hosts))
	for i := range r.Hosts {
		names[i] = r.Hosts[i].Name
	}
	v.short = shortNames(names)
	for i := range r.NICs {
		if n := &r.NICs[i]; n.Ring.Out > 0 || n.Ring.In > 0 {
			v.tree = false
		}
	}
	for i := range r.NICs {
		l := v.load(i)
		v.most = math.Max(v.most, math.Max(l.Out, l.In))
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
	seen := fmt.Sprintf(" on %s", words.Plural(len(v.Hosts), "host"))
	if n := len(v.Unseen); n > 0 {
		seen = fmt.Sprintf(", %d of them on %s in the log", v.NRanks-n, words.Plural(len(v.Hosts), "host"))
	}
	return fmt.Sprintf("%s%s, %s", words.Plural(v.NRanks, "rank"), seen, words.Plural(len(v.Channels), "channel"))
}

// heading says what is drawn and what the marks mean.
func (v *trafficView) heading() float64 {
	big := svg.Type{Size: 19, Bold: true, Fill: ink}
	title := v.what()
	v.c.Text(trafficPad, 34, svg.Fit("Traffic of an all-reduce: "+title, big, trafficW-2*trafficPad), big)
	soft := svg.Type{Size: 12, Fill: inkSoft}
	v.c.Text(trafficPad, 55, svg.Fit(strings.Join(v.facts(), " · "), soft, trafficW-2*trafficPad), soft)
	x := trafficPad
	key := func(text string, draw func(x float64)) {
		draw(x)
		v.c.Text(x+30, 76, text, svg.Type{Size: 11, Fill: inkSoft})
		x += 30 + svg.TextWidth(text, svg.Type{Size: 11}) + 18
	}
	mark := func(color, dash string) func(float64) {
		return func(x float64) { v.c.Line(x, 72, x+24, 72, svg.Paint{Stroke: color, Width: 2.5, Dash: dash}) }
	}
	key("P2P between GPUs", mark(nvGreen, ""))
	if v.uses("SHM") {
		key("through host memory (SHM)", mark(amber, ""))
	}
	if len(v.NICs) > 0 {
		if v.net(true) {
			key("to the NIC, GPUDirect RDMA", mark(netViol, ""))
		}
		if v.net(false) {
			key("to the NIC through host memory", mark(red, "2 3"))
		}
		if v.proxied() {
			key("through another GPU's NIC (PXN)", mark(netViol, "6 3"))
		}
		what := "ring"
		if v.tree {
			what = "tree"
		}
		key("bars: bytes out and in per byte of the all-reduce ("+what+"); outlined: the busiest", func(x float64) {
			v.c.Rect(x, 65, 24, 12, 2, svg.Paint{Fill: amberBg, Stroke: amber, Width: 1.5})
		})
	}
	return 96
}

func (v *trafficView) uses(transport string) bool {
	for i := range v.Hops {
		if v.Hops[i].Transport == transport {
			return true
		}
	}
	return false
}

// net reports whether a hop over the network has GPUDirect RDMA, or has none.
func (v *trafficView) net(gdr bool) bool {
	for i := range v.Hops {
		if v.Hops[i].Transport == "NET" && v.Hops[i].GDR == gdr {
			return true
		}
	}
	return false
}

func (v *trafficView) proxied() bool {
	for i := range v.Hops {
		if v.Hops[i].Proxy >= 0 {
			return true
		}
	}
	return false
}

// facts are the few words below a title.
func (v *trafficView) facts() []string {
	list := []string{filepath.Base(v.Source)}
	if v.NCCL != "" {
		list = append(list, "NCCL "+v.NCCL)
	}
	if v.Comm != "" {
		list = append(list, "communicator "+v.Comm)
	}
	for i, t := range v.Transports {
		if i == 4 {
			break
		}
		list = append(list, fmt.Sprintf("%s %s", words.Plural(t.Hops, "hop"), t.Via))
	}
	return list
}

// oddities lists what is worth a look.
func (v *trafficView) oddities(y float64) float64 {
	if len(v.Odd) == 0 {
		return y
	}
	y = v.section(y, "Noteworthy", "")
	for i, o := range v.Odd {
		if i == 12 {
			break
		}
		for k, line := range svg.Wrap(o.Text, svg.Type{Size: 12}, trafficW-2*trafficPad-20, 2) {
			if k == 0 {
				v.c.Circle(trafficPad+5, y+1, 2.5, svg.Paint{Fill: amber})
			}
			v.c.Text(trafficPad+16, y+5, line, svg.Type{Size: 12, Fill: ink})
			y += 18
		}
	}
	return y
}

// section writes a heading inside the picture.
func (v *trafficView) section(y float64, title, tail string) float64 {
	y += 26
	v.c.Text(trafficPad, y, title, svg.Type{Size: 14, Bold: true, Fill: ink})
	v.c.Text(trafficPad+svg.TextWidth(title, svg.Type{Size: 14, Bold: true})+10, y, svg.Fit(tail, svg.Type{Size: 12}, 900),
		svg.Type{Size: 12, Fill: inkSoft})
	return y + 18
}

// hostFills tell hosts apart; they come again when there are more.
var hostFills = []string{
	"#cfe3f7", "#fbe0c3", "#d6ecc9", "#e6d8f5", "#fbd5d5", "#d2efee", "#f4ebb6", "#e0e0e0",
	"#b9cfee", "#f3c9a3", "#bfe0ad", "#d3bfec", "#f3bcbc", "#b5e0dc", "#e6d98a", "#c9c9c9",
}

func hostFill(i int) string {
	if i < 0 {
		return "#f4f4f4"
	}
	return hostFills[i%len(hostFills)]
}

// cards draws the hosts beside each other.
func (v *trafficView) cards(y float64) float64 {
	if len(v.Hosts) == 0 {
		return y
	}
	wide := 0.0
	for i := range v.Hosts {
		wide = math.Max(wide, v.cardWidth(i))
	}
	per := max(1, int((trafficW-2*trafficPad+16)/(wide+16)))
	wide = (trafficW-2*trafficPad+16)/float64(min(per, len(v.drawn()))) - 16
	wide = math.Min(wide, 900)
	groups := v.drawn()
	shown := min(len(groups), maxHostCards)
	height := cardH
	if len(v.NICs) == 0 {
		height -= wireH + trafficNICH
	}
	per = min(per, shown)
	for i, g := range groups[:shown] {
		row, col := i/per, i%per
		v.card(g[0], len(g)-1, box{trafficPad + float64(col)*(wide+16), y + float64(row)*(height+14), wide, height})
	}
	y += float64((shown+per-1)/per) * (height + 14)
	left := 0
	for _, g := range groups[shown:] {
		left += len(g)
	}
	if left > 0 {
		v.c.Text(trafficPad, y+10, fmt.Sprintf("and %s that are not drawn; --json has them", words.Plural(left, "host")),
			svg.Type{Size: 12, Fill: inkSoft})
		y += 20
	}
	return y
}

// drawn are the hosts that get a card: each, or where they are many one of those
// whose NICs carry the same.
func (v *trafficView) drawn() [][]int {
	if len(v.Hosts) > maxHostCards {
		return v.likeHosts()
	}
	var list [][]int
	for i := range v.Hosts {
		list = append(list, []int{i})
	}
	return list
}

func (v *trafficView) cardWidth(host int) float64 {
	h := &v.Hosts[host]
	return math.Min(float64(max(len(h.Ranks), len(h.NICs), 4))*trafficGPU+2*pad, trafficW-2*trafficPad)
}

// card draws a host: links between its GPUs above them, NICs below.
func (v *trafficView) card(host, alike int, b box) {
	h := &v.Hosts[host]
	v.c.Open("host", h.Name)
	defer v.c.Close()
	v.c.Rect(b.x, b.y, b.w, b.h, 8, svg.Paint{Fill: panelFill, Stroke: panelLine})
	v.c.Rect(b.x, b.y, 6, b.h, 3, svg.Paint{Fill: hostFill(host)})
	bold := svg.Type{Size: 13, Bold: true, Fill: ink}
	name := svg.FitEnds(h.Name, bold, b.w*0.55)
	if alike > 0 {
		name = svg.FitEnds(fmt.Sprintf("%s and %d alike", h.Name, alike), bold, b.w*0.55)
	}
	v.c.Text(b.x+pad, b.y+20, name, bold)
	v.c.Text(b.right()-pad, b.y+20, svg.Fit("ranks "+words.Numbers(h.Ranks), svg.Type{Size: 11}, b.w*0.38),
		svg.Type{Size: 11, Fill: inkSoft, Anchor: svg.End})
	gpus := evenly(b, len(h.Ranks), b.y+30+arcH, 32, 54)
	at := map[int]box{}
	for i, k := range h.Ranks {
		at[k] = gpus[i]
	}
	v.arcs(host, at)
	nics := evenly(b, len(h.NICs), b.y+30+arcH+32+wireH, trafficNICH, 118)
	order := v.nearFirst(h)
	v.wires(host, at, order, nics)
	for i, k := range h.Ranks {
		v.gpu(k, gpus[i], host)
	}
	for i, n := range order {
		v.nic(n, nics[i])
	}
}

// nearFirst orders a host's NICs by the ranks they serve, idle ones last, so that
// few wires cross.
func (v *trafficView) nearFirst(h *traffic.Host) []int {
	place := map[int]int{}
	for i, k := range h.Ranks {
		place[k] = i
	}
	weight := func(nic int) float64 {
		n := &v.NICs[nic]
		if len(n.Ranks) == 0 {
			return math.Inf(1)
		}
		sum := 0
		for _, k := range n.Ranks {
			sum += place[k]
		}
		return float64(sum) / float64(len(n.Ranks))
	}
	order := slices.Clone(h.NICs)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(a), weight(b)) })
	return order
}

// evenly lays n boxes beside each other, evenly and no wider than most.
func evenly(b box, n int, y, h, most float64) []box {
	out := make([]box, n)
	if n == 0 {
		return out
	}
	step := (b.w - 2*pad) / float64(n)
	w := math.Min(step-6, most)
	for i := range out {
		out[i] = box{b.x + pad + step*(float64(i)+0.5) - w/2, y, w, h}
	}
	return out
}

func (v *trafficView) gpu(rank int, b box, host int) {
	m := &v.Ranks[rank]
	tip := fmt.Sprintf("rank %d", rank)
	if m.Device != "" {
		tip += ", GPU " + m.Device
	}
	v.c.Open("gpu", tip)
	p := svg.Paint{Fill: hostFill(host), Stroke: nvGreen, Width: 1.2}
	if !m.Logged {
		p.Dash = "3 3"
	}
	v.c.Rect(b.x, b.y, b.w, b.h, 5, p)
	v.c.Text(b.mid(), b.y+15, fmt.Sprint(rank), svg.Type{Size: 13, Bold: true, Fill: ink, Anchor: svg.Middle})
	if m.Device != "" {
		v.c.Text(b.mid(), b.y+27, svg.Fit("GPU "+m.Device, svg.Type{Size: 9}, b.w), svg.Type{
			Size: 9, Fill: inkSoft, Anchor: svg.Middle,
		})
	}
	v.c.Close()
}

// arcs joins GPUs of a host that talk to each other, thicker with more channels.
func (v *trafficView) arcs(host int, at map[int]box) {
	type pair struct{ a, b int }
	count, way := map[pair]int{}, map[pair]string{}
	var order []pair
	for i := range v.Hops {
		h := &v.Hops[i]
		if v.Ranks[h.From].Host != host || v.Ranks[h.To].Host != host {
			continue
		}
		p := pair{min(h.From, h.To), max(h.From, h.To)}
		if count[p] == 0 {
			order = append(order, p)
		}
		count[p]++
		if way[p] == "" || h.Transport != "P2P" && h.Transport != "" {
			way[p] = h.Transport
		}
	}
	for _, p := range order {
		a, okA := at[p.a]
		b, okB := at[p.b]
		if !okA || !okB {
			continue
		}
		color := map[string]string{"P2P": nvGreen, "SHM": amber, "NET": red}[way[p]]
		color = cmp.Or(color, panelLine)
		x1, x2 := a.mid(), b.mid()
		lift := math.Min(arcH+12, 14+math.Abs(x2-x1)*0.16)
		v.c.Open("link", fmt.Sprintf("ranks %d and %d: %s over %s", p.a, p.b, words.Plural(count[p], "hop"), way[p]))
		v.c.Path(new(svg.Pen).Move(x1, a.y).Curve(x1+(x2-x1)*0.15, a.y-lift, x2-(x2-x1)*0.15, a.y-lift, x2, b.y).String(),
			svg.Paint{Stroke: color, Width: math.Min(1+0.35*float64(count[p]), 6), Round: true, Opacity: 0.75})
		v.c.Close()
	}
}

// wires joins GPUs to the NICs they send and receive through.
func (v *trafficView) wires(host int, at map[int]box, order []int, nics []box) {
	place := map[int]box{}
	for i, n := range order {
		place[n] = nics[i]
	}
	type wire struct {
		rank, nic  int
		gdr, proxy bool
	}
	count := map[wire]int{}
	var wires []wire
	for i := range v.Hops {
		h := &v.Hops[i]
		for _, end := range []wire{{h.From, h.Out, h.GDR, h.Proxy >= 0}, {h.To, h.In, h.GDR, false}} {
			if end.nic < 0 || v.NICs[end.nic].Host != host {
				continue
			}
			if count[end] == 0 {
				wires = append(wires, end)
			}
			count[end]++
		}
	}
	for _, k := range wires {
		g, okG := at[k.rank]
		n, okN := place[k.nic]
		if !okG || !okN {
			continue
		}
		p := svg.Paint{Stroke: netViol, Width: math.Min(1+0.35*float64(count[k]), 6), Round: true, Opacity: 0.8}
		tip := fmt.Sprintf("rank %d: %s through %s", k.rank, words.Plural(count[k], "hop"), v.NICName(k.nic))
		switch {
		case !k.gdr:
			p.Stroke, p.Dash = red, "2 4"
			tip += ", without GPUDirect RDMA"
		case k.proxy:
			p.Dash = "7 4"
			tip += ", through another GPU"
		}
		v.c.Open("wire", tip)
		v.c.Path(new(svg.Pen).Move(g.mid(), g.bottom()).Curve(g.mid(), g.bottom()+wireH*0.6, n.mid(), n.y-wireH*0.6, n.mid(),
			n.y).String(), p)
		v.c.Close()
	}
}

// nic draws a NIC with bars of what leaves and enters it.
func (v *trafficView) nic(i int, b box) {
	n := &v.NICs[i]
	l := v.load(i)
	tip := fmt.Sprintf("%s: ring %.3f out, %.3f in; tree %.3f out, %.3f in; channels %s; ranks %s", v.NICName(i),
		n.Ring.Out, n.Ring.In, n.Tree.Out, n.Tree.In, words.Numbers(n.Channels), words.Numbers(n.Ranks))
	v.c.Open("nic", tip)
	defer v.c.Close()
	p := svg.Paint{Fill: netFill, Stroke: netViol}
	switch {
	case n.Hops == 0:
		p = svg.Paint{Fill: paper, Stroke: panelLine, Dash: "3 3"}
	case n.Busiest && v.unlike():
		p = svg.Paint{Fill: amberBg, Stroke: amber, Width: 2}
	}
	v.c.Rect(b.x, b.y, b.w, b.h, 5, p)
	t := svg.Type{Size: 10.5, Bold: true, Fill: ink, Anchor: svg.Middle}
	v.c.Text(b.mid(), b.y+14, svg.FitEnds(v.NICName(i), t, b.w-4), t)
	if n.Hops == 0 {
		v.c.Text(b.mid(), b.y+32, "idle", svg.Type{Size: 10, Fill: inkSoft, Anchor: svg.Middle})
		return
	}
	for k, x := range []struct {
		word string
		val  float64
	}{{"out", l.Out}, {"in", l.In}} {
		y := b.y + 20 + float64(k)*18
		full := b.w - 10
		v.c.Rect(b.x+5, y, full, 15, 2, svg.Paint{Fill: paper, Stroke: panelLine, Width: 0.6})
		if v.most > 0 {
			v.c.Rect(b.x+5, y, full*x.val/v.most, 15, 2, svg.Paint{Fill: v.loadColor(x.val / v.most), Opacity: 0.55})
		}
		v.c.Text(b.mid(), y+11, fmt.Sprintf("%s %.2f", x.word, x.val), svg.Type{Size: 9.5, Fill: ink, Anchor: svg.Middle})
	}
	v.c.Text(b.mid(), b.y+67, svg.Fit("ch "+words.Numbers(n.Channels), svg.Type{Size: 9}, b.w-4), svg.Type{
		Size: 9, Fill: inkSoft, Anchor: svg.Middle,
	})
}

// unlike reports whether NICs carry different loads: else all are the busiest.
func (v *trafficView) unlike() bool {
	for i := range v.NICs {
		if l := v.load(i); v.NICs[i].Hops > 0 && math.Max(l.Out, l.In) < 0.999*v.most {
			return true
		}
	}
	return false
}

// loadColor is darker with a greater part of the busiest's load, and amber for
// the busiest where NICs differ.
func (v *trafficView) loadColor(part float64) string {
	switch {
	case part > 0.999 && v.unlike():
		return amber
	case part > 0.6:
		return "#a17bdc"
	}
	return "#c9b5ee"
}

// rings draws every different ring as a strip of ranks, coloured by host; between
// hosts stand the NICs it leaves and enters by.
func (v *trafficView) rings(y float64) float64 {
	type strip struct {
		channel  *traffic.Channel
		channels []int
	}
	var strips []strip
	index := map[int]int{}
	for i := range v.Channels {
		c := &v.Channels[i]
		if len(c.Ring) == 0 {
			continue
		}
		at, ok := index[c.RingLike]
		if !ok {
			at = len(strips)
			index[c.RingLike] = at
			strips = append(strips, strip{channel: c})
		}
		strips[at].channels = append(strips[at].channels, c.Index)
	}
	if len(strips) == 0 {
		return y
	}
	tail := "ranks in the order that bytes travel, the last sends to the first"
	if v.crossed() {
		tail += "; between hosts: the NIC that it leaves by, the NIC that it enters by"
	}
	y = v.section(y, "Rings", tail)
	left := 132.0
	for _, s := range strips[:min(len(strips), maxRingStrips)] {
		left = math.Min(math.Max(left, trafficPad+12+svg.TextWidth(ringLabel(s.channels), ringType)), 300)
	}
	for i, s := range strips {
		if i == maxRingStrips {
			v.c.Text(trafficPad, y+4, fmt.Sprintf("and %d more that differ", len(strips)-i), svg.Type{Size: 12, Fill: inkSoft})
			return y + 18
		}
		y = v.ring(s.channel, s.channels, left, y)
	}
	return y
}

// ringType is how a ring's channels are set.
var ringType = svg.Type{Size: 11, Bold: true, Fill: ink}

func ringLabel(channels []int) string {
	if len(channels) == 1 {
		return fmt.Sprintf("channel %d", channels[0])
	}
	return "channels " + words.Numbers(channels)
}

func (v *trafficView) crossed() bool { return len(v.Flows) > 0 }

// stretch is a run of ranks of one host in a ring.
type stretch struct {
	host    int
	ranks   []int
	out, in int // NICs to the next
}

// stretches cuts a ring where it changes hosts.
func (v *trafficView) stretches(c *traffic.Channel) []stretch {
	var list []stretch
	for i, k := range c.Ring {
		host := v.Ranks[k].Host
		n := len(list)
		if n == 0 || list[n-1].host != host || host < 0 && v.leaves(c.Index, c.Ring[i-1], k) {
			list = append(list, stretch{host: host, out: -1, in: -1})
			n++
		}
		list[n-1].ranks = append(list[n-1].ranks, k)
	}
	for i := range list {
		next := list[(i+1)%len(list)].ranks[0]
		from := list[i].ranks[len(list[i].ranks)-1]
		if h := v.ringHop(c.Index, from, next); h != nil {
			list[i].out, list[i].in = h.Out, h.In
		}
	}
	return list
}

// ringHop is the hop of a channel's ring between two ranks, nil where there is none.
func (v *trafficView) ringHop(channel, from, to int) *traffic.Hop {
	if v.hops == nil {
		v.hops = map[[3]int]int{}
		for i := range v.Hops {
			if h := &v.Hops[i]; h.Ring {
				v.hops[[3]int{h.Channel, h.From, h.To}] = i
			}
		}
	}
	if i, ok := v.hops[[3]int{channel, from, to}]; ok {
		return &v.Hops[i]
	}
	return nil
}

// leaves reports whether a ring's hop goes over the network.
func (v *trafficView) leaves(channel, from, to int) bool {
	h := v.ringHop(channel, from, to)
	return h != nil && h.Transport == "NET"
}

// ring draws one strip; ranks are boxes where there is room, hosts where not.
func (v *trafficView) ring(c *traffic.Channel, channels []int, left, y float64) float64 {
	const gap, high = 34.0, 20.0
	list := v.stretches(c)
	v.c.Open("ring", "channels "+words.Numbers(channels))
	defer v.c.Close()
	v.c.Text(trafficPad, y+14, svg.Fit(ringLabel(channels), ringType, left-trafficPad-6), ringType)
	between := gap
	if len(list) < 2 {
		between = 0
	}
	perRow := len(list) // stretches a row
	cell := math.Min(26, (trafficW-left-trafficPad-float64(len(list))*between)/float64(len(c.Ring)))
	if cell < 15 && len(list) > 1 { // two rows and more
		longest := 0
		for _, s := range list {
			longest = max(longest, len(s.ranks))
		}
		cell = 16
		perRow = max(1, int((trafficW-left-trafficPad)/(float64(longest)*cell+between)))
	}
	if cell < 7 {
		cell = 7
	}
	x := left
	for i, s := range list {
		if i == maxStretches {
			v.c.Text(x+4, y+14, fmt.Sprintf("… and on, %d times more to another host", len(list)-i), svg.Type{
				Size: 11, Italic: true, Fill: inkSoft,
			})
			return y + high + 9
		}
		if i > 0 && i%perRow == 0 {
			x, y = left, y+high+6
		}
		for _, k := range s.ranks {
			if x+cell > trafficW-trafficPad && len(list) < 2 {
				x, y = left, y+high+6
			}
			v.c.Rect(x, y, cell-1, high, 2, svg.Paint{Fill: hostFill(s.host), Stroke: panelLine, Width: 0.6})
			if cell >= 13 {
				v.c.Text(x+cell/2-0.5, y+14, fmt.Sprint(k), svg.Type{Size: math.Min(10, cell*0.56), Fill: ink, Anchor: svg.Middle})
			}
			x += cell
		}
		if len(list) > 1 {
			v.crossing(s, x, y, between, high)
			x += between
		}
	}
	if c.Cut {
		v.c.Text(x+4, y+14, "… cut in the log", svg.Type{Size: 11, Italic: true, Fill: inkSoft})
	}
	return y + high + 9
}

// maxStretches is how many changes of host of one ring are drawn.
const maxStretches = 32

// crossing draws the arrow between two hosts with the numbers of the NICs.
func (v *trafficView) crossing(s stretch, x, y, w, h float64) {
	v.c.Line(x+1, y+h-6, x+w-6, y+h-6, svg.Paint{Stroke: netViol, Width: 1.4})
	v.c.Path(new(svg.Pen).Move(x+w-3, y+h-6).Line(x+w-8, y+h-9).Line(x+w-8, y+h-3).Shut().String(),
		svg.Paint{Fill: netViol})
	text := dev(v.Run, s.out) + "›" + dev(v.Run, s.in)
	v.c.Text(x+w/2-1, y+9, text, svg.Type{Size: 9, Fill: netViol, Anchor: svg.Middle})
}

// dev is the number NCCL gives a NIC.
func dev(r *traffic.Run, nic int) string {
	if nic < 0 {
		return "?"
	}
	return fmt.Sprint(r.NICs[nic].Dev)
}

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
			tall = math.Max(tall,
				v.drawTree(&forests[k], like[shown[k].Index], box{trafficPad + float64(k-from)*wide, y, wide - 14, 0}))
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
		f.nodes = append(f.nodes, treeSpot{
			name: name(i), host: host(i), up: up, depth: depth, crosses: up >= 0 && f.nodes[up].host != host(i),
		})
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
