package nccl_test

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// TestIslands checks where NCCL takes one host for several nodes: GPUs of two
// sockets without NVLink, each with a NIC beside it that is faster than the way
// between the sockets, or without shared memory.
func TestIslands(t *testing.T) {
	slow, fast := 100*unit.Gbps, 200*unit.Gbps
	for _, c := range []struct {
		name  string
		lanes int // of NVLink
		rate  unit.Rate
		hosts int
		env   string
		want  string // ranks by node, or part of an error
	}{
		{"NIC faster than sockets", 0, fast, 1, "", "[0 1] [2 3]"},
		{"two such hosts", 0, fast, 2, "", "[0 1] [2 3] [4 5] [6 7]"},
		{"not wanted", 0, fast, 1, "NCCL_NET_DISABLE_INTRA=1", "[0 1 2 3]"},
		{"NIC slower than sockets", 0, slow, 1, "", "[0 1 2 3]"},
		{"NVLink", 4, fast, 1, "", "[0 1 2 3]"},
		{"no shared memory, no peer access", 0, slow, 1, "NCCL_SHM_DISABLE=1", "[0] [1] [2] [3]"},
		{"no shared memory, peer access everywhere", 0, slow, 1, "NCCL_SHM_DISABLE=1 NCCL_P2P_LEVEL=SYS", "[0 1 2 3]"},
		{"no shared memory, NVLink", 4, slow, 2, "NCCL_SHM_DISABLE=1", "[0 1 2 3] [4 5 6 7]"},
		{"no way at all", 0, 0, 1, "NCCL_SHM_DISABLE=1", "form 4 nodes: node type mesh has no NIC"},
	} {
		env := map[string]string{}
		for w := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(w, "=")
			env[k] = v
		}
		cl := hosts(meshNode(80, 4, c.lanes, 16, c.rate), c.hosts)
		l, err := nccl.Block(cl, c.hosts, 4)
		if err != nil {
			t.Fatal(err)
		}
		p, err := new(nccl.Planner).Plan(cl, l, nccl.Newest, env)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var got []string
		for _, n := range p.Nodes {
			got = append(got, fmt.Sprint(n.Ranks))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: nodes %s, want %s", c.name, s, c.want)
		}
		sound(t, p, len(l))
	}
}

// TestTrays checks racks whose NVLink domain spans hosts: one node of NCCL, unless
// the release or the user knows no such domains or nothing joins the hosts.
func TestTrays(t *testing.T) {
	for _, c := range []struct {
		version, env string
		cut          bool
		nodes        int
	}{
		{"2.28", "", false, 1},
		{"2.28", "NCCL_MNNVL_ENABLE=0", false, 18},
		{"2.20", "", false, 18},
		{"2.28", "", true, 18},
		{"2.28", "NCCL_P2P_DISABLE=1", false, 18},
	} {
		cl, err := hardware.Preset("gb200-nvl72", 1)
		if err != nil {
			t.Fatal(err)
		}
		if c.cut {
			for i := range cl.Types[0].Links {
				if l := &cl.Types[0].Links[i]; l.Kind == cluster.NVLink {
					l.Lanes = 0
				}
			}
		}
		l, err := nccl.Block(cl, 1, 72)
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]string{}
		if k, v, ok := strings.Cut(c.env, "="); ok {
			env[k] = v
		}
		v, _ := nccl.ParseVersion(c.version)
		p, err := new(nccl.Planner).Plan(cl, l, v, env)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if p.NNodes != c.nodes {
			t.Errorf("%+v: %d nodes", c, p.NNodes)
		}
		sound(t, p, 72)
	}
}

// TestUnevenNodes plans over nodes with different numbers and kinds of GPUs.
func TestUnevenNodes(t *testing.T) {
	c := hosts(preset(t, "dgx-h100"), 4)
	c.Types = append(c.Types, meshNode(80, 4, 4, 16, 200*unit.Gbps))
	c.Hosts[2].Type = 1
	use := []int{8, 1, 3, 5}
	var l nccl.Layout
	for h, n := range use {
		for _, g := range c.TypeOf(h).Of(cluster.GPU)[:n] {
			l = append(l, nccl.Rank{Host: h, GPU: g})
		}
	}
	for _, version := range []string{"2.18", "2.20", "2.23", "2.27", "2.30"} {
		v, _ := nccl.ParseVersion(version)
		p, err := new(nccl.Planner).Plan(c, l, v, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.NNodes != 4 || p.MaxLocalRanks != 8 || p.MinCC != 80 || p.MaxCC != 90 {
			t.Errorf("%s: %d nodes of at most %d, compute capability %d to %d", version, p.NNodes, p.MaxLocalRanks, p.MinCC,
				p.MaxCC)
		}
		sound(t, p, len(l))
		checkPlan(t, version, p)
	}
}

// TestNVLSChannels holds the channels of NVLS to the rules of releases (NCCL 2.28
// src/transport/nvls.cc, ncclNvlsInit).
func TestNVLSChannels(t *testing.T) {
	for _, c := range []struct {
		preset      string
		nodes, gpus int
		version     string
		want        int
	}{
		{"dgx-h100", 1, 8, "2.30", 16},
		{"dgx-h100", 3, 8, "2.30", 16},
		{"dgx-b200", 1, 8, "2.26", 32},
		{"dgx-b200", 1, 8, "2.30", 24},
		{"dgx-b200", 2, 8, "2.30", 32},
		{"dgx-b200", 3, 8, "2.29", 32},
		{"dgx-b200", 3, 8, "2.30", 24},
		{"gb200-nvl72", 1, 72, "2.28", 24},
		{"gb200-nvl72", 2, 72, "2.28", 32},
		{"gb200-nvl72", 3, 72, "2.30", 24},
	} {
		if p := planFor(t, c.preset, c.nodes, c.gpus, c.version, nil); p.NVLSChannels != c.want || p.NNodes != c.nodes {
			t.Errorf("%+v: %d channels on %d nodes", c, p.NVLSChannels, p.NNodes)
		}
	}
}
