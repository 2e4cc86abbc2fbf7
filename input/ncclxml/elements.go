package ncclxml

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/tags"
	"busbar.dev/unit"
)

func newElement(name string) *element { return &element{Token: tags.Token{Name: name}} }

// set writes an attribute that is known.
func (e *element) set(key, value string) {
	if value != "" {
		e.Attrs = append(e.Attrs, tags.Attr{Key: key, Value: clean(value)})
	}
}

func (e *element) setInt(key string, v int) { e.set(key, strconv.Itoa(v)) }

func (e *element) addSub(s *element) { e.subs = append(e.subs, s) }

// size counts the elements from e down.
func (e *element) size() int {
	n := 1
	for _, s := range e.subs {
		n += s.size()
	}
	return n
}

// print writes the element as NCCL's dump does: one space between attributes,
// double quotes, two spaces of indentation a level.
func (e *element) print(out *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	out.WriteString(indent + "<" + e.Name)
	for _, a := range e.Attrs {
		fmt.Fprintf(out, " %s=\"%s\"", a.Key, a.Value)
	}
	if len(e.subs) == 0 {
		out.WriteString("/>\n")
		return
	}
	out.WriteString(">\n")
	for _, s := range e.subs {
		s.print(out, depth+1)
	}
	out.WriteString(indent + "</" + e.Name + ">\n")
}

// clean keeps a value inside its quotes and NCCL's length. NCCL knows no
// entities, so what would need one is dropped.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`"'<>&`, r) {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), maxValue)]
}

func (p *printer) system() (*element, error) {
	if err := p.plan(); err != nil {
		return nil, err
	}
	sys := newElement("system")
	sys.set("version", "1")
	if p.rccl {
		sys.Attrs[0].Value = "2"
	}
	sys.set("name", p.t.Name)
	numas := p.t.Of(cluster.NUMA)
	for _, n := range numas {
		if p.here(n) {
			sys.addSub(p.cpu(n, len(sys.subs)))
		}
	}
	if len(numas) == 0 { // nobody knows them
		e := newElement("cpu")
		e.set("numaid", "-1")
		p.children(e, p.below[len(p.t.Devices)])
		sys.addSub(e)
	}
	for i := range p.t.Devices {
		if d := &p.t.Devices[i]; p.here(i) && (d.Kind == cluster.GPU || d.Kind == cluster.NIC) {
			p.placed--
		}
	}
	if p.placed < 0 {
		return nil, fmt.Errorf("%d of its GPUs and NICs hang below no NUMA domain, host bridge or switch; the format needs one "+
			"for each", -p.placed)
	}
	if n := sys.size(); n > maxNodes {
		return nil, fmt.Errorf("%d elements; NCCL's parser holds %d", n, maxNodes)
	}
	return sys, nil
}

// cpu writes a NUMA domain. What nobody knows is left out: NCCL then looks.
func (p *printer) cpu(n, position int) *element {
	e := newElement("cpu")
	d := &p.t.Devices[n]
	id := d.Index
	if id < 0 && len(p.t.Of(cluster.NUMA)) > 1 {
		id = position
	}
	e.setInt("numaid", id)
	p.cpuInfo(e, d)
	p.children(e, p.below[n])
	return e
}

func (p *printer) cpuInfo(e *element, d *cluster.Device) {
	info := *cmp.Or(d.CPU, &cluster.CPUInfo{})
	socket := &cluster.CPUInfo{}
	if d.Parent >= 0 {
		socket = cmp.Or(p.t.Devices[d.Parent].CPU, socket)
	}
	if cores, err := board.ParseList(info.Cores); err == nil && len(cores.Mask()) <= maxValue {
		e.set("affinity", cores.Mask())
	}
	info.Arch = cmp.Or(info.Arch, socket.Arch)
	if info.Vendor == "" {
		info.Vendor, info.Family, info.Model = socket.Vendor, socket.Family, socket.Model
	}
	e.set("arch", info.Arch)
	e.set("vendor", info.Vendor)
	if info.Family != 0 || info.Model != 0 {
		e.setInt("familyid", info.Family)
		e.setInt("modelid", info.Model)
	}
}

// children writes what hangs on a cpu or a switch. NICs without a card share
// one nic element, for NCCL knows one of them per cpu.
func (p *printer) children(e *element, list []int) {
	var bare *element
	for _, d := range list {
		switch k := p.t.Devices[d].Kind; {
		case k == cluster.RootComplex:
			p.children(e, p.below[d])
		case k == cluster.NIC && p.virtual(d):
			if bare == nil {
				bare = newElement("nic")
			}
			p.nets(bare, d)
		case k == cluster.PCISwitch || k == cluster.GPU || k == cluster.NIC || k == cluster.KindUnknown:
			e.addSub(p.pci(d))
		}
	}
	if bare != nil {
		e.addSub(bare)
	}
}

func (p *printer) pci(i int) *element {
	d := &p.t.Devices[i]
	e := newElement("pci")
	e.set("busid", string(p.addr[i]))
	id := p.id(i)
	for k, part := range idParts(&id) {
		if *part != "" {
			e.set(idAttrs[k], "0x"+*part)
		}
	}
	if l := &p.up[i]; l.GTs > 0 {
		e.set("link_speed", fmt.Sprintf("%.1f GT/s PCIe", l.GTs))
	}
	if l := &p.up[i]; l.Lanes > 0 {
		e.setInt("link_width", l.Lanes)
	}
	switch d.Kind {
	case cluster.PCISwitch:
		p.children(e, p.below[i])
		for _, l := range p.out[i] {
			s := newElement("pcilink")
			s.set("target", string(p.addr[l.B]))
			e.addSub(s)
		}
	case cluster.GPU:
		p.placed++
		e.addSub(p.gpu(i))
	case cluster.NIC:
		nic := newElement("nic")
		p.nets(nic, i)
		if len(nic.subs) > 0 {
			e.addSub(nic)
		}
	}
	return e
}

// id is what the device answers on the bus, with a class that fits its kind
// where nobody read one, for NCCL needs it, or where what was read says that the
// device is another thing.
func (p *printer) id(i int) (id cluster.PCIID) {
	d := &p.t.Devices[i]
	if d.PCIID != nil {
		id = *d.PCIID
	}
	if said := classKind(id.Class); said != d.Kind && (said != cluster.KindUnknown || id.Class == "") {
		id.Class = ""
		switch {
		case d.Kind == cluster.PCISwitch:
			id.Class = "060400"
		case d.Kind == cluster.GPU && p.rccl:
			id.Class = "038000"
		case d.Kind == cluster.GPU:
			id.Class = "030200"
		case d.Kind == cluster.NIC && d.NIC != nil && d.NIC.Kind == cluster.InfiniBand:
			id.Class = "020700"
		case d.Kind == cluster.NIC:
			id.Class = "020000"
		}
	}
	return id
}

func (p *printer) gpu(i int) *element {
	d := &p.t.Devices[i]
	e := newElement("gpu")
	e.setInt("dev", p.dev[i])
	info := cmp.Or(d.GPU, &cluster.GPUInfo{})
	switch {
	case p.rccl:
		e.set("gcn", info.Arch)
	case info.SM > 0:
		e.setInt("sm", info.SM)
	}
	e.setInt("rank", p.dev[i]) // of a job that uses all GPUs of the host; NCCL puts in those of its own
	e.setTri("gdr", info.GDR)
	for _, l := range p.out[i] {
		e.addSub(p.gpuLink(l))
	}
	return e
}

// gpuLink writes a link from the GPU that reports it.
func (p *printer) gpuLink(l cluster.Link) *element {
	if l.Kind == cluster.C2C {
		e := newElement("c2c")
		n := max(l.Lanes, 1)
		e.setInt("bw", int(math.Round(float64(l.Rate.Value/unit.GBps)*1000/float64(n))))
		e.setInt("count", n)
		return e
	}
	e := newElement(l.Kind.String()) // nvlink, xgmi
	target, class := string(p.addr[l.B]), p.id(l.B).Class
	switch p.t.Devices[l.B].Kind {
	case cluster.NVSwitch:
		target, class = string(p.t.Devices[l.B].PCI), "068000"
		target = cmp.Or(target, hidden)
	}
	e.set("target", target)
	e.setInt("count", l.Lanes)
	e.set("tclass", "0x"+class)
	return e
}

func (e *element) setTri(key string, t cluster.Tri) {
	switch t {
	case cluster.Yes:
		e.set(key, "1")
	case cluster.No:
		e.set(key, "0")
	}
}

// ports lists what to write as nets: the ports that are not down, which NCCL
// does not list either, or one when only the NIC itself says something.
func (p *printer) ports(i int) []cluster.Port {
	d := &p.t.Devices[i]
	n := d.NIC
	if n != nil && len(n.Ports) > 0 {
		var up []cluster.Port
		for _, port := range n.Ports {
			if port.State != cluster.Down {
				up = append(up, port)
			}
		}
		return up
	}
	if d.Label != "" || n != nil && (n.GDR != cluster.Maybe || n.Reduction != cluster.Maybe) {
		return []cluster.Port{{Label: d.Label}}
	}
	return nil
}

// nets writes a NIC's ports. A name that nobody knows is made up; NCCL does not
// find such a net on the machine and drops it.
func (p *printer) nets(nic *element, i int) {
	d := &p.t.Devices[i]
	p.placed++
	for k, port := range p.ports(i) {
		e := newElement("net")
		label := cmp.Or(port.Label, d.Label)
		if label == "" {
			label = fmt.Sprintf("%s%s-%d", unnamed, d.Name, k)
		}
		e.set("name", label)
		e.setInt("dev", p.dev[i]+k)
		e.set("latency", "0")
		if port.Rate.Known() {
			e.setInt("speed", int(math.Round(port.Rate.Value.Gbps()*1000)))
		}
		if port.Num > 0 {
			e.setInt("port", port.Num)
		}
		if v, err := strconv.ParseUint(strings.TrimPrefix(port.GUID, "0x"), 16, 64); err == nil && v != 0 {
			e.set("guid", fmt.Sprintf("0x%x", bits.ReverseBytes64(v)))
		}
		if d.NIC != nil {
			e.setTri("gdr", d.NIC.GDR)
			e.setTri("coll", d.NIC.Reduction)
		}
		nic.addSub(e)
	}
}
