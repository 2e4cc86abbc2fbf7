package sim

import (
	"fmt"
	"strings"
)

// Figures are what NCCL's time depends on beyond line rates. There are few, each
// with a physical meaning; their values were fitted on published sweeps (see
// docs/accuracy.md), and calibration replaces single ones for a machine. Those that
// differ by generation come first, one generation after the other.
type Figures [nGens*int(genFigures) + int(nFigures-genFigures)]float64

// Gen is a generation of GPUs, in the order of their figures.
type Gen int

// Generations.
const (
	Volta Gen = iota
	Ampere
	Hopper
	Blackwell
	nGens = 4
)

var genNames = [nGens]string{Volta: "volta", Ampere: "ampere", Hopper: "hopper", Blackwell: "blackwell"}

func (g Gen) String() string { return genNames[g] }

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

// figure is one of the figures, of no generation yet; figureTable says what it is.
type figure int

const (
	// Every generation has its own of these.
	launch figure = iota
	llHop
	ll128Hop
	simpleHop
	llLane
	ll128Lane
	simpleLane
	sliceTime
	nvlinkShare
	multiShare
	multiHop
	rampTime
	genFigures // how many these are
)

const (
	// All generations share these.
	pcieHop = genFigures + figure(iota)
	hostHop
	llNet
	ll128Net
	simpleNet
	crowd
	ownWork
	treeLane
	treeSlice
	pairLaunch
	pairHop
	rampOver
	lastStep
	pairStep
	cardLaunch
	pcieShare
	dmaShare
	socketShare
	hostRate
	bounceRate
	bounceFar
	ibShare
	roceShare
	efaShare
	tcpxShare
	tcpxoShare
	tcpShare
	tcpRate
	slingshotShare
	omniPathShare
	roceLate
	efaLate
	tcpxLate
	tcpxoLate
	tcpLate
	slingshotLate
	omniPathLate
	hostIssue
	eventTime
	shmShare
	netLane
	sharedNIC
	roundTrip
	efaOldLate
	graphLaunch
	rackHop
	rackShare
	farShare
	efaOldShare
	proxyTime
	simpleStart
	switchTree
	bounceEFA
	nFigures
)

// figureTable is name, unit, range and meaning of every figure.
var figureTable = [nFigures]struct {
	name, unit  string
	least, most float64
	meaning     string
}{
	launch:      {"launch", "us", 1, 60, "a call until its first byte moves, as nccl-tests counts it"},
	llHop:       {"ll_hop", "us", 0.1, 5, "a message of protocol LL from GPU to GPU"},
	ll128Hop:    {"ll128_hop", "us", 0.1, 10, "a message of protocol LL128 from GPU to GPU"},
	simpleHop:   {"simple_hop", "us", 0.1, 20, "a message of protocol Simple from GPU to GPU"},
	llLane:      {"ll_lane", "GB/s", 0.5, 60, "data that the threads of one channel move with protocol LL"},
	ll128Lane:   {"ll128_lane", "GB/s", 1, 80, "the same with protocol LL128"},
	simpleLane:  {"simple_lane", "GB/s", 1, 120, "the same with protocol Simple"},
	sliceTime:   {"slice", "us", 0, 30, "handing a slice of protocol Simple to the next GPU"},
	nvlinkShare: {"nvlink_share", "", 0.4, 1, "part of the line rate that data gets over NVLink"},
	multiShare:  {"multimem_share", "", 0.3, 1, "part of the line rate of data that a switch reduces"},
	multiHop:    {"multimem_hop", "us", 1, 60, "a reduction in the switch, there and back"},
	rampTime:    {"ramp", "us", 0, 400, "lost by long transfers until the threads have their full rate"},
	pcieHop:     {"pcie_hop", "us", 0, 20, "a hop over PCIe, peer to peer, more than over NVLink"},
	hostHop:     {"host_hop", "us", 0, 20, "a hop through shared host memory, more than over NVLink"},
	llNet:       {"ll_net", "us", 1, 40, "a message of LL from NIC to NIC, proxies included"},
	ll128Net:    {"ll128_net", "us", 1, 60, "a message of LL128 from NIC to NIC"},
	simpleNet:   {"simple_net", "us", 1, 80, "a message of Simple from NIC to NIC"},
	crowd: {"crowd", "", 0, 3, "part of what a kind of network adds to a hop that it adds once more where many " +
		"channels use it"},
	ownWork:    {"own_work", "", 0, 1.5, "what a channel does about its rank's own block, in messages"},
	treeLane:   {"tree_lane", "", 0.3, 2, "lane of a tree over that of a ring: two directions share the threads"},
	treeSlice:  {"tree_slice", "us", 0, 30, "a loop of a tree"},
	pairLaunch: {"pair_launch", "us", 0, 10, "sends and receives with every further peer"},
	pairHop: {
		"pair_hop", "", 0.1, 2, "hop of a send to a peer, which no ring waits for, over one of protocol Simple",
	},
	rampOver: {"ramp_over", "us", 20, 5000, "in which threads get their full rate"},
	lastStep: {
		"last_step", "", 0, 2, "what a ring loses by its last step, which receives and sends nothing on, in messages",
	},
	pairStep:       {"pair_step", "", 0, 2, "the same where pairs exchange, for a rank's own block, in messages"},
	cardLaunch:     {"card_launch", "us", 1, 60, "launch on hosts of PCIe cards"},
	pcieShare:      {"pcie_share", "", 0.4, 1, "part of the line rate of copies by GPUs"},
	dmaShare:       {"dma_share", "", 0.4, 1, "part of the line rate of transfers by NICs"},
	socketShare:    {"socket_share", "", 0.2, 1, "part of the line rate between sockets"},
	hostRate:       {"host_rate", "GB/s", 2, 200, "through the memory of a socket"},
	bounceRate:     {"bounce_rate", "GB/s", 2, 60, "one direction, to a NIC that cannot reach GPU memory"},
	bounceFar:      {"bounce_far", "GB/s", 1, 60, "the same where the GPU is on another socket than the NIC"},
	ibShare:        {"infiniband_share", "", 0.5, 1, "part of the line rate over InfiniBand"},
	roceShare:      {"roce_share", "", 0.5, 1, "part of the line rate over RoCE"},
	efaShare:       {"efa_share", "", 0.4, 1, "part of the line rate over EFA"},
	tcpxShare:      {"tcpx_share", "", 0.2, 1, "part of the line rate over GPUDirect-TCPX"},
	tcpxoShare:     {"tcpxo_share", "", 0.2, 1, "part of the line rate over GPUDirect-TCPXO"},
	tcpShare:       {"tcp_share", "", 0.05, 1, "part of the line rate over sockets"},
	tcpRate:        {"tcp_rate", "GB/s", 0.3, 25, "at most that sockets move through one port"},
	slingshotShare: {"slingshot_share", "", 0.4, 1, "part of the line rate over Slingshot"},
	omniPathShare:  {"omnipath_share", "", 0.1, 1, "part of the line rate over Omni-Path"},
	roceLate:       {"roce_late", "us", 0, 60, "a hop over RoCE, more than over InfiniBand"},
	efaLate:        {"efa_late", "us", 0, 200, "a hop over EFA, more than over InfiniBand"},
	tcpxLate:       {"tcpx_late", "us", 0, 600, "a hop over GPUDirect-TCPX, more than over InfiniBand"},
	tcpxoLate:      {"tcpxo_late", "us", 0, 600, "a hop over GPUDirect-TCPXO, more than over InfiniBand"},
	tcpLate:        {"tcp_late", "us", 0, 600, "a hop over sockets, more than over InfiniBand"},
	slingshotLate:  {"slingshot_late", "us", 0, 60, "a hop over Slingshot, more than over InfiniBand"},
	omniPathLate:   {"omnipath_late", "us", 0, 60, "a hop over Omni-Path, more than over InfiniBand"},
	hostIssue: {
		"host_issue", "us", 1, 12, "issuing a call for one of several GPUs that a thread serves one after the other",
	},
	eventTime: {
		"event_time", "us", 0, 80, "timing every call by itself, with events around it, more than in a queue of calls",
	},
	shmShare: {"shm_share", "", 0.2, 1, "part of the line rate of copies by GPUs through host memory"},
	netLane: {
		"net_lane", "GB/s", 8, 60, "data that one channel of protocol Simple moves through a NIC, up to Hopper",
	},
	sharedNIC: {"shared_nic", "", 0.6, 1, "rate of a port that several GPUs share over that of one's own"},
	roundTrip: {"round_trip", "", 0.3, 4, "until a place in a buffer is free again behind the network, in hops"},
	efaOldLate: {"efa_old_late", "us", 0, 300, "a hop over EFA of the first generation, or by plugins up to 2023, " +
		"more than over InfiniBand"},
	rackHop: {"rack_hop", "us", 0, 150, "a reduction in the switches of a rack of trays by all of its GPUs, more " +
		"than in those of a server"},
	rackShare: {"rack_share", "", 0.5, 1, "rate of data that the switches of a rack reduce over that in a server"},
	farShare: {
		"far_share", "", 0.4, 1, "rate of copies through the memory of another socket over that through a GPU's own",
	},
	efaOldShare: {
		"efa_old_share", "", 0.3, 1, "part of the line rate over EFA of the first generation, or by plugins up to 2023",
	},
	proxyTime: {
		"proxy_time", "us", 0, 100, "host's work for a message of every further channel over sockets or GPUDirect-TCPX",
	},
	simpleStart: {
		"simple_start", "us", 0, 60, "a call by protocol Simple until its buffers are in use, more than by the others",
	},
	switchTree: {
		"switch_tree_share", "", 0.7, 1, "rate of data that switches reduce for a tree between nodes over that inside of one",
	},
	bounceEFA:   {"bounce_efa", "GB/s", 1, 60, "the same over EFA, wherever the GPU is"},
	graphLaunch: {"graph_launch", "", 0.2, 1, "launch of calls in a CUDA graph over that of calls by themselves"},
}

// at is where in Figures a figure is.
func (k figure) at(g Gen) int {
	if k < genFigures {
		return int(g)*int(genFigures) + int(k)
	}
	return nGens*int(genFigures) + int(k-genFigures)
}

// figureAt is the figure at a place of Figures, and its generation.
func figureAt(i int) (Gen, figure) {
	if i < nGens*int(genFigures) {
		return Gen(i / int(genFigures)), figure(i % int(genFigures))
	}
	return -1, figure(i-nGens*int(genFigures)) + genFigures
}

// gen is a figure of a generation.
func (f *Figures) gen(g Gen, k figure) float64 { return f[k.at(g)] }

// all is a figure that all generations share.
func (f *Figures) all(k figure) float64 { return f[k.at(-1)] }

// FigureName is the name of a figure: hopper.ll_hop, infiniband_share.
func FigureName(i int) string {
	g, k := figureAt(i)
	if g >= 0 {
		return g.String() + "." + figureTable[k].name
	}
	return figureTable[k].name
}

// FigureRange is the unit of a figure and the range it may have.
func FigureRange(i int) (unit string, lo, hi float64) {
	_, k := figureAt(i)
	return figureTable[k].unit, figureTable[k].least, figureTable[k].most
}

// FigureByName finds a figure.
func FigureByName(name string) (int, error) {
	for i := range len(Figures{}) {
		if strings.EqualFold(FigureName(i), name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no figure %.60q", name)
}

// Fitted are the figures as fitted on the published sweeps of truth/collectives and collectives-2
// (all that are neither anomalous nor of grade C), by `make fit FIT=-figures`.
func Fitted() *Figures {
	return &Figures{
		// volta
		8.085, 0.8654, 2.36, 4.458, 11.12, 19.57, 66.79, 0.55, 0.872, 0.6644, 10.64, 95.18,
		// ampere
		8.107, 0.8884, 2.292, 4.969, 11.01, 20.08, 69.83, 0.6005, 0.7451, 0.6702, 10.88, 94.88,
		// hopper
		5.429, 0.743, 2.178, 5.119, 13, 24.12, 77.47, 0.5911, 0.8389, 0.6843, 11.49, 85.08,
		// blackwell
		8.269, 0.984, 2.387, 5.925, 12.71, 23.96, 72.38, 0.6712, 0.7877, 0.5808, 13.15, 111.9,
		// common
		0.4503, 0.6408, 3.996, 6.479, 18.41, 0.3611, 0.6478, 0.9062, 0.9455, 0.8377, 0.8641, 268, 0.3133, 0.4705, 4.702,
		0.6539, 0.8908, 0.8148, 67.07, 14, 3.9, 0.9477, 0.9369, 0.9674, 0.6135, 0.824, 0.9, 2.938, 0.9263, 0.4413, 2.291,
		10.39, 80.89, 26.29, 35.15, 4.451, 5, 4.105, 20.26, 0.4618, 22.08, 0.9014, 2.106, 49.4, 0.6902, 21.46, 0.84, 0.7841,
		0.6847, 34.78, 9.983, 0.9154, 3,
	}
}
