package nccl

// CPUArch is an instruction set, with the numbers NCCL prints.
type CPUArch int

// Architectures.
const (
	ArchX86   CPUArch = 1
	ArchPower CPUArch = 2
	ArchARM   CPUArch = 3
	ArchMixed CPUArch = 4
)

// CPUVendor is a maker of x86 processors, with the numbers NCCL prints.
type CPUVendor int

// Makers.
const (
	Intel       CPUVendor = 1
	AMD         CPUVendor = 2
	Zhaoxin     CPUVendor = 3
	MixedVendor CPUVendor = 4
)

// Comm is what the tuning model asks of a communicator.
type Comm struct {
	Version       Version
	NRanks        int
	NNodes        int // as NCCL counts them
	MaxLocalRanks int // on one node
	MinCC, MaxCC  int // compute capability ×10
	Arch          CPUArch
	Vendor        CPUVendor
	Channels      int  // of collectives, after doubling
	NVLSChannels  int  // 0: no NVLS
	NVSwitch      bool // some node has one
	CollNet       bool // in-network reduction is set up
	CollNetHeads  int  // GPUs of a node with a NIC of their own for it
	CUDA118       bool // built with CUDA 11.8, which keeps LL128 from one case
	Env           map[string]string
	// RCCL is set where the library is RCCL rather than NCCL.
	RCCL *RCCL

	rules *rules // of the release
}

// ppn is ranks per node, as NCCL computes it.
func (c *Comm) ppn() float32 { return float32(c.NRanks) / float32(c.NNodes) }

// Indexes of architectures in the tables of bandwidths; the last two have NVLinks of their own.
const (
	volta = iota
	ampere
	hopper
	blackwell
	sm86
	pascal
)

// archOf is the architecture of a compute capability.
func archOf(cc int) int {
	switch {
	case cc >= 100:
		return blackwell
	case cc >= 90:
		return hopper
	case cc >= 80:
		return ampere
	}
	return volta
}

// sizeIndex is the column of a table: one node, two, more.
func (c *Comm) sizeIndex() int { return min(c.NNodes, 3) - 1 }

// llIndex is the row of the table of LL limits: the GPU on one node, the
// processor across nodes.
func (c *Comm) llIndex() int {
	switch {
	case c.NNodes == 1:
		return archOf(c.MinCC)
	case c.Vendor == AMD, c.Vendor == MixedVendor && c.rules.MixedAsAMD:
		return 1
	}
	return 0
}

// log2 is floor(log2 n), which the model uses as the depth of trees.
func log2(n int) int {
	k := 0
	for ; n > 1; n >>= 1 {
		k++
	}
	return k
}
