package nccl

import "cmp"

// bandwidth is the algorithm bandwidth of a combination (NCCL 2.28 src/graph/tuning.cc,
// ncclTopoTuneModel). NCCL keeps results in single precision and computes some steps in
// double; so does this.
func (m *model) bandwidth(op Op, a Algo, p Proto) float32 {
	g := m.g.graphOf(a)
	n := float64(g.NChannels)
	bw := m.perChannel(op, a)
	bus := float64(float32(g.NChannels) * bw)
	if most := m.rules.BusCap[archOf(m.MinCC)]; most > 0 {
		bus = min(bus, most)
	}
	switch a {
	case Ring:
		bus = m.ringBus(op, p, bus, n)
	case Tree:
		bus = m.treeBus(p, bus, n)
	case PAT:
		bus *= m.rules.PATShare
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
	g, r := m.g.graphOf(a), m.rules
	bw := g.BwInter
	if m.NNodes <= 2 || a == CollNetDirect || a == CollNetChain {
		bw = g.BwIntra
	}
	gather := op != AllReduce
	switch {
	case a != NVLS && a != NVLSTree, !r.NVLSByLinks:
		return bw
	case r.NVLSModel:
		intra := g.BwIntra * r.NVLSEff[archOf(m.MinCC)] * float32(g.NChannels-1) / float32(g.NChannels)
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
			intra = min(intra, float32(m.limit(&r.NVLSTreeBw)))
		}
		return min(intra, inter)
	case a == NVLSTree:
		if m.NNodes > 2 {
			return min(g.BwIntra, g.BwInter/2)
		}
	case gather && r.GatherByNet:
		return min(g.BwIntra*(m.ppn()-1)/m.ppn(), g.BwInter*.9)
	}
	return min(g.BwIntra, g.BwInter)
}

func (m *model) ringBus(op Op, p Proto, bus, channels float64) float64 {
	r := m.rules
	switch p {
	case LL:
		share := r.LLShare[bit(m.NNodes == 1 && op != AllReduce && op != Reduce)]
		return single(min(r.LL[m.llIndex()][m.sizeIndex()], bus*share))
	case LL128:
		share := .92
		if m.ppn() < 2 {
			share = r.LL128Lone
		}
		return single(min(bus*share, channels*m.ll128PerChannel(op, &r.Ring128)))
	}
	return bus
}

// ll128PerChannel is what a channel carries with LL128: up to 2.9 by collective.
func (m *model) ll128PerChannel(op Op, later *[4][3]float64) float64 {
	return cmp.Or(m.rules.LL128Op[op], m.limit(later))
}

// limit is what a table allows the communicator's oldest GPU and number of nodes.
func (m *model) limit(table *[4][3]float64) float64 { return table[archOf(m.MinCC)][m.sizeIndex()] }

func (m *model) treeBus(p Proto, bus, channels float64) float64 {
	r := m.rules
	bus = single(min(bus*.92, channels*m.limit(&r.TreeBw)))
	switch p {
	case LL:
		bus = single(min(bus/3.8, r.LL[m.llIndex()][m.sizeIndex()]))
	case LL128:
		share := r.LL128Tree
		if m.NNodes == 1 {
			share = 7.0 / 9
		}
		bus = single(min(bus*share, channels*m.ll128PerChannel(AllReduce, &r.Tree128)))
	}
	if m.g.Tree.Pattern == TreePattern {
		bus = single(bus * r.TreeShare)
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
	if m.rules.GatherByNet {
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
	return a == CollNetDirect && m.rules.DirectGather || a == NVLS && m.rules.GatherByNet
}

// toAlgorithm turns bus bandwidth into algorithm bandwidth.
func (m *model) toAlgorithm(op Op, a Algo) float64 {
	r := m.rules
	gather := op == AllGather || op == ReduceScatter
	ring := single(float64(m.NRanks) / float64(m.steps(op)))
	switch {
	case a == Ring:
		return ring
	case gather && (r.GatherWhole || r.DirectGather && a == CollNetDirect):
		return 1
	case a != NVLS && a != NVLSTree:
		return .5
	case r.NVLSModel:
		return ring
	case a == NVLSTree && r.NVLSTrees && !r.NVLSByLinks:
		if m.NNodes < 2 {
			return 0
		}
		return single(.70 * float64(m.NNodes) / float64(2*(m.NNodes-1)))
	}
	return single(r.NVLSShare)
}

// single rounds to the precision NCCL keeps.
func single(x float64) float64 { return float64(float32(x)) }
