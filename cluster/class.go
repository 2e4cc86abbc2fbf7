package cluster

import (
	"slices"
	"strconv"
	"strings"
)

// ClassType is a kind of path, in NVIDIA's words, nearest first.
type ClassType uint8

// Path classes. PXN is the path of a GPU to a far NIC over NVLink and a peer
// GPU; NET leaves the node; Apart means nobody knows a path.
const (
	Apart ClassType = iota
	Self
	NV // NVLink, bonded or through an NVSwitch
	XG // xGMI between AMD GPUs
	LK // another maker's point-to-point link
	C2 // chip-to-chip
	PIX
	PXB
	PXN
	PHB
	NODE
	SYS
	NET
)

var classNames = strings.Fields("? X NV XGMI LINK C2C PIX PXB PXN PHB NODE SYS NET")

// Class is a path class with the number of bonded links where it has one.
type Class struct {
	Type  ClassType
	Links int
}

// String prints X, NV12, XGMI, PIX, PXB, PXN, PHB, NODE, SYS, NET or ?.
func (c Class) String() string {
	if c.Type == NV && c.Links > 0 {
		return "NV" + strconv.Itoa(c.Links)
	}
	return nameOf(classNames, int(c.Type))
}

// ParseClass reads what String prints and the older SOC for SYS. The second
// result is false for anything else.
func ParseClass(s string) (Class, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	if s == "SOC" {
		return Class{Type: SYS}, true
	}
	if rest, ok := strings.CutPrefix(s, "NV"); ok && rest != "" {
		n, err := strconv.Atoi(rest)
		if err != nil || n < 1 || n > 1024 {
			return Class{}, false
		}
		return Class{Type: NV, Links: n}, true
	}
	if i := slices.Index(classNames, s); i >= 0 {
		return Class{Type: ClassType(i)}, true
	}
	return Class{}, false
}

// Nearer reports whether c is a better path than o.
func (c Class) Nearer(o Class) bool {
	if c.Type == Apart || o.Type == Apart {
		return c.Type != Apart && o.Type == Apart
	}
	if c.Type != o.Type {
		return c.Type < o.Type
	}
	return c.Links > o.Links
}

// meanings say what the classes mean.
var meanings = []string{
	"unknown", "the same device", "NVLink", "Infinity Fabric", "direct link", "chip-to-chip link", "PCIe, one switch",
	"PCIe, several switches", "NVLink to the GPU beside the NIC", "PCIe through the host bridge",
	"between host bridges of one NUMA domain", "across the link between CPU sockets or NUMA domains", "over the network",
}

// Meaning says what a class means for the traffic.
func (c Class) Meaning() string { return nameOf(meanings, int(c.Type)) }
