package nccl

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// fused is what NCCL uses as one NIC: a port, or several of one card.
type fused struct {
	functions []int // devices, in the order of numbers
	rate      unit.Rate
	number    int // by which NCCL calls it
}

// fuse puts the ports of one card together that NCCL uses as one: two since 2.20, up to
// four since 2.24, which counts such NICs after those that are real (NCCL 2.28
// src/graph/topo.cc, ncclTopoMakeVNics).
func fuse(t *cluster.NodeType, nets []int, r *rules, env map[string]string) ([]fused, error) {
	most, err := fuseMost(r, env)
	if err != nil {
		return nil, fmt.Errorf("node type %s: %w", t.Name, err)
	}
	ports := portsOf(t, nets)
	var all []fused
	taken := make([]bool, len(ports))
	made := 0
	for i, p := range ports {
		if taken[i] {
			continue
		}
		f := fused{functions: []int{p.device}, rate: p.rate, number: i}
		n := 1
		for j := i + 1; j < len(ports) && n < most; j++ {
			if o := ports[j]; !taken[j] && sameCard(t, p.device, o.device) {
				taken[j] = true
				f.rate += o.rate
				if !slices.Contains(f.functions, o.device) {
					f.functions = append(f.functions, o.device)
				}
				n++
			}
		}
		switch {
		case !r.VirtualNICs:
			f.number = len(all)
		case n > 1:
			f.number = len(ports) + made
			made++
		}
		all = append(all, f)
	}
	return all, nil
}

// netPort is a port of a NIC.
type netPort struct {
	device int
	rate   unit.Rate
}

// portsOf lists the ports NCCL finds. Ports other than those of verbs are known
// only in sum.
func portsOf(t *cluster.NodeType, nets []int) []netPort {
	var all []netPort
	for _, d := range nets {
		n := t.Devices[d].NIC
		before := len(all)
		for _, p := range n.Ports {
			if rdma(n.Kind) && livePort(p) && p.Rate.Known() && p.Rate.Value > 0 {
				all = append(all, netPort{d, p.Rate.Value})
			}
		}
		if len(all) > before {
			continue
		}
		rate := 10 * unit.Gbps // what NCCL takes where a driver says nothing
		if r := n.Rate(); r.Known() && r.Value > 0 {
			rate = r.Value
		}
		all = append(all, netPort{d, rate})
	}
	return all
}

// fuseMost is how many ports become one NIC.
func fuseMost(r *rules, env map[string]string) (int, error) {
	if n, ok := envInt(env, "NCCL_IB_MERGE_NICS"); ok && n == 0 {
		return 1, nil
	}
	if !r.VirtualNICs {
		return r.FusedPorts, nil
	}
	if s := env["NCCL_NET_FORCE_MERGE"]; s != "" {
		return 0, fmt.Errorf("NCCL_NET_FORCE_MERGE=%s: NICs of different cards as one are not modelled; unset it", s)
	}
	switch s := env["NCCL_NET_MERGE_LEVEL"]; {
	case s == "LOC":
		return 1, nil
	case slices.Contains([]string{"PIX", "PXB", "P2C", "PXN", "PHB", "SYS"}, s):
		return 0, fmt.Errorf("NCCL_NET_MERGE_LEVEL=%s: NICs of different cards as one are not modelled; only LOC and PORT "+
			"are", s)
	}
	return r.FusedPorts, nil
}

// rdma reports whether NCCL drives a NIC itself by verbs. Others have a plugin that
// makes its own NICs, or are sockets, which NCCL does not fuse.
func rdma(k cluster.NetKind) bool { return k == cluster.InfiniBand || k == cluster.RoCE }

// sameCard reports whether two devices are functions of one card with one kind of
// link.
func sameCard(t *cluster.NodeType, a, b int) bool {
	x, y := &t.Devices[a], &t.Devices[b]
	if !rdma(x.NIC.Kind) || x.NIC.Kind != y.NIC.Kind {
		return false
	}
	return a == b || x.PCI != "" && x.PCI.Slot() == y.PCI.Slot() && x.Tray == y.Tray
}
