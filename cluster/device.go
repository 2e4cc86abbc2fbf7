package cluster

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/unit"
)

// Kind is what a device is.
type Kind uint8

// Device kinds. Sockets contain NUMA domains and carry no traffic themselves;
// traffic passes GPU, NIC, NVSwitch, PCISwitch, RootComplex and NUMA.
const (
	KindUnknown Kind = iota
	Socket
	NUMA
	RootComplex // a PCIe host bridge
	PCISwitch   // a PCIe switch, or a bridge that several functions share
	GPU
	NIC
	NVSwitch
)

var kindNames = strings.Fields("unknown socket numa root pci gpu nic nvswitch")

func (k Kind) String() string { return nameOf(kindNames, int(k)) }

// MarshalText writes the lower-case name, which is also the stem of device names.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name.
func (k *Kind) UnmarshalText(b []byte) error {
	return parseName(k, kindNames, b, "device kind")
}

// PCI is a PCI address in its long lower-case form, "0000:07:00.0". The empty
// string means unknown. Make one with ParsePCI.
type PCI string

// ParsePCI reads any usual spelling: "0000:07:00.0", "00000000:07:00.0"
// (nvidia-smi), "07:00.0" (lspci), "0000:07:00" (NCCL busId without function).
func ParsePCI(s string) (PCI, error) {
	bad := fmt.Errorf("PCI address %q; expected domain:bus:device.function such as 0000:07:00.0", s)
	rest, fn, ok := strings.Cut(strings.TrimSpace(s), ".")
	if !ok {
		fn = "0"
	}
	parts := strings.Split(rest, ":")
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	if len(parts) != 3 {
		return "", bad
	}
	var v [4]uint64
	for i, p := range append(parts, fn) {
		n, err := strconv.ParseUint(p, 16, 32)
		if err != nil {
			return "", bad
		}
		v[i] = n
	}
	if v[1] > 0xff || v[2] > 0x1f || v[3] > 7 {
		return "", bad
	}
	return PCI(fmt.Sprintf("%04x:%02x:%02x.%x", v[0], v[1], v[2], v[3])), nil
}

// Slot is the address without its function: the card.
func (p PCI) Slot() string {
	s, _, _ := strings.Cut(string(p), ".")
	return s
}

// Device is one thing in a node. Only the fields that apply to its kind are set.
type Device struct {
	Kind Kind
	// Name is unique in the node and stable: gpu0, nic3, numa1, pci2. NodeType.Add
	// makes it when empty.
	Name string
	// Index is the tool's own number for the device within its kind, -1 when it
	// gave none: the NVML index of a GPU (not the CUDA ordinal), the NUMA id, the
	// position of a NIC. It identifies a device only where no PCI address does.
	Index int `merge:"-"`
	// Label is what the operating system calls it: mlx5_0, eth0.
	Label string
	PCI   PCI
	// Parent is the device that contains this one or sits above it on the PCIe
	// tree, -1 at the top: socket ← numa ← root ← pci ← gpu. A parent on the PCIe
	// tree is also joined by a Link.
	Parent int `merge:"-"`
	// Tray is the operating-system image the device belongs to, for a node that is
	// an NVLink domain of several hosts (NVL72); else 0.
	Tray  int
	Model Fact[string] `merge:"model"`
	// UUID is the GPU's own (GPU-…); for a NIC its node GUID. It belongs to one
	// machine: Join moves it from the type to the host.
	UUID string `merge:"UUID"`

	PCIID *PCIID
	CPU   *CPUInfo // socket and numa
	GPU   *GPUInfo
	NIC   *NICInfo
}

// PCIID is what the device answers on the bus, as hexadecimal text without 0x
// ("10de"); empty parts are unknown.
type PCIID struct {
	Class     string `json:"class,omitempty" yaml:"class,omitempty"` // six digits, "030200"
	Vendor    string `json:"vendor,omitempty" yaml:"vendor,omitempty"`
	Device    string `json:"device,omitempty" yaml:"device,omitempty"`
	SubVendor string `json:"sub_vendor,omitempty" yaml:"sub_vendor,omitempty"`
	SubDevice string `json:"sub_device,omitempty" yaml:"sub_device,omitempty"`
}

// CPUInfo describes a socket or a NUMA domain.
type CPUInfo struct {
	Arch   string `json:"arch,omitempty" yaml:"arch,omitempty"`     // x86_64, arm64, ppc64
	Vendor string `json:"vendor,omitempty" yaml:"vendor,omitempty"` // CPUID string: GenuineIntel, AuthenticAMD
	Family int    `json:"family,omitempty" yaml:"family,omitempty"` // as NCCL writes it: base + (ext<<4)
	Model  int    `json:"model,omitempty" yaml:"model,omitempty"`
	// Cpulist: "0-15,64-79".
	Cores  string           `json:"cores,omitempty" yaml:"cores,omitempty" merge:"cores"`
	Memory Fact[unit.Bytes] `json:"memory_bytes,omitzero" yaml:"memory,omitempty" merge:"memory"`
}

// Dtype names a number format that has a peak rate.
type Dtype string

// Number formats.
const (
	FP64 Dtype = "fp64"
	FP32 Dtype = "fp32"
	TF32 Dtype = "tf32"
	FP16 Dtype = "fp16"
	BF16 Dtype = "bf16"
	FP8  Dtype = "fp8"
	FP4  Dtype = "fp4"
	INT8 Dtype = "int8"
)

// GPUInfo describes an accelerator.
type GPUInfo struct {
	Vendor string                     `json:"vendor,omitempty" yaml:"vendor,omitempty"` // nvidia, amd, intel
	Memory Fact[unit.Bytes]           `json:"memory_bytes,omitzero" yaml:"memory,omitempty" merge:"memory"`
	HBM    Fact[unit.Rate]            `json:"hbm_GBps,omitzero" yaml:"hbm,omitempty" merge:"memory bandwidth"`
	Peak   map[Dtype]Fact[unit.FLOPS] `json:"dense_peak_TFLOPS,omitempty" yaml:"dense_peak,omitempty"`
	Limit  Fact[unit.Power]           `json:"power_limit_W,omitzero" yaml:"power_limit,omitempty"` // below its data sheet's
	// Compute capability ×10: 80, 90, 100.
	SM    int    `json:"sm,omitempty" yaml:"sm,omitempty" merge:"compute capability"`
	Arch  string `json:"arch,omitempty" yaml:"arch,omitempty"`         // gfx942 and the like
	Links int    `json:"nvlinks,omitempty" yaml:"nvlinks,omitempty"`   // NVLinks the chip has in all; 0 unknown
	GDR   Tri    `json:"gdr,omitempty" yaml:"gdr,omitempty"`           // GPUDirect RDMA
	Cores string `json:"affinity,omitempty" yaml:"affinity,omitempty"` // cpulist the driver recommends
	// NUMA affinity as read.
	NUMA   Fact[int] `json:"numa,omitzero" yaml:"numa,omitempty" merge:"NUMA affinity"`
	Slices []Slice   `json:"mig,omitempty" yaml:"mig,omitempty"`
}

// Slice is a MIG instance: part of a GPU under a name of its own.
type Slice struct {
	Index   int    `json:"index" yaml:"index"`
	UUID    string `json:"uuid,omitempty" yaml:"uuid,omitempty"`
	Profile string `json:"profile,omitempty" yaml:"profile,omitempty"` // 3g.40gb
}

// NetKind is a family of networks.
type NetKind string

// Network families.
const (
	InfiniBand NetKind = "infiniband"
	RoCE       NetKind = "roce"
	Ethernet   NetKind = "ethernet"
	EFA        NetKind = "efa"
	Slingshot  NetKind = "slingshot"
	OmniPath   NetKind = "omnipath"
	TCPX       NetKind = "gpudirect-tcpx"
	TCPXO      NetKind = "gpudirect-tcpxo"
	NVLinkNet  NetKind = "nvlink"
)

// NICInfo describes a network card function.
type NICInfo struct {
	Kind      NetKind   `json:"kind,omitempty" yaml:"kind,omitempty"`
	Ports     []Port    `json:"ports,omitempty" yaml:"ports,omitempty" merge:"-"`
	GDR       Tri       `json:"gdr,omitempty" yaml:"gdr,omitempty"`             // can reach GPU memory directly
	Reduction Tri       `json:"reduction,omitempty" yaml:"reduction,omitempty"` // in-network reduction (SHARP, CollNet)
	NUMA      Fact[int] `json:"numa,omitzero" yaml:"numa,omitempty" merge:"NUMA affinity"`
	Driver    string    `json:"driver,omitempty" yaml:"driver,omitempty"`
	Firmware  string    `json:"firmware,omitempty" yaml:"firmware,omitempty"`
	// Off are offloads that are switched off though the driver has them, as ethtool -k calls them.
	Off []string `json:"offloads_off,omitempty" yaml:"offloads_off,omitempty"`
	// RxRing is the length of the receive ring in descriptors and RxRingMax the greatest (ethtool -g); 0 unknown.
	RxRing    int `json:"rx_ring,omitempty" yaml:"rx_ring,omitempty"`
	RxRingMax int `json:"rx_ring_max,omitempty" yaml:"rx_ring_max,omitempty"`
}

// State is whether a port carries traffic.
type State uint8

// Port states.
const (
	StateUnknown State = iota
	Down
	Init // physically up, not yet configured
	Up
)

var stateNames = []string{"unknown", "down", "init", "up"}

func (s State) String() string { return nameOf(stateNames, int(s)) }

// MarshalText writes the lower-case name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *State) UnmarshalText(b []byte) error {
	return parseName(s, stateNames, b, "state")
}

// Port is one cable end of a NIC.
type Port struct {
	Num   int             `json:"num" yaml:"num"`                         // 1-based; 0 unknown
	Label string          `json:"label,omitempty" yaml:"label,omitempty"` // RDMA device or interface name when it differs per port
	Rate  Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty" merge:"port rate"`
	// What the port could do.
	Max   Fact[unit.Rate] `json:"max_GBps,omitzero" yaml:"max,omitempty" merge:"largest port rate"`
	MTU   Fact[int]       `json:"mtu_bytes,omitzero" yaml:"mtu,omitempty" merge:"MTU"`
	State State           `json:"state,omitempty" yaml:"state,omitempty" merge:"port state"`
	Layer string          `json:"layer,omitempty" yaml:"layer,omitempty"` // InfiniBand, Ethernet
	Speed string          `json:"speed,omitempty" yaml:"speed,omitempty"` // "4xHDR"
	// GUID, LID and Counters belong to one machine: Join moves them to the host.
	GUID     string            `json:"-" yaml:"-"`
	LID      int               `json:"-" yaml:"-"`
	Counters map[string]uint64 `json:"-" yaml:"-"` // error counters that are not zero
}

// Rate is what the NIC can send in one direction: the sum over ports that are
// not down. Unknown when no such port has a rate.
func (n *NICInfo) Rate() Fact[unit.Rate] {
	var sum Fact[unit.Rate]
	for _, p := range n.Ports {
		if p.State == Down || !p.Rate.Known() {
			continue
		}
		if !sum.Known() {
			sum = p.Rate
			continue
		}
		sum.Value += p.Rate.Value
	}
	return sum
}

// Title is what people call the device: a NIC by its system label where it has one
// (mlx5_0), else its name (gpu0).
func (d *Device) Title() string {
	if d.Kind == NIC && d.Label != "" {
		return d.Label
	}
	return d.Name
}
