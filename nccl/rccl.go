package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// amd is the vendor whose GPUs RCCL runs on.
const amd = "amd"

// RCCL is what RCCL, AMD's NCCL, decides by beyond what NCCL asks of a communicator. RCCL 2.21 is that of ROCm 6.3, 2.22 of
// 6.4, 2.26 of 7.0, 2.27 of 7.1 and 7.2, 2.28 of 7.11 on.
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
		return fmt.Errorf("%s of node type %s: its architecture (gfx942) is not known, and RCCL decides by it; name the GPU's model", x.Name, b.t.Name)
	case xgmiBw(x.GPU.Arch) == 0:
		return fmt.Errorf("%s of node type %s is %s; RCCL's figures are known here for gfx90a (MI210, MI250X), gfx942 (MI300X, MI325X) and gfx950 (MI350X, MI355X)", x.Name, b.t.Name, x.GPU.Arch)
	case b.s.arch != "" && b.s.arch != x.GPU.Arch:
		return fmt.Errorf("node type %s has %s and %s; RCCL on GPUs of two architectures is not modelled", b.t.Name, b.s.arch, x.GPU.Arch)
	}
	return nil
}

// foreign refuses a GPU whose library is neither NCCL nor RCCL, and says what is missing.
func foreign(x *cluster.Device, node string) error {
	library := map[string]string{"intel": "HCCL (Gaudi) or oneCCL; missing are their choices by size and a published sweep (busbar predict answers all_reduce of 32 MiB and more on Gaudi 2 and 256 MiB on Gaudi 3, from published runs)", "google": "XLA, which compiles its collectives itself"}[x.GPU.Vendor]
	library = cmp.Or(library, "a library whose choices are not modelled")
	return fmt.Errorf("%s of node type %s is of %s, where collectives run by %s; NCCL runs on NVIDIA GPUs and RCCL on AMD's", x.Name, node, x.GPU.Vendor, library)
}

// isRome reports a processor that RCCL takes for AMD's Rome, by its CPUID family, or that times 16 and 15 as RCCL writes it.
func isRome(family, model int) bool {
	return (family == 143 || family == 23) && model >= 49 || family == 175 || family == 25
}

// xgmiBw is what RCCL counts for one link between GPUs, in GB/s one direction; 0 for GPUs that are not modelled (RCCL 2.28
// src/graph/topo.h). It is less than the line rate, 64 GB/s on gfx942: what such links carry.
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

// ringsOf reads rings of a model as a node's own (RCCL 2.21 src/graph/rome_models.cc, parseGraph). Every other node takes them
// backwards, so that a cable's ends are on one rail.
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

// channelsRCCL decides how many channels collectives use (RCCL 2.21 src/init.cc, initTransportsRank, and src/graph/connect.cc,
// ncclTopoPostset; 2.26 and later by its changes for gfx950).
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

// p2pChannelsRCCL decides the channels of sends and receives (RCCL 2.21 src/graph/paths.cc, ncclTopoComputeP2pChannels).
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
