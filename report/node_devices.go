package report

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

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
