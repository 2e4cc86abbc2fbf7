package sim

import "busbar.dev/result"

// Kind is what a shared thing is made of. Figures of a Model are by kind.
type Kind uint8

// Kinds of shared things.
const (
	Lane     Kind = iota // the threads of one channel of one rank
	NVLink               // or xGMI: links between GPUs
	PCIe                 // a link of the PCIe tree, under copies by GPUs
	DMA                  // a link of the PCIe tree, under transfers by NICs
	Socket               // between sockets
	Staging              // host memory that GPUs of a node pass data through
	Bounce               // host memory that data passes on its way to or from a NIC
	NIC                  // a port
	Fabric               // uplinks of a switch
	Multimem             // a GPU's links to an NVSwitch that reduces and spreads
	nKinds
)

var kindNames = [nKinds]string{"lane", "nvlink", "pcie", "dma", "socket", "staging", "bounce", "nic", "fabric", "multimem"}

func (k Kind) String() string { return kindNames[k] }

// limit is the word of results for a kind.
func (k Kind) limit() result.LimitKind {
	switch k {
	case NVLink, Multimem:
		return result.ByNVLink
	case PCIe, DMA:
		return result.ByPCIe
	case Socket, Staging, Bounce:
		return result.ByHost
	case NIC:
		return result.ByNIC
	case Fabric:
		return result.ByFabric
	}
	return result.ByProtocol
}

// Hop is the kind of way a message takes, for its latency.
type Hop uint8

// Ways of messages.
const (
	OverNVLink Hop = iota // GPU to GPU
	OverPCIe              // GPU to GPU, peer to peer
	OverHost              // through shared host memory
	OverNet               // NIC to NIC
	OverSwitch            // to or from a switch that reduces
	nHops
)

var hopNames = [nHops]string{"nvlink", "pcie", "host memory", "network", "in-switch reduction"}

func (h Hop) String() string { return hopNames[h] }
