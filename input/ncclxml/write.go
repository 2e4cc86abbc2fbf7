package ncclxml

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// Limits of NCCL's parser: 2.21 and later hold 256 elements, releases up to 2.20
// hold 32 inside another. The first is refused beyond, the second has not been
// met by any machine.
const (
	maxValue = 254
	maxNodes = 255
)

// Write writes t, a node of one host, as a file for NCCL_TOPO_FILE, in RCCL's
// dialect when its GPUs are AMD's. madeUp is the PCI domain of the addresses that
// are made up because t has none for its GPUs: NCCL finds GPUs by address, so that
// such a file fits no machine as it is. (It finds NICs by name.) It is an error
// when the format cannot say what t is.
func Write(w io.Writer, t *cluster.NodeType) (madeUp string, err error) {
	if err := t.Check(); err != nil {
		return "", err
	}
	p := printer{t: t}
	root, err := p.system()
	if err != nil {
		return "", fmt.Errorf("node type %s as NCCL topology XML: %w", t.Name, err)
	}
	var out strings.Builder
	print(&out, root, 0)
	_, err = io.WriteString(w, out.String())
	return p.madeUp, err
}

// printer turns a node type into elements.
type printer struct {
	t      *cluster.NodeType
	lib    string        // that the file is for: NCCL, or RCCL
	madeUp string        // PCI domain of the addresses of GPUs that were made up
	addr   []cluster.PCI // per device: its address in the file
	below  [][]int       // per device: what hangs on it
	up     []cluster.Link
	out    [][]cluster.Link // per device: links it reports
	dev    []int            // per device: of GPUs and the first net of NICs
	placed int              // GPUs and NICs that have their element
}

// system collects what the elements need and refuses what the format cannot say.
func (p *printer) system() (*element, error) {
	if p.t.Trays > 1 {
		return nil, fmt.Errorf("it spans %d hosts and NCCL reads one host per file", p.t.Trays)
	}
	n := len(p.t.Devices)
	p.up, p.out, p.dev = make([]cluster.Link, n), make([][]cluster.Link, n), make([]int, n)
	var top []int
	p.below, top = p.t.Children()
	if err := p.makers(); err != nil {
		return nil, err
	}
	for _, l := range p.t.Links {
		if err := p.link(l); err != nil {
			return nil, err
		}
	}
	p.number()
	p.addresses()
	sys := newElement("system", "version", map[string]string{nccl: "1", rccl: "2"}[p.lib], "name", p.t.Name)
	for i, n := range p.t.Of(cluster.NUMA) {
		sys.Kids = append(sys.Kids, p.cpu(n, i))
	}
	if len(sys.Kids) == 0 { // nobody knows them
		sys.Kids = append(sys.Kids, newElement("cpu", "numaid", "-1"))
		p.children(sys.Kids[0], top)
	}
	if lost := p.t.Count(cluster.GPU) + p.t.Count(cluster.NIC) - p.placed; lost > 0 {
		return nil, fmt.Errorf("%d of its GPUs and NICs hang below no NUMA domain, host bridge or switch; the format needs "+
			"one for each", lost)
	}
	if n := size(sys); n > maxNodes {
		return nil, fmt.Errorf("%d elements; NCCL's parser holds %d", n, maxNodes)
	}
	return sys, nil
}

// The libraries that read such files.
const (
	nccl = "NCCL"
	rccl = "RCCL"
)

// makers settles the dialect by who made the GPUs.
func (p *printer) makers() error {
	first := ""
	for _, g := range p.t.Of(cluster.GPU) {
		d := &p.t.Devices[g]
		maker := cmp.Or(d.GPU, &cluster.GPUInfo{}).Vendor
		if first = cmp.Or(first, maker); maker != "" && maker != first {
			return fmt.Errorf("%s is %s's and others are %s's; neither NCCL nor RCCL drives both", d.Name, maker, first)
		}
	}
	p.lib = nccl
	switch {
	case first == "intel":
		return fmt.Errorf("its accelerators are Intel's; NCCL drives NVIDIA's and RCCL AMD's")
	case first == "amd", first == "hygon",
		slices.ContainsFunc(p.t.Links, func(l cluster.Link) bool { return l.Kind == cluster.XGMI }):
		p.lib = rccl
	}
	return nil
}

// link sorts a link to the device that reports it.
func (p *printer) link(l cluster.Link) error {
	ends := [2]string{p.t.Devices[l.A].Name, p.t.Devices[l.B].Name}
	if p.t.Devices[l.A].Kind != cluster.GPU {
		l.A, l.B = l.B, l.A
	}
	a, b := &p.t.Devices[l.A], &p.t.Devices[l.B]
	both := func(k cluster.Kind) bool { return a.Kind == k && b.Kind == k }
	bus := l.Kind == cluster.PCIe || l.Kind == cluster.OnDie
	fabric := l.Kind == map[string]cluster.LinkKind{nccl: cluster.NVLink, rccl: cluster.XGMI}[p.lib]
	chips := l.Kind == cluster.C2C && p.lib == nccl
	why := p.lib + " has no word for it"
	switch {
	case bus && a.Parent == l.B:
		p.up[l.A] = l
		return nil
	case bus && b.Parent == l.A:
		p.up[l.B] = l
		return nil
	// NCCL joins all NUMA domains itself, and no GPU sees a second level of switches: NCCL lists what is at the other end
	// of a GPU's links.
	case l.Kind == cluster.SMP, fabric && both(cluster.NVSwitch):
		return nil
	case fabric && (l.Lanes < 1 || l.Lanes > maxCount):
		why = fmt.Sprintf("%d links; the format needs their number", l.Lanes)
	case chips && !l.Rate.Known():
		why = "its rate is not known; NCCL needs it"
	case fabric && both(cluster.GPU), l.Kind == cluster.Direct && both(cluster.PCISwitch),
		a.Kind == cluster.GPU && !l.OneWay && (chips && p.t.Above(l.A, cluster.NUMA) == l.B ||
			fabric && b.Kind == cluster.NVSwitch):
		p.out[l.A] = append(p.out[l.A], l)
		if l.A, l.B = l.B, l.A; !l.OneWay && a.Kind == b.Kind {
			p.out[l.A] = append(p.out[l.A], l)
		}
		return nil
	}
	return fmt.Errorf("%s link %s–%s: %s", l.Kind, ends[0], ends[1], why)
}

// number gives every GPU its dev: the index it has, where these are all
// different, else its place in the list. NICs give theirs to as many nets as they
// have, in their own order and not that of the tree.
func (p *printer) number() {
	gpus := p.t.Of(cluster.GPU)
	indexes := map[int]bool{}
	for _, g := range gpus {
		if i := p.t.Devices[g].Index; i >= 0 {
			indexes[i] = true
		}
	}
	for i, g := range gpus {
		if p.dev[g] = i; len(indexes) == len(gpus) {
			p.dev[g] = p.t.Devices[g].Index
		}
	}
	nets := 0
	for _, k := range p.t.Of(cluster.NIC) {
		p.dev[k] = nets
		nets += max(len(p.ports(k)), 1)
	}
}

// addresses gives every pci element an address. Those that nobody knows are in
// a PCI domain that no device of the node has, on buses from 1 up.
func (p *printer) addresses() {
	p.addr = make([]cluster.PCI, len(p.t.Devices))
	domain := 0xfffe
	for slices.ContainsFunc(p.t.Devices, func(d cluster.Device) bool {
		return strings.HasPrefix(string(d.PCI), fmt.Sprintf("%x:", domain))
	}) {
		domain--
	}
	next := 0
	taken := map[cluster.PCI]bool{"": true}
	for i := range p.t.Devices {
		d := &p.t.Devices[i]
		if d.Kind == cluster.NVSwitch || d.Kind >= cluster.Socket && d.Kind <= cluster.RootComplex || p.virtual(i) {
			continue
		}
		p.addr[i] = d.PCI
		if taken[d.PCI] {
			p.addr[i] = cluster.PCI(fmt.Sprintf("%x:%02x:%02x.0", domain, next/32+1, next%32))
			next++
			if d.Kind == cluster.GPU {
				p.madeUp = fmt.Sprintf("%x", domain)
			}
		}
		taken[p.addr[i]] = true
	}
}

// virtual reports a NIC without a card, such as the loopback interface: it hangs
// on a NUMA domain and nobody knows an address, an id or a link of it.
func (p *printer) virtual(i int) bool {
	d := &p.t.Devices[i]
	l := &p.up[i]
	return d.Kind == cluster.NIC && d.PCI == "" && d.PCIID == nil && l.Lanes == 0 && l.GTs == 0 &&
		(d.Parent < 0 || p.t.Devices[d.Parent].Kind != cluster.RootComplex && p.t.Devices[d.Parent].Kind != cluster.PCISwitch)
}

// cpu writes a NUMA domain. What nobody knows is left out: NCCL then looks.
func (p *printer) cpu(n, position int) *element {
	d := &p.t.Devices[n]
	id := d.Index
	if id < 0 && len(p.t.Of(cluster.NUMA)) > 1 {
		id = position
	}
	info := *cmp.Or(d.CPU, &cluster.CPUInfo{})
	if d.Parent >= 0 {
		socket := cmp.Or(p.t.Devices[d.Parent].CPU, &cluster.CPUInfo{})
		info.Arch = cmp.Or(info.Arch, socket.Arch)
		if info.Vendor == "" {
			info.Vendor, info.Family, info.Model = socket.Vendor, socket.Family, socket.Model
		}
	}
	mask := ""
	if cores, err := board.ParseList(info.Cores); err == nil && len(cores.Mask()) <= maxValue {
		mask = cores.Mask()
	}
	e := newElement("cpu", "numaid", strconv.Itoa(id), "affinity", mask, "arch", info.Arch, "vendor", info.Vendor,
		"familyid", known(info.Family), "modelid", known(info.Model))
	p.children(e, p.below[n])
	return e
}

// children writes what hangs on a cpu or a switch. NICs without a card share
// one nic element, for NCCL knows one of them per cpu.
func (p *printer) children(e *element, list []int) {
	bare := newElement("nic")
	for _, d := range list {
		switch k := p.t.Devices[d].Kind; {
		case k == cluster.RootComplex || k == cluster.Socket:
			p.children(e, p.below[d])
		case k == cluster.NIC && p.virtual(d):
			p.nets(bare, d)
		case k == cluster.PCISwitch || k == cluster.GPU || k == cluster.NIC || k == cluster.KindUnknown:
			e.Kids = append(e.Kids, p.pci(d))
		}
	}
	addFilled(e, bare)
}

func (p *printer) pci(i int) *element {
	d := &p.t.Devices[i]
	speed := ""
	if p.up[i].GTs > 0 {
		speed = fmt.Sprintf("%.1f GT/s PCIe", p.up[i].GTs)
	}
	id := p.id(i)
	attrs := []string{"busid", string(p.addr[i])}
	for k, part := range idParts(&id) {
		attrs = append(attrs, idAttrs[k], hex(*part))
	}
	e := newElement("pci", append(attrs, "link_speed", speed, "link_width", known(p.up[i].Lanes))...)
	switch d.Kind {
	case cluster.PCISwitch:
		p.children(e, p.below[i])
		for _, l := range p.out[i] {
			e.Kids = append(e.Kids, newElement("pcilink", "target", string(p.addr[l.B])))
		}
	case cluster.GPU:
		e.Kids = append(e.Kids, p.gpu(i))
	case cluster.NIC:
		nic := newElement("nic")
		p.nets(nic, i)
		addFilled(e, nic)
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
		id.Class = map[cluster.Kind]string{
			cluster.PCISwitch: "060400", cluster.GPU: "030200", cluster.NIC: "020000", cluster.NVSwitch: "068000",
		}[d.Kind]
		switch {
		case d.Kind == cluster.GPU && p.lib == rccl:
			id.Class = "038000"
		case d.Kind == cluster.NIC && d.NIC != nil && d.NIC.Kind == cluster.InfiniBand:
			id.Class = "020700"
		}
	}
	return id
}

func (p *printer) gpu(i int) *element {
	p.placed++
	info := cmp.Or(p.t.Devices[i].GPU, &cluster.GPUInfo{})
	sm, gcn := known(info.SM), ""
	if p.lib == rccl {
		sm, gcn = "", info.Arch
	}
	dev := strconv.Itoa(p.dev[i])
	// the rank is that in a job of all GPUs of the host; NCCL puts in those of its own
	e := newElement("gpu", "dev", dev, "gcn", gcn, "sm", sm, "rank", dev, "gdr", bits[info.GDR])
	for _, l := range p.out[i] {
		lanes := max(l.Lanes, 1)
		target := string(p.addr[l.B])
		switch {
		case l.Kind == cluster.C2C:
			e.Kids = append(e.Kids, newElement("c2c",
				"bw", known(int(math.Round(float64(l.Rate.Value/unit.GBps)*1000/float64(lanes)))), "count", known(lanes)))
			continue
		case p.t.Devices[l.B].Kind == cluster.NVSwitch:
			target = cmp.Or(string(p.t.Devices[l.B].PCI), hidden)
		}
		e.Kids = append(e.Kids, newElement(l.Kind.String(), // nvlink, xgmi
			"target", target, "count", known(lanes), "tclass", hex(p.id(l.B).Class)))
	}
	return e
}

// ports lists what to write as nets: the ports that are not down, which NCCL
// does not list either, or one when only the NIC itself says something.
func (p *printer) ports(i int) []cluster.Port {
	d := &p.t.Devices[i]
	info := cmp.Or(d.NIC, &cluster.NICInfo{})
	if len(info.Ports) > 0 {
		return slices.DeleteFunc(slices.Clone(info.Ports), func(p cluster.Port) bool { return p.State == cluster.Down })
	}
	if d.Label != "" || info.GDR != cluster.Maybe || info.Reduction != cluster.Maybe {
		return []cluster.Port{{Label: d.Label}}
	}
	return nil
}

// nets writes a NIC's ports. A name that nobody knows is made up; NCCL does not
// find such a net on the machine and drops it.
func (p *printer) nets(nic *element, i int) {
	p.placed++
	d := &p.t.Devices[i]
	info := cmp.Or(d.NIC, &cluster.NICInfo{})
	for k, port := range p.ports(i) {
		label := cmp.Or(port.Label, d.Label, fmt.Sprintf("%s%s-%d", unnamed, d.Name, k))
		nic.Kids = append(nic.Kids, newElement("net", "name", label, "dev", strconv.Itoa(p.dev[i]+k), "latency", "0",
			"speed", known(int(math.Round(port.Rate.Value.Gbps()*1000))), "port", known(port.Num),
			"guid", swapGUID(port.GUID), "gdr", bits[info.GDR], "coll", bits[info.Reduction]))
	}
}
