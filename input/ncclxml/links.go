package ncclxml

import (
	"cmp"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// hidden is the target NCCL writes for a switch that a virtual machine cannot see.
const hidden = "fffffff:ffff:ff"

// edge is one direction of a link between two devices.
type edge struct {
	kind     cluster.LinkKind
	from, to int
}

// compare puts the two directions of a link beside each other.
func (e edge) compare(o edge) int {
	return cmp.Or(cmp.Compare(min(e.from, e.to), min(o.from, o.to)), cmp.Compare(max(e.from, e.to), max(o.from, o.to)),
		cmp.Compare(e.kind, o.kind), cmp.Compare(e.from, o.from))
}

// tally is how many links an edge stands for, and the line of the first.
type tally struct{ n, line int }

// linker collects what the GPUs say about their links.
type linker struct {
	b      *builder
	edges  map[edge]tally
	toSw   map[int]int          // GPU → links to an NVSwitch
	swAddr map[cluster.PCI]bool // "" for one that is hidden
}

// maxCount bounds the links of one GPU to one target.
const maxCount = 1024

func (b *builder) links() {
	l := linker{b: b, edges: map[edge]tally{}, toSw: map[int]int{}, swAddr: map[cluster.PCI]bool{}}
	for i := range b.leaves {
		leaf := &b.leaves[i]
		if g := leaf.el.All("gpu"); leaf.kind == cluster.GPU && len(g) > 0 {
			l.gpu(leaf, g[0])
		}
	}
	for _, s := range b.beside {
		l.beside(s)
	}
	l.switches()
	l.pairs()
}

// device is the device at an address of the file, -1 when there is none. Addresses are unique where there are any,
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
	if from < 0 {
		return // without an address
	}
	for _, e := range g.Kids {
		n := number(e.Get("count"), 0)
		if n < 1 || n > maxCount {
			b.f.Warnf(e.Line, b.t.Devices[from].Name, "%s count %.60q; expected 1 to %d: left out", e.Name,
				e.Get("count"), maxCount)
			continue
		}
		if e.Name == "c2c" {
			l.c2c(e, from, n)
		} else {
			l.link(e, leaf.tray, from, n)
		}
	}
}

// link tells by the target's class where an NVLink goes, as NCCL does: to an NVSwitch, else to another GPU of the host.
func (l *linker) link(e *element, tray, from, n int) {
	b := l.b
	kind := map[string]cluster.LinkKind{"nvlink": cluster.NVLink, "xgmi": cluster.XGMI}[e.Name]
	class, target := hexText(e.Get("tclass")), e.Get("target")
	addr, _ := cluster.ParsePCI(target)
	me, to := b.t.Devices[from].Name, b.device(tray, addr)
	switch {
	case kind == cluster.NVLink && (class == "068000" || target == hidden || class == "" && to < 0):
		l.swAddr[addr] = true
		l.toSw[from] = min(l.toSw[from]+n, maxCount)
	case to == from:
		b.f.Warnf(e.Line, me, "names itself as the target of %s: what is at their other end is not in the file; left out",
			counted(n, kind))
	case to < 0 || b.t.Devices[to].Kind != cluster.GPU:
		b.f.Warnf(e.Line, me, "%s to %.60s, which is no GPU of this file; left out", counted(n, kind), target)
	default:
		l.addEdge(edge{kind, from, to}, n, e.Line)
	}
}

func (l *linker) addEdge(e edge, n, line int) {
	t := l.edges[e]
	l.edges[e] = tally{min(t.n+n, maxCount), cmp.Or(t.line, line)}
}

// c2c adds the chip-to-chip links of a GPU to its CPU. bw is MB/s per link.
func (l *linker) c2c(e *element, gpu, n int) {
	numa := l.b.t.Above(gpu, cluster.NUMA)
	if numa < 0 {
		return
	}
	link := cluster.Link{A: numa, B: gpu, Kind: cluster.C2C, Lanes: n}
	if bw := number(e.Get("bw"), 0); bw > 0 && bw < 1e9 {
		link.Rate = cluster.FromRead(unit.Rate(float64(bw)*float64(n))*unit.GBps/1000, l.b.src)
	}
	l.b.t.Connect(link)
}

// switches makes the one NVSwitch of the node and joins the GPUs to it.
func (l *linker) switches() {
	if len(l.toSw) == 0 {
		return
	}
	d := cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1}
	if len(l.swAddr) == 1 {
		for a := range l.swAddr {
			d.PCI = a
		}
	}
	sw := l.b.t.Add(d)
	for _, g := range slices.Sorted(maps.Keys(l.toSw)) {
		l.b.t.Connect(cluster.Link{A: g, B: sw, Kind: cluster.NVLink, Lanes: l.toSw[g]})
	}
}

// pairs makes one link of two directions that agree, two of those that do not.
func (l *linker) pairs() {
	for _, e := range slices.SortedFunc(maps.Keys(l.edges), edge.compare) {
		there := l.edges[e].n
		back, both := l.edges[edge{e.kind, e.to, e.from}]
		if both = both && back.n == there; both && e.from > e.to {
			continue
		}
		l.b.t.Connect(cluster.Link{A: e.from, B: e.to, Kind: e.kind, Lanes: there, OneWay: !both})
		if !both && (e.from < e.to || back.n == 0) && e.kind != cluster.Direct {
			a, c := l.b.t.Devices[e.from].Name, l.b.t.Devices[e.to].Name
			l.b.f.Warnf(l.edges[e].line, "", "%s has %s to %s, %s has %d to %s: a ring is limited by the %d", a,
				counted(there, e.kind), c, c, back.n, a, min(there, back.n))
		}
	}
}

// counted is a number of links of a kind.
func counted(n int, kind cluster.LinkKind) string {
	if kind == cluster.XGMI {
		return words.Plural(n, "xGMI link")
	}
	return words.Plural(n, "NVLink")
}

// sideLink is a link of a switch to another on the same chip.
type sideLink struct {
	el         *element
	from, tray int
}

// beside adds a link between switches that are siblings on one chip; their number is not told.
func (l *linker) beside(s sideLink) {
	b := l.b
	addr, _ := cluster.ParsePCI(s.el.Get("target"))
	to := b.device(s.tray, addr)
	if to < 0 || to == s.from {
		b.f.Warnf(s.el.Line, string(b.t.Devices[s.from].PCI), "pcilink to %.60s, which is no switch of this file; left out",
			s.el.Get("target"))
		return
	}
	l.addEdge(edge{cluster.Direct, s.from, to}, 0, s.el.Line)
}
