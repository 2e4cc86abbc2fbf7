package nccl

// latency is the fixed part of the time of a combination, in µs (NCCL 2.28
// src/graph/tuning.cc, ncclTopoTuneModel).
func (m *model) latency(op Op, a Algo, p Proto) float32 {
	g := m.g.of(a)
	v := m.Version
	base := m.lat.base[a][p]
	intraHW := hwPCI
	if g.TypeIntra == PathNVL {
		intraHW = hwNVLink
	}
	hw := intraHW
	if m.NNodes > 1 {
		hw = hwNet
	}
	intra := single(m.lat.hw[intraHW][a][p])
	inter := single(m.lat.hw[hwNet][a][p])
	if v.From(23) && m.ppn() == 1 {
		// With one rank a node nothing hides the network.
		inter = single(m.lat.hw[hwNet][Tree][p])
	}
	inter += float64(g.LatencyInter)
	if p == Simple {
		inter += float64(g.LatencyInter) // the flush
	}
	if !v.From(18) && m.NNodes > 1 && p == LL {
		intra *= 1.8
	}
	local := m.NRanks/m.NNodes - 1
	switch a {
	case Ring:
		return float32(base + m.ringLatency(op, p, hw, intra, inter))
	case Tree:
		if op != AllReduce && v.From(23) {
			return float32(base)
		}
		return float32(base + 2*(float64(local)*intra+float64(log2(m.NNodes))*inter))
	case CollNetDirect:
		each := .4
		if !v.From(19) {
			each = .5
		}
		return float32(base + 2*(float64(min(1, local))*intra+float64(local)*each) + inter)
	case CollNetChain:
		return float32(base + 2*float64(local)*intra + inter)
	case NVLS:
		us := intra
		if !v.From(19) {
			us = base
		}
		if m.NNodes > 1 {
			us += inter
		}
		return float32(us)
	case NVLSTree:
		if !v.From(19) {
			return float32(base + 2*float64(m.NNodes-1)*m.lat.hw[hwNet][a][p])
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
		each := m.lat.hw[hw][Ring][p]
		if m.g.Ring.SameChannels {
			return each
		}
		if p == Simple {
			each = m.lat.hw[hw][Tree][p]
		}
		return float64(steps) * each
	}
	if m.NNodes > 1 && m.Version.From(18) {
		intra = max(intra, m.netOverhead(p))
	}
	across := 0
	switch {
	case m.NNodes == 1:
	case op == AllReduce && (m.Version.From(23) || !m.Version.From(12)):
		across = 2 * (m.NNodes - 1)
	case op == AllReduce:
		across = 2 * m.NNodes
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
