package nccl

// channels decides how many channels collectives use (NCCL 2.28 src/graph/connect.cc,
// ncclTopoPostset).
func (p *Plan) channels() {
	r, w, g := p.rules, p.Wiring, &p.Graphs
	most := r.MaxChannels
	if g.Chain.NChannels == 0 {
		p.CollNet = false
	}
	if p.CollNet {
		p.CollNetHeads = g.Direct.NChannels
		if g.Chain.BwIntra > g.Chain.BwInter && p.NRanks > p.NNodes {
			w.repeat(min(most, w.Count()+w.Count()/2))
		}
	}
	if n := w.Count(); p.NNodes > 1 && g.Ring.BwIntra > 45 && n < r.DoubleBelow &&
		(p.MinCC == 90 || p.MinCC > 90 && r.DoubleBlackwell) {
		w.repeat(2 * n)
	}
	p.userChannels(most)
	p.Channels = w.Count()
	p.nvlsChannels()
}

// userChannels is what settings make of the number.
func (p *Plan) userChannels(most int) {
	for _, key := range []string{"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"} {
		if n, ok := envInt(p.Env, key); ok {
			p.limit(max(n, 1))
		}
	}
	for _, key := range []string{"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"} {
		if n, ok := envInt(p.Env, key); ok {
			p.repeat(min(n, most))
		}
	}
}

// nvlsChannels is how many channels NVLS uses (NCCL 2.28 src/transport/nvls.cc,
// ncclNvlsInit).
func (p *Plan) nvlsChannels() {
	if p.Graphs.NVLS.NChannels == 0 {
		return
	}
	n := p.rules.NVLSWidth[bit(p.NNodes > 1)][archOf(p.MinCC)]
	if n == 0 {
		n = p.nvlsAcross()
	}
	if asked, ok := envInt(p.Env, "NCCL_NVLS_NCHANNELS"); ok && asked > 0 {
		n = asked
	}
	if least, ok := envInt(p.Env, "NCCL_MIN_CTAS"); ok {
		n = max(n, least)
	}
	if most, ok := envInt(p.Env, "NCCL_MAX_CTAS"); ok && most > 0 {
		n = min(n, most)
	}
	p.NVLSChannels = max(1, min(n, p.rules.MaxChannels))
}

// nvlsAcross is the number between nodes of Blackwell GPUs since 2.30: fewer where
// the network is fast and nodes are many or small.
func (p *Plan) nvlsAcross() int {
	least := p.MaxLocalRanks
	for _, n := range p.Nodes {
		least = min(least, len(n.Ranks))
	}
	bw := p.netBw()
	switch {
	case p.NNodes == 2 && bw >= 48:
	case bw >= 96 && least <= 8, bw >= 48 && bw < 96:
		return 24
	}
	return 32
}

// netBw is what the slowest NIC that a GPU prefers carries; 0 where one has none.
func (p *Plan) netBw() float32 {
	least := float32(locBw)
	seen := map[*View]bool{}
	for _, n := range p.Nodes {
		if seen[n.View] {
			continue
		}
		seen[n.View] = true
		for _, g := range n.View.sys.nodes[kindGPU] {
			nets := n.View.sys.preferred(g)
			if len(nets) == 0 {
				return 0
			}
			for _, net := range nets {
				least = min(least, g.paths[kindNET][net.index].bw)
			}
		}
	}
	return least
}

// p2pChannels decides the channels of sends and receives (NCCL 2.28 and RCCL 2.21 src/graph/paths.cc,
// ncclTopoComputeP2pChannels).
func (p *Plan) p2pChannels() {
	n := p.Channels
	if most, ok := envInt(p.Env, "NCCL_MAX_P2P_NCHANNELS"); ok {
		n = min(n, most)
	}
	if least, ok := envInt(p.Env, "NCCL_MIN_P2P_NCHANNELS"); ok {
		n = max(n, least)
	}
	most, bound := p.rules.MaxChannels, p.rules.MaxChannels
	if p.RCCL != nil { // which bounds them at the end only
		most, bound = 64, n
	}
	n = max(1, min(n, bound))
	per := n
	s := p.Nodes[0].View.sys
	for _, g := range s.nodes[kindGPU] {
		per = min(per, p.perPeer(s, g, n))
	}
	per = pow2(per)
	if p.NNodes == 1 && p.RCCL != nil && p.RCCL.cdna3() {
		per *= 2
	}
	p.P2PChannels = min(pow2(n), most)
	p.P2PPerPeer = min(per, p.P2PChannels)
}

// p2pChunk is in how many bytes sends and receives travel, where no setting says it (src/init.cc, computeBuffSizes):
// more where no rank is behind PCIe. It is not known of RCCL.
func (p *Plan) p2pChunk() int {
	switch {
	case p.RCCL != nil:
		return 0
	case p.NNodes == 1 && p.Graphs.Ring.TypeIntra < PathPIX:
		return 512 << 10
	}
	return 128 << 10
}

// PairsLL tells whether small sends and receives go by LL: their connections between nodes have no buffers for it.
func (p *Plan) PairsLL() bool { return p.rules.PairsLL && p.NNodes == 1 }

// perPeer is the least number of channels a GPU uses to any peer.
func (p *Plan) perPeer(s *system, g *topoNode, channels int) int {
	least, each, link := channels, 2, p.rules.nvlinkBw(g.gpu.cc)
	if p.RCCL != nil {
		each, link = 2+2*bit(p.RCCL.cdna3()), xgmiBw(s.arch)
	}
	for i := range g.paths[kindGPU] {
		path := &s.nodes[kindGPU][i].paths[kindGPU][g.index]
		switch {
		case i == g.index:
		case path.kind == PathNVL:
			least = min(least, each*max(1, int(path.bw/link)))
		default:
			least = min(least, 2)
		}
	}
	if !s.inter {
		return least
	}
	if !p.rules.NetPeers && p.RCCL == nil { // there was no setting either
		return 1
	}
	if n, ok := envInt(p.Env, "NCCL_NCHANNELS_PER_NET_PEER"); ok && n > 0 {
		return min(least, n)
	}
	each = 2
	var mine, total float32
	for _, l := range g.links {
		if l.to.kind == kindCPU {
			mine = l.bw
		}
	}
	nets := 0
	for _, n := range s.localNets(g) {
		if total >= mine {
			break
		}
		total += g.paths[kindNET][n.index].bw
		nets++
	}
	switch {
	case p.rules.NetPeersByRate && p.RCCL == nil:
		each = max(nets, divUp(int(total), 14), 1)
		for each > 1 && pow2(each)*divUp(p.NRanks, 8) > pow2(channels) {
			each /= 2
		}
	case p.rules.NetPeersHalved || p.RCCL != nil:
		for each*p.NRanks > channels*4 && each > 1 {
			each /= 2
		}
		if p.RCCL == nil {
			each = max(nets, each)
		}
	}
	return min(least, each)
}

// pow2 is the next power of two; far more than there are channels is as good.
func pow2(n int) int {
	p := 1
	for p < n && p < 1<<30 {
		p *= 2
	}
	return p
}
