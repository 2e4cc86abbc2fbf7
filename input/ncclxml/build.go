package ncclxml

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// builder turns one system element into a node type.
type builder struct {
	f      *cluster.Fragment
	sys    *element
	note   *note
	t      *cluster.NodeType
	rccl   bool
	src    string
	trays  map[string]int
	at     map[place]int // device by tray and the address in the file
	roots  map[string]int
	names  map[string]bool
	next   [8]int // per kind: the number to try next
	leaves []leaf
	plain  int // pci elements that say nothing about what they are
	warned int
}

// place is an address within one operating-system image.
type place struct {
	tray int
	addr cluster.PCI
}

const maxWarnings = 100

// warnf adds a warning, up to a number that a person would read.
func (b *builder) warnf(line int, where, format string, args ...any) {
	switch b.warned++; {
	case b.warned < maxWarnings:
		b.f.Warnf(line, where, format, args...)
	case b.warned == maxWarnings:
		b.f.Warnf(line, "", "further warnings about this topology are left out")
	}
}

func (b *builder) build() *cluster.NodeType {
	b.t = &cluster.NodeType{Name: b.sys.get("name"), Tree: cluster.Read}
	b.trays, b.at, b.roots, b.names = map[string]int{}, map[place]int{}, map[string]int{}, map[string]bool{}
	if b.note == nil {
		b.note = &note{}
	}
	if b.note.loose() {
		b.t.Tree = cluster.Unknown
	}
	b.dialect()
	cpus := b.numas()
	for _, c := range cpus {
		for _, e := range c.el.subs {
			switch e.name {
			case "pci":
				b.pci(e, c.device, -1, c.tray)
			case "nic":
				for _, net := range e.all("net") {
					b.leaves = append(b.leaves, leaf{
						el: e, nets: []*element{net}, kind: cluster.NIC, tray: c.tray, parent: c.device, index: devOf(net),
					})
				}
			}
		}
	}
	b.place(cluster.GPU)
	b.place(cluster.NIC)
	b.place(cluster.KindUnknown)
	if b.plain > 0 {
		b.warnf(b.sys.line, "", "%d pci elements have neither a class nor a gpu or nic inside: the file does not say what "+
			"they are (NCCL asks the machine)", b.plain)
	}
	b.links()
	return b.t
}

// addDevice appends a device under the name NodeType.Add would give it, without
// looking at every other device: a hostile file has many.
func (b *builder) addDevice(d cluster.Device) int {
	if d.Name == "" {
		stem := d.Kind.String()
		d.Name = stem + strconv.Itoa(d.Index)
		for d.Index < 0 && d.Name == stem+"-1" || b.names[d.Name] {
			d.Name = stem + strconv.Itoa(b.next[d.Kind])
			b.next[d.Kind]++
		}
	}
	b.names[d.Name] = true
	return b.t.Add(d)
}

// dialect decides between NCCL's and RCCL's form.
func (b *builder) dialect() {
	b.src = formatNCCL
	version := b.sys.get("version")
	b.rccl = version == "2" || amd(b.sys)
	switch {
	case b.rccl:
		b.src = formatRCCL
		b.f.Format = formatRCCL
	case version != "1":
		b.warnf(b.sys.line, "", "system version %q; NCCL takes 1 and RCCL 2", version)
	}
}

// amd reports whether an element only RCCL writes is below e.
func amd(e *element) bool {
	if e.name == "xgmi" || e.name == "gpu" && e.get("gcn") != "" {
		return true
	}
	return slices.ContainsFunc(e.subs, amd)
}

// domain is a cpu element and the NUMA domain it became.
type domain struct {
	el     *element
	device int
	tray   int
}

// numas adds the NUMA domains, the sockets a note knows, and the links between
// domains of one host.
func (b *builder) numas() []domain {
	var list []domain
	known := map[[2]int]int{} // tray and id → device
	sockets := map[string]int{}
	for _, c := range b.sys.all("cpu") {
		tray := b.tray(c.get("host_hash"))
		if b.note.loose() {
			list = append(list, domain{c, -1, tray})
			continue
		}
		id, err := strconv.Atoi(c.get("numaid"))
		if err != nil || id < -1 || id > 1<<20 {
			b.warnf(c.line, "", "cpu with numaid %q; expected a number: taken as unknown", c.get("numaid"))
			id = -1
		}
		if d, ok := known[[2]int{tray, id}]; ok && id >= 0 {
			b.warnf(c.line, b.t.Devices[d].Name, "numaid %d is there twice; taken as one NUMA domain", id)
			list = append(list, domain{c, d, tray})
			continue
		}
		parent := -1
		if name := b.note.socketOf(id); name != "" {
			if _, ok := sockets[name]; !ok {
				sockets[name] = b.addDevice(cluster.Device{
					Kind: cluster.Socket, Index: indexIn(name, "socket"), Parent: -1, Tray: tray,
				})
			}
			parent = sockets[name]
		}
		index := id
		if b.note.unknown[id] {
			index = -1
		}
		d := b.addDevice(cluster.Device{Kind: cluster.NUMA, Index: index, Parent: parent, Tray: tray, CPU: b.cpu(c)})
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
		b.warnf(b.sys.line, "", "%d NUMA domains; the links between them are left out", len(ids))
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
		Arch:   c.get("arch"),
		Vendor: c.get("vendor"),
		Family: max(number(c.get("familyid"), 0), 0),
		Model:  max(number(c.get("modelid"), 0), 0),
	}
	if mask := c.get("affinity"); mask != "" {
		cores, err := cpuList(mask)
		if err != nil {
			b.warnf(c.line, "", "affinity %q: %v; left out", shorten(mask), err)
		}
		info.Cores = cores
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
			b.warnf(e.line, "", "%s is there twice; left out the second time", name(b.t, d, string(addr)))
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
		d := b.addDevice(cluster.Device{
			Kind: kind, Index: -1, PCI: b.real(addr), Parent: parent, Tray: tray, PCIID: pciID(e),
		})
		b.uplink(e, d)
		if addr != "" {
			b.at[place{tray, addr}] = d
		}
		for _, s := range e.all("pci") {
			b.pci(s, numa, d, tray)
		}
		return
	}
	l := leaf{el: e, kind: kind, tray: tray, parent: parent, addr: addr, index: -1}
	switch kind {
	case cluster.GPU:
		if g := e.all("gpu"); len(g) > 0 {
			l.index = devOf(g[0])
		}
	case cluster.NIC:
		l.index = -1
		for _, n := range e.all("nic") {
			l.nets = append(l.nets, n.all("net")...)
		}
		for _, n := range l.nets {
			if d := devOf(n); d >= 0 && (l.index < 0 || d < l.index) {
				l.index = d
			}
		}
	default:
		if e.get("class") == "" {
			b.plain++
		}
	}
	if len(e.all("pci")) > 0 {
		b.warnf(e.line, string(addr), "pci elements inside a %s are left out; expected them inside a switch", kind)
	}
	b.leaves = append(b.leaves, l)
}

// kind says what a pci element is: by a gpu or nic inside it, else by its class,
// else by other pci elements inside it. NCCL does it in this order.
func (b *builder) kind(e *element) cluster.Kind {
	switch {
	case len(e.all("gpu")) > 0:
		return cluster.GPU
	case len(e.all("nic")) > 0:
		return cluster.NIC
	}
	kind := classKind(hexText(e.get("class")))
	if kind == cluster.KindUnknown && len(e.all("pci")) > 0 {
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

// root is the host bridge above a device right below the cpu, or the NUMA
// domain itself where a note says that there is none.
func (b *builder) root(addr cluster.PCI, numa, tray int) int {
	if b.note.direct[addr] != "" {
		return numa
	}
	key := b.note.roots[addr]
	switch {
	case key != "":
		key = fmt.Sprintf("note %d %s", numa, key)
	case onRootBus(addr) && !b.note.madeUp(addr):
		domain, _, _ := strings.Cut(string(addr), ":")
		key = fmt.Sprintf("bus 0 %d %s", numa, domain)
	}
	if d, ok := b.roots[key]; ok && key != "" {
		return d
	}
	d := b.addDevice(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: numa, Tray: tray})
	if numa >= 0 {
		b.t.Connect(cluster.Link{A: numa, B: d, Kind: cluster.OnDie})
	}
	if key != "" {
		b.roots[key] = d
	}
	return d
}

// onRootBus reports an address on bus 0, where devices sit on the host bridge
// itself. Domain ffff holds the addresses that people make up for switches.
func onRootBus(addr cluster.PCI) bool {
	return len(addr) >= 7 && strings.HasPrefix(string(addr[strings.IndexByte(string(addr), ':'):]), ":00:") &&
		!strings.HasPrefix(string(addr), "ffff:")
}

func (b *builder) address(e *element) cluster.PCI {
	s := e.get("busid")
	addr, err := cluster.ParsePCI(s)
	if err != nil {
		b.warnf(e.line, "", "pci with busid %q; expected domain:bus:device.function such as 0000:07:00.0: kept without an "+
			"address", shorten(s))
	}
	return addr
}

// real is the address to keep: none where the writer made it up.
func (b *builder) real(addr cluster.PCI) cluster.PCI {
	if b.note.madeUp(addr) {
		return ""
	}
	return addr
}
