package nccl

// nodeKind is a kind of node of NCCL's topology.
type nodeKind uint8

const (
	kindGPU nodeKind = iota
	kindPCI
	kindNVS
	kindCPU
	kindNIC
	kindNET
	nKinds
)

var kindNames = [nKinds]string{
	kindGPU: "GPU", kindPCI: "PCI", kindNVS: "NVS", kindCPU: "CPU", kindNIC: "NIC", kindNET: "NET",
}

// linkKind is a kind of link; its path type is what a single such hop makes.
type linkKind uint8

const (
	linkLOC linkKind = iota
	linkNVL
	linkC2C
	linkPCI
	linkSYS
	linkNET
)

var linkNames = []string{linkLOC: "LOC", linkNVL: "NVL", linkC2C: "C2C", linkPCI: "PCI", linkSYS: "SYS", linkNET: "NET"}

// path is the type of a path over one such link. The network's own link does not
// count: only the way to the NIC matters.
func (k linkKind) path() PathType {
	switch k {
	case linkNVL:
		return PathNVL
	case linkC2C:
		return PathC2C
	case linkPCI:
		return PathPIX
	case linkSYS:
		return PathSYS
	}
	return PathLOC
}

// topoLink is one direction of a link. The search takes bandwidth away from bw
// and gives it back.
type topoLink struct {
	kind linkKind
	to   *topoNode
	bw   float32
	full float32 // bw as a search finds it
}

// topoNode is a node of NCCL's topology.
type topoNode struct {
	kind  nodeKind
	index int // within its kind
	host  int // operating-system image, of several in an NVLink domain
	id    uint64
	links []*topoLink
	paths [nKinds][]topoPath

	gpu gpuNode
	cpu cpuNode
	net netNode
	pci uint64 // device id, for Broadcom switches
}

type gpuNode struct {
	dev  int // NVML index
	rank int // position among the node's ranks
	cc   int
	gdr  bool
	net  float32 // what a NIC beside it carries to it
	used uint64  // channels under search that pass here
}

type cpuNode struct {
	arch   CPUArch
	vendor CPUVendor
	model  int
	rome   bool // AMD's Rome or later, for RCCL
}

type netNode struct {
	bw, full float32 // as a link's
	latency  float32
	asic     int // ports of equal asic and port are one cable
	port     int
	gdr      bool
	coll     bool
	localGPU int
	// functions are devices of the node type: the NIC, or those fused to it.
	functions []int
}

// topoPath is the way from one node to another; no hops and PathDIS where there
// is none.
type topoPath struct {
	hops  []*topoLink
	bw    float32
	kind  PathType
	plain bool // a channel takes its speed from every hop, and nothing else
}

// system is NCCL's view of a node.
type system struct {
	*rules
	env            map[string]string
	nodes          [nKinds][]*topoNode
	hosts          int
	inter          bool   // ranks are elsewhere too
	arch           string // of AMD's GPUs, which RCCL runs on: gfx942
	maxBw, totalBw float32
	everySpeed     bool // search at speeds that repeat one before too, as a test does to hold them against each other
	work           int  // what the searches here have cost, in hops

	p2pOff map[[2]int]bool // pairs of GPUs, by index, without peer access
}

// locBw is bandwidth without bound.
const locBw = 5000

func (s *system) addNode(kind nodeKind, host int, id uint64) *topoNode {
	n := &topoNode{kind: kind, index: len(s.nodes[kind]), host: host, id: id}
	s.nodes[kind] = append(s.nodes[kind], n)
	return n
}

// connect adds bandwidth from a node to another. Parallel links add up, and links
// stay sorted by bandwidth, greatest first.
func (n *topoNode) connect(to *topoNode, kind linkKind, bw float32) {
	at := -1
	for i, l := range n.links {
		if l.to == to && l.kind == kind {
			at = i
		}
	}
	if at < 0 {
		at = len(n.links)
		n.links = append(n.links, &topoLink{kind: kind, to: to})
	}
	l := n.links[at]
	l.bw += bw
	for ; at > 0 && n.links[at-1].bw < l.bw; at-- {
		n.links[at] = n.links[at-1]
	}
	n.links[at] = l
}

// join connects both ways.
func join(a, b *topoNode, kind linkKind, bw float32) {
	a.connect(b, kind, bw)
	b.connect(a, kind, bw)
}

// sortTree puts the link up the PCI tree last at every node, so that searches go
// down first.
func (n *topoNode) sortTree(up *topoNode) {
	if up != nil {
		for i, l := range n.links {
			if l.to == up {
				copy(n.links[i:], n.links[i+1:])
				n.links[len(n.links)-1] = l
				break
			}
		}
	}
	for _, l := range n.links {
		if l.kind == linkPCI && l.to != up {
			l.to.sortTree(n)
		}
	}
}

// nvlinkBw is what one NVLink carries one way.
func (r *rules) nvlinkBw(cc int) float32 {
	switch {
	case cc == 86:
		return r.NVLink[sm86]
	case cc < 70 && cc >= 60:
		return r.NVLink[pascal]
	}
	return r.NVLink[archOf(cc)]
}

// Models of processors, as NCCL tells them apart.
const (
	modelBDW      = 1
	modelSKL      = 2
	modelSPR      = 3
	modelEMR      = 4
	modelYongfeng = 1
)

// cpuModel is NCCL's model number from the CPUID family and model; -1 where it
// asks for none.
func (r *rules) cpuModel(vendor CPUVendor, family, model int) int {
	switch vendor {
	case Intel:
		switch {
		case family != 6 || model < 0x55:
			return modelBDW
		case model >= 0xCF && r.IntelModels:
			return modelEMR
		case model >= 0x8F && r.IntelModels:
			return modelSPR
		}
		return modelSKL
	case Zhaoxin:
		if family == 7 && model == 0x5B {
			return modelYongfeng
		}
	}
	return -1
}

// interCPU is the bandwidth between NUMA domains (NCCL 2.28 src/graph/topo.h and
// topo.cc).
func (r *rules) interCPU(c cpuNode) float32 {
	switch c.arch {
	case ArchPower:
		return 32
	case ArchARM:
		return 6
	}
	switch c.vendor {
	case Intel:
		return [...]float32{6, 6, 10, 22, 40}[c.model]
	case AMD:
		return r.AMDLink
	case Zhaoxin:
		if c.model == modelYongfeng {
			return 9
		}
		return 6
	}
	return locBw
}
