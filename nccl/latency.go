package nccl

// latency is the fixed part of the time of a combination, in µs (NCCL 2.28
// src/graph/tuning.cc, ncclTopoTuneModel).
func (m *model) latency(op Op, a Algo, p Proto) float32 {
	g := m.g.graphOf(a)
	r := m.rules
	base := r.Base[a][p]
	intraHW := hwPCI
	if g.TypeIntra == PathNVL {
		intraHW = hwNVLink
	}
	hw := intraHW
	if m.NNodes > 1 {
		hw = hwNet
	}
	intra := single(m.hw(intraHW, a, p))
	inter := single(r.HW[hwNet][a][p])
	if r.LoneTree && m.ppn() == 1 {
		// With one rank a node nothing hides the network.
		inter = single(r.HW[hwNet][Tree][p])
	}
	inter += float64(g.LatencyInter)
	if p == Simple {
		inter += float64(g.LatencyInter) // the flush
	}
	if m.NNodes > 1 && p == LL {
		intra *= r.LLIntra
	}
	local := m.NRanks/m.NNodes - 1
	switch a {
	case Ring:
		return float32(base + m.ringLatency(op, p, hw, intra, inter))
	case Tree:
		if op != AllReduce && r.GatherWhole {
			return float32(base)
		}
		return float32(base + 2*(float64(local)*intra+float64(log2(m.NNodes))*inter))
	case CollNetDirect:
		return float32(base + 2*(float64(min(1, local))*intra+float64(local)*r.DirectStep) + inter)
	case CollNetChain:
		return float32(base + 2*float64(local)*intra + inter)
	case NVLS:
		us := intra
		if !r.NVLSByLinks {
			us = base
		}
		if m.NNodes > 1 {
			us += inter
		}
		return float32(us)
	case NVLSTree:
		if !r.NVLSByLinks {
			return float32(base + 2*float64(m.NNodes-1)*r.HW[hwNet][a][p])
		}
		return float32(base + intra + 2*float64(log2(m.NNodes))*inter)
	case PAT:
		return float32(base + float64(log2(m.NNodes))*(inter/3.5) + float64(m.NRanks)*2.8)
	}
	return 0
}

func (m *model) ringLatency(op Op, p Proto, hw int, intra, inter float64) float64 {
	steps := m.steps(op)
	if op == Broadcast || op == Reduce {
		each := m.hw(hw, Ring, p)
		if m.g.Ring.SameChannels {
			return each
		}
		if p == Simple {
			each = m.hw(hw, Tree, p)
		}
		return float64(steps) * each
	}
	if m.NNodes > 1 && m.rules.NetOverhead {
		intra = max(intra, m.netOverhead(p))
	}
	across := 0
	switch {
	case m.NNodes == 1:
	case op == AllReduce:
		across = 2 * (m.NNodes - 1 + bit(m.rules.RingAcrossAll))
	default:
		across = m.NNodes - 1
	}
	return float64(steps-across)*intra + float64(across)*inter
}

// netOverhead is what posting to the network costs every step of a ring.
func (m *model) netOverhead(p Proto) float64 {
	us := 1.0
	if m.Arch == ArchX86 && m.Vendor == AMD {
		us = 2
	}
	if ns, ok := envInt(m.Env, "NCCL_NET_OVERHEAD"); ok && ns != -2 {
		us = float64(ns) * .001
	}
	if p == Simple {
		us *= 3
	}
	return us
}
