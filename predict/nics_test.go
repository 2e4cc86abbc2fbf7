package predict

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

func TestParseNICs(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  NICs
		error string
	}{
		{"200Gb/s", NICs{Rate: 200 * unit.Gbps}, ""},
		{"25GB/s", NICs{Rate: 200 * unit.Gbps}, ""},
		{"HDR", NICs{Rate: 200 * unit.Gbps, Kind: cluster.InfiniBand}, ""},
		{"4xHDR", NICs{4, 200 * unit.Gbps, cluster.InfiniBand}, ""},
		{"4 x 200Gb/s", NICs{4, 200 * unit.Gbps, ""}, ""},
		{"8x400Gb/s RoCE", NICs{8, 400 * unit.Gbps, cluster.RoCE}, ""},
		{"2×100GbE", NICs{2, 100 * unit.Gbps, cluster.Ethernet}, ""},
		{"200", NICs{}, "port speed"},
		{"", NICs{}, "port speed"},
		{"4x", NICs{}, "4xHDR"},
		{"0xHDR", NICs{}, "1 to 64"},
		{"99999999999999999999xHDR", NICs{}, "1 to 64"},
	} {
		got, err := ParseNICs(c.text)
		switch {
		case c.error != "":
			if err == nil || !strings.Contains(err.Error(), c.error) {
				t.Errorf("%q: error %v, want %q", c.text, err, c.error)
			}
		case err != nil || got != c.want:
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

// matrix is a node as nvidia-smi's matrix shows one without NICs: four GPUs on two
// NUMA domains.
func matrix() *cluster.Cluster {
	typ := &cluster.NodeType{Name: "four", Tree: cluster.Assumed}
	for i := range 2 {
		typ.Add(cluster.Device{Kind: cluster.NUMA, Index: i, Parent: -1})
	}
	typ.Connect(cluster.Link{A: 0, B: 1, Kind: cluster.SMP})
	for i := range 4 {
		g := typ.Add(cluster.Device{
			Kind: cluster.GPU, Index: i, Parent: i / 2, Model: cluster.FromSpec("NVIDIA A100-SXM4-80GB", "test"),
		})
		typ.Connect(cluster.Link{A: i / 2, B: g, Kind: cluster.PCIe})
	}
	c := &cluster.Cluster{Name: "bare", Types: []*cluster.NodeType{typ}, Hosts: []cluster.Host{{Name: "a"}, {Name: "b"}}}
	hardware.Complete(c)
	return c
}

// NICs that are added leave a type sound, and a GPU with one of its own reaches it
// over a switch.
func TestAddNICs(t *testing.T) {
	for count, want := range map[int]string{0: "NODE", 1: "NODE", 2: "NODE", 4: "PIX", 8: "PIX"} {
		c := matrix()
		typ := c.Types[0]
		if _, err := Assume(c, Given{}, true); err == nil || !strings.Contains(err.Error(), "--nic 10GbE") {
			t.Errorf("no NICs: error %v", err)
		}
		if _, err := Assume(c, Given{NIC: NICs{Count: count, Rate: 200 * unit.Gbps}}, true); err != nil {
			t.Fatal(err)
		}
		if err := typ.Check(); err != nil || typ.Count(cluster.NIC) != max(count, 1) {
			t.Errorf("%d NICs: %d, %v", count, typ.Count(cluster.NIC), err)
		}
		if near := typ.Nearest()[0]; near.Class.String() != want {
			t.Errorf("%d NICs: the nearest by %v, want %v", count, near.Class, want)
		}
		if l, _, err := AllGPUs(c); err != nil {
			t.Error(err)
		} else if _, err := New(c, l, nccl.Newest, nil, nil); err != nil {
			t.Errorf("%d NICs: %v", count, err)
		}
	}
}
