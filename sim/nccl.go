package sim

import (
	"strings"

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
	slots       = 8  // steps of a buffer
	pipeLoops   = 16 // of which NCCL wants several to keep a pipe full
	pairChunk   = 512 * unit.KiB
	ll128Factor = 128.0 / 120
)

// What one source or nobody has measured, so that nothing is fitted to it.
const (
	socketShare = 0.8 // part of the line rate between sockets
	// One direction to a NIC that cannot reach the memory of a GPU on another socket (docs/baskerville.md).
	bounceFar = 3.9 * unit.GBps
	farShare  = 0.8 // rate of copies through the memory of another socket over that through a GPU's own
	tcpShare  = 0.9 // part of the line rate over sockets
	// Part of the line rate over Omni-Path, whose adapters leave the protocol to processors: a site with four ports of 100
	// Gb/s a node has 135 Gb/s (S. Bekman, Machine Learning Engineering, Networking, 2024).
	omniPathShare = 135.0 / 400
	// A hop over EFA of the first generation or by plugins up to 2023, more than over InfiniBand: 8 B between two p5 took
	// 175 to 200 µs in 2023, of which a tree has three hops (aws-samples, awsome-distributed-training).
	efaOldLate = 45
	// A hop over EFA without GPUDirect, whose messages wait for no flush of a GPU's memory: half of a round trip by SRD is
	// 15.5 µs (AWS, HPC blog, 2019), and the proxy copies.
	efaStaged = 20
	proxyTime = 15 // µs of a host's work for a message of every further channel over sockets or GPUDirect-TCPX
	rackHop   = 15 // µs that a reduction in the switches of a rack of trays by all of its GPUs takes longer
	eventTime = 20 // µs more than in a queue of calls where each is timed by itself, with events around it
)

// Setup is what the costs of a call depend on beside its schedule and its size.
type Setup struct {
	Gen         Gen
	Card        bool // PCIe cards
	Early       bool // GPUs before Ampere, or a release before 2.12
	Kind        coll.Kind
	Algo, Proto string
	Nodes       int
	Rack        int // GPUs of an NVLink domain of several trays that take part, 0 where a server is the domain
	// Serial is how many GPUs one thread calls one after the other (nccl-tests -g 8); up to 1,
	// every GPU has a thread of its own.
	Serial int
	Alone  bool // every call is timed by itself
	Queue  bool // calls of the same collective follow each other, as those of nccl-tests
	Graph  bool // the calls are those of a CUDA graph
	OldEFA bool // EFA of the first generation, or a plugin of its time
	// Without are mechanisms to leave out.
	Without Mechanisms
	Arch    string // of AMD's GPUs, where RCCL runs
}

// NCCLModel is the model of one algorithm and protocol of NCCL on a generation of
// GPUs, or of RCCL on an architecture of AMD's.
func (f *Figures) NCCLModel(s Setup) *Model {
	m := &Model{Name: "nccl", Origin: "fitted on published sweeps", Through: f.gen(max(s.Gen, Hopper), multiShare)}
	links := f.gen(s.Gen, nvlinkShare)
	if s.Arch != "" {
		m.Name, s.Gen, s.Card, links = "rccl", Ampere, false, xgmiShare(s.Arch)
	}
	m.Share = [nKinds]float64{
		NVLink: links, PCIe: f.all(pcieShare), DMA: f.all(dmaShare), Shm: f.all(pcieShare), Far: f.all(pcieShare),
		Socket: socketShare, Fabric: f.all(rdmaShare),
	}
	m.Staging = unit.Rate(f.all(hostRate) * float64(unit.GBps))
	m.Bounce = unit.Rate(f.all(bounceRate) * float64(unit.GBps))
	m.BounceFar = bounceFar
	m.BounceEFA = unit.Rate(f.all(bounceEFA) * float64(unit.GBps))
	m.NICs = [nNets]float64{
		1: f.all(rdmaShare), 2: f.all(rdmaShare), 3: f.all(rdmaShare), 4: f.all(tcpxShare), 5: f.all(tcpxShare),
		6: tcpShare, 7: f.all(rdmaShare), 8: omniPathShare,
	}
	m.Sockets = unit.Rate(f.all(tcpRate) * float64(unit.GBps))
	m.Crowd, m.Proxy = f.all(crowd), micros(proxyTime)
	m.Fabric = [nNets]unit.Time{
		2: micros(f.all(roceLate)), 3: micros(f.all(efaLate)), 4: micros(f.all(tcpLate)), 5: micros(f.all(tcpLate)),
		6: micros(f.all(tcpLate)), 7: micros(f.all(roceLate)), 8: micros(f.all(roceLate)),
	}
	m.Wire = f.wire(&s)
	f.adapt(&m.Wire, s.Kind, s.Algo, s.Proto)
	f.settle(m, &s)
	return m
}

func micros(us float64) unit.Time { return unit.Time(us * 1e6) }

// wire is a protocol as a ring uses it.
func (f *Figures) wire(s *Setup) Wire {
	w := Wire{
		Name: s.Proto, Launch: micros(f.gen(s.Gen, launch)), Ramp: micros(f.all(rampTime)), RampOver: micros(f.all(rampOver)),
	}
	hop, net, lane, slice := 0.0, 0.0, 0.0, 0.0
	switch s.Proto {
	case LL:
		w.Factor, w.Chunk = 2, llChunk
		hop, net, lane = f.gen(max(s.Gen, Ampere), llHop), f.all(llNet), f.all(llLane)
	case LL128:
		w.Factor, w.Chunk = ll128Factor, ll128Chunk
		hop, net, lane = f.all(ll128Hop), f.all(ll128Net), f.all(ll128Lane)
	default:
		w.Factor, w.Chunk, w.Slices = 1, ringChunk, 2
		hop, net, lane, slice = f.all(simpleHop), f.all(simpleNet), f.all(simpleLane), f.all(sliceTime)
	}
	switch {
	case s.Arch != "":
		w.Launch, w.Ramp = micros(f.all(rcclLaunch)), micros(f.all(rcclRamp))
		if hop = f.all(rcclLL); s.Proto == Simple {
			hop, lane = f.all(rcclSimple), rcclSimpleLane
		}
	case s.Card:
		w.Launch = micros(f.all(cardLaunch))
	}
	if s.Early && s.Proto != Simple {
		lane *= f.all(earlyLane)
	}
	w.Lane, w.Slice = unit.Rate(lane*float64(unit.GBps)), micros(slice)
	w.Hop = [nHops]unit.Time{
		OverNVLink: micros(hop), OverPCIe: micros(hop + f.all(cardHop)), OverHost: micros(hop + f.all(cardHop)),
		OverFar: micros(hop + f.all(cardHop)), OverNet: micros(net), OverSwitch: micros(f.all(multiHop)),
	}
	return w
}

// rcclSimpleLane is what the threads of one of RCCL's channels move with Simple, in GB/s.
const rcclSimpleLane = 30

// xgmiShare is the part of the line rate that data gets over AMD's links: 45 to 48 of 64 GB/s on MI300X (AMD, ROCm blog
// on xGMI and RCCL, 2024), where RCCL itself counts 48; it counts 36 of 50 on MI250X. MI355X is taken to reach RCCL's
// part of its 76.8.
func xgmiShare(arch string) float64 {
	switch {
	case arch == "gfx90a":
		return 36.0 / 50
	case strings.HasPrefix(arch, "gfx95"):
		return .75
	}
	return 46.5 / 64
}

// adapt fits a protocol to what other algorithms do with it.
func (f *Figures) adapt(w *Wire, kind coll.Kind, algo, proto string) {
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
		w.Own, w.Last = f.all(ownWork), f.all(lastStep)
		if kind != coll.AllReduce { // which one kernel does for all peers
			w.Peer = micros(f.all(pairLaunch))
		}
	}
}

// settle adds the mechanisms that can be left out.
func (f *Figures) settle(m *Model, s *Setup) {
	on := func(x Mechanisms) bool { return !s.Without.Has(x) }
	w := &m.Wire
	m.SharedNIC = f.all(sharedNIC)
	if s.Algo == "tree" { // whose threads write to a link and read from it by turns
		m.Share[NVLink] *= f.all(treeLane)
	}
	if on(SimpleStart) && s.Arch == "" && s.Proto == Simple && (s.Algo == "ring" || s.Algo == "chain") {
		w.Launch += micros(f.all(simpleStart))
	}
	if on(SwitchChunks) && s.Algo == "nvls_tree" {
		m.Through *= f.all(switchTree)
	}
	m.Stored = on(StoreForward)
	if on(HostMemory) {
		m.Memory = ddr4
		if s.Card { // the last block is added at the rate of the GPU's memory, which is no part of PCIe's
			w.Last = 0
		}
	}
	if s.Rack > 0 && on(RackDomains) {
		w.Hop[OverSwitch] += micros(rackHop * rackPart(s.Rack))
		m.Through *= f.all(rackShare)
	}
	if on(HostCopies) && !(s.Kind.Rooted() && s.Algo == "chain") { // which go one way only
		m.Share[Shm], m.Share[Far] = f.all(shmShare), f.all(shmShare)
		if on(HostMemory) {
			m.Share[Far] *= farShare
		}
	}
	if s.OldEFA {
		m.Fabric[netAt(cluster.EFA)], m.NICs[netAt(cluster.EFA)] = micros(efaOldLate), f.all(efaOldShare)
	}
	w.Slots = slots
	switch {
	case s.Algo == "nvls_tree":
		w.Ladder = treeOfSwitches(s.Nodes)
	case on(SwitchChunks) && s.Algo == "nvls":
		w.Ladder, w.Turn = switchChunks(), switchTurn
	}
	w.Queued = on(RootedLoops) && s.Kind.Rooted() && s.Algo == "chain" && s.Queue
	if w.Queued { // the threads of the next call are at work already
		w.Ramp = 0
	}
	if !on(LaunchMode) {
		return
	}
	if s.Graph {
		w.Launch = unit.Time(float64(w.Launch) * f.all(graphLaunch))
	}
	if s.Alone {
		w.Launch += micros(eventTime)
	}
	if s.Serial > 1 && !s.Graph {
		each := f.all(hostIssue)
		if s.Arch != "" {
			each = f.all(issueAMD)
		}
		w.Issue = micros(each * (float64(s.Serial) + 0.5)) // half a call to begin and end the group
	}
}

// rackPart is how much of a whole rack's additional way a reduction among some of its GPUs takes: every rank's threads
// scatter to and gather from every head in turn, so that it grows with the GPUs, from the eight of a server, where the
// hop has none of it, to the 72 of the racks that it was fitted on.
func rackPart(gpus int) float64 {
	const server, rack = 8, 72
	return min(max(float64(gpus-server)/(rack-server), 0), 1)
}

// switchTurn is the part of a reduction's way through the switch, there and back, that the next block of a channel
// waits for: threads of their own reduce and spread, and blocks of 32 KiB come at this distance on Hopper and
// Blackwell.
const switchTurn = 0.75

// switchChunks are the chunks of NVLS by what a channel of a head has to send (NCCL 2.28 src/enqueue.cc,
// calcCollChunking).
func switchChunks() []ChunkStep {
	const k, m = 1 << 10, 1 << 20
	return []ChunkStep{{64 * k, 16 * k}, {512 * k, 32 * k}, {8 * m, 64 * k}, {0, 128 * k}}
}

// treeOfSwitches are the chunks of NVLSTree by what a channel of a head has to send (NCCL 2.21 to 2.28 src/enqueue.cc,
// calcCollChunking): at most 128 KiB, from four nodes on 64 KiB.
func treeOfSwitches(nodes int) []ChunkStep {
	const k = 1 << 10
	if nodes >= 4 {
		return []ChunkStep{{64 * k, 32 * k}, {0, 64 * k}}
	}
	return []ChunkStep{{64 * k, 32 * k}, {512 * k, 64 * k}, {0, 128 * k}}
}
