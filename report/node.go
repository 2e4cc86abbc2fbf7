package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// Sizes of a node's parts.
const (
	gutter    = 16.0 // beside a GPU, for the link of the NIC above it
	shelfW    = 1420.0
	cableTop  = 16.0
	sharedH   = 86.0 // a NIC box with room to say who shares it
	sharedW   = 122.0
	secondGap = 14.0 // between NVSwitches and those of a second level
	maxTrays  = 18   // that are all drawn; of more, the first few
)

// panel is one node drawn in full. Rows from top to bottom: NICs, NVLink, GPUs,
// PCIe switches, CPUs; the network is above it. What hangs on one switch, one NUMA domain, one socket stands side by
// side. Trays that are too many for one shelf stand on several, below each other.
type panel struct {
	t           *cluster.NodeType
	hosts       []int  // that are like it
	host        string // whose node it is, for what is chosen on a page
	title, note string
	small       bool                   // shows its NICs and GPUs by their numbers alone
	stubs       bool                   // NICs end in a stub, because the network is drawn elsewhere
	ends        map[int]string         // NIC → where its cable leads
	share       map[int]*cluster.Share // of GPUs, by NIC
	far         map[int]string         // GPU → what lies between it and its nearest NIC
	fast        []*cluster.FastSet
	second      []int // links of NVSwitches to those of a second level
	titles      []string

	of    [][]int // per device: what hangs on it
	up    []int   // per device: its link to what holds it
	cols  []*column
	span  [][]*column // per device: those that it and everything on it take
	depth []int       // PCIe switches between a device and the CPU
	deep  int         // rows of PCIe switches
	trays [][]*column

	frame box
	box   []box // per device; zero when it is not drawn

	gpuW, gap, socketGap float64
	barH                 float64                  // of an NVSwitch
	high, at             map[cluster.Kind]float64 // of the boxes of a kind: height, and place from the top of their shelf
	shelf                float64                  // its height
}

// column is a place for one GPU and, above it, one NIC box; either may be absent.
type column struct {
	gpu  int   // -1 none
	nics []int // several when equal NICs are drawn as one stack
	tray int
	x, w float64
	y    float64 // top of its shelf

	before, after float64 // room beside it
}

// newPanel deals the devices of a kind of node into columns; it shows what the first of its hosts has.
func newPanel(c *cluster.Cluster, t *cluster.NodeType, hosts []int) *panel {
	p := &panel{
		t: t, hosts: hosts, title: t.Name, stubs: len(c.Network.Switches) > 0, share: map[int]*cluster.Share{},
		fast:   t.FastSets(),
		second: t.SwitchLinks(), titles: t.Titles(), far: farGPUs(t), up: t.Uplinks(),
		span: make([][]*column, len(t.Devices)), depth: make([]int, len(t.Devices)),
		gpuW: 90, gap: 34, socketGap: 78, barH: 26, at: map[cluster.Kind]float64{}, high: map[cluster.Kind]float64{
			cluster.NIC: 56, cluster.GPU: 70, cluster.PCISwitch: 26, cluster.RootComplex: 8, cluster.NUMA: 58,
			cluster.Socket: 88,
		},
	}
	for _, s := range t.Shares() {
		for _, nic := range s.NICs {
			p.share[nic] = &s
		}
	}
	if n := len(hosts); n > 1 {
		p.title += fmt.Sprintf("  × %d", n)
		p.note = hostList(c.NamesOf(hosts), 90)
	} else if n == 1 {
		p.host, p.note = c.Hosts[hosts[0]].Name, t.Name
		p.title = cmp.Or(p.host, t.Name)
	}
	if len(hosts) > 0 {
		p.ends = cableEnds(c, hosts[0], len(hosts) > 1)
	}
	p.note += when(t.Tree == cluster.Assumed, "  (PCIe tree assumed)")
	var top []int
	p.of, top = t.Children()
	p.group(top, 0)
	// A GPU or NIC that hangs on something unusual (on another GPU) still gets a
	// column of its own.
	for _, d := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		if len(p.span[d]) == 0 {
			p.group([]int{d}, 0)
		}
	}
	p.sizes()
	return p
}

// cableEnds says where the cable of each NIC of a host leads: to which switch, or, of a host that stands for others, to
// which rail.
func cableEnds(c *cluster.Cluster, host int, others bool) map[int]string {
	routes, to := cluster.NewRoutes(c), make(map[int]string)
	for _, nic := range c.TypeOf(host).Of(cluster.NIC) {
		id, _ := routes.Leaf(host, nic)
		if id < 0 {
			continue
		}
		if to[nic] = c.Network.Switches[id].Name; others {
			rail := c.Network.Switches[id].Rail
			to[nic] = when(rail >= 0, fmt.Sprintf("rail %d", rail))
		}
	}
	return to
}

// group gives what hangs on the same thing columns, one after the other. NICs, also those alone on their root
// complexes, stand above the GPUs among them, or beside them where that leaves some without a GPU below.
func (p *panel) group(ids []int, depth int) {
	var nics, roots []int
	var free []*column
	from := len(p.cols)
	for _, d := range ids {
		switch kind, on := p.t.Devices[d].Kind, p.of[d]; {
		case kind == cluster.NIC:
			nics = append(nics, d)
		case kind == cluster.RootComplex && len(on) == 1 && p.t.Devices[on[0]].Kind == cluster.NIC:
			nics, roots = append(nics, on[0]), append(roots, d)
		case kind == cluster.GPU:
			p.span[d] = p.column(d, d)
		case kind != cluster.NVSwitch:
			p.container(d, depth)
		}
	}
	for _, c := range p.cols[from:] {
		if c.gpu >= 0 && len(c.nics) == 0 {
			free = append(free, c)
		}
	}
	stacks := p.stacks(nics, len(free))
	for i, stack := range stacks {
		var at []*column
		if len(stacks) <= len(free) {
			at = free[i : i+1]
		} else {
			at = p.column(-1, stack[0])
		}
		at[0].nics = stack
		for _, n := range stack {
			p.span[n] = at
		}
	}
	for _, d := range roots {
		p.span[d] = p.span[p.of[d][0]]
	}
}

// column adds one for a GPU, or -1 for none, on the tray of a device.
func (p *panel) column(gpu, on int) []*column {
	p.cols = append(p.cols, &column{gpu: gpu, tray: p.t.Devices[on].Tray})
	return p.cols[len(p.cols)-1:]
}

func (p *panel) container(d, depth int) {
	from, below, kind := len(p.cols), depth, p.t.Devices[d].Kind
	p.depth[d] = depth
	if kind == cluster.PCISwitch {
		below = depth + 1
	}
	p.group(p.of[d], below)
	// A NUMA domain with nothing on it still exists; an empty PCIe switch has
	// nothing to tell here.
	if len(p.cols) == from && (kind == cluster.NUMA || kind == cluster.Socket) {
		p.column(-1, d)
	}
	if p.span[d] = p.cols[from:]; len(p.span[d]) > 0 {
		p.deep = max(p.deep, below)
	}
}

// stacks deals NICs into boxes: one each, or, where there are several equal ones
// for every GPU (four EFA cards a GPU), that many in a box.
func (p *panel) stacks(nics []int, gpus int) [][]int {
	per := 1
	switch {
	case gpus > 0 && len(nics) > gpus && len(nics)%gpus == 0:
		per = len(nics) / gpus
	case gpus == 0 && len(nics) > 4:
		per = len(nics)
	}
	if slices.ContainsFunc(nics, func(n int) bool { return p.nicLook(n) != p.nicLook(nics[0]) }) {
		per = 1
	}
	return slices.Collect(slices.Chunk(nics, per))
}

// nicLook is equal for NICs that look the same in the picture.
func (p *panel) nicLook(d int) string {
	dev := &p.t.Devices[d]
	look := dev.Model.Value + nicRateText(dev) + nicKind(dev)
	if up := p.up[d]; up >= 0 {
		look += linkName(&p.t.Links[up]) + trainedLow(&p.t.Links[up])
	}
	return look
}

// sizes are those of boxes, smaller in a node of many trays, and of rows from the top of a shelf.
func (p *panel) sizes() {
	for i, c := range p.cols {
		if i == 0 || c.tray != p.cols[i-1].tray {
			p.trays = append(p.trays, nil)
		}
		last := &p.trays[len(p.trays)-1]
		*last = append(*last, c)
	}
	if more := len(p.trays) - 4; len(p.trays) > maxTrays {
		p.note += fmt.Sprintf("  and %d more trays, not drawn", more)
		p.trays = p.trays[:4]
		p.cols = slices.Concat(p.trays...)
		for d, cols := range p.span {
			if len(cols) > 0 && !slices.Contains(p.cols, cols[0]) {
				p.span[d] = nil
			}
		}
	}
	if len(p.trays) > 1 {
		p.gpuW, p.gap, p.socketGap, p.barH = 68, 14, 30, 18
		p.high[cluster.GPU], p.high[cluster.NIC], p.high[cluster.NUMA], p.high[cluster.Socket] = 26, 24, 32, 0
	}
	for _, s := range p.share {
		if s.Crowded() {
			p.high[cluster.NIC] = sharedH
		}
	}
	if len(p.far) > 0 {
		p.high[cluster.GPU] += 14
	}
	for kind := range p.high {
		if p.t.Count(kind) == 0 {
			p.high[kind] = 0
		}
	}
	top, band := pad, 0.0 // the room between NICs and GPUs
	if p.stubs {
		top += cableTop
	} else if len(p.trays) > 1 {
		top += 8 // for the name of a tray
	}
	if p.high[cluster.NIC] > 0 {
		band = p.gap
	}
	for _, s := range p.fast {
		need := 2*p.gap - 12 + p.barH
		if s.Via < 0 {
			need = min(128, 86+6*float64(s.Pairs(p.t)))
		}
		band = max(band, need)
	}
	if len(p.second) > 0 {
		band += p.barH + secondGap
	}
	for _, row := range []struct {
		kind  cluster.Kind
		rows  int // of switches, of which the nearest to the CPU is in the lowest
		below float64
	}{
		{cluster.NIC, 1, band},
		{cluster.GPU, 1, p.gap},
		{cluster.PCISwitch, p.deep, p.gap},
		{cluster.RootComplex, 1, 0},
		{cluster.NUMA, 0, 0},
	} {
		p.at[row.kind] = top
		top += float64(row.rows) * (p.high[row.kind] + row.below)
	}
	p.at[cluster.Socket] = top - 4
	p.shelf = top + max(p.high[cluster.NUMA], p.high[cluster.Socket]) + 4
	if len(p.trays) > 1 {
		p.shelf += 10
	}
}

// lay places everything, with the panel's corner at a place: columns from left to right, with more room where a switch,
// a NUMA domain or a socket ends.
func (p *panel) lay(x, y float64) {
	for d, cols := range p.span {
		room := 8.0
		switch kind := p.t.Devices[d].Kind; {
		case kind == cluster.Socket, kind == cluster.NUMA && p.t.Devices[d].Parent < 0:
			room = p.socketGap
		case kind == cluster.NUMA:
			room = 20
		case kind == cluster.PCISwitch, kind == cluster.RootComplex:
			room = 12
		}
		if n := len(cols); n > 0 {
			cols[0].before, cols[n-1].after = max(cols[0].before, room), max(cols[n-1].after, room)
		}
	}
	left, wide, after := x+captionW+2*pad, 0.0, 8.0
	for _, c := range p.cols {
		switch c.w = p.gpuW; {
		case c.gpu < 0 && p.high[cluster.NIC] == sharedH:
			c.w = sharedW
		case c.gpu >= 0 && len(c.nics) > 0:
			c.w += gutter
		}
		c.before, after = max(c.before, after), c.after
		wide += c.w + c.before
	}
	each := len(p.trays) // on a shelf
	if each > 1 {
		least := int(math.Ceil(wide / shelfW))
		rows := least
		for rows < 2*least && each%rows > 0 { // full ones where that can be had
			rows++
		}
		each = (each + rows - 1) / rows
		left += 2 * pad // for the line that joins the shelves
	}
	at, top, right := left, y, left
	for k, tray := range p.trays {
		if k > 0 && k%each == 0 {
			at, top = left, top+p.shelf
		}
		for _, c := range tray {
			if at > left {
				at += c.before
			}
			c.x, c.y = at, top
			at += c.w
			right = max(right, at)
		}
	}
	p.frame = box{x, y, max(right+2*pad-x, 240), top + p.shelf + 34 - y}
	p.placeBoxes()
}

// over is the place of columns on their shelf.
func (p *panel) over(cols []*column) box {
	first, last := cols[0], cols[len(cols)-1]
	return box{first.x, first.y, last.x + last.w - first.x, p.shelf}
}

func (p *panel) placeBoxes() {
	p.box = make([]box, len(p.t.Devices))
	for d, cols := range p.span {
		if len(cols) == 0 {
			continue
		}
		kind, first, last, b := p.t.Devices[d].Kind, cols[0], cols[len(cols)-1], p.over(cols)
		b.y, b.h = b.y+p.at[kind], p.high[kind]
		if last.gpu >= 0 && len(last.nics) > 0 && !p.within(last.nics[0], d) {
			b.w -= gutter // the NIC above hangs on something further down
		}
		switch {
		case kind == cluster.RootComplex && first.gpu >= 0 && !p.within(first.gpu, d):
			b.x, b.w = b.x+p.gpuW+4, b.w-p.gpuW-4 // so does the GPU
		case kind == cluster.PCISwitch:
			b.y += float64(p.deep-1-p.depth[d]) * (b.h + p.gap)
		case kind == cluster.Socket:
			b.x, b.w = b.x-10, b.w+20
		}
		p.box[d] = b
	}
}

// within reports whether a device is another or hangs on it, however far below it.
func (p *panel) within(d, holder int) bool {
	for d >= 0 && d != holder {
		d = p.t.Devices[d].Parent
	}
	return d >= 0
}

// key is what a page knows a part of the node by; nothing where the node is drawn for its kind.
func (p *panel) key(what string, part any) string {
	return when(p.host != "", fmt.Sprintf("%s/%s/%v", what, p.host, part))
}

// openLink begins the group of a link, with what it says when pointed at.
func (p *panel) openLink(pic *picture, i int) *cluster.Link {
	l := &p.t.Links[i]
	var f fieldList
	f.link(l)
	pic.note(l.Kind.String())
	pic.Open("link "+l.Kind.String(),
		p.t.NameOf(l.A)+" – "+p.t.NameOf(l.B)+": "+strings.Join(f.texts(style{}), ", "), p.key("link", i))
	return l
}

// openDevice begins the group of a device.
func (p *panel) openDevice(pic *picture, class string, d int, names ...string) {
	dev := &p.t.Devices[d]
	pic.Open(class, strings.TrimSpace(p.titles[d]+" "+dev.Model.Value+" "+string(dev.PCI)), p.key("device", dev.Name),
		names...)
}

// draw paints the panel: containers, links, boxes, words.
func (p *panel) draw(pic *picture) {
	pic.Open("node", p.title, "")
	pic.pile(p.frame, len(p.hosts), 10, brush{Fill: panelFill, Stroke: panelLine})
	p.drawTrays(pic)
	p.drawKinds(pic, deviceLooks[:2])
	p.drawSMP(pic)
	p.drawFast(pic)
	p.drawTreeLinks(pic)
	p.drawStubs(pic)
	p.drawKinds(pic, deviceLooks[2:])
	p.drawCaptions(pic)
	title, note := font{Size: 15, Fill: ink, Bold: true}, font{Size: 12, Fill: inkSoft}
	text := svg.FitEnds(p.title, title, p.frame.w-2*pad)
	pic.Text(p.frame.x+pad, p.frame.bottom()-14, text, title)
	used := svg.TextWidth(text, title) + 2*pad
	pic.say(p.frame.x+used, p.frame.bottom()-14, p.frame.w-used-pad, strings.TrimSpace(p.note), note)
	pic.Close()
}

// drawTrays paints the trays of a node that has several.
func (p *panel) drawTrays(pic *picture) {
	for _, cols := range p.trays {
		if len(p.trays) == 1 {
			return
		}
		b, name := p.over(cols), fmt.Sprintf("tray %d", cols[0].tray)
		b = box{b.x - pad, b.y + 4, b.w + 2*pad, b.h - 8}
		pic.Open("tray", name, "")
		pic.rect(b, 6, brush{Fill: paper, Stroke: trayLine})
		pic.Text(b.x+4, b.y+10, name, font{Size: 9, Fill: inkSoft, Bold: true})
		pic.Close()
	}
}

// drawStubs paints the beginning of the cables of NICs whose switches are drawn elsewhere.
func (p *panel) drawStubs(pic *picture) {
	for _, c := range p.cols {
		if !p.stubs || len(c.nics) == 0 {
			continue
		}
		b, dev, top := p.box[c.nics[0]], &p.t.Devices[c.nics[0]], c.y-4
		paint := brush{Stroke: netViol, Width: unknownStroke}
		if dev.NIC != nil {
			paint.Width = stroke(dev.NIC.Rate().Value)
		}
		if len(p.trays) > 1 {
			top += 8
		}
		pic.note("network")
		pic.Open("link network", "cable of "+deviceNames(p.titles, c.nics),
			p.key("port", slices.Index(p.t.Of(cluster.NIC), c.nics[0])), namesOf(p.t, c.nics)...)
		pic.Line(b.mid(), top, b.mid(), b.y, paint)
		ty := font{Size: smallType, Fill: netViol}
		pic.Text(b.mid()+6, c.y+20, svg.FitEnds(p.ends[c.nics[0]], ty, min(72, c.w-10)), ty)
		pic.Close()
	}
}

// drawCaptions says once, on the left of each row, what all of its boxes and
// links have in common.
func (p *panel) drawCaptions(pic *picture) {
	t := p.t
	row := func(kind cluster.Kind) float64 { return p.at[kind] + p.high[kind]/2 }
	y := row(cluster.PCISwitch)
	if p.deep == 0 {
		y -= p.gap/2 - 4
	}
	sockets, domains := t.Count(cluster.Socket), t.Count(cluster.NUMA)
	list := []caption{
		{row(cluster.NIC), netViol, deviceCaption(t, cluster.NIC)},
		{row(cluster.GPU), nvGreen, deviceCaption(t, cluster.GPU)},
		{y, pcieBlue, p.pcieCaption()},
		{p.at[cluster.NUMA] + 24, smpBrown, nonEmpty(when(sockets > 0, words.Plural(sockets, "socket")),
			when(domains > 0, words.Plural(domains, "NUMA domain")))},
	}
	if len(p.fast) > 0 {
		text := fastCaption(t, p.fast[0])
		if len(p.second) > 0 {
			text = append(text, fmt.Sprintf("second level: %s per NVSwitch", t.Links[p.second[0]].Rate.Value))
		} else if len(p.fast) > 1 {
			text = append(text, fastCaption(t, p.fast[1])...)
		}
		list = append(list, caption{
			(p.at[cluster.NIC]+p.high[cluster.NIC]+p.at[cluster.GPU])/2 + 4, linkColor(p.fast[0].Kind), text,
		})
	}
	slices.SortStableFunc(list, func(a, b caption) int { return cmp.Compare(a.y, b.y) })
	end := p.frame.y
	for _, c := range list {
		c.y += p.frame.y
		end = c.draw(pic, p.frame.x+pad, end+4)
	}
}

// deviceCaption says what the GPUs or NICs of a node have in common; nothing where there are none.
func deviceCaption(t *cluster.NodeType, kind cluster.Kind) []string {
	ids := t.Of(kind)
	if len(ids) == 0 {
		return nil
	}
	model := sameOf(t, ids, func(d *cluster.Device) string { return shortModel(d.Model.Value) })
	count := words.Plural(len(ids), strings.ToUpper(kind.String()))
	figure := sameOf(t, ids, func(d *cluster.Device) string { return cmp.Or(gpuMemory(d), nicRateText(d)) })
	return nonEmpty(cmp.Or(when(model != "", fmt.Sprintf("%d × %s", len(ids), model)), count), sameOf(t, ids, nicKind),
		figure+when(figure != "" && figure != "down" && len(ids) > 1, " each"))
}

func gpuMemory(d *cluster.Device) string {
	if d.GPU == nil || !d.GPU.Memory.Known() {
		return ""
	}
	return memory(d.GPU.Memory.Value)
}

// nicKind is the network of a NIC.
func nicKind(d *cluster.Device) string {
	if d.NIC == nil {
		return ""
	}
	return netName(d.NIC.Kind)
}

// sameOf is what a function says of all of some devices, or nothing where that differs.
func sameOf(t *cluster.NodeType, ids []int, say func(*cluster.Device) string) string {
	text := say(&t.Devices[ids[0]])
	for _, d := range ids {
		text = when(text == say(&t.Devices[d]), text)
	}
	return text
}

// pcieCaption names the usual link of GPUs, and of NICs and switches where theirs
// differs.
func (p *panel) pcieCaption() (text []string) {
	for _, k := range []struct {
		kind cluster.Kind
		name string
	}{{cluster.GPU, "GPU: "}, {cluster.NIC, "NIC: "}, {cluster.PCISwitch, "up: "}} {
		var links []string
		for _, d := range p.t.Of(k.kind) {
			if p.up[d] < 0 || p.box[d].w == 0 {
				continue
			}
			if l := &p.t.Links[p.up[d]]; l.Kind == cluster.PCIe || l.Kind == cluster.C2C {
				links = append(links, linkName(l)+when(l.Rate.Known(), ", "+l.Rate.Value.String()+assumed(l.Rate.Origin)))
			}
		}
		switch usual := mostly(links); {
		case usual == "":
		case text == nil:
			text = []string{usual}
		case usual != text[0]:
			text = append(text, k.name+usual)
		}
	}
	return text
}

// assumed marks a figure that nobody read.
func assumed(o cluster.Origin) string { return when(o == cluster.Assumed, " assumed") }

func nonEmpty(texts ...string) (list []string) {
	for _, t := range texts {
		if t != "" {
			list = append(list, t)
		}
	}
	return list
}

// deviceLook is how devices of a kind are painted.
type deviceLook struct {
	kind              cluster.Kind
	class, fill, line string
	texts             func(p *panel, d int) []string
}

// deviceLooks are in the order in which kinds are painted, those on which links end first.
var deviceLooks = []deviceLook{
	{cluster.Socket, "socket", sockFill, cpuLine, (*panel).socketTexts},
	{cluster.NUMA, "numa", cpuFill, cpuLine, (*panel).numaTexts},
	{cluster.PCISwitch, "pci", pcieFill, pcieBlue, func(*panel, int) []string { return []string{"PCIe switch"} }},
	{cluster.RootComplex, "root", cpuLine, cpuLine, func(*panel, int) []string { return nil }},
	{cluster.GPU, "gpu", nvFill, nvGreen, (*panel).gpuTexts},
	{cluster.NIC, "nic", netFill, netViol, (*panel).nicTexts},
}

// drawKinds paints the boxes of some kinds of devices.
func (p *panel) drawKinds(pic *picture, looks []deviceLook) {
	for _, k := range looks {
		for i, d := range p.t.Of(k.kind) {
			b, like := p.box[d], []int{d}
			if b.w*b.h == 0 {
				continue
			}
			if k.kind == cluster.NIC && !p.small {
				if like = p.span[d][0].nics; like[0] != d {
					continue // in the stack of another
				}
			}
			class, paint := p.marked(pic, d, k)
			p.openDevice(pic, class, d, namesOf(p.t, like)...)
			pic.rect(b, 6, paint)
			if k.kind == cluster.Socket {
				b.y, b.h = b.bottom()-24, 24 // below its NUMA domains
			}
			if p.small {
				pic.lines(b, 9, ink, fmt.Sprint(i))
			} else {
				pic.lines(b, boxType, ink, k.texts(p, d)...)
			}
			pic.Close()
		}
	}
}

// marked is how one device is painted: by its kind, and by what is to be known about it.
func (p *panel) marked(pic *picture, d int, k deviceLook) (class string, paint brush) {
	class, paint = k.class, brush{Fill: k.fill, Stroke: k.line, Width: 1.3}
	share, shared := p.share[d]
	switch {
	case p.t.Devices[d].NIC.Down():
		paint.Fill, paint.Stroke, paint.Dash = redBg, red, degradedDashes
	case p.far[d] != "":
		pic.note("far")
		paint.Stroke, paint.Width, paint.Dash = amber, 2, degradedDashes
	case shared && share.Crowded():
		class = "nic shared"
		pic.note("shared")
		paint.Fill, paint.Stroke, paint.Width = amberBg, amber, 2.2
	case k.kind == cluster.NIC && !shared && len(p.share) > 0:
		pic.note("idle")
		paint.Fill, paint.Stroke = idleFill, idleLine
	case k.kind == cluster.RootComplex:
		pic.note("root")
	}
	return class, paint
}

func (p *panel) gpuTexts(d int) []string {
	dev := &p.t.Devices[d]
	model, mem := shortModel(dev.Model.Value), gpuMemory(dev)
	if mem != "" {
		model = modelOnly(dev.Model.Value)
	}
	texts := append([]string{gpuNumber.ReplaceAllString(dev.Name, "GPU $1")},
		svg.Wrap(model, font{Size: boxType}, p.gpuW-8, 2)...)
	return append(texts, mem, p.far[d])
}

var gpuNumber = lazyre.New(`^gpu(.+)`)

func shareTexts(s *cluster.Share) []string {
	who := fmt.Sprintf("shared by %d GPUs", len(s.GPUs))
	if len(s.NICs) > 1 {
		who = fmt.Sprintf("%d GPUs, %d NICs", len(s.GPUs), len(s.NICs))
	}
	return []string{who, when(s.Each.Known(), s.Each.Value.String()+" each")}
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

func (p *panel) nicTexts(d int) []string {
	dev, n := &p.t.Devices[d], len(p.span[d][0].nics)
	title, rate := p.titles[d], nicRateText(dev)
	if n > 1 {
		title = fmt.Sprintf("%d × %s", n, cmp.Or(nicKind(dev), "NIC"))
		rate += when(rate != "", " each")
	}
	model := cmp.Or(shortModel(dev.Model.Value), nicKind(dev))
	texts := []string{title, when(!strings.HasSuffix(title, model), model), rate}
	if s := p.share[d]; s != nil && s.Crowded() {
		texts = append(texts, shareTexts(s)...)
	}
	return texts
}

func (p *panel) socketTexts(d int) []string {
	dev := &p.t.Devices[d]
	name := "Socket " + strings.TrimPrefix(dev.Name, "socket")
	return []string{strings.Join(nonEmpty(name, shortModel(dev.Model.Value)), " · ")}
}

func (p *panel) numaTexts(d int) []string {
	texts, cpu := []string{p.t.DomainTitle(d)}, p.t.Devices[d].CPU
	if cpu != nil && cpu.Cores != "" {
		texts = append(texts, svg.Wrap("cores "+cluster.ShortCores(cpu.Cores, 60), font{Size: boxType}, p.box[d].w-8, 2)...)
	}
	if cpu != nil && cpu.Memory.Known() {
		texts = append(texts, memory(cpu.Memory.Value))
	}
	return texts
}

// nicRateText is the rate of a NIC over all its ports, and what is wrong with it.
func nicRateText(dev *cluster.Device) string {
	switch {
	case dev.NIC.Down():
		return "down"
	case dev.NIC == nil || !dev.NIC.Rate().Known():
		return ""
	}
	up := 0
	for _, port := range dev.NIC.Ports {
		if port.State != cluster.Down && port.Rate.Known() {
			up++
		}
	}
	return when(up > 1, fmt.Sprintf("%d ports, ", up)) + dev.NIC.Rate().Value.Bits()
}

// drawSMP paints the links between neighbouring sockets, one for all that join the same two. All domains of a host
// are joined with each other; drawing each of those lines would say less.
func (p *panel) drawSMP(pic *picture) {
	outer := func(numa int) box {
		if s := p.t.Above(numa, cluster.Socket); s >= 0 && p.box[s].h > 0 {
			return p.box[s]
		}
		return p.box[numa]
	}
	seen := make(map[box]bool) // the left one
	for i, l := range p.t.Links {
		a, b := outer(l.A), outer(l.B)
		if a.x > b.x {
			a, b = b, a
		}
		room := b.x - a.right()
		if l.Kind != cluster.SMP || a.w*b.w == 0 || a.y != b.y || room < 4 || room > p.socketGap || seen[a] {
			continue
		}
		seen[a] = true
		p.openLink(pic, i)
		paint, mid, y := linkPaint(&l), a.right()+room/2, a.y+p.high[cluster.NUMA]/2+4
		pic.Line(a.right(), y, b.x, y, paint)
		if ty := (font{Size: smallType, Fill: smpBrown, Anchor: svg.Middle}); room > 50 {
			pic.say(mid, y-6-paint.Width/2, room, "CPU link", ty)
			pic.say(mid, y+11+paint.Width/2, room, when(l.Rate.Known(), l.Rate.Value.String()), ty)
		}
		pic.Close()
	}
}

// namesOf lists devices by their names in the model.
func namesOf(t *cluster.NodeType, ids []int) []string {
	out := make([]string, len(ids))
	for i, d := range ids {
		out[i] = t.Devices[d].Name
	}
	return out
}

// drawTreeLinks paints the PCIe tree: each device to what holds it, straight down, with what is wrong with the link.
func (p *panel) drawTreeLinks(pic *picture) {
	for d, cols := range p.span {
		h, b := p.t.Devices[d].Parent, p.box[d]
		if h < 0 || len(cols) == 0 || p.box[h].y <= b.y || p.up[d] < 0 || p.t.Links[p.up[d]].Kind == cluster.OnDie {
			continue
		}
		c := cols[0]
		if slices.Index(c.nics, d) > 0 { // stacked on the first
			continue
		}
		x, room := b.mid(), p.gpuW/2-3
		if p.t.Devices[d].Kind == cluster.NIC && c.gpu >= 0 {
			x, room = c.x+p.gpuW+gutter/2, room+gutter/2
		}
		end := p.box[h].y
		if p.t.Devices[h].Kind == cluster.Socket {
			end += 4
		}
		p.drawTreeLink(pic, p.up[d], box{x, b.bottom(), room, end - b.bottom()})
	}
}

// drawTreeLink paints a link on the left edge of a place, and a label in the room beside it.
func (p *panel) drawTreeLink(pic *picture, link int, at box) {
	l := p.openLink(pic, link)
	paint, ground := linkPaint(l), panelFill
	if len(p.trays) > 1 {
		ground = paper
	}
	// With a margin in the colour of what lies below, so that a crossing does not look like a joint.
	pic.Line(at.x, at.y, at.x, at.bottom(), brush{Stroke: ground, Width: paint.Width + 4})
	pic.Line(at.x, at.y, at.x, at.bottom(), paint)
	// What is wrong stands in the gap above the holder, on the left of the line; what is usual in the caption.
	label, low := strings.CutPrefix(trainedLow(l), "trained ")
	if low {
		pic.note("degraded")
	}
	ty := font{Size: smallType, Fill: red, Anchor: svg.End, Bold: true}
	lines := svg.Wrap(label, ty, at.w, 2)
	for i, s := range lines {
		pic.Text(at.x-paint.Width/2-3, at.bottom()-p.gap/2+4+(float64(i)-float64(len(lines)-1)/2)*11.5, s, ty)
	}
	pic.Close()
}

// drawFast paints NVLink and its like: bars for NVSwitches, with the GPUs on them and below those of a second level;
// arcs for direct links.
func (p *panel) drawFast(pic *picture) {
	low := p.gap - 6 + p.barH // from a GPU's top to that of its bar
	for _, s := range p.fast {
		if s.Via < 0 {
			p.drawArcs(pic, s)
			continue
		}
		bars := p.switchBars(s.GPUs, low)
		for _, b := range s.Bundles {
			for _, i := range b.Links {
				g := p.box[p.t.GPUEnd(&p.t.Links[i])]
				if g.w == 0 {
					continue
				}
				l := p.openLink(pic, i)
				pic.Line(g.mid(), g.y, g.mid(), g.y-low+p.barH, linkPaint(l))
				if len(s.Bundles) > 1 {
					pic.Text(g.mid()-8, g.y-6, shortLink(&b.Link), font{Size: smallType, Fill: nvGreen, Anchor: svg.End})
				}
				pic.Close()
			}
		}
		p.drawSwitch(pic, s.Via, bars)
	}
	var below []int
	for _, i := range p.second {
		one, other := p.t.Links[i].A, p.t.Links[i].B
		if p.box[one].w == 0 {
			one, other = other, one
		}
		if b := p.box[one]; b.w > 0 {
			pic.Line(b.mid(), b.y, b.mid(), b.y-secondGap, linkPaint(p.openLink(pic, i)))
			pic.Close()
			below = append(below, one)
		}
		if i == p.second[len(p.second)-1] && p.box[other].w == 0 {
			p.drawSwitch(pic, other, p.switchBars(below, p.barH+secondGap))
		}
	}
}

// switchBars are the bars of an NVSwitch so far above what hangs on it, one on each shelf.
func (p *panel) switchBars(on []int, above float64) []box {
	var bars []box
	for _, d := range on {
		b := p.box[d]
		if b.w == 0 {
			continue
		}
		k := slices.IndexFunc(bars, func(o box) bool { return o.y == b.y-above })
		if k < 0 {
			k = len(bars)
			bars = append(bars, box{b.x, b.y - above, b.w, p.barH})
		}
		left, right := min(bars[k].x, b.x), max(bars[k].right(), b.right())
		bars[k].x, bars[k].w = left, right-left
	}
	return bars
}

// drawSwitch paints the bars of an NVSwitch; a line on the left joins those of several shelves.
func (p *panel) drawSwitch(pic *picture, d int, bars []box) {
	if len(bars) == 0 {
		return
	}
	p.openDevice(pic, "nvswitch", d)
	text := bars[0]
	if last := bars[len(bars)-1]; len(bars) > 1 {
		spine := p.frame.x + captionW + pad
		pic.Rect(spine, text.y, 8, last.bottom()-text.y, 3, brush{Fill: nvGreen})
		for i := range bars {
			bars[i].w += bars[i].x - spine
			bars[i].x = spine
		}
	}
	for _, b := range bars {
		pic.rect(b, 5, brush{Fill: nvGreen})
	}
	p.box[d] = text
	// The words stand over the first of what hangs on it, where no link of a NIC crosses the bar.
	text.w = p.gpuW
	pic.lines(text, 10.5, onBar, "NVSwitch")
	pic.Close()
}

// drawArcs paints direct links between GPUs.
func (p *panel) drawArcs(pic *picture, s *cluster.FastSet) {
	var arcs []*wire
	var links []int
	seen := make(map[[2]*box]bool)
	for _, bundle := range s.Bundles {
		for _, i := range bundle.Links {
			l := &p.t.Links[i]
			a, b := &p.box[l.A], &p.box[l.B]
			if a.x > b.x {
				a, b = b, a
			}
			if pair := [2]*box{a, b}; !l.OneWay || !seen[pair] { // else it is the way back of a link drawn already
				seen[pair] = true
				// A link that differs by direction: something is wrong there.
				arcs, links = append(arcs, &wire{up: a, down: b, bad: l.OneWay}), append(links, i)
			}
		}
	}
	widest := fan(arcs)
	for k := range arcs {
		paint := linkPaint(p.openLink(pic, links[k]))
		if paint.Round = true; arcs[k].bad {
			pic.note("degraded")
			paint.Stroke, paint.Dash, paint.Round = red, degradedDashes, false
		}
		pic.arc(arcs[k], p.at[cluster.GPU]-p.at[cluster.NIC]-p.high[cluster.NIC]-22, widest, paint)
		pic.Close()
	}
}
