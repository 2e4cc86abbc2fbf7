package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Sizes of a rack's trays.
const (
	trayLabel = 46.0
	chipW     = 98.0
	chipH     = 30.0
	trayGPUGp = 8.0
	trayCPUH  = 26.0
	trayGap   = 9.0
	trayPad   = 7.0
	spineW    = 128.0
	spineLink = 46.0
	switchW   = 56.0 // of a tray's own NVSwitches, where a second level joins them
)

// rack is a node of many trays around a column of NVSwitches: an NVLink domain.
type rack struct {
	t      *cluster.NodeType
	host   string // whose node it is, for what is chosen on a page
	title  string
	frame  box
	top    box // where cables leave
	trays  []tray
	column box
	fast   []fast
	second []int // the links of the trays' NVSwitches to a second level
	shares []cluster.Share
	titles []string
	up     []int
}

// tray is one operating-system image of the rack.
type tray struct {
	box  box
	gpus []int
	part []trayPart
}

// trayPart is a NUMA domain of a tray with what hangs on it; numa is -1 for
// devices that hang on none.
type trayPart struct {
	numa       int
	gpus, nics []int
}

func newRack(t *cluster.NodeType, title string) *rack {
	r := &rack{
		t: t, title: title, trays: make([]tray, trayCount(t)), fast: fastSets(t), second: switchLinks(t), shares: t.Shares(),
		titles: deviceTitles(t), up: uplinks(t),
	}
	for d := range t.Devices {
		dev := &t.Devices[d]
		if dev.Tray < 0 || dev.Tray >= len(r.trays) {
			continue
		}
		tr := &r.trays[dev.Tray]
		switch dev.Kind {
		case cluster.NUMA:
			tr.at(d)
		case cluster.GPU:
			tr.gpus = append(tr.gpus, d)
			part := tr.at(t.Above(d, cluster.NUMA))
			part.gpus = append(part.gpus, d)
		case cluster.NIC:
			part := tr.at(t.Above(d, cluster.NUMA))
			part.nics = append(part.nics, d)
		}
	}
	r.lay()
	return r
}

// at finds the part of a NUMA domain, and makes it when it is new.
func (tr *tray) at(numa int) *trayPart {
	for i := range tr.part {
		if tr.part[i].numa == numa {
			return &tr.part[i]
		}
	}
	tr.part = append(tr.part, trayPart{numa: numa})
	return &tr.part[len(tr.part)-1]
}

func (tr *tray) width() float64 {
	w := trayLabel + 2*trayPad
	for _, p := range tr.part {
		w += partWidth(p) + 10
	}
	return w
}

func partWidth(p trayPart) float64 {
	return math.Max(2, float64(len(p.gpus)))*(chipW+trayGPUGp) - trayGPUGp
}

// lay sets the trays into two columns with the NVSwitches between them.
func (r *rack) lay() {
	w := 0.0
	for i := range r.trays {
		w = math.Max(w, r.trays[i].width())
	}
	h := 2*trayPad + chipH + 12 + trayCPUH
	left := (len(r.trays) + 1) / 2
	link := spineLink
	if len(r.second) > 0 {
		link += switchW
	}
	x2 := 2*pad + w + 2*link + spineW
	for i := range r.trays {
		b := box{2 * pad, 2*pad + float64(i)*(h+trayGap), w, h}
		if i >= left {
			b.x = x2
			b.y = 2*pad + float64(i-left)*(h+trayGap)
		}
		r.trays[i].box = b
	}
	total := float64(left)*(h+trayGap) - trayGap
	r.column = box{2*pad + w + link, 2 * pad, spineW, total}
	r.frame = box{0, 0, x2 + w + 2*pad, total + 4*pad + 26}
	r.top = box{r.frame.x, r.frame.y, r.frame.w, 1}
}

func (r *rack) bounds() *box { return &r.frame }

func (r *rack) port(int) *box { return &r.top }

func (r *rack) move(x, y float64) {
	dx, dy := x-r.frame.x, y-r.frame.y
	for _, b := range []*box{&r.frame, &r.top, &r.column} {
		b.x += dx
		b.y += dy
	}
	for i := range r.trays {
		r.trays[i].box.x += dx
		r.trays[i].box.y += dy
	}
}

func (r *rack) draw(pic *picture) {
	pic.Open("node rack", r.title)
	pic.Rect(r.frame.x, r.frame.y, r.frame.w, r.frame.h, 10, svg.Paint{Fill: panelFill, Stroke: panelLine})
	for i := range r.trays {
		r.drawSpokes(pic, &r.trays[i])
	}
	r.drawColumn(pic)
	for i := range r.trays {
		r.drawTray(pic, i)
	}
	ty := svg.Type{Size: 15, Fill: ink, Bold: true}
	title := svg.FitEnds(r.title, ty, r.frame.w/2)
	pic.Text(r.frame.x+2*pad, r.frame.bottom()-14, title, ty)
	note := fmt.Sprintf("%d trays, one NVLink domain", len(r.trays))
	if !strings.HasPrefix(r.title, r.t.Name) {
		note = r.t.Name + ": " + note
	}
	for _, k := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.GPU, "GPU–CPU"}, {cluster.NIC, "NIC–CPU"}} {
		if l := commonLink(r.t, r.t.Of(k.kind), r.up); l != nil {
			note += " · " + k.name + " " + linkName(l)
			if l.Rate.Known() {
				note += ", " + l.Rate.Value.String()
			}
		}
	}
	used := svg.TextWidth(title, ty) + 3*pad
	small := svg.Type{Size: 12, Fill: inkSoft}
	pic.Text(r.frame.x+used, r.frame.bottom()-14, svg.Fit(note, small, r.frame.w-used-pad), small)
	pic.Close()
}

// drawSpokes paints the links of a tray's GPUs to the column.
func (r *rack) drawSpokes(pic *picture, tr *tray) {
	x1, x2 := tr.box.right(), r.column.x
	if tr.box.x > r.column.x {
		x1, x2 = r.column.right(), tr.box.x
	}
	if len(r.second) > 0 {
		bar := box{x1 + spineLink/2, tr.box.y, switchW, tr.box.h}
		r.drawUplink(pic, tr, bar, x1, x2)
		if tr.box.x > r.column.x {
			x1 = bar.right()
		} else {
			x2 = bar.x
		}
	}
	for i := range r.fast {
		s := &r.fast[i]
		if s.via < 0 {
			continue
		}
		pic.note(s.kind.String())
		n := 0
		for _, b := range s.bundles {
			for _, k := range b.links {
				l := &r.t.Links[k]
				at := slices.Index(tr.gpus, gpuEnd(r.t, l))
				if at < 0 {
					continue
				}
				y := tr.box.y + tr.box.h/2 + (float64(at)-float64(len(tr.gpus)-1)/2)*9
				paint := linkPaint(l)
				paint.Width = math.Min(paint.Width, 6)
				pic.Open("link "+l.Kind.String(), linkTip(r.t, l))
				pic.about(linkKey(r.host, k))
				pic.Line(x1, y, x2, y, paint)
				pic.Close()
				n++
			}
		}
	}
}

func (r *rack) drawTray(pic *picture, i int) {
	tr := &r.trays[i]
	b := tr.box
	pic.Open("tray", fmt.Sprintf("tray %d", i))
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: paper, Stroke: trayLine})
	ty := svg.Type{Size: 11, Fill: inkSoft, Anchor: svg.Middle, Bold: true}
	pic.Text(b.x+trayLabel/2+2, b.y+b.h/2-2, "tray", svg.Type{Size: 10, Fill: inkSoft, Anchor: svg.Middle})
	pic.Text(b.x+trayLabel/2+2, b.y+b.h/2+12, fmt.Sprint(i), ty)
	x := b.x + trayLabel + trayPad
	for _, p := range tr.part {
		r.drawPart(pic, p, x, b.y+trayPad)
		x += partWidth(p) + 10
	}
	pic.Close()
}

// drawPart paints the GPUs of a NUMA domain, below them its CPU and its NICs.
func (r *rack) drawPart(pic *picture, p trayPart, x, y float64) {
	low := y + chipH + 12
	w := partWidth(p)
	nicsW := 0.0
	if len(p.nics) > 0 {
		nicsW = 74
	}
	cpu := box{x, low, w - nicsW - 10, trayCPUH}
	if p.numa < 0 {
		cpu.w = 0
	}
	for i, g := range p.gpus {
		gb := box{x + float64(i)*(chipW+trayGPUGp), y, chipW, chipH}
		if r.up[g] >= 0 && p.numa >= 0 {
			l := &r.t.Links[r.up[g]]
			pic.note(l.Kind.String())
			lx := math.Min(gb.mid(), cpu.right()-8)
			pic.Open("link "+l.Kind.String(), linkTip(r.t, l))
			pic.about(linkKey(r.host, r.up[g]))
			pic.Line(lx, gb.bottom(), lx, low, linkPaint(l))
			pic.Close()
		}
		r.drawChip(pic, g, gb)
	}
	if p.numa >= 0 {
		r.drawTrayCPU(pic, p.numa, cpu)
	}
	if len(p.nics) > 0 {
		r.drawTrayNICs(pic, p, box{x + w - nicsW, low, nicsW, trayCPUH}, cpu)
	}
}

func (r *rack) drawChip(pic *picture, g int, b box) {
	dev := &r.t.Devices[g]
	pic.Open("gpu", dev.Name+" "+dev.Model.Value)
	pic.about(deviceKey(r.host, r.t, g))
	pic.Rect(b.x, b.y, b.w, b.h, 5, svg.Paint{Fill: nvFill, Stroke: nvGreen, Width: 1.4})
	sub := modelOnly(dev.Model.Value)
	if dev.GPU != nil && dev.GPU.Memory.Known() {
		sub = strings.TrimSpace(sub + " " + memory(dev.GPU.Memory.Value))
	}
	pic.lines(b, 9.5, ink, gpuTitle(dev.Name), sub)
	pic.Close()
}

func (r *rack) drawTrayCPU(pic *picture, numa int, b box) {
	name := domainTitle(r.t, numa)
	if s := r.t.Above(numa, cluster.Socket); s >= 0 && r.t.Devices[s].Model.Known() {
		name = shortModel(r.t.Devices[s].Model.Value)
	}
	sub := ""
	if cpu := r.t.Devices[numa].CPU; cpu != nil && cpu.Memory.Known() {
		sub = memory(cpu.Memory.Value)
	}
	pic.Open("numa", r.t.Devices[numa].Name)
	pic.about(deviceKey(r.host, r.t, numa))
	pic.Rect(b.x, b.y, b.w, b.h, 4, svg.Paint{Fill: cpuFill, Stroke: cpuLine})
	ty := svg.Type{Size: 10, Fill: ink, Anchor: svg.Middle}
	pic.Text(b.mid(), b.y+b.h/2+3.5, svg.Fit(strings.Join(nonEmpty(name, sub), " · "), ty, b.w-6), ty)
	pic.Close()
}

// drawTrayNICs paints the NICs of a domain as one box.
func (r *rack) drawTrayNICs(pic *picture, p trayPart, b, cpu box) {
	paint := svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.4}
	for _, s := range r.shares {
		if s.Crowded() && slices.Contains(s.NICs, p.nics[0]) {
			paint.Fill, paint.Stroke = amberBg, amber
			pic.note("shared")
		}
	}
	dev := &r.t.Devices[p.nics[0]]
	if up := r.up[p.nics[0]]; up >= 0 && cpu.w > 0 {
		l := &r.t.Links[up]
		pic.note(l.Kind.String())
		pic.Line(cpu.right(), b.y+b.h/2, b.x, b.y+b.h/2, linkPaint(l))
	}
	text := nicRateText(dev)
	if n := len(p.nics); n > 1 {
		text = fmt.Sprintf("%d × %s", n, text)
	}
	pic.Open("nic", deviceNames(r.titles, p.nics))
	pic.about(deviceKey(r.host, r.t, p.nics[0]), namesOf(r.t, p.nics)...)
	pic.Rect(b.x, b.y, b.w, b.h, 4, paint)
	ty := svg.Type{Size: 10, Fill: ink, Anchor: svg.Middle}
	pic.Text(b.mid(), b.y+b.h/2+3.5, svg.Fit(text, ty, b.w-6), ty)
	pic.Close()
}

// drawUplink paints the NVSwitches of a tray and their links to the second level.
func (r *rack) drawUplink(pic *picture, tr *tray, bar box, x1, x2 float64) {
	for i := range r.fast {
		s := &r.fast[i]
		if s.via < 0 || len(tr.gpus) == 0 || !slices.Contains(s.gpus, tr.gpus[0]) {
			continue
		}
		for _, k := range r.second {
			l := &r.t.Links[k]
			if l.A != s.via && l.B != s.via {
				continue
			}
			y := bar.y + bar.h/2
			pic.Open("link "+l.Kind.String(), linkTip(r.t, l))
			pic.about(linkKey(r.host, k))
			if tr.box.x > r.column.x {
				pic.Line(x1, y, bar.x, y, linkPaint(l))
			} else {
				pic.Line(bar.right(), y, x2, y, linkPaint(l))
			}
			pic.Close()
		}
		pic.Open("nvswitch", "NVSwitch")
		pic.about(deviceKey(r.host, r.t, s.via))
		pic.Rect(bar.x, bar.y, bar.w, bar.h, 5, svg.Paint{Fill: nvGreen})
		pic.Text(bar.mid(), bar.y+bar.h/2+3.5, "NVSwitch", svg.Type{Size: 10, Fill: onBar, Anchor: svg.Middle})
		pic.Close()
	}
}

// columnText says what the column is: the NVSwitches that all GPUs hang on, or the
// second level of those that join trays.
func (r *rack) columnText() []string {
	var text []string
	rates := func(lanes int, rate cluster.Fact[unit.Rate], duplex unit.Rate, per string) {
		if lanes > 0 {
			text = append(text, words.Plural(lanes, "link")+" per "+per)
		}
		if rate.Known() {
			text = append(text, rate.Value.String()+" per "+per, "one direction")
		}
		if duplex > 0 {
			text = append(text, "("+duplex.String()+" duplex)")
		}
	}
	if len(r.second) > 0 {
		l := &r.t.Links[r.second[0]]
		text = []string{"NVSwitch", "second level"}
		rates(l.Lanes, l.Rate, l.Duplex, "tray")
		text = append(text, "", "in a tray:")
	}
	for i := range r.fast {
		s := &r.fast[i]
		if s.via < 0 || len(s.bundles) == 0 || len(r.second) > 0 && i > 0 {
			continue
		}
		if len(r.second) == 0 {
			text = append(text, "NVSwitch")
		}
		text = append(text, s.name, words.Plural(len(s.gpus), "GPU"))
		rates(s.bundles[0].lanes, s.bundles[0].rate, s.bundles[0].duplex, "GPU")
	}
	return text
}

func (r *rack) drawColumn(pic *picture) {
	b := r.column
	pic.Open("nvswitch", "NVSwitch")
	if len(r.second) > 0 {
		pic.about(deviceKey(r.host, r.t, r.t.Links[r.second[0]].B))
	} else if at := slices.IndexFunc(r.fast, func(s fast) bool { return s.via >= 0 }); at >= 0 {
		pic.about(deviceKey(r.host, r.t, r.fast[at].via))
	}
	pic.Rect(b.x, b.y, b.w, b.h, 8, svg.Paint{Fill: nvGreen})
	text := r.columnText()
	text = text[:max(min(len(text), int(b.h/20)-1), 0)]
	y := b.y + b.h/2 - float64(len(text))*10 + 14
	for i, s := range text {
		ty := svg.Type{Size: 13, Fill: onBar, Anchor: svg.Middle, Bold: i == 0}
		if i == 0 {
			ty.Size = 17
		}
		pic.Text(b.mid(), y, svg.Fit(s, ty, b.w-8), ty)
		y += 20
	}
	pic.Close()
}
