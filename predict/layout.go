package predict

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// ErrTooMany is that a cluster has more GPUs than a layout may.
var ErrTooMany = fmt.Errorf("the cluster has more than %d GPUs; take a part of it with a layout", MaxRanks)

// MaxRanks bounds a layout; beyond it the rings alone would fill the memory.
const MaxRanks = 1 << 21

// ParseLayout reads NODESxGPUS.
func ParseLayout(s string) (nodes, gpus int, err error) {
	bad := fmt.Errorf("layout %q; expected NODESxGPUS: 2x4 is two nodes with four GPUs each taking part", s)
	a, b, ok := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "x")
	if !ok {
		return 0, 0, bad
	}
	if nodes, err = strconv.Atoi(a); err != nil || nodes < 1 {
		return 0, 0, bad
	}
	if gpus, err = strconv.Atoi(b); err != nil || gpus < 1 {
		return 0, 0, bad
	}
	if nodes > hardware.MaxNodes {
		return 0, 0, fmt.Errorf("layout %s: %d nodes; a cluster has at most %d", s, nodes, hardware.MaxNodes)
	}
	if nodes > MaxRanks || gpus > MaxRanks || nodes*gpus > MaxRanks {
		return 0, 0, fmt.Errorf("layout %s: more than %d ranks", s, MaxRanks)
	}
	return nodes, gpus, nil
}

// AllGPUs is the layout of all GPUs of a cluster, and its name: 4x8, or all
// where nodes have different numbers.
func AllGPUs(c *cluster.Cluster) (nccl.Layout, string, error) {
	all := 0
	for _, devs := range nccl.GPUs(c) {
		all += len(devs)
	}
	l := make(nccl.Layout, 0, min(all, MaxRanks))
	nodes, each, even := 0, 0, true
	for h, devs := range nccl.GPUs(c) {
		if len(l)+len(devs) > MaxRanks {
			return nil, "", ErrTooMany
		}
		even = even && (nodes == 0 || each == len(devs))
		nodes, each = nodes+1, len(devs)
		for _, d := range devs {
			l = append(l, nccl.Rank{Host: h, GPU: d})
		}
	}
	if len(l) == 0 {
		return nil, "", fmt.Errorf("no node of the cluster has a GPU")
	}
	if !even {
		return l, "all", nil
	}
	return l, fmt.Sprintf("%dx%d", nodes, each), nil
}

// Name is where a rank runs, for people: node0/gpu1.
func (p *Predictor) Name(rank int) string {
	if rank < 0 || rank >= len(p.Layout) {
		return ""
	}
	r := p.Layout[rank]
	return p.Cluster.Hosts[r.Host].Name + "/" + p.Cluster.TypeOf(r.Host).Devices[r.GPU].Title()
}
