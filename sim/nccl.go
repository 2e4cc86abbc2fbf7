package sim

import (
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// NCCL's protocols, as models know them.
const (
	LL     = "ll"
	LL128  = "ll128"
	Simple = "simple"
)

// What a message of a protocol carries at most and how it is cut (NCCL 2.28
// src/init.cc, computeBuffSizes, and include/collectives.h): eight steps a buffer of 4
// MiB (Simple), 512 KiB (LL), 4,800 KiB (LL128).
const (
	llChunk     = 32 * unit.KiB // half of a step of 64 KiB is flags
	ll128Chunk  = unit.Bytes(576000)
	ringChunk   = 2 * unit.MiB // four steps, in slices of two
	treeChunk   = 512 * unit.KiB
	treeLeast   = 32 * unit.KiB
	nvlsChunk   = 128 * unit.KiB
	nvlsLeast   = 16 * unit.KiB
	nvlsTree    = 256 * unit.KiB
	pipeLoops   = 16 // of which NCCL wants several to keep a pipe full
	pairChunk   = 512 * unit.KiB
	ll128Factor = 128.0 / 120
)

// NCCLModel is the model of one algorithm and protocol of NCCL on a generation of
// GPUs.
func (f *Figures) NCCLModel(g Gen, card bool, kind coll.Kind, algo, proto string) *Model {
	m := &Model{Name: "nccl", Origin: "fitted on published sweeps", Through: f.gen(g, MultiShare)}
	m.Share = [nKinds]float64{NVLink: f.gen(g, NVLinkShare), PCIe: f[PCIeShare], DMA: f[DMAShare], Socket: f[SocketShare], Fabric: f[IBShare]}
	m.Staging = unit.Rate(f[HostRate] * float64(unit.GBps))
	m.Bounce = unit.Rate(f[BounceRate] * float64(unit.GBps))
	m.Shared = unit.Rate(f[BounceShared] * float64(unit.GBps))
	m.NICs = map[cluster.NetKind]float64{
		cluster.InfiniBand: f[IBShare], cluster.RoCE: f[RoCEShare], cluster.EFA: f[EFAShare], cluster.TCPX: f[TCPXShare], cluster.TCPXO: f[TCPXOShare],
		cluster.Ethernet: f[TCPShare], cluster.Slingshot: f[SlingshotShare], cluster.OmniPath: f[OmniPathShare],
	}
	m.Sockets = unit.Rate(f[TCPRate] * float64(unit.GBps))
	m.Hashed = map[cluster.NetKind]bool{cluster.RoCE: true, cluster.Ethernet: true, cluster.TCPX: true, cluster.TCPXO: true}
	m.Crowd = f[Crowd]
	m.Fabric = map[cluster.NetKind]unit.Time{
		cluster.RoCE: micros(f[RoCELate]), cluster.EFA: micros(f[EFALate]), cluster.TCPX: micros(f[TCPXLate]), cluster.TCPXO: micros(f[TCPXOLate]),
		cluster.Ethernet: micros(f[TCPLate]), cluster.Slingshot: micros(f[SlingshotLate]), cluster.OmniPath: micros(f[OmniPathLate]),
	}
	m.Wire = f.wire(g, proto)
	if card {
		m.Wire.Launch = micros(f[CardLaunch])
	}
	m.Wire.Ramp, m.Wire.RampOver = micros(f.gen(g, RampTime)), micros(f[RampOver])
	f.suit(&m.Wire, g, kind, algo, proto)
	return m
}

func micros(us float64) unit.Time { return unit.Time(us * 1e6) }

// wire is a protocol as a ring uses it.
func (f *Figures) wire(g Gen, proto string) Wire {
	w := Wire{Name: proto, Launch: micros(f.gen(g, Launch))}
	hop, net, lane := 0.0, 0.0, 0.0
	switch proto {
	case LL:
		w.Factor, w.Chunk = 2, llChunk
		hop, net, lane = f.gen(g, LLHop), f[LLNet], f.gen(g, LLLane)
	case LL128:
		w.Factor, w.Chunk = ll128Factor, ll128Chunk
		hop, net, lane = f.gen(g, LL128Hop), f[LL128Net], f.gen(g, LL128Lane)
	default:
		w.Factor, w.Chunk, w.Slices = 1, ringChunk, 2
		w.Slice = micros(f.gen(g, SliceTime))
		hop, net, lane = f.gen(g, SimpleHop), f[SimpleNet], f.gen(g, SimpleLane)
	}
	w.Lane = unit.Rate(lane * float64(unit.GBps))
	w.Hop = [nHops]unit.Time{OverNVLink: micros(hop), OverPCIe: micros(hop + f[PCIeHop]), OverHost: micros(hop + f[HostHop]), OverNet: micros(net), OverSwitch: micros(f.gen(g, MultiHop))}
	return w
}

// suit fits a protocol to what other algorithms do with it.
func (f *Figures) suit(w *Wire, g Gen, kind coll.Kind, algo, proto string) {
	switch algo {
	case "ring", "pat":
		if proto != Simple || kind != coll.AllReduce {
			w.Own = f[OwnWork]
		}
		w.Last = f[LastStep]
	case "tree", "chain", "collnet_chain":
		w.Lane = unit.Rate(float64(w.Lane) * f[TreeLane])
		w.Slice, w.Slices = 0, 1
		switch proto {
		case Simple:
			w.Slice = micros(f[TreeSlice])
			w.Chunk, w.Least, w.Want = treeChunk, treeLeast, pipeLoops
		case LL128: // shrinks with the size too, less far
			w.Least, w.Want = treeLeast, pipeLoops/2
		}
	case "nvls", "nvls_tree", "collnet_direct":
		w.Lane, w.Slices, w.Overlap = 0, 1, true
		w.Chunk, w.Least, w.Want = nvlsChunk, nvlsLeast, pipeLoops
		if algo == "nvls_tree" {
			w.Chunk, w.Least = nvlsTree, 2*nvlsLeast
		}
		w.Slice = micros(f[TreeSlice])
	case "direct":
		w.Chunk, w.Slices, w.Overlap = pairChunk, 1, true
		w.Own, w.Last = f[OwnWork], f[PairStep]
		w.Peer = micros(f[PairLaunch])
		if proto == Simple {
			for h := range w.Hop {
				w.Hop[h] = unit.Time(float64(w.Hop[h]) * f[PairHop])
			}
		}
	}
}
