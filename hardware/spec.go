package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Spec is a machine in a few words: what a publication, a person or a file says about servers. Everything it leaves
// open is Assumed.
type Spec struct {
	GPU   string // any spelling that GPUByName takes; "": a node without GPUs, which Tree describes
	Count int    // GPUs of a node; 0 is the usual number
	// Tree is what hangs on what in the words of nodes.csv: 2*socket(root(switch(gpu nic))). Default: as servers with such
	// GPUs and NICs are mostly built.
	Tree string
	// Join is what joins the GPUs: nvswitch, mesh or "mesh N" (N links a pair), bridge (neighbours, by a bridge) or none
	// (PCIe alone). Default: as servers with that GPU mostly are.
	Join   string
	Behind int // GPUs behind one PCIe switch; 0: as is usual, cards each on its own root port
	// Sockets is on how many sockets the GPUs are, 0: both, of cards only where there are more than two. Slots is the
	// generation of the host's PCIe; 0: the GPUs'.
	Sockets, Slots int
	// Of is how many GPUs the whole server has where Count is a part of them: NICs are beside these. 0: no others.
	Of       int
	Peers    cluster.Tri // whether GPUs reach each other's memory over PCIe; unknown: as their driver mostly has it
	CPULists []string    // cores of the sockets of Tree
	NICs     int         // of a node
	Port     unit.Rate
	MTU      int // 0 unknown
	Kind     cluster.NetKind
	GDR      cluster.Tri
	Source   string // who says so, where it is not the catalogue
}

// model is the catalogue's row of the GPU.
func (s *Spec) model() (GPUModel, error) {
	m, ok := GPUByName(s.GPU)
	if !ok && s.GPU != "" {
		return m, fmt.Errorf("no GPU %.60q in the catalogue; `busbar list hardware` lists them", s.GPU)
	}
	return m, nil
}

// Node makes such a node, rates still to be filled in.
func (s Spec) Node(name string) (*cluster.NodeType, error) {
	m, err := s.model()
	if err != nil {
		return nil, err
	}
	if s.Count = cmp.Or(s.Count, m.PerNode); s.Count < 0 || s.Count > 1024 || s.NICs < 0 || s.NICs > 1024 {
		return nil, fmt.Errorf("%d GPUs and %d NICs per node; expected at most 1024", s.Count, s.NICs)
	}
	nic := &card{Kind: s.Kind, GDR: s.GDR, MTU: s.MTU, Slot: slotFor(s.Port)}
	if s.Source != "" {
		nic.rate = cluster.FromSpec(s.Port, s.Source)
	} else {
		nic.Speed = (PortSpeed{Rate: s.Port}).String()
	}
	t := s.row(m, nic).node(m, nic, cmp.Or(s.Source, fromPreset))
	switch {
	case m.Domain > 0:
	case s.Peers != cluster.Maybe:
		setPeers(t, s.Peers, cluster.Spec)
	case m.Peers == cluster.No:
		setPeers(t, cluster.No, cluster.Assumed)
	}
	t.Name = name
	return t, nil
}

// Cluster makes count such nodes and a network without oversubscription between
// them.
func (s Spec) Cluster(count int) (*cluster.Cluster, error) {
	m, err := s.model()
	if err != nil {
		return nil, err
	}
	if count < 1 || count > MaxNodes {
		return nil, fmt.Errorf("%d nodes; expected 1 to %d", count, MaxNodes)
	}
	s.Count = cmp.Or(s.Count, m.PerNode)
	t, err := s.Node(m.Name + "x" + strconv.Itoa(s.Count))
	if err != nil {
		return nil, err
	}
	joinNUMA(t)
	c := &cluster.Cluster{Name: t.Name, Types: []*cluster.NodeType{t}, Hosts: numbered(count)}
	Complete(c)
	if s.NICs == 0 || count == 1 {
		return c, nil
	}
	net := Description{
		Name: "network", Kind: s.Kind, Oversubscription: 1, Origin: cluster.Assumed,
		Source: "one tier of leaves without oversubscription",
	}
	if s.NICs >= s.Count && s.Count > 1 {
		net.Rails = s.Count
	}
	return c, Describe(net, c)
}

// numbered are hosts called node0, node1, ….
func numbered(count int) []cluster.Host {
	hosts := make([]cluster.Host, count)
	for i := range hosts {
		hosts[i].Name = "node" + strconv.Itoa(i)
	}
	return hosts
}

// row is the inside of the node.
func (s *Spec) row(m GPUModel, nic *card) *nodeRow {
	gen := m.PCIeGen
	if s.Slots > 0 {
		gen = min(gen, s.Slots)
	}
	r := &nodeRow{Origin: cluster.Assumed, GPUSlot: slot{gen, 16}, Join: s.Join, CPULists: s.CPULists}
	switch {
	case s.Tree != "":
		r.Tree, r.Up = treeOf("%s", s.Tree), slot{max(gen, 4), 16}
		return r
	case m.Domain > 0: // trays of two Grace with two GPUs and two NICs each
		r.Origin, r.Join, r.Trays = cluster.Spec, "nvswitch", max(1, s.Count/m.PerNode)
		r.Tree = treeOf("2*socket(2*(c2c root(nic)))")
		r.grace(2)
		return r
	case m.C2C != "": // every GPU on a Grace of its own
		with := min(s.NICs, s.Count)
		r.Tree = treeOf("%d*socket(c2c root(nic)) %d*socket(c2c)", with, s.Count-with)
		r.grace(s.Count)
	default:
		r.CPULists = []string{"0-31,64-95", "32-63,96-127"}
		r.CPU, r.CPUID = "Intel Xeon of its time", cpuSpec{"x86_64", "GenuineIntel", 6, 143}
		if gen <= 3 {
			r.CPUID.model = 85
		} else if gen == 4 {
			r.CPU, r.CPUID = "AMD EPYC of its time", cpuSpec{"x86_64", "AuthenticAMD", 143, 49}
		}
		r.Tree = treeOf("2*socket%s", s.servers(m, nic))
	}
	r.Join = s.joined(m)
	return r
}

// graceName is what NVIDIA calls its processor with NVLink-C2C.
const graceName = "NVIDIA Grace"

// grace gives a row so many sockets with Grace.
func (r *nodeRow) grace(sockets int) {
	r.CPU, r.CPUID = graceName, cpuSpec{arch: "arm64"}
	for i := range sockets {
		r.CPULists = append(r.CPULists, fmt.Sprintf("%d-%d", 72*i, 72*i+71))
	}
}

// servers puts GPUs and NICs under PCIe switches, half of the GPUs under each of two sockets: as many switches as NICs
// where there are fewer NICs than GPUs, else one a GPU, whose NIC then has several ports.
func (s *Spec) servers(m GPUModel, nic *card) string {
	whole := max(s.Of, s.Count) // the first Count of which have the NICs
	per := max(1, whole/4)
	nics := s.NICs
	switch {
	case !m.Module() && s.Behind == 0 && nics == 0:
		per = 1
	case s.Behind > 0:
		per = s.Behind
	case nics > 1 && nics < s.Count:
		per = (s.Count + nics - 1) / nics
	case nics >= s.Count && m.boardGen4() && s.Count%2 == 0:
		per = 2
	case nics >= s.Count:
		per = 1
	}
	if nics > s.Count && s.Count > 0 {
		nic.Ports = nics / s.Count
		nic.Slot.gen = min(feeds(s.Port*unit.Rate(nic.Ports)), 6)
		nics = s.Count
	}
	sockets := s.Sockets
	if sockets == 0 && !m.Module() && s.Count <= 2 {
		sockets = 1
	}
	sockets = cmp.Or(sockets, 2)
	// In servers of few cards a NIC has a root port of its own: they mostly have no switches.
	own := m.Form == "card" && s.Behind == 0 && s.Count < 8
	text := ""
	for g := 0; g < whole; g += per {
		upTo := func(gpus int) int { return (min(gpus, s.Count)*nics + s.Count - 1) / s.Count }
		gpus, here := min(per, whole-g), upTo(g+per)-upTo(g)
		numa := g * sockets / max(whole, 2)
		switch {
		case own && per > 1:
			text += fmt.Sprintf(" numa%d(root(switch(%d*gpu)) %d*root(nic))", numa, gpus, here)
		case own || per == 1 && nics == 0:
			text += fmt.Sprintf(" numa%d(root(gpu) %d*root(nic))", numa, here)
		default:
			text += fmt.Sprintf(" numa%d(root(switch(%d*gpu %d*nic)))", numa, gpus, here)
		}
	}
	return text
}

// joined is how the GPUs are joined.
func (s *Spec) joined(m GPUModel) string {
	how := s.Join
	if m.Links == 0 || s.Count < 2 {
		return "none"
	}
	if how == "" {
		how = "mesh"
		switch {
		case !m.Module() && m.Bridged == 0:
			how = "none" // a bridge is an option that few buy
		case !m.Module():
			how = "bridge"
		case m.LinkKind == cluster.NVLink && m.Links >= 8 && m.C2C == "":
			how = "nvswitch"
		}
	}
	switch nvlink := m.LinkKind == cluster.NVLink; {
	case how == "mesh" && s.Count == 8 && nvlink && m.Links <= 6:
		return "cube"
	case how == "nvswitch" && !nvlink:
		return "mesh"
	}
	return how
}

// boardGen4 reports GPUs on an HGX board with PCIe 4, which has a PCIe switch for every two of them and their
// NICs (NVIDIA DGX A100 system architecture, 2020).
func (m *GPUModel) boardGen4() bool {
	return m.PCIeGen == 4 && m.Module() && m.LinkKind == cluster.NVLink && m.Links >= 8
}

// slotFor is the oldest PCIe slot of 16 lanes that feeds a port.
func slotFor(port unit.Rate) slot { return slot{feeds(port), 16} }

// socketCards are the cards that one processor takes: seven slots of x16 at most, of which some are for NICs and disks.
const socketCards = 4

// cardsNode is a server or workstation with so many PCIe cards, each on a root port of its own, no NVLink bridge and no
// NIC, and what that assumes in words.
func cardsNode(m GPUModel, n int) (*nodeRow, string) {
	r := &nodeRow{
		Origin: cluster.Assumed, GPUSlot: slot{m.PCIeGen, 16}, CPUID: cpuSpec{arch: "x86_64"},
		Tree: treeOf("socket(%d*root(gpu))", n),
	}
	where, peers := "one socket", "no NVLink bridge"
	if n > socketCards {
		where, r.Tree = "two sockets", treeOf("socket(%d*root(gpu)) socket(%d*root(gpu))", n/2, n-n/2)
	}
	switch {
	case m.GDR == cluster.No: // GeForce
		peers, r.Join = "no peer access", "no peer access"
	case m.Links == 0:
		peers = "no NVLink"
	}
	return r,
		fmt.Sprintf("PCIe %d.0 x16 cards on root ports of %s, %s; a cluster file or "+
			"nvidia-smi topo -m says otherwise", m.PCIeGen, where, peers)
}

// AddNICs gives a type that has none the NICs of the spec: each beside a GPU on a PCIe switch, which is put in where
// there is none, where there are enough of them, else spread over the NUMA domains.
func (s Spec) AddNICs(t *cluster.NodeType) {
	b := &treeBuilder{
		nodeRow: &nodeRow{}, t: t, made: map[string][]int{}, source: s.Source,
		nic: &card{Kind: s.Kind, Slot: slotFor(s.Port), rate: cluster.FromAssumed(s.Port, s.Source)},
	}
	gpus, numa := t.Of(cluster.GPU), t.Of(cluster.NUMA)
	if len(numa) == 0 {
		numa = []int{t.Devices[gpus[0]].Parent}
	}
	var places []int
	for i := range s.NICs {
		if s.NICs >= len(gpus) {
			places = append(places, switchOf(t, gpus[i*len(gpus)/s.NICs]))
		} else {
			places = append(places, b.addDevice(numa[i*len(numa)/s.NICs], "root"))
		}
	}
	for _, at := range places {
		b.addDevice(at, "nic")
	}
}

// switchOf is the PCIe switch that a GPU hangs on, put in where there is none.
func switchOf(t *cluster.NodeType, gpu int) int {
	up := t.Devices[gpu].Parent
	if up >= 0 && t.Devices[up].Kind == cluster.PCISwitch {
		return up
	}
	s := t.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: up, Tray: t.Devices[gpu].Tray})
	t.Devices[gpu].Parent = s
	i := slices.IndexFunc(t.Links, func(l cluster.Link) bool {
		return l.Kind == cluster.PCIe && (l.A == up && l.B == gpu || l.A == gpu && l.B == up)
	})
	if i < 0 {
		t.Connect(cluster.Link{A: s, B: gpu, Kind: cluster.PCIe})
		return s
	}
	l := t.Links[i] // what led to the GPU leads to the switch, and on from there
	l.A, l.B = up, s
	t.Connect(l)
	t.Links[i].A, t.Links[i].B = s, gpu
	return s
}

// Module says that a GPU comes on a board with its links, as SXM does: a card has them only over a bridge, or not at
// all.
func (m GPUModel) Module() bool { return m.Form == "module" || m.Form == "superchip" }
