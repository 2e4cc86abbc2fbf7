package hardware

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Join is how the GPUs of a Shape are joined.
type Join uint8

// The ways GPUs are joined.
const (
	Usual    Join = iota // as servers with that GPU mostly are
	Switched             // every link of every GPU on NVSwitches
	Meshed               // links between pairs of GPUs
	OverPCIe             // by PCIe alone
	Bridged              // pairs of cards, by a bridge
)

// Shape is a machine in a few words: what a publication says about the servers it
// measured. Everything it leaves open is Assumed.
type Shape struct {
	GPU    string // any spelling that GPUByName takes
	GPUs   int    // of a node; 0 is the usual number
	Join   Join
	Pair   int // links of a pair, Meshed only; 0 shares all links evenly
	Behind int // GPUs behind one PCIe switch; 0: as is usual, cards each on its own root port
	// Sockets is on how many sockets the GPUs are, 0: both, of cards only where there are more than two. Slots is the
	// generation of the host's PCIe; 0: the GPUs'.
	Sockets, Slots int
	// NoPeers says that the driver lets no GPU reach another's memory: copies go through the host's.
	NoPeers bool
	NICs    int // of a node
	Port    unit.Rate
	Kind    cluster.NetKind
	GDR     cluster.Tri
}

// usualGPUs is the number of GPUs that servers with a model mostly have.
func (s Shape) usualGPUs(m GPUModel) int {
	switch {
	case m.Name == "gb200" || m.Name == "gb300" || m.Name == "gh200":
		return 4
	case m.LinkKind == cluster.NVLink && m.Links < 12 && m.Links > 0:
		return 4
	}
	return 8
}

// Cluster makes count such nodes and a network without oversubscription between
// them.
func (s Shape) Cluster(count int) (*cluster.Cluster, error) {
	m, ok := GPUByName(s.GPU)
	if !ok {
		return nil, fmt.Errorf("no GPU %.60q in the catalogue; `busbar hardware` lists them", s.GPU)
	}
	if count < 1 || count > MaxNodes {
		return nil, fmt.Errorf("%d nodes; expected 1 to %d", count, MaxNodes)
	}
	if s.GPUs == 0 {
		s.GPUs = s.usualGPUs(m)
	}
	if s.GPUs < 0 || s.GPUs > 1024 || s.NICs < 0 || s.NICs > 1024 {
		return nil, fmt.Errorf("%d GPUs and %d NICs per node; expected at most 1024", s.GPUs, s.NICs)
	}
	t := s.node(m)
	joinNUMA(t)
	t.Name = m.Name + "x" + strconv.Itoa(s.GPUs)
	c := &cluster.Cluster{Name: t.Name, Types: []*cluster.NodeType{t}, Hosts: make([]cluster.Host, count)}
	for i := range c.Hosts {
		c.Hosts[i].Name = "node" + strconv.Itoa(i)
	}
	Complete(c)
	if s.NICs == 0 || count == 1 {
		return c, nil
	}
	net := Description{
		Name: "network", Kind: s.Kind, Oversubscription: 1, Origin: cluster.Assumed,
		Source: "one tier of leaves without oversubscription",
	}
	if s.NICs >= s.GPUs && s.GPUs > 1 {
		net.Rails = s.GPUs
	}
	return c, Describe(net, c)
}

// node lays the devices out: half of the GPUs under each of two sockets, a NIC
// beside the GPUs it serves.
func (s Shape) node(m GPUModel) *cluster.NodeType {
	nic := card{Kind: s.Kind, Speed: PortSpeed{Rate: s.Port, Nominal: s.Port}.String(), Slot: slotFor(s.Port), GDR: s.GDR}
	if nic.GDR == cluster.Maybe && s.Kind != cluster.Ethernet {
		nic.GDR = cluster.Yes
	}
	if m.Name == "gb200" || m.Name == "gb300" {
		return nvl72(m, max(1, s.GPUs/4), &nic)
	}
	t := newNode(cluster.Assumed)
	if m.Name == "gh200" {
		s.superchips(t, m, &nic)
	} else {
		s.servers(t, m, &nic)
	}
	s.join(t, m)
	if s.NoPeers || m.noPeers() {
		refusePeers(t)
	}
	return t
}

// superchips hangs every GPU on a Grace of its own.
func (s Shape) superchips(t *cluster.NodeType, m GPUModel, nic *card) {
	for i := range s.GPUs {
		numa := addSocket(t, grace(), 0, fmt.Sprintf("%d-%d", 72*i, 72*i+71))[0]
		addC2C(t, numa, m, 10)
		if i < s.NICs {
			addNIC(t, addRoot(t, numa), nic, "", "")
		}
	}
}

// servers puts GPUs and NICs under PCIe switches: as many switches as NICs where
// there are fewer NICs than GPUs, else one a GPU, whose NIC then has several ports.
func (s Shape) servers(t *cluster.NodeType, m GPUModel, nic *card) {
	per := max(1, s.GPUs/4)
	nics := s.NICs
	switch {
	case (m.Links == 0 || m.card()) && s.Behind == 0 && nics == 0:
		per = 1
	case s.Behind > 0:
		per = s.Behind
	case nics > 1 && nics < s.GPUs:
		per = (s.GPUs + nics - 1) / nics
	case nics >= s.GPUs && m.boardGen4() && s.GPUs%2 == 0:
		per = 2
	case nics >= s.GPUs:
		per = 1
	}
	if nics > s.GPUs && s.GPUs > 0 {
		nic.Ports = nics / s.GPUs
		nic.Slot = slotFor(s.Port * unit.Rate(nic.Ports))
		nics = s.GPUs
	}
	gen := m.PCIeGen
	if s.Slots > 0 {
		gen = min(gen, s.Slots)
	}
	cpu := intel("of its time", 143)
	if gen <= 3 {
		cpu = intel("of its time", 85)
	} else if gen == 4 {
		cpu = epyc("of its time", 143, 49)
	}
	sockets := s.Sockets
	if card := m.Links == 0 || m.card(); sockets == 0 && card && s.GPUs <= 2 {
		sockets = 1
	} else if sockets == 0 {
		sockets = 2
	}
	var numa []int
	for _, cores := range []string{"0-31,64-95", "32-63,96-127"} {
		numa = append(numa, addSocket(t, cpu, 0, cores)...)
	}
	for g := 0; g < s.GPUs; g += per {
		sw := addRoot(t, numa[g*sockets/max(s.GPUs, 2)])
		if per > 1 || nics > 0 && !s.ownPorts(m) {
			sw = addSwitch(t, sw, slot{gen, 16})
		}
		for range min(per, s.GPUs-g) {
			addGPU(t, sw, m, slot{gen, 16}, "")
		}
		for n := g * nics / s.GPUs; n < min(g+per, s.GPUs)*nics/s.GPUs; n++ {
			at := sw
			if s.ownPorts(m) {
				at = addRoot(t, numa[g*sockets/max(s.GPUs, 2)])
			}
			addNIC(t, at, nic, "", "")
		}
	}
}

// ownPorts tells whether a NIC has a root port of its own, and is not behind a switch with GPUs: in servers of few
// cards, which mostly have no such switches. The one chip of a GB10 has the NIC's memory in common.
func (s Shape) ownPorts(m GPUModel) bool {
	return (m.Links == 0 || m.card()) && s.Behind == 0 && s.GPUs < 8 && m.Name != "gb10"
}

// join links the GPUs.
func (s Shape) join(t *cluster.NodeType, m GPUModel) {
	if m.Links == 0 || s.Join == OverPCIe || s.GPUs < 2 {
		return
	}
	how, card := s.Join, m.card()
	if how == Usual {
		how = Meshed
		switch {
		case card && !strings.HasSuffix(m.Name, "nvl"):
			return // a bridge is an option that few buy
		case card:
			how = Bridged
		case m.LinkKind == cluster.NVLink && m.Links >= 8 && m.Name != "gh200":
			how = Switched
		}
	}
	if how == Bridged {
		s.bridge(t, m)
		return
	}
	if how == Meshed && s.Pair == 0 && s.GPUs == 8 && m.LinkKind == cluster.NVLink && m.Links <= 6 {
		mesh(t, cluster.NVLink, cubeMesh()...)
		return
	}
	if how == Switched && m.LinkKind == cluster.NVLink {
		addNVSwitch(t, m.Links)
		return
	}
	pair := s.Pair
	if pair == 0 {
		pair = max(1, m.Links/(s.GPUs-1))
	}
	fullMesh(t, m.LinkKind, pair)
}

// bridge joins neighbours: four by four where the cards' bridge does that.
func (s Shape) bridge(t *cluster.NodeType, m GPUModel) {
	size := 2
	if m.Name == "h200-nvl" {
		size = 4
	}
	for a := range s.GPUs {
		for b := a + 1; b < min(s.GPUs, a/size*size+size); b++ {
			mesh(t, m.LinkKind, [3]int{a, b, max(1, m.Links/(size-1))})
		}
	}
}

// card reports a GPU on a PCIe card, whose links go over a bridge if at all.
func (m *GPUModel) card() bool {
	return m.HBM == 0 || strings.Contains(strings.ToLower(m.Title), "pcie") || strings.HasSuffix(m.Name, "nvl") ||
		strings.Contains(m.Note, "bridge")
}

// boardGen4 reports GPUs on an HGX board with PCIe 4, which has a PCIe switch for every two of them and their
// NICs (NVIDIA DGX A100 system architecture, 2020).
func (m *GPUModel) boardGen4() bool {
	return m.PCIeGen == 4 && !m.card() && m.LinkKind == cluster.NVLink && m.Links >= 8
}

// noPeers reports cards whose driver refuses peer access: GeForce since Ada.
func (m *GPUModel) noPeers() bool { return strings.Contains(m.Title, "GeForce") && m.SM >= 89 }

// slotFor is the oldest PCIe slot of 16 lanes that feeds a port.
func slotFor(port unit.Rate) slot {
	for gen := 3; gen < 6; gen++ {
		if PCIeRate(PCIeSpeed(gen), 16) >= port {
			return slot{gen, 16}
		}
	}
	return slot{6, 16}
}
