package hardware

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/unit"
)

// TestPresets builds every preset with one and with 100 nodes and holds it to
// its own description.
func TestPresets(t *testing.T) {
	names := make(map[string]string)
	for _, p := range Presets() {
		for _, n := range append([]string{p.Name}, p.Aliases...) {
			if other, taken := names[n]; taken {
				t.Errorf("%s: name %s is also %s's", p.Name, n, other)
			}
			names[n] = p.Name
		}
		if p.Summary == "" || p.Source == "" || p.GPUs == 0 || p.Nodes == 0 {
			t.Errorf("%s: summary, source or GPUs missing: %+v", p.Name, p)
		}
		for _, count := range []int{1, 100} {
			c, err := Preset(p.Name, count)
			if err != nil {
				t.Errorf("%s:%d: %v", p.Name, count, err)
				continue
			}
			checkPreset(t, c, p, count)
		}
	}
}

func checkPreset(t *testing.T, c *cluster.Cluster, p PresetInfo, count int) {
	t.Helper()
	name := fmt.Sprintf("%s:%d", p.Name, count)
	if len(c.Warnings) > 0 {
		t.Errorf("%s: warnings %v", name, c.Warnings)
	}
	if s := c.Summary(); s.Nodes != count || s.GPUs != count*p.GPUs || s.NICs != count*p.NICs {
		t.Errorf("%s: %+v", name, s)
	}
	n := c.Types[0]
	if err := n.Check(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for i, d := range n.Devices {
		if d.Kind == cluster.GPU && (!d.GPU.Memory.Known() || !d.GPU.HBM.Known() || len(d.GPU.Peak) == 0) {
			t.Errorf("%s: %s has no figures", name, d.Name)
		}
		if d.Kind == cluster.NIC && (!d.NIC.Rate().Known() || d.NIC.Kind == "") {
			t.Errorf("%s: %s has no rate or kind: %+v", name, d.Name, d.NIC)
		}
		for k := range i {
			if o := n.Devices[k]; d.PCI != "" && d.PCI == o.PCI {
				t.Errorf("%s: %s and %s share address %s", name, d.Name, o.Name, d.PCI)
			}
		}
	}
	for _, l := range n.Links {
		if !l.Rate.Known() || l.Rate.Source == "" || !l.Latency.Known() {
			t.Errorf("%s: link %s–%s: rate %+v latency %+v", name, n.Devices[l.A].Name, n.Devices[l.B].Name, l.Rate, l.Latency)
		}
	}
	for i, l := range c.Network.Links {
		if !l.Rate.Known() || l.Rate.Value <= 0 {
			t.Errorf("%s: network link %d has no rate", name, i)
			break
		}
	}
	if count == 1 && len(c.Network.Switches) > 0 {
		t.Errorf("%s: one node has %d switches", name, len(c.Network.Switches))
	}
	if count > 1 && p.NICs > 0 && len(c.Network.Switches) == 0 {
		t.Errorf("%s: no switches", name)
	}
}

func TestPresetCounts(t *testing.T) {
	for name, want := range map[string][2]int{
		"dgx-1v": {8, 4}, "dgx-2": {16, 8}, "dgx-a100": {8, 8}, "dgx-h100": {8, 8}, "dgx-h200": {8, 8}, "dgx-b200": {8, 8},
		"gb200-nvl72": {72, 72},
		"p4d":         {8, 4}, "aws-p4d": {8, 4}, "p4d.24xlarge": {8, 4}, "p4de": {8, 4}, "p5": {8, 32}, "p5e": {8, 32},
		"p5en": {8, 16}, "p6-b200": {8, 8}, "p3dn": {8, 1},
		"ndv2": {8, 1}, "ndv4": {8, 8}, "ndv5": {8, 8}, "a2-highgpu": {8, 1}, "a2-mega": {16, 1}, "a3-high": {8, 4},
		"a3-mega":         {8, 8},
		"oci-bm-gpu-b4.8": {8, 16}, "BM.GPU.H100.8": {8, 16}, "lambda-4xh100": {4, 1}, "baskerville": {4, 1},
		"frontier": {8, 4}, "mi300x-8": {8, 8}, "hls-gaudi2": {8, 8},
		"jean-zay-v100": {4, 4}, "jean-zay-a100": {8, 4}, "l40s-8": {8, 2}, "rtx4090-8": {8, 1}, "alps": {4, 4},
		"h200": {1, 0}, "a100-80": {1, 0}, "a100-40": {1, 0}, "mi300x": {1, 0}, "rtx4090": {1, 0},
	} {
		n, err := Node(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if g, k := n.Count(cluster.GPU), n.Count(cluster.NIC); g != want[0] || k != want[1] {
			t.Errorf("%s: %d GPUs and %d NICs, want %v", name, g, k, want)
		}
	}
}

func TestUnknownPreset(t *testing.T) {
	for name, near := range map[string]string{
		"dgx-h10": "dgx-h100", "p4": "aws-p4d", "baskervile": "baskerville", "DGX_H100x": "dgx-h100", "nvl": "gb200-nvl72",
	} {
		_, err := Preset(name, 1)
		if err == nil || !strings.Contains(err.Error(), near) {
			t.Errorf("%s: %v; want %s among the near ones", name, err, near)
		}
	}
	for _, name := range []string{"", "zzzzzzzz", strings.Repeat("x", 1000)} {
		if _, err := Node(name); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	for _, count := range []int{-1, MaxNodes + 1} {
		if _, err := Preset("dgx-h100", count); err == nil {
			t.Errorf("%d nodes: no error", count)
		}
	}
	if c, err := Preset("DGX_H100", 0); err != nil || len(c.Hosts) != 1 || c.Hosts[0].Name != "node0" {
		t.Errorf("default count: %v %v", c, err)
	}
	if c, err := Preset("baskerville", 0); err != nil || len(c.Hosts) != 46 {
		t.Errorf("baskerville: %v", err)
	}
}

// class asks the matrix of a preset for one cell.
func class(t *testing.T, preset, a, b string) string {
	t.Helper()
	n, err := Node(preset)
	if err != nil {
		t.Fatal(err)
	}
	m := n.Matrix()
	find := func(name string) int {
		for i, x := range m.Names {
			if x == name {
				return i
			}
		}
		t.Fatalf("%s: no %s in %v", preset, name, m.Names)
		return -1
	}
	return m.Class[find(a)][find(b)]
}

func TestPresetMatrix(t *testing.T) {
	for i := range 8 {
		gpu, nic := fmt.Sprintf("gpu%d", i), fmt.Sprintf("nic%d", i)
		for _, p := range []string{"dgx-h100", "dgx-h200", "dgx-b200", "ndv5", "ndv4"} {
			if got := class(t, p, gpu, nic); got != "PIX" {
				t.Errorf("%s: %s–%s is %s, want PIX", p, gpu, nic, got)
			}
		}
	}
	for _, tt := range [][4]string{
		{"dgx-h100", "gpu0", "gpu7", "NV18"},
		{"dgx-h100", "gpu0", "nic1", "NODE"},
		{"dgx-h100", "gpu0", "nic4", "SYS"},
		{"dgx-a100", "gpu0", "gpu1", "NV12"},
		{"dgx-a100", "gpu0", "nic0", "PXB"},
		{"dgx-a100", "gpu0", "nic1", "PXB"},
		{"dgx-a100", "nic0", "nic1", "PXB"},
		{"dgx-a100", "gpu0", "nic2", "SYS"},
		{"dgx-a100", "gpu7", "nic7", "PXB"},
		{"dgx-1v", "gpu0", "gpu3", "NV2"},
		{"dgx-1v", "gpu0", "gpu5", "SYS"},
		{"dgx-1v", "gpu0", "nic0", "PIX"},
		{"dgx-1v", "gpu0", "nic1", "PHB"},
		{"dgx-1v", "gpu0", "nic2", "SYS"},
		{"dgx-2", "gpu0", "nic0", "PIX"},
		{"dgx-2", "gpu0", "nic1", "PXB"},
		{"dgx-2", "gpu0", "nic2", "NODE"},
		{"dgx-2", "gpu0", "nic4", "SYS"},
		{"dgx-2", "gpu0", "gpu15", "NV6"},
		{"gb200-nvl72", "gpu0", "gpu71", "NV18"},
		{"dgx-h100-nvl256", "gpu0", "gpu255", "NV18"},
		{"gb200-nvl72", "gpu0", "nic0", "NODE"},
		{"gb200-nvl72", "gpu0", "nic2", "SYS"},
		{"gb200-nvl72", "gpu0", "nic71", "PXN"},
		{"p4d", "gpu0", "nic0", "PIX"},
		{"p4d", "gpu1", "nic0", "PIX"},
		{"p4d", "gpu2", "nic0", "NODE"},
		{"p5", "gpu1", "nic4", "PIX"},
		{"p5", "gpu1", "nic3", "NODE"},
		{"a3-high", "gpu1", "nic0", "PIX"},
		{"a3-mega", "gpu1", "nic1", "PIX"},
		{"lambda-4xh100", "gpu3", "nic0", "PHB"},
		{"lambda-4xh100", "gpu0", "gpu3", "NV18"},
		{"baskerville", "gpu0", "gpu3", "NV4"},
		{"baskerville", "gpu0", "nic0", "NODE"},
		{"baskerville", "gpu3", "nic0", "SYS"},
		{"frontier", "gpu0", "gpu1", "XGMI"},
		{"frontier", "gpu1", "nic0", "PIX"},
		{"frontier", "gpu0", "nic0", "PHB"},
		{"mi300x-8", "gpu0", "nic0", "PXB"},
		{"mi300x-8", "gpu0", "gpu7", "XGMI"},
		{"hls-gaudi2", "gpu0", "nic0", "LINK"},
		{"rtx4090-8", "gpu0", "gpu1", "NODE"},
		{"rtx4090-8", "gpu0", "gpu4", "SYS"},
		{"l40s-8", "gpu0", "gpu3", "PIX"},
		{"alps", "gpu0", "gpu3", "NV6"},
	} {
		if got := class(t, tt[0], tt[1], tt[2]); got != tt[3] {
			t.Errorf("%s: %s–%s is %s, want %s", tt[0], tt[1], tt[2], got, tt[3])
		}
	}
	n, _ := Node("baskerville")
	for _, x := range n.Nearest() {
		if len(x.NICs) != 1 || n.Devices[x.NICs[0]].Name != "nic0" || n.Devices[x.NICs[0]].Label != "mlx5_0" {
			t.Errorf("baskerville: %s uses %v, want nic0", n.Devices[x.GPU].Name, x.NICs)
		}
	}
}

// TestDGX1Matrix holds the preset to what nvidia-smi printed on a real DGX-1V,
// cell by cell.
func TestDGX1Matrix(t *testing.T) {
	text := string(corpus.Open(t, "nvidia-smi-topo/dgx1-v100-4mlx5-rst-indented.txt"))
	n, err := Node("dgx-1v")
	if err != nil {
		t.Fatal(err)
	}
	m := n.Matrix()
	row := 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 13 || !strings.HasPrefix(f[0], "GPU") && !strings.HasPrefix(f[0], "mlx5_") || f[1] == "GPU1" {
			continue
		}
		for j, want := range f[1:13] {
			if m.Class[row][j] != want {
				t.Errorf("%s–%s: %s, nvidia-smi prints %s", m.Names[row], m.Names[j], m.Class[row][j], want)
			}
		}
		row++
	}
	if row != 12 {
		t.Errorf("%d rows in the sample, want 12", row)
	}
}

func TestPresetRates(t *testing.T) {
	for _, tt := range []struct {
		preset, a, b string
		kind         cluster.LinkKind
		gbps         float64
	}{
		{"dgx-h100", "gpu0", "nvswitch0", cluster.NVLink, 450},
		{"dgx-a100", "gpu0", "nvswitch0", cluster.NVLink, 300},
		{"dgx-b200", "gpu0", "nvswitch0", cluster.NVLink, 900},
		{"hgx-h800", "gpu0", "nvswitch0", cluster.NVLink, 200},
		{"dgx-1v", "gpu0", "gpu3", cluster.NVLink, 50},
		{"baskerville", "gpu0", "gpu1", cluster.NVLink, 100},
		{"gb200-nvl72", "numa0", "gpu0", cluster.C2C, 225},
		{"alps", "numa0", "gpu0", cluster.C2C, 450},
		{"alps", "gpu0", "gpu1", cluster.NVLink, 150},
		{"frontier", "gpu0", "gpu1", cluster.XGMI, 200},
		{"frontier", "gpu0", "gpu2", cluster.XGMI, 50},
		{"mi300x-8", "gpu0", "gpu1", cluster.XGMI, 64},
		{"hls-gaudi2", "gpu0", "gpu1", cluster.Gaudi, 37.5},
		{"dgx-h100", "numa0", "numa1", cluster.SMP, 128},
		{"dgx-1v", "numa0", "numa1", cluster.SMP, 38.4},
		{"dgx-h100", "pci0", "gpu0", cluster.PCIe, 63.015},
		{"p4d", "pci0", "gpu0", cluster.PCIe, 15.754},
	} {
		n, err := Node(tt.preset)
		if err != nil {
			t.Fatal(err)
		}
		a, b := n.ByName(tt.a), n.ByName(tt.b)
		found := false
		for _, l := range n.Links {
			if l.A == a && l.B == b && l.Kind == tt.kind {
				found = true
				if !near(l.Rate.Value.GBps(), tt.gbps, 1e-4) {
					t.Errorf("%s: %s–%s %v, want %g GB/s (%s)", tt.preset, tt.a, tt.b, l.Rate.Value, tt.gbps, l.Rate.Source)
				}
				if l.Kind == cluster.NVLink && l.Duplex != 2*l.Rate.Value {
					t.Errorf("%s: %s–%s duplex %v", tt.preset, tt.a, tt.b, l.Duplex)
				}
			}
		}
		if !found {
			t.Errorf("%s: no %v link %s–%s", tt.preset, tt.kind, tt.a, tt.b)
		}
	}
}

func TestNVL72(t *testing.T) {
	c, err := Preset("gb200-nvl72", 4)
	if err != nil {
		t.Fatal(err)
	}
	n := c.Types[0]
	if n.Trays != 18 || n.Count(cluster.Socket) != 36 || n.Count(cluster.NVSwitch) != 1 {
		t.Errorf("trays %d, sockets %d", n.Trays, n.Count(cluster.Socket))
	}
	for k, g := range n.Of(cluster.GPU) {
		d := n.Devices[g]
		if d.Tray != k/4 || d.Index != k%4 || d.Name != fmt.Sprintf("gpu%d", k) {
			t.Errorf("GPU %d: %s tray %d index %d", k, d.Name, d.Tray, d.Index)
		}
	}
	for _, l := range c.Network.Links {
		if l.B.ToHosts() && c.Network.Switches[l.A.Switch].Rail != l.B.NIC%4 {
			t.Errorf("NIC %d hangs on rail %d", l.B.NIC, c.Network.Switches[l.A.Switch].Rail)
		}
	}
}

// TestNVLinkNetwork quotes S. Bekman, Networking: "DGX H100 SuperPOD combines 32 DGX H100 servers, for a total of 256
// GPUs. It looks like here they use only half the NVLinks they used for a single DGX H100, so only 1.8 GBps per node,
// for a total of 57.6 GBps in total" (TB/s are meant).
func TestNVLinkNetwork(t *testing.T) {
	c, err := Preset("dgx-h100-nvl256", 1)
	if err != nil {
		t.Fatal(err)
	}
	n := c.Types[0]
	var gpus, up unit.Rate
	for _, l := range n.Links {
		switch {
		case l.Kind != cluster.NVLink:
		case n.Devices[l.A].Kind == cluster.NVSwitch:
			up += l.Rate.Value
		default:
			gpus += l.Rate.Value
		}
	}
	if n.Trays != 32 || n.Count(cluster.GPU) != 256 || n.Count(cluster.NVSwitch) != 33 {
		t.Errorf("%d trays, %d GPUs, %d NVSwitches", n.Trays, n.Count(cluster.GPU), n.Count(cluster.NVSwitch))
	}
	if up != 57.6*1000*unit.GBps || gpus != 2*up {
		t.Errorf("%v leave the nodes, their GPUs have %v", up, gpus)
	}
}

func TestBareGPU(t *testing.T) {
	c, err := Preset("h200", 1)
	if err != nil {
		t.Fatal(err)
	}
	d := c.Types[0].Devices
	if len(d) != 1 || len(c.Types[0].Links) != 0 || d[0].GPU.Memory.Value != 141*unit.GiB ||
		d[0].GPU.Peak[cluster.BF16].Value != 989.4*unit.TFLOPS {
		t.Errorf("h200:1 is %+v", d)
	}
}

func BenchmarkPreset10000(b *testing.B) {
	for b.Loop() {
		if _, err := Preset("dgx-h100", 10000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPresets(b *testing.B) {
	for b.Loop() {
		Presets()
	}
}

func BenchmarkNVL72Node(b *testing.B) {
	for b.Loop() {
		if _, err := Node("gb200-nvl72"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNVL72Matrix(b *testing.B) {
	n, _ := Node("gb200-nvl72")
	for b.Loop() {
		n.Matrix()
	}
}
