package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
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

// makeCaptions says once, on the left of each row, what all of its boxes and
// links have in common.
func (p *panel) makeCaptions() {
	if !p.captions {
		return
	}
	if p.nicH > 0 {
		p.caption = append(p.caption, caption{p.nicY + p.nicH/2, netViol, nicCaption(p.t)})
	}
	if len(p.fast) > 0 {
		var text []string
		for i := range p.fast {
			text = append(text, fastCaption(p.t, &p.fast[i])...)
		}
		color := linkColor(p.fast[0].kind)
		p.caption = append(p.caption, caption{p.gpuY - p.band/2 + 4, color, text})
	}
	if p.t.Count(cluster.GPU) > 0 {
		p.caption = append(p.caption, caption{p.gpuY + p.gpuH/2, nvGreen, gpuCaption(p.t)})
	}
	if text := p.pcieCaption(); len(text) > 0 {
		y := p.switchY + switchH/2
		if p.deep == 0 {
			y = p.switchY - rowGap/2 + 4
		}
		p.caption = append(p.caption, caption{y, pcieBlue, text})
	}
	if p.hasCPU() {
		text := []string{words.Plural(p.t.Count(cluster.NUMA), "NUMA domain")}
		if n := p.t.Count(cluster.Socket); n > 0 {
			text = append([]string{words.Plural(n, "socket")}, text...)
		}
		p.caption = append(p.caption, caption{p.numaY + numaH/2, smpBrown, text})
	}
}

// nicCaption says what the NICs of a node have in common.
func nicCaption(t *cluster.NodeType) []string {
	nics := t.Of(cluster.NIC)
	model, kind, rate := "", "", ""
	for i, n := range nics {
		dev := &t.Devices[n]
		m, k, r := shortModel(dev.Model.Value), "", nicRateText(dev)
		if dev.NIC != nil {
			k = netName(dev.NIC.Kind)
		}
		if i == 0 {
			model, kind, rate = m, k, r
			continue
		}
		model, kind, rate = same(model, m), same(kind, k), same(rate, r)
	}
	if rate != "" && len(nics) > 1 && rate != "down" {
		rate += " each"
	}
	return nonEmpty(countOf(len(nics), model, "NIC"), kind, rate)
}

// gpuCaption says what its GPUs have in common.
func gpuCaption(t *cluster.NodeType) []string {
	model, mem := "", ""
	gpus := t.Of(cluster.GPU)
	for i, g := range gpus {
		dev := &t.Devices[g]
		m, k := shortModel(dev.Model.Value), ""
		if dev.GPU != nil && dev.GPU.Memory.Known() {
			k = memory(dev.GPU.Memory.Value)
		}
		if i == 0 {
			model, mem = m, k
			continue
		}
		model, mem = same(model, m), same(mem, k)
	}
	if mem != "" && len(gpus) > 1 {
		mem += " each"
	}
	return nonEmpty(countOf(len(gpus), model, "GPU"), mem)
}

// countOf is "8 × H100", or "8 GPUs" when the model is not one and the same.
func countOf(n int, model, noun string) string {
	if model == "" {
		return words.Plural(n, noun)
	}
	return fmt.Sprintf("%d × %s", n, model)
}

// fastCaption says how its GPUs are linked.
func fastCaption(t *cluster.NodeType, s *fast) []string {
	rate := func(b *bundle, way string) string {
		if !b.rate.Known() {
			return "rate unknown"
		}
		return b.rate.Value.String() + way + assumed(b.rate.Origin)
	}
	first := &s.bundles[0]
	switch {
	case s.via >= 0 && len(s.bundles) == 1:
		links := ""
		if first.lanes > 0 {
			links = words.Plural(first.lanes, "link") + " per GPU"
		}
		return nonEmpty(s.name+" via NVSwitch", links, rate(first, " one direction"))
	case s.full(t):
		return []string{s.name + ", full mesh", first.short(s.kind) + " between each pair", rate(first, " one direction")}
	}
	text := []string{s.name}
	if s.via >= 0 {
		text[0] += " via NVSwitch"
	} else {
		text[0] += " mesh"
	}
	for i := range s.bundles {
		b := &s.bundles[i]
		way := ""
		if b.oneWay {
			way = " one way"
		}
		text = append(text, b.short(s.kind)+way+": "+rate(b, ""))
	}
	return append(text, "one direction")
}

// pcieCaption names the usual link of GPUs, and of NICs and switches where theirs
// differs.
func (p *panel) pcieCaption() []string {
	var text []string
	first := ""
	for _, k := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.GPU, "GPU: "}, {cluster.NIC, "NIC: "}, {cluster.PCISwitch, "up: "}} {
		l := p.commonLink(k.kind)
		if l == nil || l.Kind != cluster.PCIe && l.Kind != cluster.C2C {
			continue
		}
		s := linkName(l)
		if l.Rate.Known() {
			s += ", " + l.Rate.Value.String() + assumed(l.Rate.Origin)
		}
		switch {
		case first == "":
			first = s
			text = append(text, s)
		case s != first:
			text = append(text, k.name+s)
		}
	}
	return text
}

// assumed marks a figure that nobody read.
func assumed(o cluster.Origin) string {
	if o == cluster.Assumed {
		return " assumed"
	}
	return ""
}

// same keeps a text that is equal for all.
func same(a, b string) string {
	if a != b {
		return ""
	}
	return a
}

func nonEmpty(texts ...string) []string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

// column is a place for one GPU and, above it, one NIC box; either may be absent.
type column struct {
	gpu  int   // -1 none
	nics []int // several when equal NICs are drawn as one stack
	x, w float64
}

// spans are the columns that a device and everything on it take: from and to,
// the last one excluded.
type spans struct{ from, to int }

// plan is a node's devices dealt into columns.
type plan struct {
	t     *cluster.NodeType
	of    [][]int
	top   []int
	up    []int
	cols  []column
	span  []spans
	depth []int // PCIe switches between a device and the CPU
	deep  int   // rows of PCIe switches
}

// newPlan walks the tree and gives every GPU and NIC a column, so that what hangs
// on one switch, one NUMA domain, one socket stands side by side.
func newPlan(t *cluster.NodeType) *plan {
	p := &plan{t: t, up: uplinks(t), span: make([]spans, len(t.Devices)), depth: make([]int, len(t.Devices))}
	p.of, p.top = children(t)
	p.group(p.top, 0)
	// A GPU or NIC that hangs on something unusual (on another GPU) still gets a
	// column of its own.
	for d := range t.Devices {
		if p.span[d].from != p.span[d].to {
			continue
		}
		switch t.Devices[d].Kind {
		case cluster.GPU:
			p.pairs([]int{d}, nil)
		case cluster.NIC:
			p.pairs(nil, [][]int{{d}})
		}
	}
	return p
}

// group places devices that hang on the same thing: GPUs and NICs paired in
// columns, everything else one after the other.
func (p *plan) group(ids []int, depth int) {
	var gpus, nics []int
	for _, d := range ids {
		switch p.t.Devices[d].Kind {
		case cluster.GPU:
			gpus = append(gpus, d)
		case cluster.NIC:
			nics = append(nics, d)
		}
	}
	placed := false
	from := len(p.cols)
	if len(gpus) == 0 && depth > 0 {
		// NICs beside switches with GPUs: they find a place above those GPUs.
		for _, d := range ids {
			if p.t.Devices[d].Kind == cluster.PCISwitch {
				p.container(d, depth)
			}
		}
		nics = p.above(nics, from)
	}
	for _, d := range ids {
		switch p.t.Devices[d].Kind {
		case cluster.GPU, cluster.NIC:
			if !placed && len(gpus)+len(nics) > 0 {
				p.pairs(gpus, p.stacks(nics, len(gpus)))
				placed = true
			}
		case cluster.NVSwitch:
		default:
			if p.span[d].from == p.span[d].to {
				p.container(d, depth)
			}
		}
	}
}

// above puts NICs over the GPUs of the columns made since from that have none,
// and returns the NICs that found no place. It is all or nothing, so that
// equal switches look alike.
func (p *plan) above(nics []int, from int) []int {
	var free []int
	for i := from; i < len(p.cols); i++ {
		if p.cols[i].gpu >= 0 && len(p.cols[i].nics) == 0 {
			free = append(free, i)
		}
	}
	stacks := p.stacks(nics, len(free))
	if len(stacks) > len(free) {
		return nics
	}
	for i, s := range stacks {
		p.cols[free[i]].nics = s
		for _, n := range s {
			p.span[n] = spans{free[i], free[i] + 1}
		}
	}
	return nil
}

// within reports whether a device hangs on another, however far below it.
func (p *plan) within(d, holder int) bool {
	for d = p.t.Devices[d].Parent; d >= 0; d = p.t.Devices[d].Parent {
		if d == holder {
			return true
		}
	}
	return false
}

func (p *plan) container(d, depth int) {
	from := len(p.cols)
	p.depth[d] = depth
	below := depth
	if p.t.Devices[d].Kind == cluster.PCISwitch {
		below = depth + 1
	}
	p.group(p.of[d], below)
	// A NUMA domain with nothing on it still exists; an empty PCIe switch has
	// nothing to tell here.
	if len(p.cols) == from {
		if k := p.t.Devices[d].Kind; k != cluster.NUMA && k != cluster.Socket {
			return
		}
		p.cols = append(p.cols, column{gpu: -1})
	}
	p.span[d] = spans{from, len(p.cols)}
	if p.t.Devices[d].Kind == cluster.PCISwitch {
		p.deep = max(p.deep, depth+1)
	}
}

// pairs makes the columns of GPUs and NIC stacks that share a parent.
func (p *plan) pairs(gpus []int, stacks [][]int) {
	for i := range max(len(gpus), len(stacks)) {
		c := column{gpu: -1}
		if i < len(gpus) {
			c.gpu = gpus[i]
			p.span[c.gpu] = spans{len(p.cols), len(p.cols) + 1}
		}
		if i < len(stacks) {
			c.nics = stacks[i]
			for _, n := range c.nics {
				p.span[n] = spans{len(p.cols), len(p.cols) + 1}
			}
		}
		p.cols = append(p.cols, c)
	}
}

// stacks deals NICs into boxes: one each, or, where there are several equal ones
// for every GPU (four EFA cards a GPU), that many in a box.
func (p *plan) stacks(nics []int, gpus int) [][]int {
	per := 1
	switch {
	case gpus > 0 && len(nics) > gpus && len(nics)%gpus == 0:
		per = len(nics) / gpus
	case gpus == 0 && len(nics) > 4:
		per = len(nics)
	}
	for _, n := range nics {
		if per > 1 && p.nicLook(n) != p.nicLook(nics[0]) {
			per = 1
		}
	}
	var out [][]int
	for i := 0; i < len(nics); i += per {
		out = append(out, nics[i:min(i+per, len(nics))])
	}
	return out
}

// nicLook is equal for NICs that look the same in the picture.
func (p *plan) nicLook(d int) string {
	dev := &p.t.Devices[d]
	s := dev.Model.Value
	if dev.NIC != nil {
		s += fmt.Sprint(dev.NIC.Kind, dev.NIC.Rate().Value)
		for _, port := range dev.NIC.Ports {
			s += port.State.String()
		}
	}
	if up := p.up[d]; up >= 0 {
		l := &p.t.Links[up]
		s += linkName(l) + trainedLow(l)
	}
	return s
}

// holder is the nearest thing above a device that is drawn as a box: a switch, a
// NUMA domain (through its root complex), or nothing.
func (p *plan) holder(d int) int {
	up := p.t.Devices[d].Parent
	for up >= 0 {
		switch p.t.Devices[up].Kind {
		case cluster.PCISwitch, cluster.NUMA, cluster.RootComplex, cluster.Socket:
			return up
		}
		up = p.t.Devices[up].Parent
	}
	return -1
}

// drawDevice paints the box of a device.
func (p *panel) drawDevice(pic *picture, d int) {
	b := p.box[d]
	if b.w == 0 {
		return
	}
	dev := &p.t.Devices[d]
	switch dev.Kind {
	case cluster.GPU:
		p.drawGPU(pic, d, b)
	case cluster.NIC:
		if c := p.cols[p.span[d].from]; c.nics[0] == d {
			p.drawNIC(pic, c.nics, b)
		}
	case cluster.PCISwitch:
		pic.Open("pci", dev.Name+" "+dev.Model.Value)
		pic.about(deviceKey(p.host, p.t, d))
		pic.Rect(b.x, b.y, b.w, b.h, 4, svg.Paint{Fill: pcieFill, Stroke: pcieBlue})
		ty := svg.Type{Size: 11, Fill: pcieBlue, Anchor: svg.Middle, Bold: true}
		pic.Text(b.mid(), b.y+b.h/2+4, svg.Fit("PCIe switch", ty, b.w-6), ty)
		pic.Close()
	case cluster.RootComplex:
		pic.note("root")
		pic.Open("root", dev.Name)
		pic.about(deviceKey(p.host, p.t, d))
		pic.Rect(b.x, b.y, b.w, b.h, 2, svg.Paint{Fill: cpuLine, Stroke: cpuLine})
		pic.Close()
	}
}

func (p *panel) drawGPU(pic *picture, d int, b box) {
	dev := &p.t.Devices[d]
	pic.Open("gpu", dev.Name+" "+dev.Model.Value+" "+string(dev.PCI))
	pic.about(deviceKey(p.host, p.t, d))
	paint := svg.Paint{Fill: nvFill, Stroke: nvGreen, Width: 1.5}
	far := p.far[d]
	if far != "" {
		pic.note("far")
		paint.Stroke, paint.Width, paint.Dash = amber, 2, degradedDashes
	}
	pic.Rect(b.x, b.y, b.w, b.h, 6, paint)
	if far != "" {
		ty := svg.Type{Size: smallType, Fill: amberInk, Anchor: svg.Middle, Bold: true}
		pic.Text(b.mid(), b.bottom()-7, svg.Fit(far, ty, b.w-4), ty)
		b.h -= farH - plainH
	}
	texts := []string{gpuTitle(dev.Name)}
	model, mem := shortModel(dev.Model.Value), ""
	if dev.GPU != nil && dev.GPU.Memory.Known() {
		model, mem = modelOnly(dev.Model.Value), memory(dev.GPU.Memory.Value)
	}
	texts = append(texts, svg.Wrap(model, svg.Type{Size: boxType}, b.w-8, 2)...)
	texts = append(texts, mem)
	pic.lines(b, boxType, ink, texts...)
	pic.Close()
}

// drawNIC paints the box of one NIC, or of a stack of equal ones.
func (p *panel) drawNIC(pic *picture, nics []int, b box) {
	d := nics[0]
	dev := &p.t.Devices[d]
	share, known := p.shareOf(d)
	paint := svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.5}
	class := "nic"
	switch {
	case nicDown(dev):
		paint.Fill, paint.Stroke, paint.Dash = redBg, red, degradedDashes
	case known && share.Crowded():
		class = "nic shared"
		pic.note("shared")
		paint.Fill, paint.Stroke, paint.Width = amberBg, amber, 2.2
	case !known && len(p.shares) > 0:
		pic.note("idle")
		paint.Fill, paint.Stroke = idleFill, idleLine
	}
	texts := p.nicTexts(nics)
	if class == "nic shared" {
		who, each := shareText(share)
		texts = append(texts, who, each)
	}
	pic.Open(class, p.titles[d]+" "+dev.Model.Value+" "+string(dev.PCI))
	pic.about(deviceKey(p.host, p.t, d), namesOf(p.t, nics)...)
	for i := min(len(nics)-1, 2); i > 0; i-- {
		o := float64(i) * 3
		pic.Rect(b.x+o, b.y-o, b.w, b.h, 6, svg.Paint{Fill: paint.Fill, Stroke: paint.Stroke})
	}
	pic.Rect(b.x, b.y, b.w, b.h, 6, paint)
	pic.lines(b, boxType, ink, texts...)
	pic.Close()
}

// farGPUs finds the GPUs that reach no NIC without leaving their NUMA domain's
// side of the machine, and says in two words what is between.
func farGPUs(t *cluster.NodeType) map[int]string {
	far := make(map[int]string)
	for _, n := range t.Nearest() {
		if n.Class.Type != cluster.SYS || len(n.NICs) == 0 {
			continue
		}
		far[n.GPU] = "across sockets"
		if s := t.Above(n.GPU, cluster.Socket); s >= 0 && s == t.Above(n.NICs[0], cluster.Socket) {
			far[n.GPU] = "across NUMA"
		}
	}
	return far
}

func (p *panel) nicTexts(nics []int) []string {
	dev := &p.t.Devices[nics[0]]
	texts := []string{p.titles[nics[0]]}
	if len(nics) > 1 {
		texts[0] = fmt.Sprintf("%d × NIC", len(nics))
		if dev.NIC != nil && dev.NIC.Kind != "" {
			texts[0] = fmt.Sprintf("%d × %s", len(nics), netName(dev.NIC.Kind))
		}
	}
	kind, rate := shortModel(dev.Model.Value), nicRateText(dev)
	if kind == "" && dev.NIC != nil {
		kind = netName(dev.NIC.Kind)
	}
	if strings.HasSuffix(texts[0], kind) {
		kind = ""
	}
	if len(nics) > 1 && rate != "" {
		rate += " each"
	}
	return append(texts, kind, rate)
}

// nicRateText is the rate of a NIC over all its ports, and what is wrong with it.
func nicRateText(dev *cluster.Device) string {
	if dev.NIC == nil {
		return ""
	}
	if nicDown(dev) {
		return "down"
	}
	r := dev.NIC.Rate()
	if !r.Known() {
		return ""
	}
	up := 0
	for _, port := range dev.NIC.Ports {
		if port.State != cluster.Down && port.Rate.Known() {
			up++
		}
	}
	if up > 1 {
		return fmt.Sprintf("%d ports, %s", up, r.Value.Bits())
	}
	return r.Value.Bits()
}

// nicDown reports whether every port of a NIC is down.
func nicDown(dev *cluster.Device) bool {
	if dev.NIC == nil || len(dev.NIC.Ports) == 0 {
		return false
	}
	for _, port := range dev.NIC.Ports {
		if port.State != cluster.Down {
			return false
		}
	}
	return true
}

// drawCPUs paints sockets, NUMA domains and the links between sockets.
func (p *panel) drawCPUs(pic *picture) {
	for _, d := range p.t.Of(cluster.Socket) {
		b := p.box[d]
		if b.w == 0 {
			continue
		}
		dev := &p.t.Devices[d]
		pic.Open("socket", dev.Name+" "+dev.Model.Value)
		pic.about(deviceKey(p.host, p.t, d))
		pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: sockFill, Stroke: cpuLine})
		ty := svg.Type{Size: 11, Fill: smpBrown, Anchor: svg.Middle}
		label := "Socket " + strings.TrimPrefix(dev.Name, "socket")
		if m := shortModel(dev.Model.Value); m != "" {
			label += " · " + m
		}
		pic.Text(b.mid(), b.bottom()-8, svg.Fit(label, ty, b.w-8), ty)
		pic.Close()
	}
	p.drawSMP(pic)
	for _, d := range p.t.Of(cluster.NUMA) {
		b := p.box[d]
		if b.w == 0 {
			continue
		}
		dev := &p.t.Devices[d]
		pic.Open("numa", dev.Name)
		pic.about(deviceKey(p.host, p.t, d))
		pic.Rect(b.x, b.y, b.w, b.h, 4, svg.Paint{Fill: cpuFill, Stroke: cpuLine})
		texts := []string{domainTitle(p.t, d)}
		if dev.CPU != nil {
			if dev.CPU.Cores != "" {
				texts = append(texts, svg.Wrap("cores "+shortCores(dev.CPU.Cores, 60), svg.Type{Size: boxType}, b.w-8, 2)...)
			}
			if dev.CPU.Memory.Known() {
				texts = append(texts, memory(dev.CPU.Memory.Value))
			}
		}
		pic.lines(b, boxType, ink, texts...)
		pic.Close()
	}
}

// drawSMP paints the links between neighbouring sockets. All domains of a host
// are joined with each other; drawing each of those lines would say less.
func (p *panel) drawSMP(pic *picture) {
	prev := -1
	for _, d := range p.t.Of(cluster.NUMA) {
		if p.box[d].w == 0 {
			continue
		}
		if prev >= 0 && p.packageOf(prev) != p.packageOf(d) {
			if i := p.smpLink(prev, d); i >= 0 {
				p.drawSMPLine(pic, i, p.outer(prev), p.outer(d))
			}
		}
		prev = d
	}
}

// packageOf is the socket of a NUMA domain, or the domain itself without one.
func (p *panel) packageOf(numa int) int {
	if s := p.t.Above(numa, cluster.Socket); s >= 0 {
		return s
	}
	return numa
}

func (p *panel) outer(numa int) box { return p.box[p.packageOf(numa)] }

// smpLink finds the link between two sockets' domains, -1 when there is none.
func (p *panel) smpLink(a, b int) int {
	return slices.IndexFunc(p.t.Links, func(l cluster.Link) bool {
		return l.Kind == cluster.SMP && (l.A == a && l.B == b || l.A == b && l.B == a)
	})
}

func (p *panel) drawSMPLine(pic *picture, link int, a, b box) {
	l := &p.t.Links[link]
	pic.note("smp")
	y := p.numaY + numaH/2
	paint := linkPaint(l)
	pic.Open("link smp", linkTip(p.t, l))
	pic.about(linkKey(p.host, link))
	pic.Line(a.right(), y, b.x, y, paint)
	pic.Close()
	mid := (a.right() + b.x) / 2
	ty := svg.Type{Size: smallType, Fill: smpBrown, Anchor: svg.Middle}
	room := b.x - a.right() - 2
	pic.Text(mid, y-6-paint.Width/2, svg.Fit("CPU link", ty, room), ty)
	if l.Rate.Known() {
		pic.Text(mid, y+11+paint.Width/2, svg.Fit(l.Rate.Value.String(), ty, room), ty)
	}
}

// linkTip is what a link says when pointed at.
func linkTip(t *cluster.NodeType, l *cluster.Link) string {
	var f fieldList
	f.link(l)
	return deviceName(t, l.A) + " – " + deviceName(t, l.B) + ": " + strings.Join(f.texts(style{}), ", ")
}

// deviceKey is what a page knows a device of a host by; empty where a node is drawn for its kind.
func deviceKey(host string, t *cluster.NodeType, d int) string {
	if host == "" {
		return ""
	}
	return "device/" + host + "/" + t.Devices[d].Name
}

// linkKey is what a page knows a link inside a host by.
func linkKey(host string, link int) string {
	if host == "" {
		return ""
	}
	return fmt.Sprintf("link/%s/%d", host, link)
}

// namesOf lists devices by their names in the model.
func namesOf(t *cluster.NodeType, ids []int) []string {
	out := make([]string, len(ids))
	for i, d := range ids {
		out[i] = t.Devices[d].Name
	}
	return out
}

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
