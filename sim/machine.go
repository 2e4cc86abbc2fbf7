package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Machine is a cluster with ranks on it, ready to be asked many times. It is safe
// for concurrent use; the cluster must not change.
type Machine struct {
	c      *cluster.Cluster
	routes *cluster.Routes
	n      int                          // ranks
	at     func(rank int) cluster.Place // where a rank runs
	types  []*node
	base   []int64 // the first resource of each host
	own    []int32 // ranks on each host,
	on     []int32 // and with those of other groups
	net    fabric
	beside []*Machine // other groups that do the same at the same time
	// Direct is how far apart two GPUs may be and still write to each other's memory
	// over PCIe; what is farther goes through host memory. The zero value is PXB, as
	// NCCL has it.
	Direct cluster.ClassType
	// Reach is how far a NIC may be from a GPU and still read and write its memory
	// (GPUDirect RDMA). The zero value is PXB, as NCCL has it.
	Reach cluster.ClassType
	// Node numbers what NCCL takes for nodes, by rank: GPUs of one host in different ones reach each other by their NICs
	// only. nil: every host is one.
	Node []int32

	entire bool // ask everyone, however many there are
	spare  *spare
}

// large is the number of participants beyond which equal nodes are counted once, of this machine.
func (m *Machine) large() int {
	if m.entire {
		return math.MaxInt32
	}
	return large
}

// node is what a machine knows about a type of nodes.
type node struct {
	t     *cluster.NodeType
	gpus  []int
	nics  []int
	numa  []int       // of each device: the NUMA domain above it, -1 none,
	chip  []int       // and the socket
	order []int       // of each device that is a NIC: its number among them
	near  [][]int     // of each device that is a GPU: its nearest NICs
	turns int         // after so many channels GPUs come to the same NICs again
	size  int64       // resources of a host of the type
	host  unit.Rate   // line rate of a socket's memory
	rates []unit.Rate // of the NICs
}

// NewAt puts n ranks on a cluster; a function tells where they are. Ranks may share a GPU.
func NewAt(c *cluster.Cluster, n int, at func(rank int) cluster.Place) (*Machine, error) {
	m := &Machine{
		c: c, routes: cluster.NewRoutes(c), n: n, at: at, types: make([]*node, len(c.Types)),
		base: make([]int64, len(c.Hosts)+1), own: make([]int32, len(c.Hosts)), spare: &spare{},
	}
	for i, t := range c.Types {
		m.types[i] = newNode(t)
	}
	for h := range c.Hosts {
		m.base[h+1] = m.base[h]
		if t := c.Hosts[h].Type; t >= 0 && t < len(m.types) {
			m.base[h+1] += m.types[t].size
		}
	}
	for r := range n {
		p := at(r)
		if p.Host < 0 || p.Host >= len(c.Hosts) || c.TypeOf(p.Host) == nil {
			return nil, fmt.Errorf("rank %d: host %d is not described", r, p.Host)
		}
		t := c.TypeOf(p.Host)
		if p.Device < 0 || p.Device >= len(t.Devices) || t.Devices[p.Device].Kind != cluster.GPU {
			return nil, fmt.Errorf("rank %d: device %d of %s is no GPU", r, p.Device, c.Hosts[p.Host].Name)
		}
		m.own[p.Host]++
	}
	m.on = m.own
	m.net = newFabric(c, m.base[len(c.Hosts)])
	return m, nil
}

// Again is a machine of the same ranks without what was set on it or runs beside it.
func (m *Machine) Again() *Machine {
	return &Machine{
		c: m.c, routes: m.routes, n: m.n, at: m.at, types: m.types, base: m.base, on: m.own, own: m.own, net: m.net,
		spare: &spare{},
	}
}

// apart tells whether two ranks of one host are in different nodes.
func (m *Machine) apart(a, b int) bool { return m.Node != nil && m.Node[a] != m.Node[b] }

func newNode(t *cluster.NodeType) *node {
	n := &node{
		t: t, gpus: t.Of(cluster.GPU), nics: t.Of(cluster.NIC), numa: make([]int, len(t.Devices)),
		chip:  make([]int, len(t.Devices)),
		order: make([]int, len(t.Devices)), near: make([][]int, len(t.Devices)),
	}
	before := map[int]int{} // GPUs that have the same NICs nearest begin at different ones
	for _, x := range t.Nearest() {
		if len(x.NICs) > 0 {
			k := before[x.NICs[0]] % len(x.NICs)
			before[x.NICs[0]]++
			n.near[x.GPU] = append(slices.Clone(x.NICs[k:]), x.NICs[:k]...)
		}
	}
	n.turns = 1
	for _, g := range n.gpus {
		n.turns = lcm(n.turns, cmp.Or(len(n.near[g]), len(n.nics), 1))
	}
	for i, d := range n.nics {
		n.order[d] = i
		n.rates = append(n.rates, t.Devices[d].NIC.Rate().Value)
	}
	for d := range t.Devices {
		n.numa[d], n.chip[d] = t.Above(d, cluster.NUMA), t.Above(d, cluster.Socket)
	}
	n.host = memoryRate(t)
	// Both directions of every link and NIC and of the copies for it, near and far, and the memory of every device's
	// domain.
	n.size = n.memory(len(t.Devices))
	return n
}

// lcm is the least number that both divide.
func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return min(a/x*b, 1<<20) // more than there are channels
}

// ddr4 is the line rate of a socket's memory of the time of PCIe 4: eight channels of DDR4-3200.
const ddr4 = 205 * unit.GBps

// memoryRate is the line rate of a socket's memory by the generation of the GPUs' PCIe slots, which came with it: six
// channels of DDR4-2666, eight of DDR4-3200, eight of DDR5-4800 (data sheets of Intel's Xeon processors, 2017 to 2023).
func memoryRate(t *cluster.NodeType) unit.Rate {
	fastest := 0.0
	for i := range t.Links {
		l := &t.Links[i]
		if l.Kind == cluster.PCIe && (t.Devices[l.A].Kind == cluster.GPU || t.Devices[l.B].Kind == cluster.GPU) {
			fastest = max(fastest, l.GTs)
		}
	}
	switch {
	case fastest >= 32:
		return 307 * unit.GBps
	case fastest > 0 && fastest <= 8:
		return 128 * unit.GBps
	}
	return ddr4
}

// AddConcurrent puts groups of further ranks on the machine that do what its own do, at the
// same time: replicas of a model, say, whose gradients go through the same NICs. The
// steady form shares links with them; the exact form does not play them.
func (m *Machine) AddConcurrent(groups [][]cluster.Place) error {
	if len(groups) > 0 && len(m.beside) == 0 {
		m.on = slices.Clone(m.own)
	}
	for _, ranks := range groups {
		if len(ranks) != m.n {
			return fmt.Errorf("a group of %d ranks beside one of %d; they must be alike", len(ranks), m.n)
		}
		for r, p := range ranks {
			if p.Host < 0 || p.Host >= len(m.c.Hosts) || m.c.TypeOf(p.Host) == nil {
				return fmt.Errorf("rank %d beside: host %d is not described", r, p.Host)
			}
			m.on[p.Host]++
		}
		other := *m
		other.at, other.beside = func(rank int) cluster.Place { return ranks[rank] }, nil
		m.beside = append(m.beside, &other)
	}
	return nil
}

// The resources of a host: links forward and back, NICs out and in, memories.
func (n *node) link(l cluster.Leg) int64 {
	i := int64(2 * l.Link)
	if !l.Forward {
		i++
	}
	return i
}

func (n *node) nic(dev int, out bool) int64 {
	i := int64(2*len(n.t.Links) + 2*n.order[dev])
	if !out {
		i++
	}
	return i
}

// hostCopy is the copy through host memory on the way to or from a NIC, of a GPU of its socket or of another.
func (n *node) hostCopy(dev int, out, far bool) int64 {
	if far {
		return n.nic(dev, out) + int64(4*len(n.nics))
	}
	return n.nic(dev, out) + int64(2*len(n.nics))
}

func (n *node) memory(numa int) int64 { return int64(2*len(n.t.Links)+6*len(n.nics)) + int64(numa) }

// nicOf is the NIC that a resource is of, by its place among the resources of a host.
func (n *node) nicOf(local int64) int {
	return n.nics[(local-int64(2*len(n.t.Links)))/2%int64(len(n.nics))]
}

// distant tells whether a GPU is on another socket than a NIC, and copies between them are slow for that. They were
// measured on two machines with Intel's processors; on one with other ones they were not slow.
func (n *node) distant(gpu, nic int) bool {
	for _, d := range []int{n.chip[gpu], n.numa[gpu]} {
		if d >= 0 && n.t.Devices[d].CPU != nil && n.t.Devices[d].CPU.Vendor == "AuthenticAMD" {
			return false
		}
	}
	at := n.chip
	if at[gpu] < 0 || at[nic] < 0 {
		at = n.numa
	}
	return at[gpu] != at[nic] && at[gpu] >= 0 && at[nic] >= 0
}

// resource is something that messages share: a direction of a link, a port, memory.
type resource struct {
	kind  Kind
	rate  unit.Rate
	net   cluster.NetKind
	host  int // -1 in the network
	local int64
}

// describe tells what stands behind a number.
func (m *Machine) describe(id int64) resource {
	if id >= m.net.first {
		return m.net.resource(id)
	}
	h := m.hostOf(id)
	return m.local(h, id-m.base[h])
}

// local describes a resource of a host.
func (m *Machine) local(h int, local int64) resource {
	n := m.types[m.c.Hosts[h].Type]
	x := resource{host: h, local: local}
	links, nics := int64(2*len(n.t.Links)), int64(len(n.nics))
	switch {
	case local < links:
		l := &n.t.Links[local/2]
		x.kind, x.rate = linkKind(l.Kind), l.Rate.Value
	case local < links+6*nics:
		x.kind, x.rate, x.net = Bounce, n.host, n.t.Devices[n.nicOf(local)].NIC.Kind
		switch {
		case local < links+2*nics:
			x.kind, x.rate = NIC, n.rates[(local-links)/2]
		case local >= links+4*nics:
			x.kind = FarBounce
		}
	default:
		x.kind, x.rate = Staging, n.host
	}
	return x
}

// load is what some bytes are to a resource of a kind.
func (m *Machine) load(id int64, x resource, bytes, flows float64) load {
	l := load{id: id, bytes: bytes, flows: flows, rate: m.rate(x), net: x.net}
	switch {
	case x.host < 0:
		l.cables = m.net.cables(id)
	case x.kind == NIC:
		l.shared = int(m.on[x.host]) > len(m.types[m.c.Hosts[x.host].Type].nics)
	}
	return l
}

// hostOf finds the host of a resource.
func (m *Machine) hostOf(id int64) int {
	lo, hi := 0, len(m.c.Hosts)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; m.base[mid] <= id {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

func linkKind(k cluster.LinkKind) Kind {
	switch k {
	case cluster.NVLink, cluster.XGMI, cluster.Gaudi:
		return NVLink
	case cluster.SMP:
		return Socket
	}
	return PCIe
}
