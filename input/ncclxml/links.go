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

// maxCount bounds the links of one GPU to one target.
const maxCount = 1024

func (b *builder) links() {
	b.edges, b.toSw, b.swAddr = map[edge]tally{}, map[int]int{}, map[cluster.PCI]bool{}
	for i := range b.leaves {
		leaf := &b.leaves[i]
		if g := leaf.el.All("gpu"); leaf.kind == cluster.GPU && len(g) > 0 {
			b.gpuLinks(leaf, g[0])
		}
	}
	for _, s := range b.beside {
		b.sideLink(s)
	}
	b.switches()
	b.pairs()
}

// device is the device at an address of the file, -1 when there is none. Addresses are unique where there are any,
// and a leaf without one is not found.
func (b *builder) device(tray int, addr cluster.PCI) int {
	if d, ok := b.at[place{tray, addr}]; ok && addr != "" {
		return d
	}
	return -1
}

func (b *builder) gpuLinks(leaf *leaf, g *element) {
	from := b.device(leaf.tray, leaf.addr)
	if from < 0 {
		return // without an address
	}
	for _, e := range g.Kids {
		n := upTo(maxCount, e, "count")
		if n == 0 {
			b.f.Warnf(e.Line, b.t.Devices[from].Name, "%s count %.60q; expected 1 to %d: left out", e.Name,
				e.Get("count"), maxCount)
			continue
		}
		if e.Name == "c2c" {
			b.c2c(e, from, n)
		} else {
			b.link(e, leaf.tray, from, n)
		}
	}
}

// link tells by the target's class where an NVLink goes, as NCCL does: to an NVSwitch, else to another GPU of the host.
func (b *builder) link(e *element, tray, from, n int) {
	kind := map[string]cluster.LinkKind{"nvlink": cluster.NVLink, "xgmi": cluster.XGMI}[e.Name]
	class, target := hexText(e.Get("tclass")), e.Get("target")
	addr, _ := cluster.ParsePCI(target)
	me, to := b.t.Devices[from].Name, b.device(tray, addr)
	switch {
	case kind == cluster.NVLink && (class == "068000" || target == hidden || class == "" && to < 0):
		b.swAddr[addr] = true
		b.toSw[from] = min(b.toSw[from]+n, maxCount)
	case to == from:
		b.f.Warnf(e.Line, me, "names itself as the target of %s: what is at their other end is not in the file; left out",
			counted(n, kind))
	case to < 0 || b.t.Devices[to].Kind != cluster.GPU:
		b.f.Warnf(e.Line, me, "%s to %.60s, which is no GPU of this file; left out", counted(n, kind), target)
	default:
		b.addEdge(edge{kind, from, to}, n, e.Line)
	}
}

func (b *builder) addEdge(e edge, n, line int) {
	t := b.edges[e]
	b.edges[e] = tally{min(t.n+n, maxCount), cmp.Or(t.line, line)}
}

// c2c adds the chip-to-chip links of a GPU to its CPU. bw is MB/s per link.
func (b *builder) c2c(e *element, gpu, n int) {
	numa := b.t.Above(gpu, cluster.NUMA)
	if numa < 0 {
		return
	}
	link := cluster.Link{A: numa, B: gpu, Kind: cluster.C2C, Lanes: n}
	if bw := upTo(1e9, e, "bw"); bw > 0 {
		link.Rate = cluster.FromRead(unit.Rate(float64(bw)*float64(n))*unit.GBps/1000, b.src)
	}
	b.t.Connect(link)
}

// switches makes the one NVSwitch of the node and joins the GPUs to it.
func (b *builder) switches() {
	if len(b.toSw) == 0 {
		return
	}
	d := cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1}
	if len(b.swAddr) == 1 {
		for a := range b.swAddr {
			d.PCI = a
		}
	}
	sw := b.t.Add(d)
	for _, g := range slices.Sorted(maps.Keys(b.toSw)) {
		b.t.Connect(cluster.Link{A: g, B: sw, Kind: cluster.NVLink, Lanes: b.toSw[g]})
	}
}

// pairs makes one link of two directions that agree, two of those that do not.
func (b *builder) pairs() {
	for _, e := range slices.SortedFunc(maps.Keys(b.edges), edge.compare) {
		there := b.edges[e].n
		back, both := b.edges[edge{e.kind, e.to, e.from}]
		if both = both && back.n == there; both && e.from > e.to {
			continue
		}
		b.t.Connect(cluster.Link{A: e.from, B: e.to, Kind: e.kind, Lanes: there, OneWay: !both})
		if !both && (e.from < e.to || back.n == 0) && e.kind != cluster.Direct {
			a, c := b.t.Devices[e.from].Name, b.t.Devices[e.to].Name
			b.f.Warnf(b.edges[e].line, "", "%s has %s to %s, %s has %d to %s: a ring is limited by the %d", a,
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
func (b *builder) sideLink(s sideLink) {
	addr, _ := cluster.ParsePCI(s.el.Get("target"))
	to := b.device(s.tray, addr)
	if to < 0 || to == s.from {
		b.f.Warnf(s.el.Line, string(b.t.Devices[s.from].PCI), "pcilink to %.60s, which is no switch of this file; left out",
			s.el.Get("target"))
		return
	}
	b.addEdge(edge{cluster.Direct, s.from, to}, 0, s.el.Line)
}
