package report

import (
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// drawTreeLinks paints the PCIe tree: each device to what holds it.
func (p *panel) drawTreeLinks(pic *picture) {
	usual := p.usualLinks()
	for i := range p.cols {
		c := &p.cols[i]
		if len(c.nics) > 0 {
			x := c.x + c.w/2
			if c.gpu >= 0 {
				x = c.x + gpuW + gutter/2
			}
			p.treeLink(pic, c.nics[0], x, p.nicY+p.nicH, usual)
		}
		if c.gpu >= 0 {
			p.treeLink(pic, c.gpu, c.x+gpuW/2, p.gpuY+p.gpuH, usual)
		}
	}
	for _, d := range p.t.Of(cluster.PCISwitch) {
		if b := p.box[d]; b.w > 0 {
			p.treeLink(pic, d, b.mid(), b.bottom(), usual)
		}
	}
}

// treeLink paints the link from a device down to its holder, straight, and says
// what is unusual about it.
func (p *panel) treeLink(pic *picture, d int, x, y float64, usual map[string]bool) {
	h := p.holder(d)
	if h < 0 || p.box[h].w == 0 || p.up[d] < 0 {
		return
	}
	l := &p.t.Links[p.up[d]]
	end := p.box[h].y
	if p.t.Devices[h].Kind == cluster.Socket {
		end = p.numaY
	}
	paint := linkPaint(l)
	pic.note(l.Kind.String())
	pic.Open("link "+l.Kind.String(), linkTip(p.t, l))
	pic.about(linkKey(p.host, p.up[d]))
	pic.over(x, y, x, end, paint, panelFill)
	label := rateLabel(l)
	if low := trainedLow(l); low != "" {
		pic.note("degraded")
		label = low[len("trained "):]
	} else if usual[label] {
		label = ""
	}
	if label != "" {
		// The label stands in the gap above the holder, on the left of the line.
		ty := svg.Type{Size: smallType, Fill: paint.Stroke, Anchor: svg.End, Bold: paint.Stroke == red}
		room := gpuW/2 - 3
		if p.t.Devices[d].Kind == cluster.NIC {
			room += gutter / 2
		}
		words := svg.Wrap(label, ty, room, 2)
		for i, s := range words {
			pic.Text(x-paint.Width/2-3, end-rowGap/2+4+(float64(i)-float64(len(words)-1)/2)*11.5, s, ty)
		}
	}
	pic.Close()
}

// rateLabel is a link in few words.
func rateLabel(l *cluster.Link) string {
	if l.Rate.Known() {
		return l.Rate.Value.String()
	}
	return linkName(l)
}

// usualLinks is the label that most tree links of each kind of device have; it
// is said once, in a caption, and not at every line.
func (p *panel) usualLinks() map[string]bool {
	usual := make(map[string]bool)
	if !p.captions {
		// Without captions the panel is the second of its kind: all is usual.
		for d := range p.t.Devices {
			if p.up[d] >= 0 {
				usual[rateLabel(&p.t.Links[p.up[d]])] = true
			}
		}
		return usual
	}
	for _, k := range []cluster.Kind{cluster.GPU, cluster.NIC, cluster.PCISwitch} {
		if l := p.commonLink(k); l != nil {
			usual[rateLabel(l)] = true
		}
	}
	return usual
}

// commonLink is the most frequent uplink of the devices of a kind that are drawn.
func (p *panel) commonLink(k cluster.Kind) *cluster.Link {
	drawn := slices.DeleteFunc(p.t.Of(k), func(d int) bool { return p.box[d].w == 0 })
	return commonLink(p.t, drawn, p.up)
}

// commonLink is the most frequent uplink of some devices, nil when none has one.
func commonLink(t *cluster.NodeType, ids, up []int) *cluster.Link {
	count := make(map[string]int)
	var best *cluster.Link
	for _, d := range ids {
		if up[d] < 0 {
			continue
		}
		l := &t.Links[up[d]]
		count[rateLabel(l)]++
		if best == nil || count[rateLabel(l)] > count[rateLabel(best)] {
			best = l
		}
	}
	return best
}

// drawFast paints NVLink and its like: a bar with the GPUs on it for an NVSwitch,
// arcs for direct links.
func (p *panel) drawFast(pic *picture) {
	for i := range p.fast {
		s := &p.fast[i]
		pic.note(s.kind.String())
		if s.via >= 0 {
			p.drawBar(pic, s)
		} else {
			p.drawArcs(pic, s)
		}
	}
}

func (p *panel) drawBar(pic *picture, s *fast) {
	left, right := math.Inf(1), math.Inf(-1)
	for _, g := range s.gpus {
		left, right = math.Min(left, p.box[g].x), math.Max(right, p.box[g].right())
	}
	bar := box{left, p.gpuY - 54, right - left, 26}
	for _, b := range s.bundles {
		for _, i := range b.links {
			l := &p.t.Links[i]
			g := gpuEnd(p.t, l)
			pic.Open("link "+l.Kind.String(), linkTip(p.t, l))
			pic.about(linkKey(p.host, i))
			pic.Line(p.box[g].mid(), p.box[g].y, p.box[g].mid(), bar.bottom(), linkPaint(l))
			if len(s.bundles) > 1 {
				ty := svg.Type{Size: smallType, Fill: nvGreen, Anchor: svg.End}
				pic.Text(p.box[g].mid()-8, p.box[g].y-9, b.short(s.kind), ty)
			}
			pic.Close()
		}
	}
	p.box[s.via] = bar
	pic.Open("nvswitch", p.t.Devices[s.via].Name)
	pic.about(deviceKey(p.host, p.t, s.via))
	pic.Rect(bar.x, bar.y, bar.w, bar.h, 5, svg.Paint{Fill: nvGreen})
	// The words stand over a GPU, where no link of a NIC crosses the bar.
	ty := svg.Type{Size: 12, Fill: onBar, Anchor: svg.Middle, Bold: true}
	first := p.box[s.gpus[0]]
	pic.Text(first.mid(), bar.y+bar.h/2+4.5, svg.Fit("NVSwitch", ty, gpuW-6), ty)
	pic.Close()
}

// drawArcs paints direct links between GPUs. At a GPU, the arcs to one side are
// ordered so that a longer one passes over the shorter ones and does not cross
// them.
func (p *panel) drawArcs(pic *picture, s *fast) {
	type arc struct {
		link int
		a, b int // left and right GPU
	}
	var arcs []arc
	longest := 1.0
	// uneven pairs have links that differ by direction: something is wrong there.
	seen, uneven := make(map[[2]int]bool), make(map[[2]int]bool)
	for _, b := range s.bundles {
		for _, i := range b.links {
			l := &p.t.Links[i]
			x := arc{i, l.A, l.B}
			if p.box[x.a].x > p.box[x.b].x {
				x.a, x.b = x.b, x.a
			}
			if l.OneWay {
				uneven[[2]int{x.a, x.b}] = true
				if seen[[2]int{x.a, x.b}] {
					continue // the way back of a link drawn already
				}
			}
			seen[[2]int{x.a, x.b}] = true
			arcs = append(arcs, x)
			longest = math.Max(longest, p.box[x.b].mid()-p.box[x.a].mid())
		}
	}
	length := func(x arc) float64 { return p.box[x.b].mid() - p.box[x.a].mid() }
	slices.SortStableFunc(arcs, func(x, y arc) int { return int(length(y) - length(x)) })
	// Longest first: to the left of a GPU's middle go the arcs to the left, the
	// longest nearest to the middle, and likewise to the right.
	left, right := make(map[int]int), make(map[int]int)
	for _, x := range arcs {
		left[x.b]++
		right[x.a]++
	}
	step := func(g int) float64 { return math.Min(9, (gpuW/2-5)/float64(max(1, left[g], right[g]))) }
	usedLeft, usedRight := make(map[int]int), make(map[int]int)
	for _, x := range arcs {
		l := &p.t.Links[x.link]
		xa := p.box[x.a].mid() + step(x.a)*(float64(usedRight[x.a])+0.5)
		xb := p.box[x.b].mid() - step(x.b)*(float64(usedLeft[x.b])+0.5)
		usedRight[x.a]++
		usedLeft[x.b]++
		rise := (p.band - 22) * (0.3 + 0.7*length(x)/longest)
		y := p.gpuY
		paint := linkPaint(l)
		paint.Round = true
		if uneven[[2]int{x.a, x.b}] {
			pic.note("degraded")
			paint.Stroke, paint.Dash, paint.Round = red, degradedDashes, false
		}
		pic.Open("link "+l.Kind.String(), linkTip(p.t, l))
		pic.about(linkKey(p.host, x.link))
		pic.Path(new(svg.Pen).Move(xa, y).Curve(xa, y-rise*4/3, xb, y-rise*4/3, xb, y).String(), paint)
		pic.Close()
	}
}
