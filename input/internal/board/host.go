package board

import (
	"cmp"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Limits on what one machine can have. A machine beyond them is not one that
// exists, and the pairs of its NUMA domains would fill memory.
const (
	maxSockets = 256
	maxDomains = 256
)

// Socket is a processor package.
type Socket struct {
	Index int
	CPUs  CPUs
	Model string
	Info  cluster.CPUInfo // what CPUID says; Cores and Memory are filled here
}

// Domain is a NUMA domain. One without CPUs is memory only: that of a GPU on
// POWER9 and Grace, or of a CXL device.
type Domain struct {
	Index  int
	CPUs   CPUs
	Memory unit.Bytes // 0 unknown
}

// Host knows where the NUMA domains and sockets of a node type are.
type Host struct {
	t       *cluster.NodeType
	source  string // names the tool for the facts
	domains []placed
	sockets []placed
	ends    []end // of the PCIe tree

	Left    int // sockets, domains, GPUs and NICs left out because no machine has that many
	resting int // GPUs whose links rested; their rates are left unknown
	adrift  int // GPUs and NICs below a host bridge of unknown NUMA domain
}

type placed struct {
	at, index int
	cpus      CPUs
}

// NewHost adds sockets, the NUMA domains inside them, and a link between every
// two domains that have CPUs.
func NewHost(t *cluster.NodeType, source string, sockets []Socket, domains []Domain) *Host {
	h := &Host{t: t, source: source}
	slices.SortStableFunc(sockets, func(a, b Socket) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortStableFunc(domains, func(a, b Domain) int { return cmp.Compare(a.Index, b.Index) })
	h.Left = max(0, len(sockets)-maxSockets) + max(0, len(domains)-maxDomains)
	sockets, domains = sockets[:min(len(sockets), maxSockets)], domains[:min(len(domains), maxDomains)]
	for i := range sockets {
		s := &sockets[i]
		info := s.Info
		info.Cores = s.CPUs.String()
		d := cluster.Device{Kind: cluster.Socket, Index: s.Index, Parent: -1, CPU: &info, Model: Fact(s.Model, source)}
		h.sockets = append(h.sockets, placed{t.Add(d), s.Index, s.CPUs})
	}
	for i := range domains {
		h.addDomain(&domains[i], sockets)
	}
	for i := range h.domains {
		for k := range i {
			// A domain without CPUs has no socket link of its own to join.
			if a, b := h.domains[k], h.domains[i]; !a.cpus.Empty() && !b.cpus.Empty() {
				t.Connect(cluster.Link{A: a.at, B: b.at, Kind: cluster.SMP})
			}
		}
	}
	return h
}

func (h *Host) addDomain(n *Domain, sockets []Socket) {
	info := cluster.CPUInfo{}
	parent := -1
	for k, s := range h.sockets {
		if n.CPUs.Empty() || !n.CPUs.Overlaps(s.cpus) {
			continue
		}
		info = sockets[k].Info
		// A domain that spans sockets (boards with a memory hub for several) is
		// inside none of them.
		if n.CPUs.Within(s.cpus) {
			parent = s.at
		}
		break
	}
	info.Cores = n.CPUs.String()
	info.Memory = Fact(n.Memory, h.source)
	d := cluster.Device{Kind: cluster.NUMA, Index: n.Index, Parent: parent, CPU: &info}
	h.domains = append(h.domains, placed{h.t.Add(d), n.Index, n.CPUs})
}

// Domain finds the device of a NUMA domain by its number, or -1.
func (h *Host) Domain(index int) int {
	for _, d := range h.domains {
		if d.index == index {
			return d.at
		}
	}
	return -1
}

// Only returns the one NUMA domain that has CPUs, or -1 when there are several
// or none: with one, everything is local to it whatever the firmware says.
func (h *Host) Only() int {
	return single(h.domains, func(d placed) bool { return !d.cpus.Empty() })
}

// Near finds what a device local to these CPUs belongs to: their NUMA domain,
// else the socket that holds their domains, else -1.
func (h *Host) Near(cpus CPUs) int {
	meets := func(p placed) bool { return p.cpus.Overlaps(cpus) }
	at := h.Only()
	if at < 0 {
		at = single(h.domains, meets)
	}
	if at < 0 {
		at = single(h.sockets, meets)
	}
	return at
}

// single is the one part that is so, or -1.
func single(parts []placed, is func(placed) bool) int {
	at := -1
	for _, p := range parts {
		if is(p) && at >= 0 {
			return -1
		} else if is(p) {
			at = p.at
		}
	}
	return at
}

// NUMA is the number of a NUMA domain's device, unknown when at is none.
func (h *Host) NUMA(at int) cluster.Fact[int] {
	for _, d := range h.domains {
		if d.at == at {
			return cluster.FromRead(d.index, h.source)
		}
	}
	return cluster.Fact[int]{}
}

// Arch translates the kernel's machine name into the model's.
func Arch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "x86_64"
	case "aarch64", "arm64":
		return "arm64"
	case "ppc64le", "ppc64":
		return "ppc64"
	}
	return machine
}

// Family turns the kernel's CPU family into NCCL's number. The kernel adds base
// and extended family (AMD Rome: 15 + 8 = 23); NCCL shifts the extension left by
// four bits first (143).
func Family(kernel int) int {
	if kernel <= 15 {
		return kernel
	}
	return 15 + (kernel-15)<<4
}
