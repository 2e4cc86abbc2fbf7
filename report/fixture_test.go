package report

import (
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// The machines here are drawn by hand after public descriptions, so that these
// tests do not change when the hardware catalogue does.

const dataSheet = "data dataSheet"

func spec[T any](v T) cluster.Fact[T] { return cluster.FromSpec(v, dataSheet) }

// machine builds a node type device by device.
type machine struct{ *cluster.NodeType }

func newMachine(name string) machine { return machine{&cluster.NodeType{Name: name}} }

func (m machine) add(kind cluster.Kind, parent int, d cluster.Device) int {
	d.Kind, d.Parent = kind, parent
	if d.Index == 0 {
		d.Index = -1
	}
	return m.Add(d)
}

// socket adds a socket with one NUMA domain.
func (m machine) socket(model, cores string, mem unit.Bytes) int {
	s := m.add(cluster.Socket, -1, cluster.Device{Model: spec(model), CPU: &cluster.CPUInfo{Arch: "x86_64"}})
	n := m.add(cluster.NUMA, s, cluster.Device{CPU: &cluster.CPUInfo{Cores: cores, Memory: spec(mem)}})
	m.Devices[n].Index = m.Count(cluster.NUMA) - 1
	return n
}

func (m machine) root(numa int) int {
	r := m.add(cluster.RootComplex, numa, cluster.Device{})
	m.Connect(cluster.Link{A: numa, B: r, Kind: cluster.OnDie})
	return r
}

func (m machine) pcie(parent, child, lanes int, gts float64) int {
	perLane := map[float64]unit.Rate{8: 0.985e9, 16: 1.969e9, 32: 3.938e9}[gts]
	return m.Connect(cluster.Link{
		A: parent, B: child, Kind: cluster.PCIe, Lanes: lanes, GTs: gts, MaxLanes: lanes, MaxGTs: gts,
		Rate: spec(perLane * unit.Rate(lanes)),
	})
}

func (m machine) pciSwitch(parent int, gts float64) int {
	s := m.add(cluster.PCISwitch, parent, cluster.Device{})
	m.pcie(parent, s, 16, gts)
	return s
}

func (m machine) gpu(parent int, gts float64, model string, mem unit.Bytes, sm int, cores string) int {
	g := m.add(cluster.GPU, parent, cluster.Device{
		Model: spec(model), PCI: cluster.PCI(fmt.Sprintf("0000:%02x:00.0", 16+len(m.Devices))),
		GPU: &cluster.GPUInfo{Vendor: "nvidia", Memory: spec(mem), SM: sm, GDR: cluster.Yes, Cores: cores},
	})
	if gts > 0 {
		m.pcie(parent, g, 16, gts)
	}
	return g
}

func (m machine) nic(parent int, gts float64, label, model string, kind cluster.NetKind, rate unit.Rate) int {
	n := m.add(cluster.NIC, parent, cluster.Device{
		Label: label, Model: spec(model), PCI: cluster.PCI(fmt.Sprintf("0000:%02x:00.0", 16+len(m.Devices))),
		NIC: &cluster.NICInfo{
			Kind: kind, GDR: cluster.Yes,
			Ports: []cluster.Port{{Num: 1, Rate: spec(rate), MTU: spec(4096), State: cluster.Up}},
		},
	})
	if gts > 0 {
		m.pcie(parent, n, 16, gts)
	}
	return n
}

func (m machine) smp(a, b int, rate unit.Rate) {
	m.Connect(cluster.Link{A: a, B: b, Kind: cluster.SMP, Rate: spec(rate)})
}

func (m machine) nvlink(a, b, lanes int, perLane unit.Rate) {
	r := perLane * unit.Rate(lanes)
	m.Connect(cluster.Link{A: a, B: b, Kind: cluster.NVLink, Lanes: lanes, Rate: spec(r), Duplex: 2 * r})
}

func (m machine) nvswitch(lanes int, perLane unit.Rate) {
	s := m.add(cluster.NVSwitch, -1, cluster.Device{})
	for _, g := range m.Of(cluster.GPU) {
		m.nvlink(g, s, lanes, perLane)
	}
}

// dgxH100: two sockets, a PCIe switch for every GPU and its NIC, NVSwitch.
func dgxH100() *cluster.NodeType {
	m := newMachine("dgx-h100")
	var numa []int
	for s := range 2 {
		cores := fmt.Sprintf("%d-%d,%d-%d", s*56, s*56+55, 112+s*56, 112+s*56+55)
		n := m.socket("Intel Xeon Platinum 8480C", cores, unit.TiB)
		numa = append(numa, n)
		for i := range 4 {
			sw := m.pciSwitch(m.root(n), 32)
			m.gpu(sw, 32, "NVIDIA H100 SXM", 80*unit.GB, 90, cores)
			m.nic(sw, 32, fmt.Sprintf("mlx5_%d", s*4+i), "ConnectX-7", cluster.InfiniBand, 400*unit.Gbps)
		}
	}
	m.smp(numa[0], numa[1], 64*unit.GBps)
	m.nvswitch(18, 25*unit.GBps)
	return m.NodeType
}

// baskerville: four A100 joined pair by pair, one HDR card for all of them.
func baskerville() *cluster.NodeType {
	m := newMachine("baskerville")
	var numa, gpus []int
	for s := range 2 {
		cores := fmt.Sprintf("%d-%d", s*36, s*36+35)
		n := m.socket("Intel Xeon Platinum 8360Y", cores, 256*unit.GiB)
		numa = append(numa, n)
		for range 2 {
			gpus = append(gpus, m.gpu(m.root(n), 16, "NVIDIA A100 SXM", 40*unit.GB, 80, cores))
		}
	}
	m.nic(m.root(numa[0]), 16, "mlx5_0", "ConnectX-6", cluster.InfiniBand, 200*unit.Gbps)
	m.smp(numa[0], numa[1], 33.6*unit.GBps)
	for i := range gpus {
		for j := range i {
			m.nvlink(gpus[j], gpus[i], 4, 25*unit.GBps)
		}
	}
	return m.NodeType
}

// dgx1v: eight V100 in a hybrid cube mesh, four NICs under four switches.
func dgx1v() *cluster.NodeType {
	m := newMachine("dgx-1v")
	var numa, gpus []int
	for s := range 2 {
		cores := fmt.Sprintf("%d-%d,%d-%d", s*20, s*20+19, 40+s*20, 40+s*20+19)
		n := m.socket("Intel Xeon E5-2698 v4", cores, 256*unit.GiB)
		numa = append(numa, n)
		for i := range 2 {
			sw := m.pciSwitch(m.root(n), 8)
			for range 2 {
				gpus = append(gpus, m.gpu(sw, 8, "Tesla V100 SXM2", 32*unit.GB, 70, cores))
			}
			m.nic(sw, 8, fmt.Sprintf("mlx5_%d", s*2+i), "ConnectX-4", cluster.InfiniBand, 100*unit.Gbps)
		}
	}
	m.smp(numa[0], numa[1], 19.2*unit.GBps)
	for _, l := range [][3]int{
		{0, 1, 1},
		{0, 2, 1},
		{0, 3, 2},
		{0, 4, 2},
		{1, 2, 2},
		{1, 3, 1},
		{1, 5, 2},
		{2, 3, 2},
		{2, 6, 1},
		{3, 7, 1},
		{4, 5, 1},
		{4, 6, 1},
		{4, 7, 2},
		{5, 6, 2},
		{5, 7, 1},
		{6, 7, 2},
	} {
		m.nvlink(gpus[l[0]], gpus[l[1]], l[2], 25*unit.GBps)
	}
	return m.NodeType
}

// nvl72: 18 trays of two Grace and four Blackwell each, one NVLink domain.
func nvl72() *cluster.NodeType {
	m := newMachine("gb200-nvl72")
	m.Trays = 18
	for tray := range 18 {
		for s := range 2 {
			first := len(m.Devices)
			cores := fmt.Sprintf("%d-%d", s*72, s*72+71)
			n := m.socket("NVIDIA Grace", cores, 480*unit.GB)
			for i := range 2 {
				g := m.gpu(n, 0, "NVIDIA GB200", 186*unit.GB, 100, cores)
				m.Connect(cluster.Link{A: n, B: g, Kind: cluster.C2C, Rate: spec(225 * unit.GBps), Duplex: 450 * unit.GBps})
				m.nic(m.root(n), 32, fmt.Sprintf("mlx5_%d", s*2+i), "ConnectX-7", cluster.InfiniBand, 400*unit.Gbps)
			}
			for d := first; d < len(m.Devices); d++ {
				m.Devices[d].Tray = tray
			}
		}
	}
	m.nvswitch(18, 50*unit.GBps)
	return m.NodeType
}

// twoLevels: four trays of four GPUs whose NVSwitches a second level joins.
func twoLevels() *cluster.NodeType {
	m := newMachine("two-levels")
	m.Trays = 4
	second := m.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
	for tray := range m.Trays {
		first := len(m.Devices)
		n := m.socket("Intel Xeon", "0-55", 512*unit.GB)
		sw := m.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
		m.Connect(cluster.Link{
			A: sw, B: second, Kind: cluster.NVLink, Lanes: 36, Rate: spec(900 * unit.GBps), Duplex: 1800 * unit.GBps,
		})
		for range 4 {
			g := m.gpu(n, 32, "NVIDIA H100", 80*unit.GB, 90, "0-55")
			m.Connect(cluster.Link{
				A: g, B: sw, Kind: cluster.NVLink, Lanes: 18, Rate: spec(450 * unit.GBps), Duplex: 900 * unit.GBps,
			})
		}
		for d := first; d < len(m.Devices); d++ {
			m.Devices[d].Tray = tray
		}
	}
	return m.NodeType
}

// alone is a cluster of n nodes of one type whose network nobody described.
func alone(t *cluster.NodeType, n int) *cluster.Cluster {
	c := &cluster.Cluster{Name: t.Name, Types: []*cluster.NodeType{t}}
	for i := range n {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("node%d", i), Type: 0})
	}
	return c
}

// railed joins NIC i of every node to leaf i, and every leaf to the spines.
func railed(t *cluster.NodeType, n, spines int) *cluster.Cluster {
	c := alone(t, n)
	net := &c.Network
	net.Kind, net.Rails, net.Reduction = cluster.InfiniBand, t.Count(cluster.NIC), cluster.Yes
	rate := t.Devices[t.Of(cluster.NIC)[0]].NIC.Rate()
	for i := range net.Rails {
		net.Switches = append(net.Switches, cluster.Switch{
			Name: fmt.Sprintf("leaf%d", i), Tier: cluster.Leaf, Rail: i, Model: "QM9700", Ports: 64,
		})
		net.Links = append(net.Links, cluster.NetLink{
			A: cluster.End{Switch: i},
			B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: 0, N: n}}, NIC: i}, Rate: rate,
		})
	}
	for s := range spines {
		net.Switches = append(net.Switches, cluster.Switch{
			Name: fmt.Sprintf("spine%d", s), Tier: cluster.Spine, Rail: -1, Model: "QM9700", Ports: 64,
		})
		for i := range net.Rails {
			net.Links = append(net.Links, cluster.NetLink{
				A: cluster.End{Switch: net.Rails + s}, B: cluster.End{Switch: i},
				Count: max(1, n/spines), Rate: rate,
			})
		}
	}
	return c
}

// flat joins every NIC of every node to one switch.
func flat(t *cluster.NodeType, n int) *cluster.Cluster {
	c := alone(t, n)
	c.Network.Kind = cluster.InfiniBand
	c.Network.Switches = []cluster.Switch{{Name: "leaf0", Tier: cluster.Leaf, Rail: -1}}
	c.Network.Links = []cluster.NetLink{{
		A: cluster.End{Switch: 0}, B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{{First: 0, N: n}}},
		Rate: t.Devices[t.Of(cluster.NIC)[0]].NIC.Rate(),
	}}
	return c
}

// fabric is a fat tree as ibnetdiscover shows it: hosts with nothing inside,
// every cable by itself.
func fabric(hosts, leaves, spines int) *cluster.Cluster {
	c := &cluster.Cluster{Name: "fabric", Network: cluster.Network{Kind: cluster.InfiniBand}}
	net := &c.Network
	rate := cluster.FromRead(200*unit.Gbps, "ibnetdiscover")
	for i := range leaves {
		net.Switches = append(net.Switches, cluster.Switch{
			Name: fmt.Sprintf("leaf%d", i), GUID: fmt.Sprintf("0x%04x", i), Tier: cluster.Leaf, Rail: -1, Model: "MQM8700",
			Ports: 40,
		})
	}
	for i := range spines {
		net.Switches = append(net.Switches, cluster.Switch{
			Name: fmt.Sprintf("spine%d", i), Tier: cluster.Spine, Rail: -1, Model: "MQM8700", Ports: 40,
		})
	}
	for h := range hosts {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("gpu%02d", h), Type: -1})
		net.Links = append(net.Links, cluster.NetLink{
			A: cluster.End{Switch: h * leaves / hosts, Port: h + 1},
			B: cluster.End{Switch: -1, NIC: 0, Port: 1, Hosts: []cluster.Span{{First: h, N: 1}}}, Speed: "4xHDR", Rate: rate,
			State: cluster.Up,
		})
	}
	for l := range leaves {
		for s := range spines {
			net.Links = append(net.Links, cluster.NetLink{
				A: cluster.End{Switch: leaves + s, Port: l + 1}, B: cluster.End{Switch: l, Port: 30 + s},
				Speed: "4xHDR", Rate: rate, State: cluster.Up,
			})
		}
	}
	return c
}
