package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// sixteen is a cluster of sixteen nodes, of which some are changed, as a terminal shows it.
func sixteen(t *testing.T, o TextOptions, change map[int]func(*cluster.NodeType)) string {
	t.Helper()
	c := &cluster.Cluster{Name: "sixteen", Types: []*cluster.NodeType{dgxH100()}}
	for h := range 16 {
		host := cluster.Host{Name: fmt.Sprintf("n%02d", h+1)}
		if f := change[h+1]; f != nil {
			kind := dgxH100()
			kind.Name = fmt.Sprintf("type%d", h+1)
			f(kind)
			host.Type = len(c.Types)
			c.Types = append(c.Types, kind)
		}
		c.Hosts = append(c.Hosts, host)
	}
	var b bytes.Buffer
	if err := Text(&b, c, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Nodes that differ in little are one description and a line each.
func TestNearlyEqualNodes(t *testing.T) {
	nic := func(kind *cluster.NodeType, i int) *cluster.NICInfo {
		return kind.Devices[kind.ByName(fmt.Sprintf("nic%d", i))].NIC
	}
	change := map[int]func(*cluster.NodeType){
		3: func(k *cluster.NodeType) { nic(k, 4).Ports[0].Rate.Value = 200 * unit.Gbps },
		5: func(k *cluster.NodeType) {
			for i := range 8 {
				nic(k, i).Firmware = "28.39.1002"
			}
		},
		7: func(k *cluster.NodeType) { nic(k, 2).Ports[0].State = cluster.Down },
		9: func(k *cluster.NodeType) {
			for i := range k.Links {
				if l := &k.Links[i]; l.Kind == cluster.PCIe && l.B == k.ByName("gpu6") {
					l.Lanes = 8
				}
			}
		},
		11: func(k *cluster.NodeType) { k.Devices[k.ByName("gpu1")].Model = cluster.Fact[string]{} },
	}
	got := sixteen(t, TextOptions{}, change)
	for _, want := range []string{
		"dgx-h100 × 16: n[01-16]",
		"n03: mlx5_4 rate 200 Gb/s instead of 400 Gb/s\n",
		"n05: mlx5_[0-7] firmware 28.39.1002\n",
		"n07: mlx5_2 rate down instead of 400 Gb/s\n",
		"n09: gpu6 link PCIe 5.0 x8, trained x8 of x16 instead of PCIe 5.0 x16\n",
		"n11: less is known of it\n",
		"root[1-3]  like root0 · gpu1, mlx5_1 · gpu2, mlx5_2 · gpu3, mlx5_3",
		"NV18 between all GPUs",
		"-v shows all",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\nInside "); n != 1 {
		t.Errorf("%d kinds of nodes are described, want 1", n)
	}
	if n := strings.Count(got, "\n"); n > 60 {
		t.Errorf("%d lines; want one screen or two", n)
	}
	all := sixteen(t, TextOptions{Verbose: true}, change)
	if n := strings.Count(all, "\nInside "); n != 6 || strings.Contains(all, "like root0") ||
		strings.Contains(all, "-v shows all") {
		t.Errorf("-v describes %d kinds of nodes, want all 6 in full", n)
	}
}

// Nodes with other GPUs, with half of them, or that differ in many things are described themselves.
func TestUnlikeNodesAreNotFolded(t *testing.T) {
	for name, f := range map[string]func(*cluster.NodeType){
		"another model": func(k *cluster.NodeType) {
			for _, g := range k.Of(cluster.GPU) {
				k.Devices[g].Model.Value = "NVIDIA A100"
			}
		},
		"many things": func(k *cluster.NodeType) {
			for i, n := range k.Of(cluster.NIC) {
				k.Devices[n].NIC.Firmware = fmt.Sprint("28.39.", i)
			}
		},
		"no GPUs": func(k *cluster.NodeType) { *k = cluster.NodeType{Name: "login"} },
	} {
		if got := sixteen(t, TextOptions{}, map[int]func(*cluster.NodeType){4: f}); strings.Count(got, "\nInside ") != 2 {
			t.Errorf("%s: not described itself in\n%s", name, got)
		}
	}
}
