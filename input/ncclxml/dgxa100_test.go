package ncclxml

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
)

// The matrix that nvidia-smi topo -m prints on a DGX A100 with twelve mlx5
// devices, restated: all GPUs NV12 to each other; each GPU PXB to the two NICs
// of its PCIe group and SYS to the rest; the two NICs of a group PXB to each
// other; the two ports of a storage card PIX; all else SYS. NUMA ids and cores are
// its affinity columns. Published in several places; NVIDIA/DCGM issue 149 on
// GitHub has it for a machine with ten of the twelve.
var dgxGroups = []struct {
	numa  int
	cores string
	gpus  [2]string
	nics  [2]string
}{
	{3, "48-63,176-191", [2]string{"gpu0", "gpu1"}, [2]string{"mlx5_0", "mlx5_1"}},
	{1, "16-31,144-159", [2]string{"gpu2", "gpu3"}, [2]string{"mlx5_2", "mlx5_3"}},
	{7, "112-127,240-255", [2]string{"gpu4", "gpu5"}, [2]string{"mlx5_6", "mlx5_7"}},
	{5, "80-95,208-223", [2]string{"gpu6", "gpu7"}, [2]string{"mlx5_8", "mlx5_9"}},
}

// dgxNICs are the addresses of the NICs: interface ibp12s0 is bus 12 = 0c, and
// public start scripts pair ibp186s0 with mlx5_8 and ibp204s0 with mlx5_9.
var dgxNICs = map[cluster.PCI]string{
	"0000:0c:00.0": "mlx5_0", "0000:12:00.0": "mlx5_1", "0000:4b:00.0": "mlx5_2", "0000:54:00.0": "mlx5_3",
	"0000:61:00.0": "mlx5_4", "0000:8d:00.0": "mlx5_6", "0000:94:00.0": "mlx5_7", "0000:ba:00.0": "mlx5_8",
	"0000:cc:00.0": "mlx5_9", "0000:e1:00.0": "mlx5_10",
}

// dgxClass is the word that topo -m prints for two devices.
func dgxClass(a, b string) string {
	group := func(s string) int {
		for i, g := range dgxGroups {
			if s == g.gpus[0] || s == g.gpus[1] || s == g.nics[0] || s == g.nics[1] {
				return i
			}
		}
		return -1
	}
	switch {
	case a == b:
		return "X"
	case strings.HasPrefix(a, "gpu") && strings.HasPrefix(b, "gpu"):
		return "NV12"
	case group(a) >= 0 && group(a) == group(b):
		return "PXB"
	}
	return "SYS"
}

// dgxNames are the matrix's names with NICs under their mlx5 names, told by address.
func dgxNames(t *testing.T, nt *cluster.NodeType, names []string) []string {
	var out []string
	for _, n := range names {
		d := &nt.Devices[nt.ByName(n)]
		if d.Kind == cluster.NIC {
			n = dgxNICs[d.PCI]
		}
		if n == "" {
			t.Fatalf("no NIC is known at %s", d.PCI)
		}
		out = append(out, n)
	}
	return out
}

func holdAffinity(t *testing.T, nt *cluster.NodeType) {
	for _, g := range dgxGroups {
		for _, name := range g.gpus {
			d := nt.ByName(name)
			numa := &nt.Devices[nt.Above(d, cluster.NUMA)]
			if numa.Index != g.numa || numa.CPU.Cores != g.cores {
				t.Errorf("%s: NUMA %d cores %s, topo -m says %d %s", name, numa.Index, numa.CPU.Cores, g.numa, g.cores)
			}
		}
	}
}

// TestDGXA100 holds the matrix of a DGX A100's dump to what nvidia-smi prints.
func TestDGXA100(t *testing.T) {
	data, err := os.ReadFile("testdata/dgx-a100.xml")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read("dgx-a100.xml", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	nt := f.Types[0]
	m := nt.Matrix()
	names := dgxNames(t, nt, m.Names)
	if len(names) != 18 {
		t.Fatalf("%d devices: %v", len(names), names)
	}
	for i, a := range names {
		for j, b := range names {
			if m.Class[i][j] != dgxClass(a, b) {
				t.Errorf("%s to %s: %s, topo -m says %s", a, b, m.Class[i][j], dgxClass(a, b))
			}
		}
	}
	for _, d := range nt.Devices {
		if d.Kind == cluster.NIC && d.NIC.Ports[0].Label != dgxNICs[d.PCI] {
			t.Errorf("%s is %s in the dump", dgxNICs[d.PCI], d.NIC.Ports[0].Label)
		}
	}
	holdAffinity(t, nt)
	roundTrip(t, nt)
}

// TestDGXA100Affinity holds a file of the same machine that people wrote to pair
// each GPU with one NIC. It has no gpu elements, so no NVLink, and leaves out the
// switch right above each GPU, so that the paired NIC is one switch away (PIX)
// where the machine has several (PXB). All else agrees with topo -m.
func TestDGXA100Affinity(t *testing.T) {
	f, err := Read("nic-affinity", bytes.NewReader(corpus.Open(t, "nccl-topo-xml/dgxa100-nic-affinity.xml")))
	if err != nil {
		t.Fatal(err)
	}
	nt := f.Types[0]
	m := nt.Matrix()
	names := dgxNames(t, nt, m.Names)
	nearer := 0
	for i, a := range names {
		for j, b := range names {
			got, want := m.Class[i][j], dgxClass(a, b)
			switch {
			case want == "NV12" && (got == "PXB" || got == "SYS"):
			case want == "PXB" && got == "PIX" && a[0] != b[0]:
				nearer++
			case got != want:
				t.Errorf("%s to %s: %s, topo -m says %s", a, b, got, want)
			}
		}
	}
	if nearer != 16 {
		t.Errorf("%d cells are PIX, expected each of eight GPUs and its NIC, both ways", nearer)
	}
	holdAffinity(t, nt)
}
