package ncclxml

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// hidden is the target NCCL writes for a switch that a virtual machine cannot see.
const hidden = "fffffff:ffff:ff"

// edge is one direction of a link between two devices.
type edge struct {
	kind     cluster.LinkKind
	from, to int
}

// linker collects what the GPUs say about their links.
type linker struct {
	b       *builder
	count   map[edge]int
	line    map[edge]int
	order   []edge
	toSw    map[int]int // GPU → links to an NVSwitch
	swOrder []int
	swAddr  map[cluster.PCI]bool
	hidden  bool
}

// maxCount bounds the links of one GPU to one target.
const maxCount = 1024

func (b *builder) links() {
	l := linker{b: b, count: map[edge]int{}, line: map[edge]int{}, toSw: map[int]int{}, swAddr: map[cluster.PCI]bool{}}
	for i := range b.leaves {
		leaf := &b.leaves[i]
		if leaf.kind != cluster.GPU {
			continue
		}
		if g := leaf.el.all("gpu"); len(g) > 0 {
			l.gpu(leaf, g[0])
		}
	}
	l.switches()
	l.pairs()
	b.pciLinks()
}

// device is the device a leaf became. Addresses are unique where there are any,
// and a leaf without one is not found.
func (b *builder) device(tray int, addr cluster.PCI) int {
	if d, ok := b.at[place{tray, addr}]; ok && addr != "" {
		return d
	}
	return -1
}

func (l *linker) gpu(leaf *leaf, g *element) {
	b := l.b
	from := b.device(leaf.tray, leaf.addr)
	for _, e := range g.subs {
		if from < 0 {
			b.warnf(e.line, "", "%s of a GPU without an address; left out", e.name)
			return
		}
		n := number(e.get("count"), 0)
		if n < 1 || n > maxCount {
			b.warnf(e.line, b.t.Devices[from].Name, "%s count %q; expected 1 to %d: left out", e.name, shorten(e.get("count")),
				maxCount)
			continue
		}
		switch e.name {
		case "c2c":
			l.c2c(e, from, n)
		case "xgmi":
			l.direct(e, cluster.XGMI, leaf.tray, from, n)
		case "nvlink":
			l.nvlink(e, leaf.tray, from, n)
		}
	}
}

// nvlink tells by the target's class where a link goes, as NCCL does.
func (l *linker) nvlink(e *element, tray, from, n int) {
	class := hexText(e.get("tclass"))
	target := e.get("target")
	addr, err := cluster.ParsePCI(target)
	known := err == nil && l.b.device(tray, addr) >= 0
	switch {
	case class == "068001":
		if numa := l.b.t.Above(from, cluster.NUMA); numa >= 0 {
			l.addEdge(edge{cluster.NVLink, numa, from}, n, e.line)
			l.addEdge(edge{cluster.NVLink, from, numa}, n, e.line)
		}
	case strings.HasPrefix(class, "0680"), target == hidden, class == "" && !known:
		if err == nil {
			l.swAddr[addr] = true
		} else {
			l.hidden = true
		}
		if l.toSw[from] == 0 {
			l.swOrder = append(l.swOrder, from)
		}
		l.toSw[from] = min(l.toSw[from]+n, maxCount)
	default:
		l.direct(e, cluster.NVLink, tray, from, n)
	}
}

// direct adds links to another GPU of the host.
func (l *linker) direct(e *element, kind cluster.LinkKind, tray, from, n int) {
	b := l.b
	me := b.t.Devices[from].Name
	addr, err := cluster.ParsePCI(e.get("target"))
	to := -1
	if err == nil {
		to = b.device(tray, addr)
	}
	switch {
	case to == from:
		b.warnf(e.line, me, "names itself as the target of %d %s: what is at their other end is not in the file; left out", n,
			plural(kind, n))
	case to < 0 || b.t.Devices[to].Kind != cluster.GPU:
		b.warnf(e.line, me, "%d %s to %s, which is no GPU of this file; left out", n, plural(kind, n),
			shorten(e.get("target")))
	default:
		l.addEdge(edge{kind, from, to}, n, e.line)
	}
}

func (l *linker) addEdge(e edge, n, line int) {
	if _, ok := l.count[e]; !ok {
		l.order = append(l.order, e)
		l.line[e] = line
	}
	l.count[e] = min(l.count[e]+n, maxCount)
}

// c2c adds the chip-to-chip links of a GPU to its CPU. bw is MB/s per link.
func (l *linker) c2c(e *element, gpu, n int) {
	numa := l.b.t.Above(gpu, cluster.NUMA)
	if numa < 0 {
		return
	}
	link := cluster.Link{A: numa, B: gpu, Kind: cluster.C2C, Lanes: n}
	if bw := number(e.get("bw"), 0); bw > 0 && bw < 1e9 {
		link.Rate = cluster.FromRead(unit.Rate(float64(bw)*float64(n))*unit.GBps/1000, l.b.src)
	} else {
		l.b.warnf(e.line, l.b.t.Devices[gpu].Name, "c2c bw %q; expected MB/s per link: rate left unknown",
			shorten(e.get("bw")))
	}
	l.b.t.Connect(link)
}

// switches makes the one NVSwitch of the node and joins the GPUs to it.
func (l *linker) switches() {
	if len(l.swOrder) == 0 {
		return
	}
	d := cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1}
	if len(l.swAddr) == 1 && !l.hidden {
		for a := range l.swAddr {
			d.PCI = l.b.real(a)
		}
	}
	sw := l.b.addDevice(d)
	slices.Sort(l.swOrder)
	for _, g := range l.swOrder {
		l.b.t.Connect(cluster.Link{A: g, B: sw, Kind: cluster.NVLink, Lanes: l.toSw[g]})
	}
}

// pairs makes one link of two directions that agree, two of those that do not.
func (l *linker) pairs() {
	slices.SortFunc(l.order, func(x, y edge) int {
		return cmp.Or(cmp.Compare(min(x.from, x.to), min(y.from, y.to)), cmp.Compare(max(x.from, x.to), max(y.from, y.to)),
			cmp.Compare(x.kind, y.kind), cmp.Compare(x.from, y.from))
	})
	t := l.b.t
	for _, e := range l.order {
		back := edge{e.kind, e.to, e.from}
		there, here := l.count[e], l.count[back]
		if there == here {
			if e.from < e.to {
				t.Connect(cluster.Link{A: e.from, B: e.to, Kind: e.kind, Lanes: there})
			}
			continue
		}
		t.Connect(cluster.Link{A: e.from, B: e.to, Kind: e.kind, Lanes: there, OneWay: true})
		if e.from < e.to || here == 0 {
			l.disagree(e, there, here)
		}
	}
}

// disagree warns about a link that differs by direction.
func (l *linker) disagree(e edge, there, here int) {
	a, c := l.b.t.Devices[e.from].Name, l.b.t.Devices[e.to].Name
	if here == 0 {
		l.b.warnf(l.line[e], "", "%s has %d %s to %s, %s has none to %s: traffic back takes another way", a, there,
			plural(e.kind, there), c, c, a)
		return
	}
	l.b.warnf(l.line[e], "", "%s has %d %s to %s, %s has %d to %s: a ring is limited by the %d", a, there,
		plural(e.kind, there), c, c, here, a, min(there, here))
}

// plural names a kind of link for a count.
func plural(kind cluster.LinkKind, n int) string {
	word := "NVLink"
	if kind == cluster.XGMI {
		word = "xGMI link"
	}
	if n == 1 {
		return word
	}
	return word + "s"
}

// pciLinks adds the links between switches that are siblings on one chip.
func (b *builder) pciLinks() {
	seen := map[edge]bool{}
	var order []edge
	var walk func(e *element, tray int)
	walk = func(e *element, tray int) {
		if addr, err := cluster.ParsePCI(e.get("busid")); e.name == "pci" && err == nil {
			for _, p := range e.all("pcilink") {
				to, err := cluster.ParsePCI(p.get("target"))
				x := edge{cluster.Direct, b.device(tray, addr), -1}
				if err == nil {
					x.to = b.device(tray, to)
				}
				if x.from < 0 || x.to < 0 || x.from == x.to {
					b.warnf(p.line, string(addr), "pcilink to %s, which is no switch of this file; left out", shorten(p.get("target")))
				} else if !seen[x] {
					seen[x] = true
					order = append(order, x)
				}
			}
		}
		for _, s := range e.subs {
			walk(s, tray)
		}
	}
	for _, c := range b.sys.all("cpu") {
		walk(c, b.tray(c.get("host_hash")))
	}
	for _, x := range order {
		if both := seen[edge{x.kind, x.to, x.from}]; !both {
			b.t.Connect(cluster.Link{A: x.from, B: x.to, Kind: x.kind, OneWay: true})
		} else if x.from < x.to {
			b.t.Connect(cluster.Link{A: x.from, B: x.to, Kind: x.kind})
		}
	}
}
