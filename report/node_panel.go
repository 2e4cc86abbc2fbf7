package report

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// panel is one node drawn in full. Rows from top to bottom: NICs, NVLink, GPUs,
// PCIe switches, CPUs; the network is above it.
type panel struct {
	*plan
	frame    box
	host     string // whose node it is, for what is chosen on a page
	title    string
	note     string         // "× 16  node[0-15]"
	stack    int            // how many more such nodes there are, for the look of a pile
	captions bool           // the rows are explained on the left
	stubs    bool           // NICs end in a stub, because the network is drawn elsewhere
	ends     map[int]string // NIC → where its cable leads, such as the rail of its switch
	shares   []cluster.Share
	far      map[int]string // GPU → what lies between it and its nearest NIC
	fast     []fast
	titles   []string
	box      []box // per device; zero when it is not drawn

	nicY, gpuY, switchY, rootY, numaY float64
	nicH, gpuH, band                  float64
	caption                           []caption
}

// caption explains a row, on the left of it.
type caption struct {
	y     float64 // middle
	color string
	text  []string
}

// newPanel lays a node out at the origin; move puts it into place.
func newPanel(t *cluster.NodeType, captions, stubs bool) *panel {
	p := &panel{
		plan: newPlan(t), captions: captions, stubs: stubs, shares: t.Shares(), fast: fastSets(t),
		titles: deviceTitles(t), box: make([]box, len(t.Devices)), nicH: nicH, gpuH: plainH, far: farGPUs(t),
	}
	if len(p.far) > 0 {
		p.gpuH = farH
	}
	for _, s := range p.shares {
		if s.Crowded() {
			p.nicH = sharedH
		}
	}
	if t.Count(cluster.NIC) == 0 {
		p.nicH = 0
	}
	p.layColumns()
	p.layRows()
	p.makeCaptions()
	return p
}

// layColumns sets the columns from left to right, with more room where a switch,
// a NUMA domain or a socket ends.
func (p *panel) layColumns() {
	x := 2 * pad
	if p.captions {
		x += captionW
	}
	gap := make([]float64, len(p.cols)+1)
	for d := range p.t.Devices {
		s := p.span[d]
		if s.from == s.to {
			continue
		}
		g := 0.0
		switch p.t.Devices[d].Kind {
		case cluster.Socket:
			g = socketGap
		case cluster.NUMA:
			g = 20
			if p.t.Devices[d].Parent < 0 {
				g = socketGap
			}
		case cluster.PCISwitch, cluster.RootComplex:
			g = 12
		}
		gap[s.from], gap[s.to] = math.Max(gap[s.from], g), math.Max(gap[s.to], g)
	}
	for i := range p.cols {
		c := &p.cols[i]
		if i > 0 {
			x += math.Max(8, gap[i])
		}
		c.x, c.w = x, gpuW
		if c.gpu >= 0 && len(c.nics) > 0 {
			c.w += gutter
		} else if c.gpu < 0 && p.nicH == sharedH {
			c.w = sharedW
		}
		x += c.w
	}
	p.frame.w = math.Max(x+2*pad, 180)
}

func (p *panel) layRows() {
	y := pad
	if p.stubs {
		y += cableTop
	}
	p.nicY = y
	y += p.nicH
	p.band = p.bandHeight()
	y += p.band
	p.gpuY = y
	if p.t.Count(cluster.GPU) > 0 {
		y += p.gpuH
	}
	// The switch nearest to the CPU is in the lowest row.
	p.switchY = y + rowGap
	y += float64(p.deep) * (rowGap + switchH)
	if p.hasCPU() {
		y += rowGap
		p.rootY = y
		p.numaY = y + rootH
		y = p.numaY + numaH + 8
		if p.t.Count(cluster.Socket) > 0 {
			y += 22
		}
	}
	p.frame.h = y + 34
	p.placeBoxes()
}

func (p *panel) hasCPU() bool { return p.t.Count(cluster.NUMA)+p.t.Count(cluster.Socket) > 0 }

// bandHeight is the room that NVLink takes between NICs and GPUs.
func (p *panel) bandHeight() float64 {
	h := 0.0
	if p.nicH > 0 {
		h = rowGap
	}
	for i := range p.fast {
		s := &p.fast[i]
		switch {
		case s.via >= 0:
			h = math.Max(h, 82)
		case s.pairs(p.t) > 6:
			h = math.Max(h, 128)
		default:
			h = math.Max(h, 92)
		}
	}
	return h
}

func (p *panel) placeBoxes() {
	for i := range p.cols {
		c := &p.cols[i]
		if c.gpu >= 0 {
			p.box[c.gpu] = box{c.x, p.gpuY, gpuW, p.gpuH}
		}
		for _, n := range c.nics {
			p.box[n] = box{c.x, p.nicY, c.w, p.nicH}
		}
	}
	for d := range p.t.Devices {
		s := p.span[d]
		if s.from == s.to {
			continue
		}
		first, last := &p.cols[s.from], &p.cols[s.to-1]
		b := box{x: first.x, w: last.x + last.w - first.x}
		if last.gpu >= 0 && len(last.nics) > 0 && !p.within(last.nics[0], d) {
			b.w -= gutter // the NIC above hangs on something further down
		}
		switch p.t.Devices[d].Kind {
		case cluster.PCISwitch:
			b.y = p.switchY + float64(p.deep-1-p.depth[d])*(switchH+rowGap)
			b.h = switchH
		case cluster.RootComplex:
			b.y, b.h = p.rootY, rootH
		case cluster.NUMA:
			b.y, b.h = p.numaY, numaH
		case cluster.Socket:
			b.x, b.w = b.x-10, b.w+20
			b.y, b.h = p.numaY-4, numaH+30
		default:
			continue
		}
		p.box[d] = b
	}
}

// move puts the panel at a place.
func (p *panel) move(x, y float64) {
	dx, dy := x-p.frame.x, y-p.frame.y
	p.frame.x, p.frame.y = x, y
	for i := range p.box {
		p.box[i].x += dx
		p.box[i].y += dy
	}
	for i := range p.cols {
		p.cols[i].x += dx
	}
	for i := range p.caption {
		p.caption[i].y += dy
	}
	p.nicY, p.gpuY, p.switchY = p.nicY+dy, p.gpuY+dy, p.switchY+dy
	p.rootY, p.numaY = p.rootY+dy, p.numaY+dy
}

func (p *panel) bounds() *box { return &p.frame }

// port is the box of a NIC; of a stack, that of the first.
func (p *panel) port(nic int) *box {
	if p.box[nic].w == 0 {
		return nil
	}
	return &p.box[p.cols[p.span[nic].from].nics[0]]
}

// draw paints the panel: containers, links, boxes, words.
func (p *panel) draw(pic *picture) {
	pic.Open("node", p.title)
	for i := min(p.stack, 3); i > 0; i-- {
		o := float64(i) * 5
		pic.Rect(p.frame.x+o, p.frame.y+o, p.frame.w, p.frame.h, 10, svg.Paint{Fill: paper, Stroke: panelLine})
	}
	pic.Rect(p.frame.x, p.frame.y, p.frame.w, p.frame.h, 10, svg.Paint{Fill: panelFill, Stroke: panelLine})
	p.drawCPUs(pic)
	p.drawFast(pic)
	p.drawTreeLinks(pic)
	p.drawStubs(pic)
	for d := range p.t.Devices {
		p.drawDevice(pic, d)
	}
	p.drawWords(pic)
	pic.Close()
}

// drawStubs paints the beginning of the cables of NICs whose switches are drawn
// elsewhere.
func (p *panel) drawStubs(pic *picture) {
	if !p.stubs {
		return
	}
	for i := range p.cols {
		c := &p.cols[i]
		if len(c.nics) == 0 {
			continue
		}
		b, dev := p.box[c.nics[0]], &p.t.Devices[c.nics[0]]
		paint := svg.Paint{Stroke: netViol, Width: unknownStroke}
		if dev.NIC != nil {
			paint.Width = stroke(dev.NIC.Rate())
		}
		if p.host != "" {
			pic.note("network")
			pic.Open("link network", "cable of "+deviceNames(p.titles, c.nics))
			pic.about(fmt.Sprintf("port/%s/%d", p.host, slices.Index(p.t.Of(cluster.NIC), c.nics[0])), namesOf(p.t, c.nics)...)
		}
		pic.Line(b.mid(), p.frame.y-4, b.mid(), b.y, paint)
		ty := svg.Type{Size: smallType, Fill: netViol}
		pic.Text(b.mid()+6, p.frame.y+18, svg.FitEnds(p.ends[c.nics[0]], ty, endW), ty)
		if p.host != "" {
			pic.Close()
		}
	}
}

func (p *panel) drawWords(pic *picture) {
	for _, c := range p.caption {
		pic.drawCaption(p.frame.x+pad, c)
	}
	ty := svg.Type{Size: 15, Fill: ink, Bold: true}
	y := p.frame.bottom() - 14
	title := svg.FitEnds(p.title, ty, p.frame.w-2*pad)
	pic.Text(p.frame.x+pad, y, title, ty)
	used := svg.TextWidth(title, ty) + pad
	note := svg.Type{Size: 12, Fill: inkSoft}
	pic.Text(p.frame.x+pad+used, y, svg.Fit(p.note, note, p.frame.w-used-2*pad), note)
}

// shareOf finds the group of GPUs that a NIC serves.
func (p *panel) shareOf(nic int) (cluster.Share, bool) {
	i := slices.IndexFunc(p.shares, func(s cluster.Share) bool { return slices.Contains(s.NICs, nic) })
	if i < 0 {
		return cluster.Share{}, false
	}
	return p.shares[i], true
}

func shareText(s cluster.Share) (who, each string) {
	who = fmt.Sprintf("shared by %d GPUs", len(s.GPUs))
	if len(s.NICs) > 1 {
		who = fmt.Sprintf("%d GPUs, %d NICs", len(s.GPUs), len(s.NICs))
	}
	if s.Each.Known() {
		each = s.Each.Value.String() + " each"
	}
	return who, each
}
