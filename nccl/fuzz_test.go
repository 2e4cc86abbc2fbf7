package nccl_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// nodeOf makes some node from bytes: a tree of odd shape with links anywhere.
func nodeOf(data []byte) *cluster.NodeType {
	t := &cluster.NodeType{Name: "fuzz"}
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b
	}
	kinds := []cluster.Kind{
		cluster.NUMA, cluster.RootComplex, cluster.PCISwitch, cluster.GPU, cluster.NIC, cluster.NVSwitch, cluster.GPU,
	}
	vendors := []string{"GenuineIntel", "AuthenticAMD", "", "  Shanghai  "}
	for range min(next(), 24) {
		k := kinds[next()%len(kinds)]
		d := cluster.Device{Kind: k, Index: next()%12 - 1, Parent: -1, Tray: next() % 8 / 7}
		if n := len(t.Devices); n > 0 {
			d.Parent = next()%(n+1) - 1
		}
		switch k {
		case cluster.NUMA:
			d.CPU = &cluster.CPUInfo{
				Arch: []string{"x86_64", "arm64", "ppc64"}[next()%3], Vendor: vendors[next()%4], Family: next() % 8, Model: next(),
			}
		case cluster.GPU:
			d.GPU = &cluster.GPUInfo{SM: []int{0, 60, 70, 80, 90, 100}[next()%6], GDR: cluster.Tri(next() % 3)}
		case cluster.NIC:
			p := cluster.Port{Rate: cluster.FromRead(unit.Rate(next())*unit.Gbps, "fuzz"), State: cluster.State(next() % 4)}
			d.NIC = &cluster.NICInfo{
				Kind: []cluster.NetKind{cluster.InfiniBand, cluster.Ethernet, ""}[next()%3], Ports: []cluster.Port{p},
			}
			if d.Index > 6 { // cards of two functions, some with two ports
				d.PCI = cluster.PCI(fmt.Sprintf("0000:%02x:00.%d", d.Index/2, d.Index%2))
				d.NIC.Ports = slices.Repeat(d.NIC.Ports, 1+d.Index%3)
			}
		}
		id := t.Add(d)
		if d.Parent >= 0 {
			t.Connect(cluster.Link{A: d.Parent, B: id, Kind: cluster.PCIe, Lanes: next() % 17, GTs: float64(next() % 70)})
		}
	}
	for len(data) > 4 && len(t.Devices) > 1 && len(t.Links) < 200 {
		l := cluster.Link{
			A: next() % len(t.Devices), B: next() % len(t.Devices), Kind: cluster.LinkKind(next() % 7), Lanes: next() % 19,
			OneWay: next()%2 == 0,
		}
		switch {
		case l.A == l.B:
		case l.Kind == 0:
			t.Pairs = append(t.Pairs, cluster.Pair{A: l.A, B: l.B, P2P: cluster.No})
		default:
			t.Connect(l)
		}
	}
	return t
}

// settings are what the package reads from the environment.
var settings = []string{
	"NCCL_ALGO", "NCCL_PROTO", "NCCL_CROSS_NIC", "NCCL_COLLNET_ENABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE",
	"NCCL_P2P_LEVEL",
	"NCCL_NET_GDR_LEVEL", "NCCL_NVB_DISABLE", "NCCL_MNNVL_ENABLE", "NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS",
	"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NVLS_NCHANNELS", "NCCL_NTHREADS", "NCCL_LL128_NTHREADS",
	"NCCL_THREAD_THRESHOLDS",
	"NCCL_NET_OVERHEAD", "NCCL_NCHANNELS_PER_NET_PEER", "NCCL_PAT_ENABLE", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME",
	"NCCL_PXN_DISABLE",
	"NCCL_NVLS_ENABLE", "NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_IB_DISABLE", "NCCL_NET_MERGE_LEVEL", "NCCL_IB_MERGE_NICS",
	"NCCL_NET_DISABLE_INTRA",
}

// FuzzPlan checks that odd machines, releases and settings end in a plan that
// hangs together or in an error.
func FuzzPlan(f *testing.F) {
	two := []byte("\x08\x00\x01\x00\x00\x00\x00\x06\x8f\x03\x01\x00\x01\x03\x01\x10\x10\x03\x02\x00\x01\x03\x01\x10\x10\x04\x00\x00\x01\xc8\x03\x00\x10\x10")
	f.Add(two, byte(28), byte(2), "NCCL_ALGO", "Ring")
	f.Add([]byte("\x03\x00\x00\x00\x01\x01\x06\x31\x03\x00\x00\x01\x04\x00\x10\x10\x03\x01\x00\x01\x04\x00\x10\x10\x01\x02\x02\x04\x00"), byte(19), byte(1), "NCCL_P2P_LEVEL", "SYS")
	for i, key := range settings {
		f.Add(two, byte(i), byte(i), key, []string{"1", "0", "2", "2147483647", "-1"}[i%5])
	}
	f.Fuzz(func(t *testing.T, data []byte, minor, nodes byte, key, value string) {
		n := nodeOf(data)
		count := int(nodes)%3 + 1
		c := hosts(n, count)
		var l nccl.Layout
		for h := range count {
			for i, g := range n.Of(cluster.GPU) {
				// Nodes may differ in the GPUs that take part.
				if nodes&8 == 0 || h != 1 || i%2 == 0 {
					l = append(l, nccl.Rank{Host: h, GPU: g})
				}
			}
		}
		if nodes&16 != 0 {
			slices.Reverse(l)
		}
		if nodes&32 != 0 {
			c.Network.Reduction = cluster.Yes
		}
		// A key that means nothing stands for one that does.
		env := map[string]string{key: value}
		if len(key) < 4 {
			at := 0
			for _, b := range []byte(key) {
				at += int(b)
			}
			env[settings[at%len(settings)]] = value
		}
		v := nccl.Version{Major: 2, Minor: 18 + int(minor)%13}
		p, err := new(nccl.Planner).Plan(c, l, v, env)
		if err != nil {
			return
		}
		sound(t, p, len(l))
		for op := nccl.Broadcast; op <= nccl.AllReduce; op++ {
			for _, bytes := range []int64{0, 1, 1 << 20, 1 << 50} {
				if ch, err := p.Choose(nccl.Call{Op: op, Bytes: bytes}); err == nil && (ch.Channels < 1 || !(ch.Time >= 0)) {
					t.Fatalf("%+v", ch)
				}
			}
		}
	})
}

// sound checks that every index of a plan is in range, that rings visit every rank
// once and that trees span the ranks without a loop.
func sound(t *testing.T, p *nccl.Plan, ranks int) {
	t.Helper()
	_ = p.String()
	_ = p.Nodes[0].View.String()
	if _, err := json.Marshal(p.Setup()); err != nil {
		t.Fatal(err)
	}
	if p.Count() < 1 || p.P2PChannels < 1 || p.P2PPerPeer < 1 || p.NVLSChannels < 0 || p.NRanks != ranks {
		t.Fatalf("%d channels, %d, %d p2p, %d nvls, %d ranks of %d", p.Count(), p.P2PChannels, p.P2PPerPeer, p.NVLSChannels,
			p.NRanks, ranks)
	}
	owner := make([]int, ranks)
	for i, n := range p.Nodes {
		for _, r := range n.Ranks {
			owner[r] += i + 1
		}
		for c := range p.Count() {
			for _, nic := range p.Devices(i, c) {
				if (nic >= 0) != (p.NNodes > 1) {
					t.Fatalf("channel %d of node %d of %d uses NIC %d", c, i, p.NNodes, nic)
				}
			}
		}
	}
	for _, heads := range p.Heads() {
		for _, h := range heads {
			if h < 0 || h >= ranks {
				t.Fatalf("head %d of %d ranks", h, ranks)
			}
		}
	}
	if slices.Contains(owner, 0) {
		t.Fatalf("a rank without a node: %v", owner)
	}
	for c := range p.Count() {
		seen := make([]bool, ranks)
		for _, r := range p.Ring(c) {
			if r < 0 || r >= ranks || seen[r] {
				t.Fatalf("%d ranks, ring %d: %v", ranks, c, p.Ring(c))
			}
			seen[r] = true
		}
		if slices.Contains(seen, false) {
			t.Fatalf("%d ranks, ring %d: %v", ranks, c, p.Ring(c))
		}
		spans(t, p.Tree(c), ranks)
	}
}

// spans checks that a tree has one root from which all ranks are reached.
func spans(t *testing.T, tree []nccl.Links, ranks int) {
	t.Helper()
	root := slices.IndexFunc(tree, func(l nccl.Links) bool { return l.Up == -1 })
	if root < 0 || len(tree) != ranks {
		t.Fatalf("tree of %d, %d ranks: %v", len(tree), ranks, tree)
	}
	seen := make([]bool, ranks)
	for list := []int{root}; len(list) > 0; list = list[1:] {
		r := list[0]
		if seen[r] {
			t.Fatalf("rank %d twice in tree %v", r, tree)
		}
		seen[r] = true
		for _, d := range tree[r].Down {
			if d < 0 {
				continue
			}
			if d >= ranks || tree[d].Up != r {
				t.Fatalf("child %d of %d in tree %v", d, r, tree)
			}
			list = append(list, d)
		}
	}
	if slices.Contains(seen, false) {
		t.Fatalf("tree %v does not span", tree)
	}
}
