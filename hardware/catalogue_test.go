package hardware

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), math.Abs(b))
}

// TestInterconnectTables holds the catalogue to the tables of the source
// documents, row by row. one and both are GB/s as printed there; half a unit of
// the last digit is allowed.
func TestInterconnectTables(t *testing.T) {
	for _, tt := range []struct {
		name      string
		one, both float64
		tol       float64
	}{
		{"PCIe 3 x16", 15.754, 31.508, 0.001},
		{"PCIe 3 x1", 0.985, 1.969, 0.001},
		{"PCIe 4 x16", 31, 62, 0.02},
		{"PCIe 5 x16", 63, 126, 0.001},
		{"PCIe 6 x16", 121, 241, 0.005},
		{"PCIe 7 x16", 242, 484, 0.001},
		{"PCIe 4 x1", 2.0, 4.0, 0.02},
		{"PCIe 5 x1", 4.0, 8.0, 0.02},
		{"PCIe 6 x1", 7.5, 15, 0.01},
		{"PCIe 7 x1", 15, 30, 0.01},
		{"NVLink 1", 80, 160, 0},
		{"NVLink 2", 150, 300, 0},
		{"NVLink 3", 300, 600, 0},
		{"NVLink 4", 450, 900, 0},
		{"NVLink 5", 900, 1800, 0},
		{"NVLink 3 bridge", 56.25, 112.5, 0},
		{"NVSwitch 1", 150, 300, 0},
		{"NVSwitch 2", 300, 600, 0},
		{"NVSwitch 3", 450, 900, 0},
		{"NVSwitch 4", 900, 1800, 0},
		{"Infinity Fabric MI250X", 350, 700, 0},
		{"Infinity Fabric MI300X", 448, 896, 0},
		{"Gaudi2 intra-node", 262.5, 525, 0},
		{"Gaudi2 inter-node", 300, 600, 0},
		{"NVLink-C2C GH200", 450, 900, 0},
		{"NVLink-C2C GB200", 225, 450, 0},
	} {
		r, ok := InterconnectByName(tt.name)
		if !ok {
			t.Errorf("%s: no such row", tt.name)
			continue
		}
		if !near(r.OneWay.GBps(), tt.one, tt.tol+1e-12) || !near(r.Duplex.GBps(), tt.both, tt.tol+1e-12) {
			t.Errorf("%s: %v and %v duplex; documents say %g and %g GB/s", tt.name, r.OneWay, r.Duplex, tt.one, tt.both)
		}
	}
	for _, tt := range []struct {
		name string
		gbit float64
	}{
		{"EFA v1", 400},
		{"EFA v2", 3200},
		{"EFA v3", 3200},
		{"GPUDirect-TCPX", 800},
		{"Slingshot 11", 200},
		{"Slingshot 11 x4", 800},
		{"Omni-Path 100", 100},
		{"Omni-Path 200", 200},
		{"Omni-Path 400", 400},
		{"Omni-Path 200 x8 (MI250 node)", 1600},
		{"Omni-Path 400 x8 (MI300X node)", 3200},
		{"Gaudi2 inter-node", 2400},
		{"Ethernet 10G", 10},
		{"Ethernet 25G", 25},
		{"Ethernet 100G", 100},
		{"Ethernet 400G", 400},
		{"Ethernet 800G", 800},
	} {
		r, ok := InterconnectByName(tt.name)
		if !ok || !near(r.OneWay.Gbps(), tt.gbit, 1e-12) {
			t.Errorf("%s: %s one direction; documents say %g Gb/s", tt.name, r.OneWay.Bits(), tt.gbit)
		}
	}
}

func TestInfiniBandTable(t *testing.T) {
	// Gb/s by lanes 1, 4, 8, 12, as the document prints them.
	for gen, want := range map[string][4]float64{
		"EDR": {25, 100, 200, 300}, "HDR": {50, 200, 400, 600}, "NDR": {100, 400, 800, 1200}, "XDR": {200, 800, 1600, 2400},
		"GDR": {400, 1600, 3200, 4800},
	} {
		for i, lanes := range []int{1, 4, 8, 12} {
			if got := InfiniBandRate(gen, lanes).Gbps(); !near(got, want[i], 1e-12) {
				t.Errorf("%dx%s: %g Gb/s, want %g", lanes, gen, got, want[i])
			}
		}
	}
	// Older generations lose to line coding what the name promises.
	for gen, want := range map[string][2]float64{
		"SDR": {8, 10}, "DDR": {16, 20}, "QDR": {32, 40}, "FDR10": {40, 41.25}, "FDR": {54.5455, 56.25},
	} {
		if r, n := InfiniBandRate(gen, 4).Gbps(),
			infiniBandNominal(gen, 4).Gbps(); !near(r, want[0], 1e-4) || !near(n, want[1], 1e-4) {
			t.Errorf("4x%s: %g of %g Gb/s, want %g of %g", gen, r, n, want[0], want[1])
		}
	}
	for name, us := range map[string]float64{"InfiniBand 4xEDR": 0.5, "InfiniBand 4xHDR": 0.6} {
		if r, _ := InterconnectByName(name); r.Latency.Value.Micros() != us || r.Latency.Origin != cluster.Spec {
			t.Errorf("%s: latency %v, want %g µs published", name, r.Latency, us)
		}
	}
	if r, _ := InterconnectByName("InfiniBand 4xNDR"); r.Latency.Known() {
		t.Errorf("4xNDR: latency %v; none is published", r.Latency)
	}
	if InfiniBandRate("HDR", 3) != 0 || InfiniBandRate("QQR", 4) != 0 || InfiniBandRate("HDR", -4) != 0 {
		t.Error("a width or generation that does not exist has a rate")
	}
}

func TestPCIeRate(t *testing.T) {
	for _, tt := range []struct {
		gts   float64
		lanes int
		want  float64
	}{
		{2.5, 1, 0.25},
		{5, 4, 2},
		{8, 16, 15.7538},
		{16, 16, 31.5077},
		{32, 8, 31.5077},
		{64, 16, 121},
		{128, 16, 242},
		{7, 16, 0},
		{16, 0, 0},
		{0, 16, 0},
		{math.NaN(), 16, 0},
		{16, -4, 0},
	} {
		if got := PCIeRate(tt.gts, tt.lanes).GBps(); !near(got, tt.want, 1e-4) {
			t.Errorf("PCIeRate(%g, %d) = %g GB/s, want %g", tt.gts, tt.lanes, got, tt.want)
		}
	}
}

func TestParsePortSpeed(t *testing.T) {
	for _, tt := range []struct {
		text string
		kind cluster.NetKind
		gbit float64
		back string
	}{
		{"4xHDR", cluster.InfiniBand, 200, "4xHDR"},
		{"4X HDR", cluster.InfiniBand, 200, "4xHDR"},
		{"NDR", cluster.InfiniBand, 400, "4xNDR"},
		{"ndr", cluster.InfiniBand, 400, "4xNDR"},
		{"HDR100", cluster.InfiniBand, 100, "2xHDR"},
		{"NDR200", cluster.InfiniBand, 200, "2xNDR"},
		{"NDR400", cluster.InfiniBand, 400, "4xNDR"},
		{"1xEDR", cluster.InfiniBand, 25, "1xEDR"},
		{"12xXDR", cluster.InfiniBand, 2400, "12xXDR"},
		{"FDR10", cluster.InfiniBand, 40, "4xFDR10"},
		{"QDR", cluster.InfiniBand, 32, "4xQDR"},
		{"InfiniBand EDR", cluster.InfiniBand, 100, "4xEDR"},
		{"200 Gb/sec (4X HDR)", cluster.InfiniBand, 200, "4xHDR"},
		{"100GbE", cluster.Ethernet, 100, "100GbE"},
		{"25 GbE", cluster.Ethernet, 25, "25GbE"},
		{"10G Ethernet", cluster.Ethernet, 10, "10GbE"},
		{"Ethernet 400G", cluster.Ethernet, 400, "400GbE"},
		{"2.5GbE", cluster.Ethernet, 2.5, "2.5GbE"},
		{"400Gb/s", "", 400, "400 Gb/s"},
		{"50GB/s", "", 400, "400 Gb/s"},
		{"100 Gbps", "", 100, "100 Gb/s"},
		{"EFA v2", cluster.EFA, 100, "100 Gb/s"},
		{"efa-v3", cluster.EFA, 200, "200 Gb/s"},
		{"Slingshot 11", cluster.Slingshot, 200, "200 Gb/s"},
		{"omnipath 100", cluster.OmniPath, 100, "100 Gb/s"},
		{"opa 100", cluster.OmniPath, 100, "100 Gb/s"},
		{"GPUDirect-TCPX", cluster.TCPX, 200, "200 Gb/s"},
	} {
		p, err := ParsePortSpeed(tt.text)
		if err != nil || p.Kind != tt.kind || !near(p.Rate.Gbps(), tt.gbit, 1e-9) || p.String() != tt.back {
			t.Errorf("ParsePortSpeed(%q) = %+v (%s), %v; want %s %g Gb/s %s", tt.text, p, p, err, tt.kind, tt.gbit, tt.back)
		}
	}
	for _, bad := range []string{
		"", "4x", "xHDR", "3xHDR", "HDR-5", "HDR0", "fast", "-100GbE", "0Gb/s", "NaNGbE", "(((", "4xHDR4xHDR",
		strings.Repeat("9", 200),
	} {
		if p, err := ParsePortSpeed(bad); err == nil {
			t.Errorf("ParsePortSpeed(%q) = %+v; want an error", bad, p)
		}
	}
}

func FuzzParsePortSpeed(f *testing.F) {
	for _, s := range []string{"4xHDR", "HDR100", "100GbE", "200 Gb/sec (4X HDR)", "EFA v2", "((a))", "400G"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePortSpeed(s)
		if err == nil && !(p.Rate > 0 && p.Nominal >= p.Rate && !math.IsInf(float64(p.Rate), 0)) {
			t.Errorf("%q: %+v", s, p)
		}
	})
}

func TestEveryRowHasASource(t *testing.T) {
	names := make(map[string]bool)
	for _, r := range Interconnects() {
		switch {
		case names[r.Name]:
			t.Errorf("%s: listed twice", r.Name)
		case r.Source == "" || r.Family == "" || r.Scope == "" || r.Quoted == "":
			t.Errorf("%s: source, family, scope or quoted direction missing", r.Name)
		case r.OneWay <= 0 || !near(float64(r.Duplex), 2*float64(r.OneWay), 1e-9):
			t.Errorf("%s: %v one direction, %v duplex", r.Name, r.OneWay, r.Duplex)
		case r.Link > 0 && !near(float64(r.OneWay), float64(r.Link)*float64(r.Links), 1e-9):
			t.Errorf("%s: %d links of %v make %v", r.Name, r.Links, r.Link, r.OneWay)
		}
		names[r.Name] = true
	}
	for _, m := range NICs() {
		if m.Source == "" || len(m.PCI) == 0 || m.PCIeGen == 0 {
			t.Errorf("%s: source, PCI id or slot missing", m.Name)
		}
		if m.Max != "" {
			if p, err := ParsePortSpeed(m.Max); err != nil || p.Rate > m.Rate*1.001 {
				t.Errorf("%s: speed %q, %v; rate %v", m.Name, m.Max, err, m.Rate)
			}
		}
	}
	for _, s := range Switches() {
		if s.Source == "" || s.Ports == 0 || !s.Latency.Known() {
			t.Errorf("%s: source, ports or latency missing", s.Name)
		}
	}
}

func TestSMPByCPU(t *testing.T) {
	for _, tt := range []struct {
		cpu   cluster.CPUInfo
		model string
		want  float64
	}{
		{cluster.CPUInfo{Vendor: "GenuineIntel", Family: 6, Model: 79}, "", 38.4},
		{cluster.CPUInfo{Vendor: "GenuineIntel", Family: 6, Model: 85}, "", 62.4},
		{cluster.CPUInfo{Vendor: "GenuineIntel", Family: 6, Model: 106}, "", 67.2},
		{cluster.CPUInfo{Vendor: "GenuineIntel", Family: 6, Model: 143}, "", 128},
		{cluster.CPUInfo{Vendor: "AuthenticAMD", Family: 143, Model: 49}, "", 108},
		{cluster.CPUInfo{Vendor: "AuthenticAMD", Family: 23, Model: 49}, "", 108},
		{cluster.CPUInfo{Vendor: "AuthenticAMD", Family: 175, Model: 1}, "", 108},
		{cluster.CPUInfo{Vendor: "AuthenticAMD", Family: 25, Model: 17}, "", 192},
		{cluster.CPUInfo{Arch: "ppc64"}, "", 64},
		{cluster.CPUInfo{Arch: "ppc64"}, "POWER8NVL (raw)", 38.4},
		{cluster.CPUInfo{Arch: "arm64"}, "NVIDIA Grace", 100},
		{cluster.CPUInfo{Arch: "arm64"}, "", 20.8},
		{cluster.CPUInfo{}, "", 20.8},
	} {
		f := smpFact(&tt.cpu, tt.model, false)
		if !near(f.Value.GBps(), tt.want, 1e-9) || f.Source == "" {
			t.Errorf("%+v: %v GB/s (%s), want %g", tt.cpu, f.Value.GBps(), f.Source, tt.want)
		}
	}
	if f := smpFact(nil, "", false); f.Origin != cluster.Assumed || f.Value == 0 {
		t.Errorf("no CPU: %+v", f)
	}
}

func TestGPUFigures(t *testing.T) {
	for _, tt := range []struct {
		name               string
		gib, hbm, bf16, fp float64 // fp is fp32
		links              int
		one                float64
	}{
		{"v100-16", 16, 900, 0, 15.7, 6, 150},
		{"v100-32", 32, 900, 0, 15.7, 6, 150},
		{"a100-40", 40, 1555, 312, 19.5, 12, 300},
		{"a100-80", 80, 2039, 312, 19.5, 12, 300},
		{"h100", 80, 3350, 989.4, 67, 18, 450},
		{"h100-pcie", 80, 2039, 756, 51, 12, 300},
		{"h200", 141, 4800, 989.4, 67, 18, 450},
		{"h800", 80, 3350, 989.4, 67, 8, 200},
		{"b200", 180, 7700, 2250, 75, 18, 900},
		{"gb200", 186, 8000, 2500, 80, 18, 900},
		{"mi250x", 128, 3276.8, 383, 47.9, 7, 350},
		{"mi300x", 192, 5300, 1307.4, 163.4, 7, 448},
		{"l40s", 48, 864, 362.05, 91.6, 0, 0},
		{"rtx4090", 24, 1008, 165.2, 82.6, 0, 0},
		{"rtx3090", 24, 936, 71, 35.6, 4, 56.25},
		{"a6000", 48, 768, 154.8, 38.7, 4, 56.25},
		{"gaudi2", 96, 2460, 432, 0, 24, 300},
		{"h20", 96, 4000, 148, 44, 18, 450},
	} {
		m := mustGPU(tt.name)
		if m.Memory != unit.Bytes(tt.gib)*unit.GiB || !near(m.HBM.GBps(), tt.hbm, 1e-9) ||
			!near(float64(m.Peak[cluster.BF16]), tt.bf16*1e12, 1e-9) ||
			!near(float64(m.Peak[cluster.FP32]), tt.fp*1e12, 1e-9) || m.Links != tt.links ||
			!near(m.Link.GBps()*float64(m.Links), tt.one, 1e-9) {
			t.Errorf("%s: %+v", tt.name, m)
		}
	}
}

func TestEveryGPURow(t *testing.T) {
	ids := make(map[string]string)
	for _, m := range GPUs() {
		if m.Source == "" || m.Title == "" || m.Vendor == "" || m.Memory == 0 || m.HBM == 0 || len(m.Peak) == 0 ||
			m.PCIeGen == 0 || m.Lanes == 0 {
			t.Errorf("%s: a figure or its source is missing: %+v", m.Name, m)
		}
		if (m.Links > 0) != (m.Link > 0) || (m.Links > 0) != (m.LinkKind != cluster.LinkUnknown) {
			t.Errorf("%s: links %d of %v, kind %v", m.Name, m.Links, m.Link, m.LinkKind)
		}
		for _, id := range m.PCI {
			if other, taken := ids[id]; taken {
				t.Errorf("%s: PCI id %s is also %s", m.Name, id, other)
			}
			ids[id] = m.Name
			v, d, _ := strings.Cut(id, ":")
			if got, ok := GPUByPCI("0x"+v, strings.ToUpper(d)); !ok || got.Name != m.Name {
				t.Errorf("GPUByPCI(%s) = %s, want %s", id, got.Name, m.Name)
			}
		}
		for _, n := range append([]string{m.Name, m.Title}, m.Names...) {
			got, ok := GPUByName(n)
			if m.Name == "mi250x" && n == m.Name {
				continue // the name tools print for each die
			}
			if !ok || got.Name != m.Name {
				t.Errorf("GPUByName(%q) = %s, want %s", n, got.Name, m.Name)
			}
		}
		// Twice a dense bf16 figure would be the sparse one.
		if bf, f8 := m.Peak[cluster.BF16], m.Peak[cluster.FP8]; bf > 0 && f8 > 0 && f8 > bf*2.1 {
			t.Errorf("%s: fp8 %v is more than twice bf16 %v", m.Name, f8, bf)
		}
	}
}

func TestGPUByName(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA A100-SXM4-80GB": "a100-80", "A100-SXM4-40GB": "a100-40", "NVIDIA H100 80GB HBM3": "h100",
		"H100-80GB-HBM3 (BM.GPU.H100.8)": "h100", "Tesla V100-SXM2-16GB": "v100-16",
		"V100-PCIE-32GB": "v100-pcie-32", "NVIDIA A100 80GB PCIe": "a100-pcie-80", "NVIDIA A100-PCIE-40GB": "a100-pcie-40",
		"NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA RTX A6000": "a6000",
		"NVIDIA L4": "l4", "NVIDIA L40": "l40", "NVIDIA L40S": "l40s", "AMD Instinct MI300X": "mi300x",
		"AMD Instinct MI250X": "mi250x-gcd", "NVIDIA GH200 120GB": "gh200", "GH200 144G HBM3e": "gh200-144",
		"NVIDIA B200": "b200", "B200 (p6-b200.48xlarge)": "b200", "GB200 (BM.GPU.GB200.4)": "gb200", "H100-SXM5-80GB": "h100",
		"NVIDIA H20-3e": "h20-3e", "RTX 6000 Ada": "rtx6000ada",
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb": "a100-40", "Tesla T4": "t4", "NVIDIA A10G": "a10g", "NVIDIA A10": "a10",
		"RTX PRO 6000 Blackwell Server Edition": "rtxpro6000", "gaudi2": "gaudi2", "h200": "h200",
	} {
		if m, ok := GPUByName(name); !ok || m.Name != want {
			t.Errorf("GPUByName(%q) = %q, want %q", name, m.Name, want)
		}
	}
	for _, name := range []string{
		"", "NVIDIA", "GeForce GTX 1080", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D",
		"NVIDIA GeForce RTX 4070 Ti", "Quadro RTX 6000", strings.Repeat("a ", 4000),
	} {
		if m, ok := GPUByName(name); ok {
			t.Errorf("GPUByName(%q) = %q; want none", name, m.Name)
		}
	}
}

func TestNICLookup(t *testing.T) {
	for name, want := range map[string]string{
		"MT2910 Family [ConnectX-7]": "ConnectX-7", "Mellanox Technologies MT2892 Family [ConnectX-6 Dx]": "ConnectX-6 Dx",
		"ConnectX-6": "ConnectX-6", "MT27710 Family [ConnectX-4 Lx]": "ConnectX-4 Lx",
		"Elastic Fabric Adapter (EFA)": "EFA", "MT4123": "ConnectX-6", "CX8 Family [ConnectX-8]": "ConnectX-8",
		"Omni-Path HFI Silicon 100 Series [discrete]": "Omni-Path HFI 100",
	} {
		if m, ok := NICByName(name); !ok || m.Name != want {
			t.Errorf("NICByName(%q) = %q, want %q", name, m.Name, want)
		}
	}
	if m, ok := NICByName("Intel I350 Gigabit"); ok {
		t.Errorf("an unknown card is %q", m.Name)
	}
	for id, want := range map[[2]string]string{
		{"15b3", "1021"}: "ConnectX-7", {"0x15b3", "0x101b"}: "ConnectX-6", {"1d0f", "efa0"}: "EFA",
		{"17db", "0501"}: "Slingshot Cassini", {"8086", "24f0"}: "Omni-Path HFI 100",
	} {
		if m, ok := NICByPCI(id[0], id[1]); !ok || m.Name != want {
			t.Errorf("NICByPCI(%v) = %q, want %q", id, m.Name, want)
		}
	}
}
