package nvsmi

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// mustFind is what a person reads in each sample of the corpus.
var mustFind = map[string]func(*testing.T, *cluster.NodeType){
	"nvidia-smi-topo/v100x8-dgx1like-driver440-spaces.txt": dlperf,
	"nvidia-smi-topo/v100x8-dgx1like-indented-legend.txt":  dlperf,
	"nvidia-smi-topo/v100x8-all-node-affinity0-19.txt": func(t *testing.T, n *cluster.NodeType) {
		wantOwnBridges(t, n)
		wantLinks(t, n, map[int]int{1: 8, 2: 8})
		wantCount(t, n, cluster.NUMA, 1)
	},
	"nvidia-smi-topo/rtx-x2-threadripper-phb.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu1", "PHB")
		wantClass(t, n, "gpu0", "nic0", "NODE")
		wantClass(t, n, "gpu1", "nic1", "NODE")
		wantClass(t, n, "nic0", "nic1", "PIX")
	},
	"nvidia-smi-topo/dgx1-v100-4mlx5-rst-indented.txt": func(t *testing.T, n *cluster.NodeType) {
		wantLinks(t, n, map[int]int{1: 8, 2: 8})
		for g, nic := range []string{"nic0", "nic0", "nic1", "nic1", "nic2", "nic2", "nic3", "nic3"} {
			wantClass(t, n, fmt.Sprintf("gpu%d", g), nic, "PIX")
		}
		wantClass(t, n, "gpu0", "nic1", "PHB")
		wantCount(t, n, cluster.NUMA, 2)
		wantCount(t, n, cluster.RootComplex, 2)
		wantCount(t, n, cluster.PCISwitch, 4)
	},
	"nvidia-smi-topo/stas-a100x8.txt": func(t *testing.T, n *cluster.NodeType) {
		wantSwitch(t, n, 8, 12)
		wantDomains(t, n, "numa0 0-23: gpu0 gpu1 gpu2 gpu3", "numa1 24-47: gpu4 gpu5 gpu6 gpu7")
	},
	"nvidia-smi-topo/stas-2gpu-nv2-numa-na.txt": func(t *testing.T, n *cluster.NodeType) {
		wantLinks(t, n, map[int]int{2: 1})
		wantDomains(t, n, "numa0 0-23: gpu0 gpu1")
		wantNoNUMA(t, n)
	},
	"nvidia-smi-topo/stas-2gpu-phb-numa-na.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu1", "PHB")
		wantNoNUMA(t, n)
	},
	"nvidia-smi-topo/stas-h100x8-ht.txt": func(t *testing.T, n *cluster.NodeType) {
		wantSwitch(t, n, 8, 18)
		wantDomains(t, n, "numa0 0-51,104-155: gpu0 gpu1 gpu2 gpu3", "numa1 52-103,156-207: gpu4 gpu5 gpu6 gpu7")
	},
	"nvidia-smi-topo/7gpu-2socket-soc-ansi.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu4", "SYS")
		wantDomains(t, n, "numa0 0-9,20-29: gpu0 gpu1 gpu2 gpu3", "numa1 10-19,30-39: gpu4 gpu5 gpu6")
	},
	"nvidia-smi-topo/7gpu-1socket-noheadertab.txt": func(t *testing.T, n *cluster.NodeType) {
		wantCount(t, n, cluster.PCISwitch, 2)
		wantCount(t, n, cluster.RootComplex, 1)
		for i := range 7 {
			for j := range i {
				want := "PIX"
				if i >= 3 && j < 3 {
					want = "PHB"
				}
				wantClass(t, n, fmt.Sprintf("gpu%d", j), fmt.Sprintf("gpu%d", i), want)
			}
		}
	},
	"nvidia-smi-topo/azure-nv24-4xm60-trailing-note.txt": func(t *testing.T, n *cluster.NodeType) {
		wantCount(t, n, cluster.NUMA, 4)
		wantClass(t, n, "gpu0", "gpu3", "SYS")
	},
	"nvidia-smi-topo/azure-nv12-2xm60-no-newline.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu1", "SYS")
	},
	"nvidia-smi-topo/a100sxm-x4-nic-other-socket.txt": func(t *testing.T, n *cluster.NodeType) {
		wantSwitch(t, n, 4, 12)
		wantDomains(t, n, "numa1 32-63,96-127: gpu0 gpu1 gpu2 gpu3", "numa2 : nic0")
		for g := range 4 {
			wantClass(t, n, fmt.Sprintf("gpu%d", g), "nic0", "SYS")
		}
	},
	"nvidia-smi-topo/x2-2mlx5-node.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu1", "NODE")
		wantClass(t, n, "gpu1", "nic0", "NODE")
		wantClass(t, n, "nic0", "nic1", "PIX")
		wantDomains(t, n, "numa1 56-111,168-223: gpu0 gpu1 nic0 nic1")
	},
	"nvidia-smi-topo/a100pcie-x2-node.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu1", "NODE")
		wantLinks(t, n, nil)
		wantDomains(t, n, "numa1 28-55,84-111: gpu0 gpu1")
	},
	"nvidia-smi-topo/p40-x8-soc.txt": func(t *testing.T, n *cluster.NodeType) {
		wantClass(t, n, "gpu0", "gpu3", "PIX")
		wantClass(t, n, "gpu3", "gpu4", "PXB")
		wantClass(t, n, "gpu0", "nic0", "SYS")
		wantDomains(t, n, "numa0 0-13: gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7", "numa1 : nic0")
		wantCount(t, n, cluster.PCISwitch, 3)
	},
	"nvidia-smi-topo/a6000-x3-one-nv4-pair.txt": func(t *testing.T, n *cluster.NodeType) {
		wantLinks(t, n, map[int]int{4: 1})
		wantClass(t, n, "gpu0", "gpu1", "NV4")
		wantClass(t, n, "gpu0", "gpu2", "NODE")
		wantClass(t, n, "gpu1", "gpu2", "NODE")
	},
	"nvidia-smi-topo/hopper-x8-8nic-legend-starts-mlx5_1.txt": func(t *testing.T, n *cluster.NodeType) {
		wantSwitch(t, n, 8, 18)
		for i := range 8 {
			nic := fmt.Sprintf("nic%d", i)
			wantClass(t, n, fmt.Sprintf("gpu%d", i), nic, "PIX")
			if got, want := n.Devices[n.ByName(nic)].Label, fmt.Sprintf("mlx5_%d", i+1); got != want {
				t.Errorf("%s is %s; want %s", nic, got, want)
			}
		}
	},
	"nvidia-smi-topo/hopper-x8-12nic-one-numa.txt": func(t *testing.T, n *cluster.NodeType) {
		var rails []string
		for _, i := range n.Rails() {
			rails = append(rails, n.Devices[i].Name)
		}
		if got, want := strings.Join(rails, " "), "nic0 nic1 nic2 nic5 nic6 nic7 nic8 nic11"; got != want {
			t.Errorf("rails %s; want %s", got, want)
		}
		wantClass(t, n, "nic3", "nic4", "PIX")
		wantClass(t, n, "nic9", "nic10", "PIX")
		wantCount(t, n, cluster.NUMA, 1)
	},
}

func dlperf(t *testing.T, n *cluster.NodeType) {
	wantLinks(t, n, map[int]int{1: 8, 2: 8})
	wantCount(t, n, cluster.NVSwitch, 0)
	wantClass(t, n, "gpu2", "nic0", "PIX")
	wantClass(t, n, "gpu3", "nic0", "PIX")
	wantClass(t, n, "gpu0", "nic0", "NODE")
	wantClass(t, n, "gpu0", "gpu5", "SYS")
	wantDomains(t, n, "numa0 0-11,24-35: gpu0 gpu1 gpu2 gpu3 nic0", "numa1 12-23,36-47: gpu4 gpu5 gpu6 gpu7")
}

func wantClass(t *testing.T, n *cluster.NodeType, a, b, want string) {
	t.Helper()
	m := n.Matrix()
	for i, x := range m.Names {
		for j, y := range m.Names {
			if x == a && y == b && m.Class[i][j] != want {
				t.Errorf("%s–%s is %s; want %s", a, b, m.Class[i][j], want)
			}
		}
	}
	if n.ByName(a) < 0 || n.ByName(b) < 0 {
		t.Errorf("no %s or no %s", a, b)
	}
}

func wantCount(t *testing.T, n *cluster.NodeType, k cluster.Kind, want int) {
	t.Helper()
	if got := n.Count(k); got != want {
		t.Errorf("%d of kind %v; want %d", got, k, want)
	}
}

// wantOwnBridges wants every GPU and NIC below a host bridge of its own.
func wantOwnBridges(t *testing.T, n *cluster.NodeType) {
	t.Helper()
	seen := map[int]bool{}
	for i, d := range n.Devices {
		if d.Kind != cluster.GPU && d.Kind != cluster.NIC {
			continue
		}
		root := n.Above(i, cluster.RootComplex)
		if root < 0 || seen[root] {
			t.Errorf("%s has no host bridge of its own", d.Name)
		}
		seen[root] = true
	}
}

// wantLinks wants this many direct NVLinks of each width.
func wantLinks(t *testing.T, n *cluster.NodeType, want map[int]int) {
	t.Helper()
	got := map[int]int{}
	for _, l := range n.Links {
		if l.Kind == cluster.NVLink {
			got[l.Lanes]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) && len(got)+len(want) > 0 {
		t.Errorf("NVLinks by width %v; want %v", got, want)
	}
}

func wantSwitch(t *testing.T, n *cluster.NodeType, gpus, lanes int) {
	t.Helper()
	wantCount(t, n, cluster.NVSwitch, 1)
	wantLinks(t, n, map[int]int{lanes: gpus})
}

// wantDomains wants "numa0 CORES: devices" for each NUMA domain.
func wantDomains(t *testing.T, n *cluster.NodeType, want ...string) {
	t.Helper()
	var got []string
	for _, i := range n.Of(cluster.NUMA) {
		d := n.Devices[i]
		cores := ""
		if d.CPU != nil {
			cores = d.CPU.Cores
		}
		s := d.Name + " " + cores + ":"
		for j, x := range n.Devices {
			if (x.Kind == cluster.GPU || x.Kind == cluster.NIC) && n.Above(j, cluster.NUMA) == i {
				s += " " + x.Name
			}
		}
		got = append(got, s)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("NUMA domains\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func wantNoNUMA(t *testing.T, n *cluster.NodeType) {
	t.Helper()
	for _, g := range n.Of(cluster.GPU) {
		if n.Devices[g].GPU.NUMA.Known() {
			t.Errorf("%s has a NUMA number", n.Devices[g].Name)
		}
	}
}
