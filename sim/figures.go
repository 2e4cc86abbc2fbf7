package sim

import (
	"fmt"
	"strings"
)

// Figures are what NCCL's time depends on beyond line rates. There are few, each
// with a physical meaning; their values were fitted on published sweeps (see
// docs/accuracy.md), and calibration replaces single ones for a machine.
type Figures [nFigures]float64

// Gen is a generation of GPUs, in the order of their figures.
type Gen int

// Generations.
const (
	Volta Gen = iota
	Ampere
	Hopper
	Blackwell
	nGens
)

// GenOf is the generation of a compute capability ×10. Cards between two
// generations count to the older one.
func GenOf(sm int) Gen {
	switch {
	case sm >= 100:
		return Blackwell
	case sm >= 90:
		return Hopper
	case sm >= 80:
		return Ampere
	}
	return Volta
}

var genNames = [nGens]string{"volta", "ampere", "hopper", "blackwell"}

func (g Gen) String() string { return genNames[g] }

// Figures of a generation, counted from Gen × nGenFigures.
const (
	Launch      = iota // µs: a call until its first byte moves, as nccl-tests counts it
	LLHop              // µs: a message of protocol LL from GPU to GPU
	LL128Hop           // µs
	SimpleHop          // µs
	LLLane             // GB/s of data that the threads of one channel move
	LL128Lane          // GB/s
	SimpleLane         // GB/s
	SliceTime          // µs: handing a slice of protocol Simple to the next GPU
	NVLinkShare        // of the line rate that data gets
	MultiShare         // of the line rate that data gets which a switch reduces
	MultiHop           // µs: a reduction in the switch, there and back
	RampTime           // µs: lost by long transfers until the threads have their full rate
	nGenFigures
)

// Figures that all generations share.
const (
	PCIeHop    = int(nGens)*nGenFigures + iota // µs more than over NVLink, peer to peer
	HostHop                                    // µs more, through shared host memory
	LLNet                                      // µs: a message of LL from NIC to NIC, proxies included
	LL128Net                                   // µs
	SimpleNet                                  // µs
	Crowd                                      // of what a kind of network adds to a hop: what it adds once more where many channels go over it at once
	OwnWork                                    // messages: what a channel does about its rank's own block
	TreeLane                                   // lane of a tree over that of a ring: two directions share the threads
	TreeSlice                                  // µs: a loop of a tree
	PairLaunch                                 // µs: sends and receives with every further peer
	PairHop                                    // of a hop of protocol Simple: that of a send to a peer, which no ring waits for
	RampOver                                   // µs: in which threads get their full rate
	LastStep                                   // messages: what a ring loses by its last step, which receives and sends nothing on
	PairStep                                   // messages: the same where pairs exchange, for a rank's own block
	CardLaunch                                 // µs: launch on hosts of PCIe cards
	PCIeShare                                  // of copies by GPUs
	DMAShare                                   // of transfers by NICs
	SocketShare
	HostRate     // GB/s through the memory of a socket
	BounceRate   // GB/s one direction, to a NIC that cannot reach GPU memory
	BounceShared // GB/s, where GPUs of a node share such a NIC
	IBShare
	RoCEShare
	EFAShare
	TCPXShare
	TCPXOShare
	TCPShare
	TCPRate // GB/s at most that sockets move through one port
	SlingshotShare
	OmniPathShare
	RoCELate // µs more of a hop than over InfiniBand
	EFALate
	TCPXLate
	TCPXOLate
	TCPLate
	SlingshotLate
	OmniPathLate
	nFigures
)

type figureInfo struct {
	name, unit string
	lo, hi     float64
}

var genInfo = [nGenFigures]figureInfo{
	{"launch", "us", 1, 60},
	{"ll_hop", "us", 0.1, 5},
	{"ll128_hop", "us", 0.1, 10},
	{"simple_hop", "us", 0.1, 20},
	{"ll_lane", "GB/s", 0.5, 60},
	{"ll128_lane", "GB/s", 1, 80},
	{"simple_lane", "GB/s", 1, 120},
	{"slice", "us", 0, 30},
	{"nvlink_share", "", 0.4, 1},
	{"multimem_share", "", 0.3, 1},
	{"multimem_hop", "us", 1, 60},
	{"ramp", "us", 0, 400},
}

var commonInfo = [nFigures - int(nGens)*nGenFigures]figureInfo{
	{"pcie_hop", "us", 0, 20},
	{"host_hop", "us", 0, 20},
	{"ll_net", "us", 1, 40},
	{"ll128_net", "us", 1, 60},
	{"simple_net", "us", 1, 80},
	{"crowd", "", 0, 3},
	{"own_work", "", 0, 1.5},
	{"tree_lane", "", 0.3, 2},
	{"tree_slice", "us", 0, 30},
	{"pair_launch", "us", 0, 10},
	{"pair_hop", "", 0.1, 2},
	{"ramp_over", "us", 20, 5000},
	{"last_step", "", 0, 2},
	{"pair_step", "", 0, 2},
	{"card_launch", "us", 1, 60},
	{"pcie_share", "", 0.4, 1},
	{"dma_share", "", 0.4, 1},
	{"socket_share", "", 0.2, 1},
	{"host_rate", "GB/s", 2, 200},
	{"bounce_rate", "GB/s", 2, 60},
	{"bounce_shared", "GB/s", 1, 60},
	{"infiniband_share", "", 0.5, 1},
	{"roce_share", "", 0.5, 1},
	{"efa_share", "", 0.4, 1},
	{"tcpx_share", "", 0.2, 1},
	{"tcpxo_share", "", 0.2, 1},
	{"tcp_share", "", 0.05, 1},
	{"tcp_rate", "GB/s", 0.3, 25},
	{"slingshot_share", "", 0.4, 1},
	{"omnipath_share", "", 0.1, 1},
	{"roce_late", "us", 0, 60},
	{"efa_late", "us", 0, 200},
	{"tcpx_late", "us", 0, 600},
	{"tcpxo_late", "us", 0, 600},
	{"tcp_late", "us", 0, 600},
	{"slingshot_late", "us", 0, 60},
	{"omnipath_late", "us", 0, 60},
}

// FigureName is the name of a figure: hopper.ll_hop, infiniband_share.
func FigureName(i int) string {
	if i < int(nGens)*nGenFigures {
		return Gen(i/nGenFigures).String() + "." + genInfo[i%nGenFigures].name
	}
	return commonInfo[i-int(nGens)*nGenFigures].name
}

// FigureRange is the unit of a figure and the range it may have.
func FigureRange(i int) (unit string, lo, hi float64) {
	x := genInfo[i%nGenFigures]
	if i >= int(nGens)*nGenFigures {
		x = commonInfo[i-int(nGens)*nGenFigures]
	}
	return x.unit, x.lo, x.hi
}

// FigureByName finds a figure.
func FigureByName(name string) (int, error) {
	for i := range nFigures {
		if strings.EqualFold(FigureName(i), name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no figure %.60q", name)
}

// gen is a figure of a generation.
func (f *Figures) gen(g Gen, k int) float64 { return f[int(g)*nGenFigures+k] }
