package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

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
		v.c.Text(trafficPad, y+10, fmt.Sprintf("and %s that are not drawn; --json has them", words.Plural(left, "host")), svg.Type{Size: 12, Fill: inkSoft})
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
	v.c.Text(b.right()-pad, b.y+20, svg.Fit("ranks "+words.Numbers(h.Ranks), svg.Type{Size: 11}, b.w*0.38), svg.Type{Size: 11, Fill: inkSoft, Anchor: svg.End})
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
		v.c.Text(b.mid(), b.y+27, svg.Fit("GPU "+m.Device, svg.Type{Size: 9}, b.w), svg.Type{Size: 9, Fill: inkSoft, Anchor: svg.Middle})
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
		v.c.Path(new(svg.Pen).Move(g.mid(), g.bottom()).Curve(g.mid(), g.bottom()+wireH*0.6, n.mid(), n.y-wireH*0.6, n.mid(), n.y).String(), p)
		v.c.Close()
	}
}

// nic draws a NIC with bars of what leaves and enters it.
func (v *trafficView) nic(i int, b box) {
	n := &v.NICs[i]
	l := v.load(i)
	tip := fmt.Sprintf("%s: ring %.3f out, %.3f in; tree %.3f out, %.3f in; channels %s; ranks %s", v.NICName(i), n.Ring.Out, n.Ring.In, n.Tree.Out, n.Tree.In, words.Numbers(n.Channels), words.Numbers(n.Ranks))
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
	v.c.Text(b.mid(), b.y+67, svg.Fit("ch "+words.Numbers(n.Channels), svg.Type{Size: 9}, b.w-4), svg.Type{Size: 9, Fill: inkSoft, Anchor: svg.Middle})
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
