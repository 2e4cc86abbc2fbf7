package nccl

import "slices"

// PathType is NCCL's word for the way between two devices, nearest first. The
// order is that of 2.27 and later; releases before lack some of the words, which
// never appear there.
type PathType uint8

// Path types.
const (
	PathLOC PathType = iota
	PathNVL          // NVLink, direct or through a switch
	PathNVB          // NVLink through another GPU
	PathC2C          // GPU and CPU chip to chip
	PathPIX          // one PCIe switch
	PathPXB          // several PCIe switches
	PathP2C          // GPU to NIC over C2C and PCIe
	PathPXN          // GPU to NIC over a peer GPU
	PathPHB          // through the CPU
	PathSYS          // across CPUs
	PathNET          // network only
	PathDIS          // none
)

var pathNames = []string{
	PathLOC: "LOC", PathNVL: "NVL", PathNVB: "NVB", PathC2C: "C2C", PathPIX: "PIX", PathPXB: "PXB",
	PathP2C: "P2C", PathPXN: "PXN", PathPHB: "PHB", PathSYS: "SYS", PathNET: "NET", PathDIS: "DIS",
}

func (p PathType) String() string {
	if int(p) < len(pathNames) {
		return pathNames[p]
	}
	return "?"
}

// parsePath reads NCCL's word for a path type.
func parsePath(s string) (PathType, bool) {
	i := slices.Index(pathNames, s)
	return PathType(max(i, 0)), i >= 0
}

// Pattern is the shape a search looks for, with NCCL's numbers.
type Pattern uint8

// Patterns (NCCL 2.28 src/include/graph.h, NCCL_TOPO_PATTERN_…).
const (
	BalancedTree  Pattern = 1
	SplitTree     Pattern = 2
	TreePattern   Pattern = 3
	RingPattern   Pattern = 4
	NVLSPattern   Pattern = 5
	DirectPattern Pattern = 6 // CollNet direct
)

// Graph is the result of a search on one node: channels, each an order of the
// node's GPUs with the NICs at its ends.
type Graph struct {
	ID                   int // 0 ring, 1 tree, 2 CollNet chain, 3 NVLS, 4 CollNet direct
	Pattern              Pattern
	CrossNIC             int
	NChannels            int
	BwIntra, BwInter     float32 // GB/s per channel
	LatencyInter         float32 // µs, what the network's plugin says
	TypeIntra, TypeInter PathType
	SameChannels         bool
	// Intra is the order of GPUs of each channel, as positions among the node's
	// ranks; Inter the NICs at its ends, as positions among the node's NICs, -1 on
	// a single node. An NVLS channel's first GPU is its head.
	Intra [][]int
	Inter [][2]int
}

// Graphs are the graphs of one node, or what all nodes agreed upon.
type Graphs struct {
	Ring, Tree, Chain, Direct, NVLS Graph

	rccl              *RCCL // what RCCL knows of the node; nil for NCCL
	odd, before, last Graph // RCCL's rings on every other node, and on the last two of an odd number
}

// graphOf is the graph whose figures an algorithm uses.
func (g *Graphs) graphOf(a Algo) *Graph {
	switch a {
	case Ring:
		return &g.Ring
	case CollNetDirect:
		return &g.Direct
	case CollNetChain:
		return &g.Chain
	case NVLS, NVLSTree:
		return &g.NVLS
	}
	return &g.Tree // Tree and PAT
}

// all lists the graphs in the order of their numbers.
func (g *Graphs) all() []*Graph {
	return []*Graph{&g.Ring, &g.Tree, &g.Chain, &g.NVLS, &g.Direct}
}

// agree is what ranks take after comparing: the fewest channels, the least bandwidth,
// the worst type; one poor node lowers the whole job (NCCL 2.28 src/init.cc,
// initTransportsRank). The orders of the first node stay.
func agree(nodes []Graphs) Graphs {
	if len(nodes) == 0 {
		return Graphs{}
	}
	out := nodes[0]
	mine := out.all()
	for i := range nodes[1:] {
		for k, o := range nodes[i+1].all() {
			g := mine[k]
			g.NChannels = min(g.NChannels, o.NChannels)
			g.BwIntra, g.BwInter = min(g.BwIntra, o.BwIntra), min(g.BwInter, o.BwInter)
			g.TypeIntra, g.TypeInter = max(g.TypeIntra, o.TypeIntra), max(g.TypeInter, o.TypeInter)
			g.SameChannels = g.SameChannels && o.SameChannels
			g.CrossNIC = max(g.CrossNIC, o.CrossNIC)
		}
		out.Tree.Pattern = max(out.Tree.Pattern, nodes[i+1].Tree.Pattern)
	}
	n := min(out.Ring.NChannels, out.Tree.NChannels)
	out.Ring.NChannels, out.Tree.NChannels = n, n
	return out
}
