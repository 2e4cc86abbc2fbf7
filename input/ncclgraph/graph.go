// Package ncclgraph reads NCCL graph XML: the channels that NCCL found for each
// algorithm, as it dumps them with NCCL_GRAPH_DUMP_FILE and takes them with
// NCCL_GRAPH_FILE.
//
// Read takes the file itself or a log that contains it, and files cut off at the
// end, which it says in Warnings. It refuses a text without a graphs element, one
// that declares XML entities, and more channels than NCCL can have.
package ncclgraph

import "busbar.dev/cluster"

// Algorithms by graph id.
const (
	Ring          = 0
	Tree          = 1
	CollNetChain  = 2
	NVLS          = 3
	CollNetDirect = 4
)

// Patterns of channels.
const (
	PatternBalancedTree  = 1
	PatternSplitTree     = 2
	PatternTree          = 3
	PatternRing          = 4
	PatternNVLS          = 5
	PatternCollNetDirect = 6
)

// Set is what one text holds.
type Set struct {
	Source   string
	Graphs   []Graph
	Warnings []cluster.Warning
}

// Graph is NCCL's plan for one algorithm.
type Graph struct {
	ID       int
	Pattern  int
	CrossNic int
	// NChannels is what the file says; len(Channels) is what it lists.
	NChannels int
	// SpeedIntra and SpeedInter are GB/s per channel, one direction.
	SpeedIntra, SpeedInter float64
	LatencyInter           float64 // µs; 0 when absent
	TypeIntra, TypeInter   string  // path classes in NCCL's words: LOC, NVL, PIX, …
	SameChannels           bool
	Channels               [][]Element
}

// Element is one stop of a channel, in order. A channel of several nodes begins
// and ends with a net.
type Element struct {
	Net bool // else a GPU
	// Host is the index of the host in an NVLink domain of several, else 0.
	Host int
	Dev  int // NVML index of the GPU, or NCCL's number of the net
	Rank int // -1 when the file does not say: releases before 2.30 do not
}

// ByID finds a graph by its id, nil when there is none.
func (s *Set) ByID(id int) *Graph {
	for i := range s.Graphs {
		if s.Graphs[i].ID == id {
			return &s.Graphs[i]
		}
	}
	return nil
}

// GPUs lists the devices of the GPUs of a channel, in order.
func GPUs(channel []Element) []int {
	var list []int
	for _, e := range channel {
		if !e.Net {
			list = append(list, e.Dev)
		}
	}
	return list
}
