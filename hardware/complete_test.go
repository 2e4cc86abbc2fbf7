package hardware

import (
	"reflect"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// pair is a node of two GPUs joined by lanes of NVLink.
func pair(lanes int, gpu cluster.GPUInfo) *cluster.NodeType {
	t := &cluster.NodeType{Name: "pair"}
	for range 2 {
		g := gpu
		t.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: -1, GPU: &g})
	}
	t.Connect(cluster.Link{A: 0, B: 1, Kind: cluster.NVLink, Lanes: lanes})
	return t
}

func complete(t *cluster.NodeType) *cluster.Cluster {
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}, Hosts: []cluster.Host{{Name: "n0"}}}
	Complete(c)
	return c
}

func TestCompleteNVLink(t *testing.T) {
	for _, tt := range []struct {
		lanes, sm int
		want      float64
		origin    cluster.Origin
	}{
		{4, 60, 80, cluster.Spec},
		{6, 70, 150, cluster.Spec},
		{12, 80, 300, cluster.Spec},
		{4, 86, 56.25, cluster.Spec},
		{18, 90, 450, cluster.Spec},
		{18, 100, 900, cluster.Spec},
		{18, 103, 900, cluster.Spec},
		{18, 0, 450, cluster.Assumed},
		{12, 0, 300, cluster.Assumed},
		{6, 0, 150, cluster.Assumed},
		{4, 0, 56.25, cluster.Assumed},
		{8, 0, 200, cluster.Assumed},
		{2, 0, 50, cluster.Assumed},
	} {
		n := pair(tt.lanes, cluster.GPUInfo{SM: tt.sm})
		complete(n)
		l := n.Links[0]
		if !near(l.Rate.Value.GBps(), tt.want, 1e-9) || l.Rate.Origin != tt.origin || l.Duplex != 2*l.Rate.Value ||
			l.Rate.Source == "" {
			t.Errorf("NV%d sm%d: %+v, want %g GB/s %v", tt.lanes, tt.sm, l.Rate, tt.want, tt.origin)
		}
	}
	// Four GPUs with four links a pair have twelve each: A100, not a bridge.
	n := &cluster.NodeType{Name: "quad"}
	for range 4 {
		n.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: -1})
	}
	for a := range 4 {
		for b := range a {
			n.Connect(cluster.Link{A: b, B: a, Kind: cluster.NVLink, Lanes: 4})
		}
	}
	complete(n)
	if got := n.Links[0].Rate; !near(got.Value.GBps(), 100, 1e-9) || got.Origin != cluster.Assumed {
		t.Errorf("NV4 among four: %+v", got)
	}
}

func TestCompleteGPU(t *testing.T) {
	n := &cluster.NodeType{Name: "x"}
	n.Add(cluster.Device{
		Kind: cluster.GPU, Index: 0, Parent: -1, Model: cluster.FromRead("NVIDIA A100-SXM4-80GB", "nvidia-smi"),
	})
	n.Add(cluster.Device{Kind: cluster.GPU, Index: 1, Parent: -1, PCIID: &cluster.PCIID{Vendor: "10de", Device: "2335"}})
	n.Add(cluster.Device{
		Kind: cluster.GPU, Index: 2, Parent: -1, Model: cluster.FromRead("NVIDIA H100 80GB HBM3", "nvidia-smi"),
		GPU: &cluster.GPUInfo{
			Memory: cluster.FromRead(81559*unit.MiB, "nvidia-smi"), HBM: cluster.FromMeasured(3*unit.Rate(1e12), "nvbandwidth"),
		},
	})
	n.Add(cluster.Device{Kind: cluster.GPU, Index: 3, Parent: -1, Model: cluster.FromRead("Imaginary 9000", "nvidia-smi")})
	c := complete(n)
	if len(c.Warnings) > 0 {
		t.Errorf("warnings %v", c.Warnings)
	}
	d := n.Devices
	if g := d[0].GPU; g.Memory.Value != 80*unit.GiB || g.Memory.Origin != cluster.Spec || g.SM != 80 || g.Links != 12 ||
		g.Peak[cluster.BF16].Value != 312*unit.TFLOPS || g.Peak[cluster.BF16].Source == "" {
		t.Errorf("by name: %+v", g)
	}
	if d[1].Model.Value != "NVIDIA H200" || d[1].GPU.Memory.Value != 141*unit.GiB {
		t.Errorf("by PCI id: %+v", d[1])
	}
	if g := d[2].GPU; g.Memory.Value != 81559*unit.MiB || g.HBM.Origin != cluster.Measured {
		t.Errorf("a known fact was replaced: %+v", g)
	}
	if d[3].GPU != nil {
		t.Errorf("an unknown GPU got figures: %+v", d[3].GPU)
	}
}

func TestCompletePCIe(t *testing.T) {
	n := built("", nil, "socket(root)")
	root := n.Of(cluster.RootComplex)[0]
	sw := n.Add(cluster.Device{Kind: cluster.PCISwitch, Index: -1, Parent: root})
	up := n.Connect(cluster.Link{A: root, B: sw, Kind: cluster.PCIe})
	chip := func() int {
		return n.Add(cluster.Device{
			Kind: cluster.GPU, Index: n.Count(cluster.GPU), Parent: sw, Model: cluster.FromSpec(mustGPU("h100").Title, "a test"),
		})
	}
	gpu := chip()
	gl := n.Connect(cluster.Link{A: sw, B: gpu, Kind: cluster.PCIe})
	trained := chip()
	tl := n.Connect(cluster.Link{A: sw, B: trained, Kind: cluster.PCIe, Lanes: 8, GTs: 16, MaxLanes: 16, MaxGTs: 32})
	capable := chip()
	cl := n.Connect(cluster.Link{A: sw, B: capable, Kind: cluster.PCIe, MaxLanes: 16, MaxGTs: 16})
	nic := n.Add(cluster.Device{
		Kind: cluster.NIC, Index: 0, Parent: root, NIC: &cluster.NICInfo{Ports: []cluster.Port{{Num: 1, Speed: "4xHDR"}}},
	})
	nl := n.Connect(cluster.Link{A: root, B: nic, Kind: cluster.PCIe})
	odd := n.Add(cluster.Device{Kind: cluster.GPU, Index: -1, Parent: root})
	ol := n.Connect(cluster.Link{A: root, B: odd, Kind: cluster.PCIe})
	complete(n)
	for _, tt := range []struct {
		link   int
		want   float64
		origin cluster.Origin
	}{
		{gl, 63.015, cluster.Assumed},
		{tl, 15.754, cluster.Spec},
		{cl, 31.508, cluster.Assumed},
		{up, 63.015, cluster.Assumed},
		{nl, 31.508, cluster.Assumed},
		{ol, 63.015, cluster.Assumed},
	} {
		r := n.Links[tt.link].Rate
		if !near(r.Value.GBps(), tt.want, 1e-4) || r.Origin != tt.origin || r.Source == "" {
			t.Errorf("link %d: %+v, want %g GB/s %v", tt.link, r, tt.want, tt.origin)
		}
	}
}

// TestCompletePlatform has GPUs of which only the NVLinks are known.
func TestCompletePlatform(t *testing.T) {
	for lanes, want := range map[int]float64{18: 63.015, 12: 31.508, 6: 15.754} {
		n := pair(lanes, cluster.GPUInfo{})
		root := n.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: -1})
		n.Devices[0].Parent = root
		n.Connect(cluster.Link{A: root, B: 0, Kind: cluster.PCIe})
		complete(n)
		if r := n.Links[1].Rate; !near(r.Value.GBps(), want, 1e-4) || r.Origin != cluster.Assumed {
			t.Errorf("NV%d: PCIe %+v, want %g GB/s", lanes, r, want)
		}
	}
}

// GPUs that are named after a matrix was completed are cards of their own generation of PCIe.
func TestForget(t *testing.T) {
	n := built("", nil, "socket(root)")
	root := n.Of(cluster.RootComplex)[0]
	gpu := n.Add(cluster.Device{Kind: cluster.GPU, Index: 0, Parent: root})
	l := n.Connect(cluster.Link{A: root, B: gpu, Kind: cluster.PCIe})
	other := n.Add(cluster.Device{Kind: cluster.GPU, Index: 1, Parent: root})
	read := n.Connect(cluster.Link{A: root, B: other, Kind: cluster.PCIe, Lanes: 8, GTs: 16})
	complete(n)
	if r := n.Links[l].Rate; !near(r.Value.GBps(), 15.754, 1e-4) {
		t.Errorf("without a model: %+v", r)
	}
	n.Devices[gpu].Model = cluster.FromAssumed("NVIDIA RTX A6000", "as given")
	Forget(n)
	complete(n)
	if r := n.Links[l].Rate; !near(r.Value.GBps(), 31.508, 1e-4) || r.Origin != cluster.Assumed {
		t.Errorf("an A6000: %+v", r)
	}
	if r := n.Links[read].Rate; !near(r.Value.GBps(), 15.754, 1e-4) || r.Origin != cluster.Spec {
		t.Errorf("a link whose state was read: %+v", r)
	}
}

func TestCompleteNIC(t *testing.T) {
	n := &cluster.NodeType{Name: "x"}
	add := func(d cluster.Device) { d.Kind, d.Parent, d.Index = cluster.NIC, -1, -1; n.Add(d) }
	id := func(v, d, class string) *cluster.PCIID { return &cluster.PCIID{Vendor: v, Device: d, Class: class} }
	port := func(p cluster.Port) *cluster.NICInfo { return &cluster.NICInfo{Ports: []cluster.Port{p}} }
	add(cluster.Device{PCIID: id("15b3", "1021", "020700")})
	add(cluster.Device{
		PCIID: id("15b3", "1021", "020000"), Label: "mlx5_1",
		NIC: port(cluster.Port{Num: 1, Layer: "Ethernet", Rate: cluster.FromRead(200*unit.Gbps, "sysfs")}),
	})
	add(cluster.Device{Label: "rdmap79s0"})
	add(cluster.Device{Label: "eth0", NIC: port(cluster.Port{Num: 1, Speed: "25GbE"})})
	add(cluster.Device{
		Model: cluster.FromRead("MT28908 Family [ConnectX-6]", "lspci"),
		NIC:   port(cluster.Port{Num: 1, Layer: "InfiniBand", Speed: "2xHDR"}),
	})
	add(cluster.Device{PCIID: id("15b3", "101b", ""), NIC: port(cluster.Port{Num: 1, State: cluster.Down})})
	add(cluster.Device{Label: "hfi1_0", PCIID: id("8086", "24f0", "")})
	complete(n)
	for i, want := range []struct {
		kind   cluster.NetKind
		gbit   float64
		origin cluster.Origin
	}{
		{cluster.InfiniBand, 400, cluster.Assumed},
		{cluster.RoCE, 200, cluster.Read},
		{cluster.EFA, 0, cluster.Unknown},
		{cluster.Ethernet, 25, cluster.Spec},
		{cluster.InfiniBand, 100, cluster.Spec},
		{"", 0, cluster.Unknown},
		{cluster.OmniPath, 100, cluster.Assumed},
	} {
		nic := n.Devices[i].NIC
		if r := nic.Rate(); nic.Kind != want.kind || !near(r.Value.Gbps(), want.gbit, 1e-9) || r.Origin != want.origin {
			t.Errorf("NIC %d: %s %+v; want %+v", i, nic.Kind, r, want)
		}
	}
}

// TestCompleteWarns plants figures above the catalogue's.
func TestCompleteWarns(t *testing.T) {
	n := pair(12, cluster.GPUInfo{})
	for i := range n.Devices {
		n.Devices[i].Model = cluster.FromRead("NVIDIA A100-SXM4-80GB", "nvidia-smi")
	}
	n.Devices[0].GPU.SM = 90
	n.Devices[1].GPU.Memory = cluster.FromRead(40*unit.GiB, "nvidia-smi")
	n.Connect(cluster.Link{A: 0, B: 1, Kind: cluster.NVLink, Lanes: 4, Rate: cluster.FromRead(200*unit.GBps, "a tool")})
	n.Pairs = []cluster.Pair{{A: 0, B: 1, Rate: cluster.FromMeasured(520*unit.GBps, "p2pBandwidthLatencyTest")}}
	nic := n.Add(cluster.Device{
		Kind: cluster.NIC, Index: 0, Parent: -1, PCIID: &cluster.PCIID{Vendor: "15b3", Device: "101b"},
		NIC: &cluster.NICInfo{Ports: []cluster.Port{{Num: 1, Rate: cluster.FromRead(400*unit.Gbps, "sysfs")}}},
	})
	root := n.Add(cluster.Device{Kind: cluster.RootComplex, Index: -1, Parent: -1})
	n.Connect(cluster.Link{
		A: root, B: nic, Kind: cluster.PCIe, Lanes: 16, GTs: 8, Rate: cluster.FromMeasured(25*unit.GBps, "a test"),
	})
	c := complete(n)
	for _, want := range []string{
		"compute capability 90", "40 GiB of memory", "16 NVLinks were read", "says 200 GB/s", "520 GB/s", "says 400 Gb/s",
		"says 25 GB/s",
	} {
		found := false
		for _, w := range c.Warnings {
			found = found || strings.Contains(w.String(), want)
			if w.Source == "" || !strings.HasPrefix(w.Where, "n0/") {
				t.Errorf("warning without source or place: %+v", w)
			}
		}
		if !found {
			t.Errorf("no warning says %q: %v", want, c.Warnings)
		}
	}
	before := len(c.Warnings)
	Complete(c)
	if len(c.Warnings) != before {
		t.Errorf("a second call repeats warnings: %v", c.Warnings[before:])
	}
	// A name that contradicts the bus.
	m := &cluster.NodeType{Name: "y"}
	m.Add(cluster.Device{
		Kind: cluster.GPU, Index: 0, Parent: -1, Model: cluster.FromRead("NVIDIA H100 80GB HBM3", "x"),
		PCIID: &cluster.PCIID{Vendor: "10de", Device: "20b2"},
	})
	if c := complete(m); len(c.Warnings) != 1 || m.Devices[0].GPU.SM != 80 {
		t.Errorf("name against PCI id: %v", c.Warnings)
	}
}

// GPUs of a kind that NVLink joins, of which the input has nothing but the PCIe tree.
func TestCompleteWithoutNVLink(t *testing.T) {
	n := pair(12, cluster.GPUInfo{})
	n.Links, n.Tree = nil, cluster.Read
	for i := range n.Devices {
		n.Devices[i].Model = cluster.FromRead("NVIDIA H100 80GB HBM3", "lspci")
	}
	if c := complete(n); len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Text, "18 NVLinks") {
		t.Errorf("%v", c.Warnings)
	}
}

func TestCompleteTwice(t *testing.T) {
	for _, name := range []string{"dgx-a100", "gb200-nvl72", "frontier"} {
		a, err := Preset(name, 2)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := Preset(name, 2)
		Complete(b)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: a second Complete changes something", name)
		}
	}
}

func TestCompleteNetwork(t *testing.T) {
	c := &cluster.Cluster{Hosts: []cluster.Host{{Name: "a", Type: -1}}, Network: cluster.Network{
		Switches: []cluster.Switch{{Name: "s0"}, {Name: "s1", Latency: cluster.FromRead(unit.Microsecond, "x")}},
		Links: []cluster.NetLink{
			{A: cluster.End{Switch: 0}, B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: 0, N: 1}}}, Speed: "4xHDR"},
			{
				A: cluster.End{Switch: 1}, B: cluster.End{Switch: 0}, Speed: "4xEDR",
				Rate: cluster.FromRead(100*unit.Gbps, "iblinkinfo"),
			},
			{A: cluster.End{Switch: 1}, B: cluster.End{Switch: 0}, Speed: "???"},
		},
	}}
	Complete(c)
	n := c.Network
	if n.Kind != cluster.InfiniBand || n.Links[0].Rate.Value != 200*unit.Gbps || n.Links[0].Lanes != 4 ||
		n.Links[0].Latency.Value != unit.Micros(0.6) || n.Links[0].Latency.Origin != cluster.Spec {
		t.Errorf("%s, %+v", n.Kind, n.Links[0])
	}
	if n.Links[1].Rate.Origin != cluster.Read || n.Links[1].Latency.Known() || n.Links[2].Rate.Known() {
		t.Errorf("%+v %+v", n.Links[1], n.Links[2])
	}
	if n.Switches[0].Latency.Origin != cluster.Assumed || n.Switches[1].Latency.Value != unit.Microsecond {
		t.Errorf("%+v", n.Switches)
	}
}

// TestCompleteOdd feeds types that readers of broken files might return.
func TestCompleteOdd(t *testing.T) {
	Complete(&cluster.Cluster{})
	n := &cluster.NodeType{}
	for _, k := range []cluster.Kind{
		cluster.KindUnknown, cluster.Socket, cluster.NUMA, cluster.GPU, cluster.NIC, cluster.NVSwitch,
	} {
		n.Add(cluster.Device{Kind: k, Index: -1, Parent: -1})
	}
	for k := cluster.LinkUnknown; k <= cluster.Direct; k++ {
		for a := range n.Devices {
			for b := range n.Devices {
				if a != b {
					n.Connect(cluster.Link{A: a, B: b, Kind: k, Lanes: a - 2, GTs: -5})
				}
			}
		}
	}
	complete(n)
	if err := n.Check(); err != nil {
		t.Error(err)
	}
}

// Every domain of a large machine is linked to every other; completing that must
// not look at all links for each.
func TestCompleteManyDomains(t *testing.T) {
	n := &cluster.NodeType{}
	const domains = 400
	for i := range domains {
		n.Add(cluster.Device{Kind: cluster.NUMA, Index: i, Parent: -1})
		for k := range i {
			n.Connect(cluster.Link{A: k, B: i, Kind: cluster.SMP})
		}
	}
	c := &cluster.Cluster{Types: []*cluster.NodeType{n}, Hosts: []cluster.Host{{Name: "h"}}}
	Complete(c)
	for i := range n.Links {
		if !n.Links[i].Rate.Known() {
			t.Fatalf("link %d has no rate", i)
		}
	}
}
