package nccl

// bandwidth is the algorithm bandwidth of a combination (NCCL 2.28 src/graph/tuning.cc,
// ncclTopoTuneModel). NCCL keeps results in single precision and computes some steps in
// double; so does this.
func (m *model) bandwidth(op Op, a Algo, p Proto) float32 {
	g := m.g.of(a)
	n := float64(g.NChannels)
	bw := m.perChannel(op, a)
	bus := float64(float32(g.NChannels) * bw)
	if !m.Version.From(18) { // one GPU was not thought to move more
		if i := m.ccIndex(); i == ampere {
			bus = min(bus, 235)
		} else if i == hopper && m.Version.From(17) {
			bus = min(bus, 370)
		}
	}
	switch a {
	case Ring:
		bus = m.ringBus(op, p, bus, n)
	case Tree:
		bus = m.treeBus(p, bus, n)
	case PAT:
		if m.Version.From(24) {
			bus *= .75
		} else {
			bus *= .85
		}
	case CollNetDirect:
		bus = m.directBus(op, p, bus, bw)
	case CollNetChain:
		if p != Simple {
			bus = 0
		}
	}
	if m.needsHeads(op, a) && (!m.CollNet || m.MaxLocalRanks > m.CollNetHeads) {
		bus = 0
	}
	return float32(bus * m.toAlgorithm(op, a))
}

// perChannel is the bandwidth of a channel before protocols take their share.
func (m *model) perChannel(op Op, a Algo) float32 {
	g := m.g.of(a)
	v := m.Version
	bw := g.BwInter
	if m.NNodes <= 2 || a == CollNetDirect || a == CollNetChain {
		bw = g.BwIntra
	}
	gather := op != AllReduce
	switch {
	case a != NVLS && a != NVLSTree, !v.From(19):
		return bw
	case v.From(28):
		intra := g.BwIntra * m.lim.nvlsEff[m.ccIndex()] * float32(g.NChannels-1) / float32(g.NChannels)
		if gather {
			intra *= (m.ppn() - 1) / m.ppn()
		} else {
			intra *= 2
		}
		inter := g.BwInter
		if a == NVLSTree {
			if m.NNodes <= 2 {
				inter *= 2
			}
			intra = min(intra, float32(m.lim.nvlsTree[m.ccIndex()][m.sizeIndex()]))
		}
		return min(intra, inter)
	case a == NVLSTree:
		if m.NNodes > 2 {
			return min(g.BwIntra, g.BwInter/2)
		}
	case gather && v.From(27):
		return min(g.BwIntra*(m.ppn()-1)/m.ppn(), g.BwInter*.9)
	}
	return min(g.BwIntra, g.BwInter)
}

func (m *model) ringBus(op Op, p Proto, bus, channels float64) float64 {
	v := m.Version
	switch p {
	case LL:
		share := .5
		if !v.From(21) {
			share = 1.0 / 4
			if m.NNodes == 1 && op != AllReduce && op != Reduce {
				share = 1.0 / 3
			}
		}
		return single(min(m.lim.ll[m.llIndex()][m.sizeIndex()], bus*share))
	case LL128:
		share := .92
		if !v.From(23) && m.ppn() < 2 {
			share = .7
		}
		return single(min(bus*share, channels*m.ll128PerChannel(op, m.lim.ring128[m.ccIndex()][m.sizeIndex()])))
	}
	return bus
}

// ll128PerChannel is what a channel carries with LL128: up to 2.9 by collective.
func (m *model) ll128PerChannel(op Op, later float64) float64 {
	if m.Version.From(10) {
		return later
	}
	return [nOps]float64{Broadcast: 18.8, Reduce: 12, AllGather: 18.3, ReduceScatter: 15.2, AllReduce: 16.9}[op]
}

func (m *model) treeBus(p Proto, bus, channels float64) float64 {
	i, j := m.ccIndex(), m.sizeIndex()
	bus = single(min(bus*.92, channels*m.lim.tree[i][j]))
	switch p {
	case LL:
		bus = single(min(bus/3.8, m.lim.ll[m.llIndex()][j]))
	case LL128:
		share := 120.0 / 128
		if m.NNodes == 1 {
			share = 7.0 / 9
		} else if !m.Version.From(10) {
			share = .915
		}
		bus = single(min(bus*share, channels*m.ll128PerChannel(AllReduce, m.lim.tree128[i][j])))
	}
	if m.g.Tree.Pattern == TreePattern && m.Version.From(18) {
		bus = single(bus * .85)
	}
	return bus
}

// directBus is CollNetDirect, which wants a NIC per GPU.
func (m *model) directBus(op Op, p Proto, bus float64, bw float32) float64 {
	g := &m.g.Direct
	if p != Simple || g.NChannels == 0 {
		return 0
	}
	ppn := m.ppn()
	if op == AllReduce {
		factor := ppn / float32(g.NChannels)
		factor -= (factor - 1) / 2
		bus = float64(float32(bus) / factor)
		if m.MinCC >= 90 {
			bus = single(bus * .85)
		}
		return bus
	}
	if m.Version.From(27) {
		return float64(ppn * min(g.BwIntra, g.BwInter*.9))
	}
	w := float64((ppn - 1) / 7)
	return single(float64(ppn*bw) * (w*.85 + (1-w)*.95))
}

// needsHeads reports whether a combination works across nodes only where the
// network reduces and every GPU of a node is a head.
func (m *model) needsHeads(op Op, a Algo) bool {
	if m.NNodes == 1 || op != AllGather && op != ReduceScatter {
		return false
	}
	return a == CollNetDirect && m.Version.From(20) || a == NVLS && m.Version.From(27)
}

// toAlgorithm turns bus bandwidth into algorithm bandwidth.
func (m *model) toAlgorithm(op Op, a Algo) float64 {
	v := m.Version
	gather := op == AllGather || op == ReduceScatter
	ring := single(float64(m.NRanks) / float64(m.steps(op)))
	switch {
	case a == Ring:
		return ring
	case gather && (v.From(23) || v.From(20) && a == CollNetDirect):
		return 1
	case a != NVLS && a != NVLSTree:
		return .5
	case !v.From(18):
		return .75
	case v.From(28):
		return ring
	case a == NVLSTree && !v.From(19):
		if m.NNodes < 2 {
			return 0
		}
		return single(.70 * float64(m.NNodes) / float64(2*(m.NNodes-1)))
	}
	return single(5.0 / 6)
}

// single rounds to the precision NCCL keeps.
func single(x float64) float64 { return float64(float32(x)) }
