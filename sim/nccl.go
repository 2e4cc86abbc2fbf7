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
	m := &Model{Name: "nccl", Origin: "fitted on published sweeps", Through: f.gen(g, multiShare)}
	m.Share = [nKinds]float64{NVLink: f.gen(g, nvlinkShare), PCIe: f.all(pcieShare), DMA: f.all(dmaShare), Socket: f.all(socketShare), Fabric: f.all(ibShare)}
	m.Staging = unit.Rate(f.all(hostRate) * float64(unit.GBps))
	m.Bounce = unit.Rate(f.all(bounceRate) * float64(unit.GBps))
	m.Shared = unit.Rate(f.all(bounceShared) * float64(unit.GBps))
	m.NICs = map[cluster.NetKind]float64{
		cluster.InfiniBand: f.all(ibShare), cluster.RoCE: f.all(roceShare), cluster.EFA: f.all(efaShare), cluster.TCPX: f.all(tcpxShare), cluster.TCPXO: f.all(tcpxoShare),
		cluster.Ethernet: f.all(tcpShare), cluster.Slingshot: f.all(slingshotShare), cluster.OmniPath: f.all(omniPathShare),
	}
	m.Sockets = unit.Rate(f.all(tcpRate) * float64(unit.GBps))
	m.Hashed = map[cluster.NetKind]bool{cluster.RoCE: true, cluster.Ethernet: true, cluster.TCPX: true, cluster.TCPXO: true}
	m.Crowd = f.all(crowd)
	m.Fabric = map[cluster.NetKind]unit.Time{
		cluster.RoCE: micros(f.all(roceLate)), cluster.EFA: micros(f.all(efaLate)), cluster.TCPX: micros(f.all(tcpxLate)), cluster.TCPXO: micros(f.all(tcpxoLate)),
		cluster.Ethernet: micros(f.all(tcpLate)), cluster.Slingshot: micros(f.all(slingshotLate)), cluster.OmniPath: micros(f.all(omniPathLate)),
	}
	m.Wire = f.wire(g, proto)
	if card {
		m.Wire.Launch = micros(f.all(cardLaunch))
	}
	m.Wire.Ramp, m.Wire.RampOver = micros(f.gen(g, rampTime)), micros(f.all(rampOver))
	f.adapt(&m.Wire, g, kind, algo, proto)
	return m
}

func micros(us float64) unit.Time { return unit.Time(us * 1e6) }

// wire is a protocol as a ring uses it.
func (f *Figures) wire(g Gen, proto string) Wire {
	w := Wire{Name: proto, Launch: micros(f.gen(g, launch))}
	hop, net, lane := 0.0, 0.0, 0.0
	switch proto {
	case LL:
		w.Factor, w.Chunk = 2, llChunk
		hop, net, lane = f.gen(g, llHop), f.all(llNet), f.gen(g, llLane)
	case LL128:
		w.Factor, w.Chunk = ll128Factor, ll128Chunk
		hop, net, lane = f.gen(g, ll128Hop), f.all(ll128Net), f.gen(g, ll128Lane)
	default:
		w.Factor, w.Chunk, w.Slices = 1, ringChunk, 2
		w.Slice = micros(f.gen(g, sliceTime))
		hop, net, lane = f.gen(g, simpleHop), f.all(simpleNet), f.gen(g, simpleLane)
	}
	w.Lane = unit.Rate(lane * float64(unit.GBps))
	w.Hop = [nHops]unit.Time{OverNVLink: micros(hop), OverPCIe: micros(hop + f.all(pcieHop)), OverHost: micros(hop + f.all(hostHop)), OverNet: micros(net), OverSwitch: micros(f.gen(g, multiHop))}
	return w
}

// adapt fits a protocol to what other algorithms do with it.
func (f *Figures) adapt(w *Wire, g Gen, kind coll.Kind, algo, proto string) {
	switch algo {
	case "ring", "pat":
		if proto != Simple || kind != coll.AllReduce {
			w.Own = f.all(ownWork)
		}
		w.Last = f.all(lastStep)
	case "tree", "chain", "collnet_chain":
		w.Lane = unit.Rate(float64(w.Lane) * f.all(treeLane))
		w.Slice, w.Slices = 0, 1
		switch proto {
		case Simple:
			w.Slice = micros(f.all(treeSlice))
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
		w.Slice = micros(f.all(treeSlice))
	case "direct":
		w.Chunk, w.Slices, w.Overlap = pairChunk, 1, true
		w.Own, w.Last = f.all(ownWork), f.all(pairStep)
		w.Peer = micros(f.all(pairLaunch))
		if proto == Simple {
			for h := range w.Hop {
				w.Hop[h] = unit.Time(float64(w.Hop[h]) * f.all(pairHop))
			}
		}
	}
}
