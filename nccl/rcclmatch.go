package nccl

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

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
	v := &rcclView{gpus: slices.Clone(s.nodes[kindGPU]), nics: slices.Clone(s.nodes[kindNET]), cpus: len(s.nodes[kindCPU]), direct: true}
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

// nearRCCL is how RCCL sees a NIC from a GPU. A NIC that hangs on a die of MI250X itself has a port of the processor in PCIe's own
// view: the switch between them has no address.
func (s *system) nearRCCL(g, n *topoNode, arch string) PathType {
	p := &g.paths[kindNET][n.index]
	hidden := slices.ContainsFunc(p.hops, func(l *topoLink) bool { return l.to.kind == kindPCI && l.to.pci == 0 })
	if arch == "gfx90a" && p.kind <= PathPXB && hidden {
		return PathPHB
	}
	return p.kind
}

// pairVirtual takes a GPU and a NIC of a virtual machine, which shows no PCIe switches, for neighbours where their buses are as
// far apart as Azure numbers them (RCCL 2.21 src/graph/paths.cc, rcclPathOverride).
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

// match finds the first model that a node fits, as RCCL looks for it: meshes of eight by their domains, then up to eight GPUs in
// the order of their buses, then sixteen (RCCL 2.21 src/graph/search.cc, ncclTopoCompute).
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

// busOrder reports whether two GPUs of the node stand to each other as two of the model do: by their buses, and whether one
// hub of the processor holds both.
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

// arrange tries the orders of GPUs, by domains of so many or all at once, until one has the model's links and is taken. Orders
// are tried as RCCL tries them; one that cannot fit is given up as soon as that shows.
func (v *rcclView) arrange(m *rcclModel, g []int, order func(i, j, gi, gj int) bool, per int, numa bool, take func(g []int) bool) bool {
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
