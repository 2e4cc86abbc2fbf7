package sim

import "busbar.dev/result"

// Kind is what a shared resource is. Parameters of a Model are by kind.
type Kind uint8

// Kinds of shared resources.
const (
	Lane      Kind = iota // the threads of one channel of one rank
	NVLink                // or xGMI: links between GPUs
	PCIe                  // a link of the PCIe tree, under copies by GPUs
	DMA                   // a link of the PCIe tree, under transfers by NICs
	Shm                   // a link of the PCIe tree, under copies through host memory
	Far                   // the same, where the memory is that of another socket
	Socket                // between sockets
	Staging               // host memory that GPUs of a node pass data through
	Bounce                // host memory that data passes between a NIC and GPUs of its socket
	FarBounce             // the same, GPUs of another socket
	NIC                   // a port
	Fabric                // uplinks of a switch
	Multimem              // a GPU's links to an NVSwitch that reduces and spreads
	nKinds
)

// kindTable has the name of a kind, and what results call a limit of it.
var kindTable = [nKinds]struct {
	name  string
	limit result.LimitKind
}{
	Lane:      {"lane", result.ByProtocol},
	NVLink:    {"nvlink", result.ByNVLink},
	PCIe:      {"pcie", result.ByPCIe},
	DMA:       {"dma", result.ByPCIe},
	Shm:       {"shm", result.ByPCIe},
	Far:       {"far", result.ByPCIe},
	Socket:    {"socket", result.ByHost},
	Staging:   {"staging", result.ByHost},
	Bounce:    {"bounce", result.ByHost},
	FarBounce: {"far bounce", result.ByHost},
	NIC:       {"nic", result.ByNIC},
	Fabric:    {"fabric", result.ByFabric},
	Multimem:  {"multimem", result.ByNVLink},
}

func (k Kind) String() string { return kindTable[k].name }

func (k Kind) limit() result.LimitKind { return kindTable[k].limit }

// Hop is the kind of route a message takes, for its latency.
type Hop uint8

// Routes of messages.
const (
	OverNVLink Hop = iota // GPU to GPU
	OverPCIe              // GPU to GPU, peer to peer
	OverHost              // through shared host memory
	OverFar               // the same, of another socket
	OverNet               // NIC to NIC
	OverSwitch            // to or from a switch that reduces
	nHops
)

var hopNames = [nHops]string{
	OverNVLink: "nvlink", OverPCIe: "pcie", OverHost: "host memory", OverFar: "host memory of another socket",
	OverNet: "network", OverSwitch: "in-switch reduction",
}

func (h Hop) String() string { return hopNames[h] }
