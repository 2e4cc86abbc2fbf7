package sim

import (
	"strings"

	"busbar.dev/unit"
)

// rcclFigures are what RCCL's time depends on inside a node of AMD's GPUs beyond line rates. They come from AMD's own
// figures and from RCCL's, not from a fit.
type rcclFigures struct {
	xgmi               float64 // part of a link's line rate that data gets
	launch             float64 // µs
	llHop, simpleHop   float64 // µs
	llLane, simpleLane float64 // GB/s of one channel
	ramp               float64 // µs
}

// rcclFiguresOf are those of an architecture.
//
// Links: 45 to 48 of 64 GB/s on MI300X (AMD, ROCm blog on xGMI and RCCL, 2024), where RCCL itself counts 48; it counts
// 36 of 50 on MI250X. MI355X is taken to reach RCCL's part of its 76.8. A step takes about what RCCL's table has for
// MI300X (2.28 src/graph/tuning.cc: 0.8 µs by LL, 2.1 by Simple), less what it shares with the start of a call; MI250X
// has 1.5 and 4.5 there.
func rcclFiguresOf(arch string) rcclFigures {
	switch {
	case arch == "gfx90a":
		return rcclFigures{xgmi: 36.0 / 50, launch: 8, llHop: 1.5, simpleHop: 4.5, llLane: 6, simpleLane: 30, ramp: 40}
	case strings.HasPrefix(arch, "gfx95"):
		return rcclFigures{xgmi: .75, launch: 6.5, llHop: .6, simpleHop: 1.2, llLane: 6, simpleLane: 20, ramp: 40}
	}
	return rcclFigures{xgmi: 46.5 / 64, launch: 6.5, llHop: .6, simpleHop: 1.2, llLane: 6, simpleLane: 20, ramp: 40}
}

// RCCLModel is the model of one algorithm and protocol of RCCL on an architecture of AMD's GPUs. What networks, PCIe
// and host memory cost is taken from NCCL's.
func (f *Figures) RCCLModel(arch string, s Setup) *Model {
	s.Gen, s.Card, s.amd = Ampere, false, true
	m := f.NCCLModel(s)
	algo, proto := s.Algo, s.Proto
	x := rcclFiguresOf(arch)
	m.Name, m.Origin = "rccl", "published figures of AMD and RCCL; networks as NCCL's"
	m.Share[NVLink] = x.xgmi
	w := &m.Wire
	w.Launch += micros(x.launch) - micros(f.gen(Ampere, launch)) // and what the way of calling adds
	if !w.Queued {
		w.Ramp = micros(x.ramp)
	}
	hop, lane := x.simpleHop, x.simpleLane
	if proto != Simple {
		hop, lane = x.llHop, x.llLane
	}
	if proto == LL128 { // as LL, with a flag for 120 bytes instead of 4
		lane *= 2 / ll128Factor
	}
	if algo == "direct" && proto == Simple {
		hop *= f.all(pairHop)
	}
	if w.Lane > 0 {
		w.Lane = unit.Rate(lane * float64(unit.GBps))
		if algo == "tree" || algo == "chain" {
			w.Lane = unit.Rate(float64(w.Lane) * f.all(treeLane))
		}
	}
	w.Hop[OverNVLink] = micros(hop)
	w.Hop[OverPCIe], w.Hop[OverHost], w.Hop[OverFar] = micros(hop+f.all(pcieHop)), micros(hop+f.all(hostHop)),
		micros(hop+f.all(hostHop))
	return m
}
