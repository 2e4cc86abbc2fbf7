package nccl

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/internal/csvtable"
)

// amd is the vendor whose GPUs RCCL runs on.
const amd = "amd"

// RCCL is what RCCL, AMD's NCCL, decides by beyond what NCCL asks of a communicator. RCCL 2.21 is that of ROCm 6.3,
// 2.22 of 6.4, 2.26 of 7.0, 2.27 of 7.1 and 7.2, 2.28 of 7.11 on.
type RCCL struct {
	Arch   string  // of its GPUs: gfx942
	Model  int     // number of the model whose rings it takes, -1 where it searches for them
	Tuning int     // which of its tables of figures it takes
	LL128  bool    // the model allows the protocol
	BaseBw float32 // GB/s that it counts with whatever the rings are; 0 none
	nets   bool    // rings name NICs
}

// usableRCCL says why RCCL could not run on a device.
func (b *builder) usableRCCL(x *cluster.Device) error {
	switch {
	case x.GPU.Arch == "":
		return fmt.Errorf("%s of node type %s: its architecture (gfx942) is not known, and RCCL decides by it; name the "+
			"GPU's model", x.Name, b.t.Name)
	case xgmiBw(x.GPU.Arch) == 0:
		return fmt.Errorf("%s of node type %s is %s; RCCL's figures are known here for gfx90a (MI210, MI250X), gfx942 "+
			"(MI300X, MI325X) and gfx950 (MI350X, MI355X)", x.Name, b.t.Name, x.GPU.Arch)
	case b.s.arch != "" && b.s.arch != x.GPU.Arch:
		return fmt.Errorf("node type %s has %s and %s; RCCL on GPUs of two architectures is not modelled", b.t.Name, b.s.arch,
			x.GPU.Arch)
	}
	return nil
}

// foreign refuses a GPU whose library is neither NCCL nor RCCL, and says what is missing.
func foreign(x *cluster.Device, node string) error {
	library := map[string]string{
		"intel": "HCCL (Gaudi) or oneCCL; missing are their choices by size and a published " +
			"sweep (busbar predict answers all_reduce of 32 MiB and more on Gaudi 2 and 256 MiB on Gaudi 3, from published " +
			"runs)",
		"google": "XLA, which compiles its collectives itself",
	}[x.GPU.Vendor]
	library = cmp.Or(library, "a library whose choices are not modelled")
	return fmt.Errorf("%s of node type %s is of %s, where collectives run by %s; NCCL runs on NVIDIA GPUs and RCCL on "+
		"AMD's", x.Name, node, x.GPU.Vendor, library)
}

// isRome reports a processor that RCCL takes for AMD's Rome, by its CPUID family, or that times 16 and 15 as RCCL
// writes it.
func isRome(family, model int) bool {
	return (family == 143 || family == 23) && model >= 49 || family == 175 || family == 25
}

// xgmiBw is what RCCL counts for one link between GPUs, in GB/s one direction; 0 for GPUs that are not modelled (RCCL
// 2.28 src/graph/topo.h). It is less than the line rate, 64 GB/s on gfx942: what such links carry.
func xgmiBw(arch string) float32 {
	switch {
	case arch == "gfx90a":
		return 36
	case strings.HasPrefix(arch, "gfx94"), strings.HasPrefix(arch, "gfx95"):
		return 48
	}
	return 0
}

// cdna3 reports MI300 and later.
func (r *RCCL) cdna3() bool { return r.Arch != "gfx90a" }

// searchRCCL finds the rings and trees of a node: those of the model that it fits, or what a search finds.
func (p *Plan) searchRCCL(w *View) {
	s := w.sys
	r := &RCCL{Arch: s.arch, Model: -1}
	w.Graphs.rccl = r
	f := s.rcclView(s.arch).match()
	if f == nil {
		p.search(w)
		if r.cdna3() && p.rules.ROCm7 { // before, what no model fits has the table of the oldest GPUs
			r.Tuning = 5
		}
		r.retune()
		return
	}
	r.Model, r.Tuning, r.LL128, r.BaseBw = f.Index, f.Tuning, f.LL128, float32(f.BaseBw)
	r.nets = strings.HasPrefix(f.Rings[0], "N")
	r.retune()
	if f.Index == 40 && p.rules.ROCm7 { // RCCL 2.26 allows it there
		r.LL128 = true
	}
	g := Graph{ID: 0, Pattern: RingPattern, TypeIntra: PathNVL, TypeInter: PathPIX, SameChannels: true}
	w.Graphs.Ring = s.ringsOf(f, g, f.Rings, false)
	w.Graphs.odd = s.ringsOf(f, g, f.Rings, true)
	if f.Last != nil {
		w.Graphs.before, w.Graphs.last = s.ringsOf(f, g, f.Before, false), s.ringsOf(f, g, f.Last, false)
	}
	w.Graphs.Tree = w.Graphs.Ring
	w.Graphs.Tree.ID, w.Graphs.Tree.Pattern = 1, BalancedTree
	w.Graphs.Chain = Graph{ID: 2, Pattern: TreePattern}
	w.Graphs.NVLS = Graph{ID: 3, Pattern: NVLSPattern}
	w.Graphs.Direct = Graph{ID: 4, Pattern: DirectPattern}
}

// retune takes the table of GPUs that have one of their own.
func (r *RCCL) retune() {
	if strings.HasPrefix(r.Arch, "gfx95") {
		r.Tuning = 6
	}
}

// ringsOf reads rings of a model as a node's own (RCCL 2.21 src/graph/rome_models.cc, parseGraph). Every other node
// takes them backwards, so that a cable's ends are on one rail.
func (s *system) ringsOf(f *fit, g Graph, listed []string, back bool) Graph {
	v := s.rcclView(s.arch)
	for t := range max(1, f.Times) {
		for c := range listed {
			line := listed[c]
			if f.Turn {
				line = listed[(c+t)%len(listed)]
			}
			var order []int
			ends := [2]int{-1, -1}
			for _, w := range strings.Fields(line) {
				var k int
				if n, ok := strings.CutPrefix(w, "N"); ok {
					fmt.Sscan(n, &k)
					ends[bit(len(order) > 0)] = v.nics[f.nics[k]].index
					continue
				}
				fmt.Sscan(w, &k)
				order = append(order, v.gpus[f.gpus[k]].gpu.rank)
			}
			if back {
				slices.Reverse(order)
				ends[0], ends[1] = ends[1], ends[0]
			}
			g.Intra, g.Inter = append(g.Intra, order), append(g.Inter, ends)
		}
	}
	g.NChannels = len(g.Intra)
	g.BwIntra = s.totalBw / float32(g.NChannels)
	g.BwInter = g.BwIntra
	return g
}

// ring is the graph that a node among others takes its part of the rings from.
func (g *Graphs) ring(node, nodes int) *Graph {
	switch odd := nodes%2 == 1; {
	case g.odd.NChannels == 0 || nodes == 1:
		return &g.Ring
	case odd && node == nodes-1 && g.last.NChannels > 0:
		return &g.last
	case odd && node == nodes-2 && g.last.NChannels > 0:
		return &g.before
	case node%2 == 1:
		return &g.odd
	}
	return &g.Ring
}

// channelsRCCL decides how many channels collectives use (RCCL 2.21 src/init.cc, initTransportsRank, and
// src/graph/connect.cc, ncclTopoPostset; 2.26 and later by its changes for gfx950).
func (p *Plan) channelsRCCL() {
	r, w, g := p.RCCL, p.Wiring, &p.Graphs
	n := g.Ring.NChannels
	most := 32
	limit := 16
	if r.cdna3() {
		most, limit = 128, 32
		if p.rules.ROCm7 && p.NNodes == 1 {
			most = 56
			if r.Tuning == 6 {
				most = 112
			}
		}
	}
	if r.nets || p.NNodes > 1 {
		most = min(most, 64)
	}
	copies := 2
	switch {
	case !r.cdna3() && p.NNodes == 1:
		copies = 4
	case !r.cdna3():
		copies = max(copies, 4/max(n, 1))
	case p.NRanks == 2:
		copies = 16
	case p.NRanks == 4, r.Tuning == 6 && p.NNodes == 1:
		copies = 4
	}
	w.split = n > limit
	w.origin = w.origin[:0]
	for c := range min(n, most) {
		w.origin = append(w.origin, c)
	}
	for c := range n * bit(n <= most/2) {
		w.origin = append(w.origin, c+n*bit(!w.split))
	}
	w.repeat(min(most/max(n, 1), copies) * n)
	p.userChannels(most)
	p.Channels = w.Count()
}

// rcclModel is a row of rccl_models.csv: a kind of node that RCCL knows rings for.
type rcclModel struct {
	Index   int      `csv:"model"` // in RCCL's list, as its log names it
	CPUs    int      `csv:"cpus"`
	Joined  int      `csv:"links"`   // GPUs that a GPU is joined to at most
	Pattern string   `csv:"pattern"` // GPUs and NICs of every NUMA domain, a digit each
	GPUIDs  []string `csv:"gpu_ids"` // PCI buses, in hexadecimal
	GPUNUMA string   `csv:"gpu_numa"`
	NICNUMA string   `csv:"nic_numa,optional"`
	XGMI    []string `csv:"xgmi,optional"` // links between GPUs, a row for each; empty: one between any two
	Near    []string `csv:"near,optional"` // from NIC to GPU, a row for each NIC: I PIX, B PXB, H PHB, S SYS
	// Rings are listed once and taken so many times; where they turn, each time from one further on.
	Rings []string `csv:"rings"`
	Times int      `csv:"times,optional"`
	Turn  bool     `csv:"turn,optional"`
	// Before and Last are the rings of the last node but one and of the last, where the number of nodes is odd.
	Before  []string `csv:"before,optional"`
	Last    []string `csv:"last,optional"`
	Tuning  int      `csv:"tuning,optional"`
	LL128   bool     `csv:"ll128,optional"`
	BaseBw  float64  `csv:"base_GBps,optional"`
	AnyCPU  bool     `csv:"any_cpu,optional"`  // for processors other than AMD's Rome too
	AnyNUMA bool     `csv:"any_numa,optional"` // whatever the domains are
	Source  string   `csv:"source"`
}

//go:embed data/rccl_models.csv
var rcclTable string

// rcclModels are those kinds of nodes in RCCL's order: the first that fits is taken.
var rcclModels = sync.OnceValue(func() []rcclModel {
	return csvtable.Must[rcclModel]("nccl/data/rccl_models.csv", rcclTable)
})

// view is a node in the form that RCCL compares with its models: GPUs by number, NICs by number.
type rcclView struct {
	gpus, nics []*topoNode
	gpuNUMA    []int
	nicNUMA    []int
	xgmi       [][]int
	near       [][]PathType // by NIC and GPU
	cpus       int
	links      int
	pattern    string
	rome       bool // the processor is AMD's Rome or a later one that RCCL counts so
	direct     bool // no GPU is behind a PCIe switch
}

// rcclView looks at a node as RCCL does (RCCL 2.21 src/graph/rome_models.cc, parseRomeSystem).
func (s *system) rcclView(arch string) *rcclView {
	v := &rcclView{
		gpus: slices.Clone(s.nodes[kindGPU]), nics: slices.Clone(s.nodes[kindNET]), cpus: len(s.nodes[kindCPU]), direct: true,
	}
	slices.SortStableFunc(v.gpus, func(a, b *topoNode) int { return cmp.Compare(a.gpu.dev, b.gpu.dev) })
	slices.SortStableFunc(v.nics, func(a, b *topoNode) int { return cmp.Compare(a.id, b.id) })
	cpus := slices.Clone(s.nodes[kindCPU])
	slices.SortStableFunc(cpus, func(a, b *topoNode) int { return cmp.Compare(a.id, b.id) })
	first := s.nodes[kindCPU][0].cpu
	v.rome = first.rome
	numa := func(n *topoNode) int {
		best := 0
		for c := range n.paths[kindCPU] {
			if len(n.paths[kindCPU][c].hops) < len(n.paths[kindCPU][best].hops) {
				best = c
			}
		}
		return int(s.nodes[kindCPU][best].id)
	}
	for _, g := range v.gpus {
		row, joined := make([]int, len(v.gpus)), 0
		for j, o := range v.gpus {
			if l := g.linkTo(o, linkNVL); l != nil && o != g {
				row[j] = int(l.bw / xgmiBw(arch))
				joined++
			}
		}
		v.direct = v.direct && len(g.paths[kindCPU][s.localCPU(g)].hops) <= 2
		v.xgmi, v.gpuNUMA, v.links = append(v.xgmi, row), append(v.gpuNUMA, numa(g)), max(v.links, joined)
	}
	for _, n := range v.nics {
		var row []PathType
		for _, g := range v.gpus {
			row = append(row, s.nearRCCL(g, n, arch))
		}
		v.near, v.nicNUMA = append(v.near, row), append(v.nicNUMA, numa(n))
	}
	if first.vendor == Intel && v.direct {
		v.pairVirtual()
	}
	for _, c := range cpus {
		g := count(v.gpuNUMA, int(c.id))
		n := count(v.nicNUMA, int(c.id))
		v.pattern += string(rune('0'+g)) + string(rune('0'+n))
	}
	return v
}

// nearRCCL is how RCCL sees a NIC from a GPU. A NIC that hangs on a die of MI250X itself has a port of the processor in
// PCIe's own view: the switch between them has no address.
func (s *system) nearRCCL(g, n *topoNode, arch string) PathType {
	p := &g.paths[kindNET][n.index]
	hidden := slices.ContainsFunc(p.hops, func(l *topoLink) bool { return l.to.kind == kindPCI && l.to.pci == 0 })
	if arch == "gfx90a" && p.kind <= PathPXB && hidden {
		return PathPHB
	}
	return p.kind
}

// pairVirtual takes a GPU and a NIC of a virtual machine, which shows no PCIe switches, for neighbours where their
// buses are as far apart as Azure numbers them (RCCL 2.21 src/graph/paths.cc, rcclPathOverride).
func (v *rcclView) pairVirtual() {
	bus := func(net *topoNode) uint64 {
		for _, l := range net.links {
			if l.to.kind == kindNIC {
				return l.to.id
			}
		}
		return 0
	}
	for _, apart := range []uint64{0x100000, 0x1000, 0xff00000} {
		pairs := map[int]int{} // by GPU
		for g, gpu := range v.gpus {
			for n, net := range v.nics {
				if b := bus(net); b-gpu.id == apart || gpu.id-b == apart {
					pairs[g] = n
				}
			}
		}
		if len(pairs) == len(v.gpus) {
			for g, n := range pairs {
				v.near[n][g] = PathPXB
			}
			return
		}
	}
}

func count(list []int, x int) int {
	n := 0
	for _, y := range list {
		n += bit(x == y)
	}
	return n
}

// fit is a model and how its GPUs and NICs are those of a node.
type fit struct {
	*rcclModel
	gpus, nics []int
}

// match finds the first model that a node fits, as RCCL looks for it: meshes of eight by their domains, then up to
// eight GPUs in the order of their buses, then sixteen (RCCL 2.21 src/graph/search.cc, ncclTopoCompute).
func (v *rcclView) match() *fit {
	n := len(v.gpus)
	if n == 8 && v.cpus == 2 && v.mesh() {
		if f := v.first(v.byDomain); f != nil {
			return f
		}
	}
	switch {
	case n <= 8:
		return v.first(v.byBus)
	case n == 16 && v.cpus == 4 && v.rome:
		return v.first(v.byDomain)
	}
	return nil
}

func (v *rcclView) first(try func(m *rcclModel) *fit) *fit {
	list := rcclModels()
	for i := range list {
		m := &list[i]
		if len(m.GPUIDs) != len(v.gpus) || len(m.Near) != len(v.nics) || m.Joined != v.links {
			continue
		}
		if f := try(m); f != nil {
			return f
		}
	}
	return nil
}

// mesh reports whether one link joins any two GPUs.
func (v *rcclView) mesh() bool {
	for i, row := range v.xgmi {
		for j, n := range row {
			if i != j && n != 1 {
				return false
			}
		}
	}
	return true
}

// byDomain looks among the orders of GPUs in which domains stay as they are.
func (v *rcclView) byDomain(m *rcclModel) *fit {
	if m.CPUs != v.cpus || m.Pattern != v.pattern || len(v.gpus) == 8 && m.XGMI != nil {
		return nil
	}
	var start []int
	for d := range v.cpus {
		for k, n := range v.gpuNUMA {
			if n == d {
				start = append(start, k)
			}
		}
	}
	per := len(v.gpus) / v.cpus
	if len(start) != len(v.gpus) || !slices.Equal(digits(m.GPUNUMA), inBlocks(v.cpus, per)) {
		return nil
	}
	f := &fit{rcclModel: m}
	if !v.arrange(m, start, nil, per, false, func(g []int) bool {
		f.gpus, f.nics = slices.Clone(g), v.matchNICs(m, g, false)
		return f.nics != nil
	}) {
		return nil
	}
	return f
}

// inBlocks are the domains of GPUs that are listed domain by domain.
func inBlocks(domains, each int) []int {
	var list []int
	for d := range domains {
		for range each {
			list = append(list, d)
		}
	}
	return list
}

// byBus looks for the order in which buses ascend as those of the model do.
func (v *rcclView) byBus(m *rcclModel) *fit {
	if !m.AnyCPU && !v.rome || !m.AnyNUMA && (m.CPUs != v.cpus || m.Pattern != v.pattern) {
		return nil
	}
	n := len(v.gpus)
	start := make([]int, n)
	for i := range start {
		start[i] = (i + 2) % n
	}
	f := &fit{rcclModel: m}
	if !v.arrange(m, start, v.busOrder(m), n, !m.AnyNUMA, func(g []int) bool { f.gpus = slices.Clone(g); return true }) {
		return nil
	}
	if f.nics = v.matchNICs(m, f.gpus, m.AnyNUMA); f.nics == nil {
		return nil
	}
	return f
}

// busOrder reports whether two GPUs of the node stand to each other as two of the model do: by their buses, and whether
// one hub of the processor holds both.
func (v *rcclView) busOrder(m *rcclModel) func(i, j, gi, gj int) bool {
	var ids []int64
	for _, w := range m.GPUIDs {
		id, _ := strconv.ParseInt(w, 16, 64)
		ids = append(ids, id)
	}
	const hub = 0xf0
	return func(i, j, gi, gj int) bool {
		a, b := int64(v.gpus[gi].id>>12), int64(v.gpus[gj].id>>12)
		if !m.AnyCPU && v.direct && (ids[i]&hub == ids[j]&hub) != (a&hub == b&hub) {
			return false
		}
		return (ids[i] < ids[j]) == (a < b)
	}
}

// arrange tries the orders of GPUs, by domains of so many or all at once, until one has the model's links and is taken.
// Orders are tried as RCCL tries them; one that cannot fit is given up as soon as that shows.
func (v *rcclView) arrange(m *rcclModel, g []int, order func(i, j, gi, gj int) bool, per int, numa bool,
	take func(g []int) bool,
) bool {
	domains := digits(m.GPUNUMA)
	fits := func(k int) bool {
		if numa && domains[k] != v.gpuNUMA[g[k]] {
			return false
		}
		for i := range k {
			want := 1
			if m.XGMI != nil {
				want = int(m.XGMI[k][i] - '0')
			}
			if v.xgmi[g[k]][g[i]] != want || order != nil && !order(k, i, g[k], g[i]) {
				return false
			}
		}
		return true
	}
	var try func(k int) bool
	try = func(k int) bool {
		if k == len(g) {
			return take(g)
		}
		block := slices.Clone(g[k : k/per*per+per])
		for i := range block {
			if order == nil { // one after the other, the rest in their order
				copy(g[k:], append([]int{block[i]}, slices.Delete(slices.Clone(block), i, i+1)...))
			} else {
				g[k], g[k+i] = g[k+i], g[k]
			}
			if fits(k) && try(k+1) {
				return true
			}
			copy(g[k:], block)
		}
		return false
	}
	return try(0)
}

// matchNICs finds which NIC of the node is which of the model; nil where none fits. A way through another GPU fits any.
func (v *rcclView) matchNICs(m *rcclModel, g []int, anyNUMA bool) []int {
	domains := digits(m.NICNUMA)
	n := make([]int, len(v.nics))
	if len(n) < 2 {
		return n
	}
	for i := range n {
		n[i] = (i + 2) % len(n)
	}
	if len(n)%len(v.gpus) == 0 && len(n) > len(v.gpus) { // the first free one each
		for i := range n {
			n[i] = i
		}
	}
	fits := func(k int) bool {
		if !anyNUMA && domains[k] != v.nicNUMA[n[k]] {
			return false
		}
		for j, d := range g {
			if have := v.near[n[k]][d]; have != PathPXN && have != nearness[m.Near[k][j]] {
				return false
			}
		}
		return true
	}
	var try func(k int) bool
	try = func(k int) bool {
		if k == len(n) {
			return true
		}
		for i := k; i < len(n); i++ {
			n[k], n[i] = n[i], n[k]
			if fits(k) && try(k+1) {
				return true
			}
			n[k], n[i] = n[i], n[k]
		}
		return false
	}
	if !try(0) {
		return nil
	}
	return n
}

var nearness = map[byte]PathType{'I': PathPIX, 'B': PathPXB, 'H': PathPHB, 'S': PathSYS}

// digits reads a number from every digit.
func digits(s string) []int {
	list := make([]int, len(s))
	for i := range s {
		list[i] = int(s[i] - '0')
	}
	return list
}

// rcclModelled is RCCL's arithmetic for one communicator (RCCL 2.21 src/graph/tuning.cc, ncclTopoTuneModel).
type rcclModelled struct {
	model
	t *[2][nProtos]rcclFigures
}

// estimateRCCL fills the table.
func (t *Table) estimateRCCL(m model) {
	x := rcclModelled{m, &m.rules.RCCL[m.RCCL.Tuning]}
	for op := range Op(nOps) {
		for _, a := range []Algo{Tree, Ring} {
			for p := range Proto(nProtos) {
				alone := m.NNodes == 1 && m.RCCL.cdna3() && a == Tree && p == Simple
				if a == Tree && op != AllReduce || alone {
					continue
				}
				t.Est[op][a][p] = Estimate{x.latency(op, a, p), x.bandwidth(op, a, p)}
			}
		}
	}
}

func (x *rcclModelled) bandwidth(op Op, a Algo, p Proto) float32 {
	g := x.g.graphOf(a)
	bw := g.BwInter
	if x.NNodes <= 2 {
		bw = g.BwIntra
	}
	bus := float32(g.NChannels) * bw
	if x.RCCL.BaseBw > 0 {
		bus = x.RCCL.BaseBw
	}
	bus *= float32(x.t[a][p].Ratio[bit(x.NNodes > 2)])
	if a == Tree {
		return bus * .5
	}
	if p == LL && (op == Broadcast || op == Reduce) && x.RCCL.cdna3() && x.NNodes == 1 {
		bus = float32(float64(bus) * 1.65)
	}
	return bus * float32(float64(x.NRanks)/float64(x.steps(op)))
}

func (x *rcclModelled) latency(op Op, a Algo, p Proto) float32 {
	g := x.g.graphOf(a)
	inside := x.step(g, a, p)
	across, lat := float32(x.t[a][p].Net), float32(rcclBase[p])
	if a == Tree {
		return lat + 2*(float32(x.NRanks/x.NNodes-1)*inside+float32(log2(x.NNodes))*across)
	}
	steps := x.steps(op)
	if op == Reduce || op == Broadcast {
		by := a
		if p == Simple && !g.SameChannels { // rings of different orders are counted by a step of a tree
			by = Tree
		}
		each := x.step(g, by, p)
		if x.NNodes > 1 {
			each = float32(x.t[by][p].Net)
		}
		if g.SameChannels {
			steps = 1
		}
		return lat + float32(steps)*each
	}
	if x.NNodes > 1 {
		inside = max(inside, float32(x.netOverhead(p)))
	}
	between := x.NNodes - 1
	if op == AllReduce && x.NNodes > 1 {
		between = 2 * (x.NNodes - bit(x.rules.ROCm7))
	}
	return lat + float32(steps-between)*inside + float32(between)*across
}

// step is one of an algorithm inside a node that has a graph.
func (x *rcclModelled) step(g *Graph, a Algo, p Proto) float32 {
	if g.TypeIntra != PathNVL {
		return float32(rcclPCI[p])
	}
	return float32(x.t[a][p].Intra)
}

// timeRCCL is what RCCL expects of a combination.
func (t *Table) timeRCCL(call Call, a Algo, p Proto) float32 {
	c, e := t.comm, t.Est[call.Op][a][p]
	bw := e.BW
	if f := &c.rules.RCCL[c.RCCL.Tuning][a][p].Factor; a == Tree || c.NNodes > 1 {
		bw *= f[min(log2(int(call.Bytes>>6)), len(f)-1)]
	}
	pipe := max(call.Group, 1)
	if a != Ring {
		pipe = divUp(pipe, c.rules.Batch)
	}
	return e.Latency*float32(pipe) + float32(call.Bytes)/(1000*bw)
}

// ll128RCCL is RCCL's gate for LL128: on gfx90a, and on MI300X and later since 2.26, where the model says so.
func (c *Comm) ll128RCCL(g *Graph) bool {
	r := c.RCCL
	return (r.Arch == "gfx90a" || c.rules.ROCm7) && r.LL128 && g.TypeInter <= PathPXB && g.TypeIntra <= PathNVL
}

// protoRange is the sizes, per rank but of all-reduce, up to which LL and LL128 are taken between nodes.
type protoRange struct{ LL, Least128, LL128 int64 }

// override is the protocol that RCCL takes whatever its table says: by size, where the user left it open.
func (t *Table) override(call Call, ch Candidate) Candidate {
	c := t.comm
	if _, set := c.Env["NCCL_PROTO"]; set || !c.rules.ROCm7 || ch.Algo != Ring && ch.Algo != Tree {
		return ch
	}
	size := call.Bytes
	if call.Op != AllReduce {
		size /= int64(max(c.NRanks, 1))
	}
	want := ch.Proto
	if c.NNodes == 1 {
		gfx950 := strings.HasPrefix(c.RCCL.Arch, "gfx95")
		switch {
		case gfx950 && (call.Op == AllGather && size <= 88448 || call.Op == ReduceScatter && size <= 1<<20),
			c.RCCL.cdna3() && call.Op == ReduceScatter && size <= 352128:
			want = LL
		}
	} else if r := c.rules.RCCLRanges[c.RCCL.Tuning][call.Op]; r.LL > 0 {
		want = r.proto(size, call.Op == AllReduce && c.NNodes > 2, t.Est[call.Op][ch.Algo][LL128].BW > 0)
	}
	if us, ok := t.Time(call, ch.Algo, want); ok {
		ch.Proto, ch.Time = want, us
	}
	return ch
}

// proto is the protocol of a size.
func (r protoRange) proto(size int64, many, ll128 bool) Proto {
	most := r.LL128
	if many {
		most = int64(float64(most) * 3.8)
	}
	switch {
	case ll128 && size > r.Least128 && size <= most:
		return LL128
	case size <= r.LL:
		return LL
	}
	return Simple
}

// rcclFigures are those of one of RCCL's tables, each measured on one system: latencies in µs by step, the part of the
// rings' bandwidth that data gets, up to two nodes and on more, and by what that is multiplied at a size, 64 B, 128 B
// and so on.
type rcclFigures struct {
	Intra, Net float64
	Ratio      [2]float64
	Factor     [27]float32
}

// rcclBase is what any call costs, rcclPCI a step between GPUs without links of their own.
var rcclBase, rcclPCI = protoRow{12, 12, 17}, protoRow{2.2, 2.2, 5.7}
