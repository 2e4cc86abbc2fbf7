package nccl

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// Rank is where a rank runs.
type Rank struct {
	Host int // index into Cluster.Hosts
	GPU  int // index into the devices of the host's type
}

// Layout says which GPUs take part, in the order of ranks.
type Layout []Rank

// Place is the device of a rank.
func (l Layout) Place(rank int) cluster.Place {
	return cluster.Place{Host: l[rank].Host, Device: l[rank].GPU}
}

// GPUs are the hosts that have some, each with its GPUs as indices into the devices of its type.
func GPUs(c *cluster.Cluster) iter.Seq2[int, []int] {
	return func(yield func(int, []int) bool) {
		list := map[int][]int{}
		for h := range c.Hosts {
			t := c.TypeOf(h)
			if t == nil {
				continue
			}
			devs, ok := list[c.Hosts[h].Type]
			if !ok {
				devs = t.Of(cluster.GPU)
				list[c.Hosts[h].Type] = devs
			}
			if len(devs) > 0 && !yield(h, devs) {
				return
			}
		}
	}
}

// Block places gpus ranks on each of the first nodes hosts that have as many, in
// the order of hosts and of GPU numbers: 2x4 is ranks 0–3 on the first host.
func Block(c *cluster.Cluster, nodes, gpus int) (Layout, error) {
	if nodes < 1 || gpus < 1 {
		return nil, fmt.Errorf("layout %dx%d; expected at least one node and one GPU", nodes, gpus)
	}
	l := make(Layout, 0, min(nodes*gpus, 8*len(c.Hosts))) // more than there are may be asked for
	most, taken := 0, 0
	for h, devs := range GPUs(c) {
		if taken == nodes {
			break
		}
		most = max(most, len(devs))
		if len(devs) < gpus {
			continue
		}
		taken++
		for _, d := range devs[:gpus] {
			l = append(l, Rank{h, d})
		}
	}
	if taken < nodes {
		return nil, tooFew(c, nodes, gpus, taken, most)
	}
	return l, nil
}

// tooFew says what a layout needs that the cluster does not have: fit nodes have as many GPUs,
// most is what the largest has.
func tooFew(c *cluster.Cluster, nodes, gpus, fit, most int) error {
	need := fmt.Sprintf("layout %dx%d needs %s with at least %s", nodes, gpus, words.Plural(nodes, "node"),
		words.Plural(gpus, "GPU"))
	has := words.Plural(len(c.Hosts), "node")
	switch {
	case most == 0:
		return fmt.Errorf("%s; no node of the cluster has a GPU", need)
	case most < gpus:
		return fmt.Errorf("%s; the cluster's nodes have at most %s: ask for fewer GPUs per node", need,
			words.Plural(most, "GPU"))
	case fit < len(c.Hosts):
		with, names := 0, []string(nil)
		for h, devs := range GPUs(c) {
			if len(devs) == 0 {
				continue
			}
			if with++; len(devs) < gpus {
				names = append(names, fmt.Sprintf("%s (%s)", c.Hosts[h].Name, words.Plural(len(devs), "GPU")))
			}
		}
		if more := len(names) - 4; more > 0 {
			names = append(names[:4], fmt.Sprintf("%d more", more))
		}
		less := ""
		if len(names) > 0 {
			less = "; fewer have " + strings.Join(names, ", ")
		}
		return fmt.Errorf("%s; the cluster has %s with GPUs, %d of them with as many%s: ask for %dx%d, or describe more "+
			"such nodes", need, words.Plural(with, "node"), fit, less, fit, gpus)
	}
	return fmt.Errorf("%s; the cluster has %s: describe more such nodes (a preset, or a file about one node, takes a "+
		"count: NAME:%d) or ask for fewer", need, has, nodes)
}

// maxLocal bounds the GPUs of one node; NCCL's own tables end there.
const maxLocal = 576

// splits reports that trays of a rack are nodes of their own: before NCCL 2.21, and where it was told so.
func splits(v Version, env map[string]string) bool {
	n, set := envInt(env, "NCCL_MNNVL_ENABLE")
	return !v.rules().MNNVL || set && n == 0
}

// nodes puts ranks together that share a node: a host, or an NVLink domain of several hosts where the release can use
// it as one; by lowest rank. Layouts may have a million ranks, and mostly those of a node follow each other and take
// the GPUs that the node before has: such ranks are a stretch of all, and such GPUs are kept once.
func (l Layout) nodes(c *cluster.Cluster, split bool) ([]PlanNode, error) {
	all := make([]int, len(l))
	first := make([]int32, len(c.Hosts)) // 1 and the number of a host's first node; others of the host are chained to it
	list := make([]PlanNode, 0, min(len(l), len(c.Hosts)))
	at := -1
	for rank, r := range l {
		all[rank] = rank
		t := c.TypeOf(r.Host)
		if t == nil {
			return nil, fmt.Errorf("rank %d: nobody described host %d", rank, r.Host)
		}
		if r.GPU < 0 || r.GPU >= len(t.Devices) || t.Devices[r.GPU].Kind != cluster.GPU {
			return nil, fmt.Errorf("rank %d: device %d of %s is no GPU", rank, r.GPU, hostName(c, r.Host))
		}
		tray := 0
		if split {
			tray = t.Devices[r.GPU].Tray
		}
		if at < 0 || list[at].Host != r.Host || list[at].tray != tray {
			link := &first[r.Host]
			for *link > 0 && list[*link-1].tray != tray {
				link = &list[*link-1].next
			}
			if *link == 0 {
				*link = int32(len(list) + 1)
				at, list = len(list), append(list, PlanNode{Host: r.Host, tray: tray})
			} else {
				at = int(*link - 1)
			}
		}
		n := &list[at]
		if slices.Contains(n.gpus, r.GPU) {
			return nil, fmt.Errorf("rank %d: %s of %s has a rank already; NCCL refuses two on one GPU", rank,
				t.Devices[r.GPU].Name, hostName(c, r.Host))
		}
		if len(n.Ranks) == maxLocal {
			return nil, fmt.Errorf("%s has more than %d ranks, which NCCL does not take", hostName(c, r.Host), maxLocal)
		}
		n.addRank(rank, r.GPU, all, list[max(at-1, 0)].gpus)
	}
	return list, nil
}

// addRank takes a rank in: as one more of a stretch of all ranks, and of the GPUs before, where it is.
func (n *PlanNode) addRank(rank, gpu int, all, before []int) {
	k := len(n.Ranks)
	if k == 0 || rank-n.Ranks[0] == k {
		n.Ranks = all[rank-k : rank+1 : rank+1]
	} else {
		n.Ranks = append(n.Ranks, rank)
	}
	if k < len(before) && before[k] == gpu && (k == 0 || &n.gpus[0] == &before[0]) {
		n.gpus = before[: k+1 : k+1]
	} else {
		n.gpus = append(n.gpus, gpu)
	}
}
