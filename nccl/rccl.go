package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
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
		if r.cdna3() && p.Version.From(26) { // before, what no model fits has the table of the oldest GPUs
			r.Tuning = 5
		}
		r.retune()
		return
	}
	r.Model, r.Tuning, r.LL128, r.BaseBw, r.nets = f.index, f.tuning, f.ll128, f.baseBw, strings.HasPrefix(f.rings, "N")
	r.retune()
	if f.index == 40 && p.Version.From(26) { // RCCL 2.26 allows it there
		r.LL128 = true
	}
	g := Graph{ID: 0, Pattern: RingPattern, TypeIntra: PathNVL, TypeInter: PathPIX, SameChannels: true}
	w.Graphs.Ring = s.ringsOf(f, g, f.rings, false)
	w.Graphs.odd = s.ringsOf(f, g, f.rings, true)
	if f.last != "" {
		w.Graphs.before, w.Graphs.last = s.ringsOf(f, g, f.before, false), s.ringsOf(f, g, f.last, false)
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
func (s *system) ringsOf(f *fit, g Graph, text string, back bool) Graph {
	v := s.rcclView(s.arch)
	listed := strings.Split(text, "|")
	times := max(1, f.times)
	for t := range times {
		for c := range listed {
			line := listed[c]
			if f.turn {
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
		if p.Version.From(26) && p.NNodes == 1 {
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

// p2pChannelsRCCL decides the channels of sends and receives (RCCL 2.21 src/graph/paths.cc,
// ncclTopoComputeP2pChannels).
func (p *Plan) p2pChannelsRCCL() {
	const most = 64
	n := p.Channels
	if k, ok := envInt(p.Env, "NCCL_MAX_P2P_NCHANNELS"); ok {
		n = min(n, k)
	}
	if k, ok := envInt(p.Env, "NCCL_MIN_P2P_NCHANNELS"); ok {
		n = max(n, k)
	}
	n = max(1, n)
	per := n
	s := p.Nodes[0].View.sys
	for _, g := range s.nodes[kindGPU] {
		per = min(per, p.perPeerRCCL(s, g, n))
	}
	per = pow2(per)
	if p.NNodes == 1 && p.RCCL.cdna3() {
		per *= 2
	}
	p.P2PChannels = min(pow2(n), most)
	p.P2PPerPeer = min(per, p.P2PChannels)
}

// perPeerRCCL is the least number of channels a GPU uses to any peer.
func (p *Plan) perPeerRCCL(s *system, g *topoNode, channels int) int {
	least, each := channels, 2
	if p.RCCL.cdna3() {
		each = 4
	}
	for i := range g.paths[kindGPU] {
		path := &s.nodes[kindGPU][i].paths[kindGPU][g.index]
		switch {
		case i == g.index:
		case path.kind == PathNVL:
			least = min(least, each*max(1, int(path.bw/xgmiBw(s.arch))))
		default:
			least = min(least, 2)
		}
	}
	if !s.inter {
		return least
	}
	if n, ok := envInt(p.Env, "NCCL_NCHANNELS_PER_NET_PEER"); ok && n > 0 {
		return min(least, n)
	}
	net := 2
	for net*p.NRanks > channels*4 && net > 1 {
		net /= 2
	}
	return min(least, max(net, 1))
}

// rcclModel is a kind of node that RCCL knows rings for, as text: rcclModels has them.
type rcclModel struct {
	index   int // in RCCL's list, as its log names it
	cpus    int
	links   int    // GPUs that a GPU is joined to at most
	pattern string // GPUs and NICs of every NUMA domain, a digit each
	gpuIDs  string // PCI buses, in hexadecimal
	gpuNUMA string // a digit each
	nicNUMA string
	xgmi    string // links between GPUs, a row for each; empty: one between any two
	near    string // from NIC to GPU, a row for each NIC: I PIX, B PXB, H PHB, S SYS
	// rings are listed once and taken so many times; where they turn, each time from one further on.
	rings string
	times int
	turn  bool
	// before and last are the rings of the last node but one and of the last, where the number of nodes is odd.
	before, last string
	tuning       int
	ll128        bool
	baseBw       float32
	anyCPU       bool // for processors other than AMD's Rome too
	anyNUMA      bool // whatever the domains are
	pairs        bool // a NIC near one GPU is as near to its neighbour
}

// gpus is how many GPUs a model has, nics how many NICs.
func (m *rcclModel) gpus() int { return len(strings.Fields(m.gpuIDs)) }
func (m *rcclModel) nics() int { return len(strings.Fields(m.near)) }

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
	for i := range rcclModels {
		m := &rcclModels[i]
		if m.gpus() != len(v.gpus) || m.nics() != len(v.nics) || m.links != v.links {
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
	if m.cpus != v.cpus || m.pattern != v.pattern || len(v.gpus) == 8 && m.xgmi != "" {
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
	if len(start) != len(v.gpus) || !slices.Equal(digits(m.gpuNUMA), inBlocks(v.cpus, per)) {
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
	if !m.anyCPU && !v.rome || !m.anyNUMA && (m.cpus != v.cpus || m.pattern != v.pattern) {
		return nil
	}
	n := len(v.gpus)
	start := make([]int, n)
	for i := range start {
		start[i] = (i + 2) % n
	}
	f := &fit{rcclModel: m}
	if !v.arrange(m, start, v.busOrder(m), n, !m.anyNUMA, func(g []int) bool { f.gpus = slices.Clone(g); return true }) {
		return nil
	}
	if f.nics = v.matchNICs(m, f.gpus, m.anyNUMA); f.nics == nil {
		return nil
	}
	return f
}

// busOrder reports whether two GPUs of the node stand to each other as two of the model do: by their buses, and whether
// one hub of the processor holds both.
func (v *rcclView) busOrder(m *rcclModel) func(i, j, gi, gj int) bool {
	var ids []int64
	for _, w := range strings.Fields(m.gpuIDs) {
		id, _ := strconv.ParseInt(w, 16, 64)
		ids = append(ids, id)
	}
	const hub = 0xf0
	return func(i, j, gi, gj int) bool {
		a, b := int64(v.gpus[gi].id>>12), int64(v.gpus[gj].id>>12)
		if !m.anyCPU && v.direct && (ids[i]&hub == ids[j]&hub) != (a&hub == b&hub) {
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
	links, domains := rowsOf(m.xgmi), digits(m.gpuNUMA)
	fits := func(k int) bool {
		if numa && domains[k] != v.gpuNUMA[g[k]] {
			return false
		}
		for i := range k {
			want := 1
			if links != nil {
				want = links[k][i]
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
	near, domains := strings.Fields(m.near), digits(m.nicNUMA)
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
			if have := v.near[n[k]][d]; have != PathPXN && have != nearness[near[k][j]] {
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

// rowsOf reads a table of digits, nil for none.
func rowsOf(s string) [][]int {
	var rows [][]int
	for _, w := range strings.Fields(s) {
		rows = append(rows, digits(w))
	}
	return rows
}

// rcclModels are kinds of nodes whose rings RCCL does not search but knows, in its order and by its number of them: the
// first that fits is taken. A ring is an order of GPUs with the NICs at its ends. Those of GPUs before MI250X are left
// out.
//
// Source: RCCL 2.21.5 src/graph/rome_models.cc (github.com/ROCm/rccl, 2024-10-24). Bus numbers, domains, links and
// distances are what it compares; they are those of one machine each.
var rcclModels = []rcclModel{
	{ // MI200 in one domain
		index: 20, cpus: 1, links: 3, pattern: "80", gpuIDs: "c1 c5 c9 cd d1 d5 d9 dd", gpuNUMA: "00000000",
		xgmi:  "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // MI250X, 16 dies, one node
		index: 24, cpus: 4, links: 4, pattern: "40404040", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a",
		gpuNUMA: "0000111122223333",
		xgmi:    rccl16,
		tuning:  1,
		rings: "0 1 3 2 6 7 15 14 10 11 9 8 12 13 5 4|0 1 2 3 7 6 13 12 8 9 10 11 15 14 5 4|0 2 3 7 6 14 15 11 10 8 9 13 " +
			"12 4 5 1|" +
			"4 5 13 12 8 9 11 10 14 15 7 6 2 3 1 0|4 5 14 15 11 10 9 8 12 13 6 7 3 2 1 0|1 5 4 12 13 9 8 10 11 15 14 6 7 3 2 0",
	},
	{ // MI250, NPS4 with one domain for four dies
		index: 25, cpus: 3, links: 3, pattern: "402020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110000",
		xgmi:  "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // MI250X, 16 dies, 8 NICs behind PCIe switches
		index: 26, cpus: 4, links: 4, pattern: "42424242", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a",
		gpuNUMA: "0000111122223333", nicNUMA: "00112233",
		xgmi: rccl16, near: "BBBBSSSSSSSSSSSS BBBBSSSSSSSSSSSS SSSSBBBBSSSSSSSS SSSSBBBBSSSSSSSS SSSSSSSSBBBBSSSS " +
			"SSSSSSSSBBBBSSSS SSSSSSSSSSSSBBBB SSSSSSSSSSSSBBBB",
		tuning: 4, ll128: true, baseBw: 161.4,
		rings: rccl16Rings,
	},
	{ // MI250 prototypes, 8 dies, one node
		index: 27, cpus: 4, links: 3, pattern: "20202020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		xgmi:  "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // the same with 4 NICs
		index: 28, cpus: 4, links: 3, pattern: "21212121", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		nicNUMA: "3102",
		xgmi:    "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		near:    "HHSSSSSS SSHHSSSS SSSSHHSS SSSSSSHH",
		times:   2, tuning: 3,
		rings: "N0 0 1 5 4 6 7 3 2 N1|N1 2 3 7 6 4 5 1 0 N0|N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3",
	},
	{ // as 26, NICs of a virtual machine
		index: 29, cpus: 4, links: 4, pattern: "42424242", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a",
		gpuNUMA: "0000111122223333", nicNUMA: "00112233",
		xgmi: rccl16, near: "HHHHSSSSSSSSSSSS HHHHSSSSSSSSSSSS SSSSHHHHSSSSSSSS SSSSHHHHSSSSSSSS SSSSSSSSHHHHSSSS " +
			"SSSSSSSSHHHHSSSS SSSSSSSSSSSSHHHH SSSSSSSSSSSSHHHH",
		tuning: 4, ll128: true, baseBw: 161.4,
		rings: rccl16Rings,
	},
	{ // MI250X, 8 dies, one node
		index: 30, cpus: 2, links: 3, pattern: "4040", gpuIDs: "29 2c 2f 32 ad b0 b3 b6", gpuNUMA: "11113333",
		xgmi:    "04002010 40010001 00041020 01400100 20100400 00014001 10200004 01000140",
		anyNUMA: true, tuning: 2,
		rings: "0 6 7 5 4 2 3 1|1 3 2 4 5 7 6 0|0 1 7 6 2 3 5 4|4 5 3 2 6 7 1 0",
	},
	{ // MI250X, 8 dies, 4 NICs behind PCIe switches
		index: 31, cpus: 2, links: 3, pattern: "4242", gpuIDs: "29 2c 2f 32 ad b0 b3 b6", gpuNUMA: "11113333",
		nicNUMA: "1133",
		xgmi:    "04002010 40010001 00041020 01400100 20100400 00014001 10200004 01000140",
		near:    "BBBBSSSS BBBBSSSS SSSSBBBB SSSSBBBB",
		anyNUMA: true, tuning: 2,
		rings: "N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3|N1 2 3 5 4 0 1 7 6 N3|N2 4 5 3 2 6 7 1 0 N0|N1 3 2 4 5 7 6 0 1 " +
			"N0|" +
			"N0 1 0 6 7 5 4 2 3 N1|N0 0 1 7 6 2 3 5 4 N2|N3 6 7 1 0 4 5 3 2 N1",
	},
	{ // MI250X, 8 dies, other boards
		index: 33, cpus: 2, links: 3, pattern: "4040", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		anyNUMA: true, tuning: 2,
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 2 3 7 6|6 7 3 2 4 5 1 0",
	},
	{ // the same with 4 NICs on the host
		index: 34, cpus: 2, links: 3, pattern: "4242", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111",
		nicNUMA: "0011",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		near:    "HHHHSSSS HHHHSSSS SSSSHHHH SSSSHHHH",
		anyNUMA: true, tuning: 2,
		rings: "N0 0 1 3 2 4 5 7 6 N3|N1 2 3 1 0 6 7 5 4 N2|N3 7 6 0 1 5 4 2 3 N1|N0 1 0 6 7 3 2 4 5 N2|N2 4 5 7 6 0 1 3 2 " +
			"N1|" +
			"N3 6 7 5 4 2 3 1 0 N0|N2 5 4 2 3 7 6 0 1 N0|N1 3 2 4 5 1 0 6 7 N3",
	},
	{ // MI250X as in Frontier and LUMI-G, one node
		index: 35, cpus: 4, links: 3, pattern: "20202020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		xgmi:  "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // the same with 4 NICs
		index: 36, cpus: 4, links: 3, pattern: "21212121", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		nicNUMA: "3102",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		near:    "HHSSSSSS SSHHSSSS SSSSHHSS SSSSSSHH",
		times:   2, tuning: 3,
		rings: "N0 0 1 5 4 6 7 3 2 N1|N1 2 3 7 6 4 5 1 0 N0|N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3",
	},
	{ // MI250X, 8 dies, 8 NICs
		index: 37, cpus: 2, links: 3, pattern: "4444", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "11113333",
		nicNUMA: "11113333",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		near:    "BBHHSSSS BBHHSSSS HHBBSSSS HHBBSSSS SSSSBBHH SSSSBBHH SSSSHHBB SSSSHHBB",
		anyNUMA: true, tuning: 3,
		rings: "N0 0 1 3 2 4 5 7 6 N6|N2 2 3 1 0 6 7 5 4 N4|N5 5 4 2 3 7 6 0 1 N1|N1 1 0 6 7 3 2 4 5 N5|N4 4 5 7 6 0 1 3 2 " +
			"N2|" +
			"N2 2 3 1 0 6 7 5 4 N4|N0 0 1 5 4 2 3 7 6 N6|N3 3 2 4 5 1 0 6 7 N7|N4 4 5 7 6 0 1 3 2 N2|N6 6 7 5 4 2 3 1 0 N0|" +
			"N7 7 6 0 1 5 4 2 3 N3|N6 6 7 3 2 4 5 1 0 N0|N3 3 2 0 1 5 4 6 7 N7|N1 1 0 2 3 7 6 4 5 N5|N5 5 4 6 7 3 2 0 1 N1|" +
			"N7 7 6 4 5 1 0 2 3 N3",
	},
	{ // MI300X, MI325X, MI350X, MI355X, one node
		index: 38, cpus: 2, links: 7, pattern: "4040", gpuIDs: "1d 2e 3f 61 9f af bf df", gpuNUMA: "00001111",
		times: 2, anyCPU: true, tuning: 5, anyNUMA: true,
		rings: "0 1 2 3 4 5 6 7|0 1 2 3 4 5 7 6|0 2 4 1 3 6 5 7|0 2 4 6 1 7 3 5|0 3 1 5 2 7 4 6|0 3 5 1 6 2 7 4|0 4 1 7 3 " +
			"6 2 5|7 6 5 4 3 2 1 0|" +
			"6 7 5 4 3 2 1 0|7 5 6 3 1 4 2 0|5 3 7 1 6 4 2 0|6 4 7 2 5 1 3 0|4 7 2 6 1 5 3 0|5 2 6 3 7 1 4 0",
	},
	{ // MI300A, 4 NICs
		index: 39, cpus: 4, links: 3, pattern: "11111111", gpuIDs: "82 c2 2 42", gpuNUMA: "2301", nicNUMA: "2301",
		xgmi: "0222 2022 2202 2220", near: "HSSS SHSS SSHS SSSH",
		rings: "N2 2 3 0 1 N1|N0 0 1 3 2 N2|N0 0 2 1 3 N3|N3 3 1 0 2 N2|N3 3 1 2 0 N0|N1 1 0 3 2 N2|N1 1 2 3 0 N0|N2 2 0 1 " +
			"3 N3|N3 3 0 2 1 N1|" +
			"N2 2 3 1 0 N0|N1 1 2 0 3 N3|N0 0 3 2 1 N1",
	},
	{ // MI300X and later, a NIC for every GPU
		index: 40, cpus: 2, links: 7, pattern: "4444", gpuIDs: "c 22 38 5c 9f af bf df", gpuNUMA: "00001111",
		nicNUMA: "00001111",
		near:    "BHHHSSSS HBHHSSSS HHBHSSSS HHHBSSSS SSSSBHHH SSSSHBHH SSSSHHBH SSSSHHHB",
		times:   8, turn: true, anyCPU: true, tuning: 5, anyNUMA: true,
		rings: "N0 0 1 2 3 4 5 6 7 N7|N1 1 0 2 4 3 5 7 6 N6|N2 2 5 0 3 6 1 7 4 N4|N3 3 7 0 4 2 1 6 5 N5|N4 4 6 2 7 3 0 5 1 " +
			"N1|" +
			"N5 5 4 7 1 3 2 6 0 N0|N6 6 3 1 4 0 7 5 2 N2|N7 7 2 0 6 4 1 5 3 N3",
		before: "N7 7 4 1 3 2 0 6 5 N5|N6 6 3 0 7 5 1 4 2 N2|N4 4 6 2 1 7 0 5 3 N3|N5 5 2 7 3 1 6 0 4 N4|N1 1 0 2 4 3 5 7 " +
			"6 N6|" +
			"N0 0 1 2 3 4 5 6 7 N7|N2 2 5 0 3 6 4 7 1 N1|N3 3 7 2 6 1 5 4 0 N0",
		last: "N5 5 4 2 7 1 6 3 0 N0|N2 2 5 0 3 7 4 6 1 N1|N3 3 6 4 0 5 1 7 2 N2|N4 4 7 0 6 5 2 1 3 N3|N6 6 2 0 7 5 3 1 4 " +
			"N4|" +
			"N7 7 3 2 6 0 4 1 5 N5|N1 1 0 2 4 3 5 7 6 N6|N0 0 1 2 3 4 5 6 7 N7",
	},
	{ // MI300X, 8 NICs of two ports
		index: 41, cpus: 2, links: 7, pattern: "4848", gpuIDs: "11 2f 46 5d 8b aa c2 da", gpuNUMA: "00001111",
		nicNUMA: "0000000011111111",
		near: "BHHHSSSS BHHHSSSS HBHHSSSS HBHHSSSS HHBHSSSS HHBHSSSS HHHBSSSS HHHBSSSS SSSSBHHH SSSSBHHH SSSSHBHH " +
			"SSSSHBHH SSSSHHBH SSSSHHBH SSSSHHHB SSSSHHHB",
		anyCPU: true, tuning: 5,
		rings: "N0 0 1 2 3 4 5 6 7 N14|N2 1 0 2 4 3 5 7 6 N12|N4 2 5 0 3 7 1 6 4 N8|N6 3 6 1 5 2 7 4 0 N0|N8 4 7 0 6 5 1 3 " +
			"2 N4|" +
			"N10 5 4 6 3 0 7 2 1 N2|N12 6 2 0 4 1 7 5 3 N6|N14 7 3 1 4 2 6 0 5 N10|N1 0 1 2 3 4 5 6 7 N15|N3 1 0 2 4 3 5 7 6 " +
			"N13|" +
			"N5 2 5 0 3 7 1 6 4 N9|N7 3 6 1 5 2 7 4 0 N1|N9 4 7 0 6 5 1 3 2 N5|N11 5 4 6 3 0 7 2 1 N3|N13 6 2 0 4 1 7 5 3 N7|" +
			"N15 7 3 1 4 2 6 0 5 N11",
	},
	{ // MI250X, 8 dies, 4 NICs, two dies each
		index: 42, cpus: 2, links: 3, pattern: "4242", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111",
		nicNUMA: "0011",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		near:    "BBHHSSSS HHBBSSSS SSSSBBHH SSSSHHBB",
		tuning:  2,
		rings: "N0 0 1 3 2 4 5 7 6 N3|N1 2 3 1 0 6 7 5 4 N2|N3 7 6 0 1 5 4 2 3 N1|N0 1 0 6 7 3 2 4 5 N2|N2 4 5 7 6 0 1 3 2 " +
			"N1|" +
			"N3 6 7 5 4 2 3 1 0 N0|N2 5 4 2 3 7 6 0 1 N0|N1 3 2 4 5 1 0 6 7 N3",
	},
	{ // MI300X, 4 NICs
		index: 43, cpus: 2, links: 7, pattern: "4242", gpuIDs: "a 80 a4 c8 10b 181 1a5 1c9", gpuNUMA: "00001111",
		nicNUMA: "0110",
		near:    "HHHBSSSS SSSSHHBH SSSSBHHH HBHHSSSS",
		times:   8, turn: true, anyCPU: true, pairs: true,
		rings: "N3 0 1 2 3 4 5 6 7 N1|N3 1 0 2 4 3 5 7 6 N1|N0 2 5 0 3 6 1 7 4 N2|N0 3 7 0 4 2 1 6 5 N2|N2 4 6 2 7 3 0 5 1 " +
			"N3|" +
			"N2 5 4 7 1 3 2 6 0 N3|N1 6 3 1 4 0 7 5 2 N0|N1 7 2 0 6 4 1 5 3 N0",
		before: "N1 6 3 1 4 0 7 5 2 N0|N1 7 2 0 6 4 1 5 3 N0|N2 4 6 2 7 3 0 5 1 N3|N2 5 4 7 1 3 2 6 0 N3|N3 0 1 2 3 4 5 6 " +
			"7 N1|" +
			"N3 1 0 2 4 3 5 7 6 N1|N0 2 5 0 3 6 1 7 4 N2|N0 3 7 0 4 2 1 6 5 N2",
		last: "N0 2 1 3 4 5 6 7 0 N3|N0 3 0 2 4 6 5 7 1 N3|N3 0 1 4 7 5 3 6 2 N0|N3 1 0 5 2 7 6 4 3 N0|N1 6 1 2 3 5 0 7 4 " +
			"N2|" +
			"N1 7 3 2 6 0 4 1 5 N2|N2 4 0 3 7 2 5 1 6 N1|N2 5 4 2 0 6 3 1 7 N1",
	},
}

// rccl16 is how many links join the sixteen dies of eight MI250X.
const rccl16 = "0410200000000000 4011010000000000 1104001000000000 0140000200000000 2000040000001000 " +
	"0100400000000110 0010000400000110 0002004000000001 0000000004102000 0000000040110100 0000000011040010 " +
	"0000000001400002 0000100020000400 0000011001004000 0000011000100004 0000000100020040"

// rccl16Rings are their rings with a NIC for two dies.
const rccl16Rings = "N4 9 8 12 13 5 4 0 1 3 2 6 7 15 14 10 11 N5|N1 3 2 6 7 15 14 10 11 9 8 12 13 5 4 0 1 N0|" +
	"N3 7 6 2 3 1 0 4 5 13 12 8 9 11 10 14 15 N7|N7 15 14 10 11 9 8 12 13 5 4 0 1 3 2 6 7 N3|" +
	"N5 11 10 14 15 7 6 2 3 1 0 4 5 13 12 8 9 N4|N0 1 0 4 5 13 12 8 9 11 10 14 15 7 6 2 3 N1|" +
	"N3 6 7 3 2 1 0 4 5 14 15 11 10 9 8 12 13 N6|N7 14 15 11 10 9 8 12 13 6 7 3 2 1 0 4 5 N2|" +
	"N2 5 4 0 1 2 3 7 6 13 12 8 9 10 11 15 14 N7|N6 13 12 8 9 10 11 15 14 5 4 0 1 2 3 7 6 N3|" +
	"N4 8 9 13 12 4 5 1 0 2 3 7 6 14 15 11 10 N5|N5 10 11 15 14 6 7 3 2 0 1 5 4 12 13 9 8 N4|" +
	"N6 12 13 9 8 10 11 15 14 6 7 3 2 0 1 5 4 N2|N2 4 5 1 0 2 3 7 6 14 15 11 10 8 9 13 12 N6|" +
	"N1 2 3 7 6 14 15 11 10 8 9 13 12 4 5 1 0 N0|N0 0 1 5 4 12 13 9 8 10 11 15 14 6 7 3 2 N1|" +
	"N5 10 11 9 8 12 13 5 4 0 1 3 2 6 7 15 14 N7|N3 6 7 15 14 10 11 9 8 12 13 5 4 0 1 3 2 N1|" +
	"N1 2 3 1 0 4 5 13 12 8 9 11 10 14 15 7 6 N3|N7 14 15 7 6 2 3 1 0 4 5 13 12 8 9 11 10 N5|" +
	"N0 0 1 2 3 7 6 13 12 8 9 10 11 15 14 5 4 N2|N4 8 9 10 11 15 14 5 4 0 1 2 3 7 6 13 12 N6|" +
	"N3 7 6 13 12 8 9 10 11 15 14 5 4 0 1 2 3 N1|N1 3 2 1 0 4 5 14 15 11 10 9 8 12 13 6 7 N3|" +
	"N6 12 13 6 7 3 2 1 0 4 5 14 15 11 10 9 8 N4|N2 4 5 14 15 11 10 9 8 12 13 6 7 3 2 1 0 N0|" +
	"N0 1 0 2 3 7 6 14 15 11 10 8 9 13 12 4 5 N2|N6 13 12 4 5 1 0 2 3 7 6 14 15 11 10 8 9 N4|" +
	"N5 11 10 8 9 13 12 4 5 1 0 2 3 7 6 14 15 N7|N2 5 4 12 13 9 8 10 11 15 14 6 7 3 2 0 1 N0|" +
	"N7 15 14 6 7 3 2 0 1 5 4 12 13 9 8 10 11 N5|N4 9 8 10 11 15 14 6 7 3 2 0 1 5 4 12 13 N6"

// rcclModelled is RCCL's arithmetic for one communicator (RCCL 2.21 src/graph/tuning.cc, ncclTopoTuneModel).
type rcclModelled struct {
	model
	t *rcclTuning
}

// estimateRCCL fills the table.
func (t *Table) estimateRCCL(m model) {
	x := rcclModelled{m, m.RCCL.tuningOf(m.Version)}
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
	g := x.g.of(a)
	bw := g.BwInter
	if x.NNodes <= 2 {
		bw = g.BwIntra
	}
	bus := float32(g.NChannels) * bw
	if x.RCCL.BaseBw > 0 {
		bus = x.RCCL.BaseBw
	}
	bus *= float32(x.t.ratio[bit(x.NNodes > 2)][a][p])
	if a == Tree {
		return bus * .5
	}
	if p == LL && (op == Broadcast || op == Reduce) && x.RCCL.cdna3() && x.NNodes == 1 {
		bus = float32(float64(bus) * 1.65)
	}
	return bus * float32(float64(x.NRanks)/float64(x.steps(op)))
}

func (x *rcclModelled) latency(op Op, a Algo, p Proto) float32 {
	g := x.g.of(a)
	inside := float32(x.t.intra[a][p])
	if g.TypeIntra != PathNVL {
		inside = float32(rcclPCI[p])
	}
	across, lat := float32(x.t.net[a][p]), float32(rcclBase[p])
	if a == Tree {
		return lat + 2*(float32(x.NRanks/x.NNodes-1)*inside+float32(log2(x.NNodes))*across)
	}
	steps := x.steps(op)
	if op == Reduce || op == Broadcast {
		each := inside
		if x.NNodes > 1 {
			each = across
		}
		if g.SameChannels {
			return lat + each
		}
		if p == Simple {
			each = x.treeStep(g, p)
		}
		return lat + float32(steps)*each
	}
	if x.NNodes > 1 {
		inside = max(inside, x.overhead(p))
	}
	between := x.NNodes - 1
	if op == AllReduce && x.NNodes > 1 {
		between = 2 * x.NNodes
		if x.Version.From(26) {
			between = 2 * (x.NNodes - 1)
		}
	}
	return lat + float32(steps-between)*inside + float32(between)*across
}

// treeStep is a step of a tree, by which rings of different orders are counted.
func (x *rcclModelled) treeStep(g *Graph, p Proto) float32 {
	switch {
	case x.NNodes > 1:
		return float32(x.t.net[Tree][p])
	case g.TypeIntra == PathNVL:
		return float32(x.t.intra[Tree][p])
	}
	return float32(rcclPCI[p])
}

// overhead is that of a step of a ring which goes over a network somewhere.
func (x *rcclModelled) overhead(p Proto) float32 {
	us := float32(1)
	if x.Arch == ArchX86 && x.Vendor == AMD {
		us = 2
	}
	if p == Simple {
		us *= 3
	}
	return us
}

// timeRCCL is what RCCL expects of a combination.
func (t *Table) timeRCCL(call Call, a Algo, p Proto) float32 {
	c, e := t.comm, t.Est[call.Op][a][p]
	bw := e.BW
	k := min(log2(int(call.Bytes>>6)), rcclSizes-1)
	if a == Tree || c.NNodes > 1 {
		bw *= c.RCCL.tuningOf(c.Version).factor[a][p][k]
	}
	pipe := max(call.Group, 1)
	if a != Ring {
		pipe = divUp(pipe, c.Version.batch())
	}
	return e.Latency*float32(pipe) + float32(call.Bytes)/(1000*bw)
}

// ll128RCCL is RCCL's gate for LL128: on gfx90a, and on MI300X and later since 2.26, where the model says so.
func (c *Comm) ll128RCCL(g *Graph) bool {
	r := c.RCCL
	return (r.Arch == "gfx90a" || c.Version.From(26)) && r.LL128 && g.TypeInter <= PathPXB && g.TypeIntra <= PathNVL
}

// protoRange is the sizes, per rank but of all-reduce, up to which LL and LL128 are taken between nodes.
type protoRange struct{ ll, least128, ll128 int64 }

// rcclRanges override the choice of a protocol since 2.26 (RCCL 2.28 src/rccl_wrap.cc), by table of figures.
var rcclRanges = map[int][nOps]protoRange{
	5: {
		ReduceScatter: {655360, 131072, 3211264}, AllGather: {98304, 98304, 5046272}, AllReduce: {524288, 524288, 4415057},
		Reduce: {4096, 4096, 16777216}, Broadcast: {8192, 8192, 33554432},
	},
	6: {
		ReduceScatter: {65536, 65536, 8388608}, AllGather: {65536, 65536, 8388608}, AllReduce: {262144, 262144, 70640910},
		Reduce: {16383, 16383, 16777216}, Broadcast: {2048, 2048, 16777216},
	},
}

// override is the protocol that RCCL takes whatever its table says: by size, where the user left it open.
func (t *Table) override(call Call, ch Candidate) Candidate {
	c := t.comm
	if _, set := c.Env["NCCL_PROTO"]; set || !c.Version.From(26) || ch.Algo != Ring && ch.Algo != Tree {
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
	} else if r, ok := rcclRanges[c.RCCL.Tuning]; ok {
		want = r[call.Op].proto(size, call.Op == AllReduce && c.NNodes > 2, t.Est[call.Op][ch.Algo][LL128].BW > 0)
	}
	if us, ok := t.Time(call, ch.Algo, want); ok {
		ch.Proto, ch.Time = want, us
	}
	return ch
}

// proto is the protocol of a size.
func (r protoRange) proto(size int64, many, ll128 bool) Proto {
	most := r.ll128
	if many {
		most = int64(float64(most) * 3.8)
	}
	switch {
	case ll128 && size > r.least128 && size <= most:
		return LL128
	case size <= r.ll:
		return LL
	}
	return Simple
}

// rcclTuning is one of RCCL's tables of figures, each measured on one system: latencies in µs by step, the part of the
// rings' bandwidth that data gets, and by what that is multiplied at a size, 64 B, 128 B and so on. Trees first, then
// rings.
type rcclTuning struct {
	intra, net [2]protoRow
	ratio      [2][2]protoRow // up to two nodes, more
	factor     [2][nProtos][rcclSizes]float32
}

const rcclSizes = 27

// rcclBase is what any call costs, rcclPCI a step between GPUs without links of their own.
var rcclBase, rcclPCI = protoRow{12, 12, 17}, protoRow{2.2, 2.2, 5.7}

// factors reads "1x2,.5": 1, 1, .5.
func factors(text string) [rcclSizes]float32 {
	var out [rcclSizes]float32
	k := 0
	for _, w := range strings.Split(text, ",") {
		value, times, _ := strings.Cut(w, "x")
		x, _ := strconv.ParseFloat(value, 32)
		n := 1
		if times != "" {
			n, _ = strconv.Atoi(times)
		}
		for range n {
			out[k] = float32(x)
			k++
		}
	}
	return out
}

// byProto are the factors of LL, LL128 and Simple.
func byProto(ll, ll128, simple string) [nProtos][rcclSizes]float32 {
	return [nProtos][rcclSizes]float32{LL: factors(ll), LL128: factors(ll128), Simple: factors(simple)}
}

// rcclTables are those of RCCL 2.21 and, from 5 on, of 2.28 (src/graph/tuning.cc, tuning_model_…).
var rcclTables = sync.OnceValue(func() []rcclTuning {
	const (
		treeLL1, ringLL1 = ".5,.4,.7,.6,1x2,.5,.4,.1,.5,.4,.6,1x5,.8,.6,.5,.4x2,.3,.2,.1x3",
			"1,.5,1x2,.6,.7,1x2,.2,1,.9,.7,1x3,.9x2,.8x2,.7,.6,.5x2,.3,.2,.1x2"
		treeLL2, ringLL2 = ".1,.4,.3x2,.2,.4,.5,.1x2,.6,.7x2,.8,1,.9,.7,.6,.5,.4,.3,.2x7",
			".1,1x7,.4,1x4,.7,.6,.5,.4,.3,.2x2,.1x7"
		treeLL5, ringLL5 = ".1x6,1x5,.6,1,.9,1x2,.1x11", ".1x11,1,.2,1,.4x2,.1,.2x2,.1x8"
		treeSimple5      = ".1x15,.7,1x5,.7x2,.5,.6x3"
		none             = "0x27"
	)
	list := []rcclTuning{
		{
			intra: [2]protoRow{{.8, 1.4, 2.5}, {.8, 2.2, 3.6}}, net: [2]protoRow{{11.8, 18.2, 20.8}, {9.5, 19.8, 15.1}},
			ratio: [2][2]protoRow{{{.04, .22, .91}, {.04, .34, 1}}, {{.04, .22, .95}, {.04, .34, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1,.2,.1x2,.9,.3,.4,.1,.2,.4,.2,.1,.3x2,.2x3,.1x10", ".1,.3,1,.1,.5,1,.9,1x3,.3,.1,.4,.5x2,.4x2,.3x2,.2x8",
					".2,1,.1x2,.7,.2,.4,.1x2,.3,.4,.3,.6,.8,1x4,.9,.8x5,.9x3"),
				byProto(".1x5,.2,.4,.2,.3,.5,.3,.1,.5x2,.3,.2x2,.1x10", ".1x9,.3,1x6,.8,.7,.5,.4x2,.3x6",
					"1,.8,.2,1x2,.3,1,.1x2,.2x2,.1,.5,1,.8x2,1,.9,1x9"),
			},
		},
		{
			intra: [2]protoRow{{1.5, 1.5, 4.5}, {1.5, 1.5, 4.5}}, net: [2]protoRow{{33, 33, 15.8}, {5.1, 5.1, 68.8}},
			ratio: [2][2]protoRow{{{.12, 1, .99}, {.12, 1, 1}}, {{.15, 1, .42}, {.2, 1, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL1, treeLL1, ".1x5,.3,.4,.5,.1,.6,1x3,.6,.5,.7,1x7,.7,.5,.3x2"),
				byProto(ringLL1, ringLL1, ".3,1,.3,.1x3,.3,.7,1,.2,.1x9,.2,.3,.5,.9,1x4"),
			},
		},
		{
			intra: [2]protoRow{{1.5, 1.5, 4.5}, {1.5, 1.5, 4.5}}, net: [2]protoRow{{27.9, 27.9, 15.8}, {12.1, 12.1, 68.8}},
			ratio: [2][2]protoRow{{{.07, 1, .99}, {.08, 1, 1}}, {{.07, 1, .42}, {.08, 1, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL2, treeLL2, "1,.1x4,.2,.3,.5,.1,.6,.9,.8,.7,.9,1x7,.7,.9x2,1x3"),
				byProto(ringLL2, ringLL2, ".1x8,1,.2x2,.1x5,.2,.4,.5,.6,.9,1x6"),
			},
		},
		{
			intra: [2]protoRow{{.8, 0, 2.5}, {.8, 0, 3.6}}, net: [2]protoRow{{12.5, 0, 22.4}, {9.5, 0, 19.8}},
			ratio: [2][2]protoRow{{{.2, 0, 1.75}, {.2, 0, 1}}, {{.2, 0, .96}, {.2, 0, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1x6,1x2,.2,1,.9,1,.6,.4,.6,.4,.3x5,.2x6", none, "1x6,.1x3,.2,1,.8,1x9,.8,.7,.8,.9,.7x2"),
				byProto(".1x5,.3,.1,.2,.1,.4x2,.2x2,.3,.7,.5,.4,.3x4,.2x6", none, ".1x7,.5,1,.1,.3,.1x3,.2x3,.3,.4,.7,1x7"),
			},
		},
		{
			intra: [2]protoRow{{.8, 1.4, 2.5}, {.8, 2.2, 3.6}}, net: [2]protoRow{{32.2, 34.4, 47.6}, {35.4, 87.8, 209.2}},
			ratio: [2][2]protoRow{{{.16, 1.09, 1.61}, {.15, .41, 1}}, {{.16, 1.09, 1.08}, {.15, .41, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(".1x8,1,.1x2,.2,.4,.6,.5,.1x12", ".1x9,.2,.1x2,.2,1,.5,.2x12",
					"1x8,.8,.4,.3x2,.1x2,1x2,.7,.5,.6,.5,.6x2,.5,.6x3,.7"),
				byProto(".1x11,.2x2,.1,.3,.1x3,.2,.1x8", ".4,.5x2,.4x4,.2x2,.1,.3,1x2,.7,.8,.5,1x5,.9,.8,.5,.4,.3x2",
					".1x9,1x2,.8,.5,.1,.7,.2,.4x2,.6,.7,.9,1x6"),
			},
		},
		{
			intra: [2]protoRow{{.9, .9, 2.3}, {.8, .8, 2.1}}, net: [2]protoRow{{10.5, 10.5, 25}, {9.5, 9.5, 320}},
			ratio: [2][2]protoRow{{{.06, .06, .11}, {.08, .08, 1}}, {{.06, .06, .59}, {.08, .08, 1}}},
			factor: [2][nProtos][rcclSizes]float32{
				byProto(treeLL5, treeLL5, treeSimple5),
				byProto(ringLL5, ringLL5, ".1x22,.7,.2,1x3"),
			},
		},
	}
	six := list[5]
	six.factor = [2][nProtos][rcclSizes]float32{
		byProto(treeLL5, ".1x6,1x5,.6,1,.9,1x5,2x2,1,.1,.9x2,.1x2", ".1x15,.7,1,.1x5,.7,.15,.6,.7,.6"),
		byProto(ringLL5, ".1x11,1,.2,1,.4x2,.1,.2,.1x4,5.5,.1x2,1x2", ".1x20,.9,.1,1,.1,.6,1x2"),
	}
	return append(list, six)
})

// tuningOf is the table of a release: before 2.26 MI300X had no LL128 and other factors.
func (r *RCCL) tuningOf(v Version) *rcclTuning {
	t := rcclTables()[r.Tuning]
	if r.Tuning == 5 && !v.From(26) {
		t.factor[0][Simple], t.factor[1][Simple] = factors(".1x15,.7,1x10,.8"), factors(".1x23,.8,1x3")
		t.intra[0][LL128], t.intra[1][LL128], t.net[0][LL128], t.net[1][LL128] = 0, 0, 0, 0
		for i := range t.ratio {
			t.ratio[i][0][LL128], t.ratio[i][1][LL128] = 0, 0
		}
	}
	return &t
}
