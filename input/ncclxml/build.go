package ncclxml

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/ifname"
)

// builder turns one system element into a node type.
type builder struct {
	f      *cluster.Fragment
	sys    *element
	t      *cluster.NodeType
	rccl   bool
	src    string
	trays  map[string]int
	at     map[place]int // device by tray and the address in the file
	roots  map[place]int // host bridges of bus 0, by NUMA domain and PCI domain
	leaves []leaf
	beside []sideLink
	edges  map[edge]tally
	toSw   map[int]int          // GPU → links to an NVSwitch
	swAddr map[cluster.PCI]bool // "" for one that is hidden
	odd    map[string]bool      // names of elements already warned about
	plain  int                  // pci elements that say nothing about what they are
}

// place is an address within one operating-system image, or a PCI domain within a NUMA domain.
type place struct {
	of   int
	addr cluster.PCI
}

func (b *builder) build() *cluster.NodeType {
	b.t = &cluster.NodeType{Name: b.sys.Get("name"), Tree: cluster.Read}
	b.trays, b.at, b.roots = map[string]int{}, map[place]int{}, map[place]int{}
	b.src = formatNCCL
	version := b.sys.Get("version")
	b.rccl = version == "2" || amd(b.sys)
	switch {
	case b.rccl:
		b.src = formatRCCL
		b.f.Format = formatRCCL
	case version != "1":
		b.f.Warnf(b.sys.Line, "", "system version %q; NCCL takes 1 and RCCL 2", version)
	}
	cpus := b.numas()
	var software ifname.Software // NCCL lists those that have an address
	for _, c := range cpus {
		for _, e := range c.el.Kids {
			switch e.Name {
			case "pci":
				b.pci(e, c.device, -1, c.tray)
			case "nic":
				for _, net := range e.All("net") {
					if name := net.Get("name"); name != "lo" && software.Add(name) {
						continue
					}
					b.leaves = append(b.leaves, leaf{
						el: e, nets: []*element{net}, kind: cluster.NIC, tray: c.tray, parent: c.device, index: devOf(net),
					})
				}
			}
		}
	}
	software.Warn(b.f, b.sys.Line)
	b.place(cluster.GPU)
	b.place(cluster.NIC)
	b.place(cluster.KindUnknown)
	if b.plain > 0 {
		b.f.Warnf(b.sys.Line, "", "%d pci elements have neither a class nor a gpu or nic inside: the file does not say what "+
			"they are (NCCL asks the machine)", b.plain)
	}
	b.links()
	b.lackLinks()
	return b.t
}

// lackLinks warns of GPUs that come on boards with links between them where the file has no such link.
func (b *builder) lackLinks() {
	gpus := b.t.Of(cluster.GPU)
	if len(gpus) < 2 || b.t.Devices[gpus[0]].PCIID == nil ||
		slices.ContainsFunc(b.t.Links, func(l cluster.Link) bool { return l.Kind == cluster.NVLink }) {
		return
	}
	id := b.t.Devices[gpus[0]].PCIID
	g, ok := hardware.GPUByPCI(id.Vendor, id.Device)
	if !ok || !g.Module() || g.LinkKind != cluster.NVLink {
		return
	}
	what := "NCCL adds those that it finds on the machine; a dump (NCCL_TOPO_DUMP_FILE) has them"
	if slices.ContainsFunc(b.leaves, func(l leaf) bool { return len(l.el.All("gpu")) > 0 }) {
		what = "check that they are up and that the container or virtual machine sees them, and dump the topology again"
	}
	b.f.Warnf(b.sys.Line, "", "boards join %s by NVLink, and the file shows no such link, so that these are PCIe's "+
		"paths: %s",
		g.Title, what)
}

// amd reports whether an element only RCCL writes is below e.
func amd(e *element) bool {
	if e.Name == "xgmi" || e.Name == "gpu" && e.Get("gcn") != "" {
		return true
	}
	return slices.ContainsFunc(e.Kids, amd)
}

// domain is a cpu element and the NUMA domain it became.
type domain struct {
	el     *element
	device int
	tray   int
}

// numas adds the NUMA domains and the links between those of one host.
func (b *builder) numas() []domain {
	var list []domain
	known := map[[2]int]int{} // tray and id → device
	for _, c := range b.sys.All("cpu") {
		tray := b.tray(c.Get("host_hash"))
		id, err := strconv.Atoi(c.Get("numaid"))
		if err != nil || id < -1 || id > 1<<20 {
			b.f.Warnf(c.Line, "", "cpu with numaid %q; expected a number: taken as unknown", c.Get("numaid"))
			id = -1
		}
		d, twice := known[[2]int{tray, id}]
		if twice && id >= 0 {
			b.f.Warnf(c.Line, b.t.Devices[d].Name, "numaid %d is there twice; taken as one NUMA domain", id)
		} else {
			d = b.t.Add(cluster.Device{Kind: cluster.NUMA, Index: id, Parent: -1, Tray: tray, CPU: b.cpu(c)})
		}
		known[[2]int{tray, id}] = d
		list = append(list, domain{c, d, tray})
	}
	b.smp()
	return list
}

// smp joins every pair of NUMA domains of a host, as NCCL does.
func (b *builder) smp() {
	ids := b.t.Of(cluster.NUMA)
	if len(ids) > 256 {
		b.f.Warnf(b.sys.Line, "", "%d NUMA domains; the links between them are left out", len(ids))
		return
	}
	for i, x := range ids {
		for _, y := range ids[i+1:] {
			if b.t.Devices[x].Tray == b.t.Devices[y].Tray {
				b.t.Connect(cluster.Link{A: x, B: y, Kind: cluster.SMP})
			}
		}
	}
}

// tray numbers the operating-system images by their hashes.
func (b *builder) tray(hash string) int {
	n, ok := b.trays[hash]
	if !ok {
		n = len(b.trays)
		b.trays[hash] = n
		if n > 0 {
			b.t.Trays = n + 1
		}
	}
	return n
}

func (b *builder) cpu(c *element) *cluster.CPUInfo {
	info := cluster.CPUInfo{
		Arch:   c.Get("arch"),
		Vendor: c.Get("vendor"),
		Family: upTo(math.MaxInt, c, "familyid"),
		Model:  upTo(math.MaxInt, c, "modelid"),
	}
	if mask := c.Get("affinity"); mask != "" {
		cores, err := board.ParseMask(mask)
		if err != nil {
			b.f.Warnf(c.Line, "", "affinity %.60q: %v; left out", mask, err)
		}
		info.Cores = cores.String()
	}
	if info == (cluster.CPUInfo{}) {
		return nil
	}
	return &info
}

// pci adds a switch and what is below it, or remembers a leaf. parent is -1
// right below the cpu.
func (b *builder) pci(e *element, numa, parent, tray int) {
	addr := b.address(e)
	if addr != "" {
		if d, ok := b.at[place{tray, addr}]; ok {
			twice := string(addr)
			if d >= 0 {
				twice = b.t.Devices[d].Name
			}
			b.f.Warnf(e.Line, "", "%s is there twice; left out the second time", twice)
			return
		}
		b.at[place{tray, addr}] = -1
	}
	kind := b.kind(e)
	if kind == cluster.NVSwitch {
		return // its control port; the links are listed with the GPUs
	}
	if parent < 0 {
		parent = b.root(addr, numa, tray)
	}
	if kind == cluster.PCISwitch {
		d := b.t.Add(cluster.Device{
			Kind: kind, Index: -1, PCI: addr, Parent: parent, Tray: tray, PCIID: pciID(e),
		})
		b.uplink(e, d)
		if addr != "" {
			b.at[place{tray, addr}] = d
		}
		for _, p := range e.All("pcilink") {
			b.beside = append(b.beside, sideLink{p, d, tray})
		}
		for _, s := range e.All("pci") {
			b.pci(s, numa, d, tray)
		}
		return
	}
	l := leaf{el: e, kind: kind, tray: tray, parent: parent, addr: addr, index: -1}
	switch kind {
	case cluster.GPU:
		if g := e.All("gpu"); len(g) > 0 {
			l.index = devOf(g[0])
		}
	case cluster.NIC:
		for _, n := range e.All("nic") {
			l.nets = append(l.nets, n.All("net")...)
		}
		for _, n := range l.nets {
			if d := devOf(n); d >= 0 && (l.index < 0 || d < l.index) {
				l.index = d
			}
		}
	default:
		if e.Get("class") == "" {
			b.plain++
		}
	}
	b.leaves = append(b.leaves, l)
}

// kind says what a pci element is: by a gpu or nic inside it, else by its class,
// else by other pci elements inside it. NCCL does it in this order.
func (b *builder) kind(e *element) cluster.Kind {
	switch {
	case len(e.All("gpu")) > 0:
		return cluster.GPU
	case len(e.All("nic")) > 0:
		return cluster.NIC
	}
	kind := classKind(hexText(e.Get("class")))
	if kind == cluster.KindUnknown && len(e.All("pci")) > 0 {
		return cluster.PCISwitch
	}
	return kind
}

// classKind is what a PCI class says.
func classKind(class string) cluster.Kind {
	switch {
	case strings.HasPrefix(class, "0604"):
		return cluster.PCISwitch
	case strings.HasPrefix(class, "03"), strings.HasPrefix(class, "1200"):
		return cluster.GPU
	case strings.HasPrefix(class, "02"):
		return cluster.NIC
	case class == "068000":
		return cluster.NVSwitch
	}
	return cluster.KindUnknown
}

// root is the host bridge above a device right below the cpu. Devices on bus 0 sit on the host bridge
// itself. Domain ffff holds the addresses that people make up for switches.
func (b *builder) root(addr cluster.PCI, numa, tray int) int {
	domain, rest, _ := strings.Cut(string(addr), ":")
	bus := place{numa, cluster.PCI(domain)}
	onRootBus := strings.HasPrefix(rest, "00:") && domain != "ffff"
	if d, ok := b.roots[bus]; ok && onRootBus {
		return d
	}
	d := b.t.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa, Tray: tray})
	b.t.Connect(cluster.Link{A: numa, B: d, Kind: cluster.OnDie})
	if onRootBus {
		b.roots[bus] = d
	}
	return d
}

func (b *builder) address(e *element) cluster.PCI {
	s := e.Get("busid")
	addr, err := cluster.ParsePCI(s)
	if err != nil {
		b.f.Warnf(e.Line, "", "pci with busid %.60q; expected domain:bus:device.function such as 0000:07:00.0: kept "+
			"without an address", s)
	}
	return addr
}
