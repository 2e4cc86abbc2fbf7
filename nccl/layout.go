package nccl

import (
	"fmt"
	"iter"
	"slices"

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
	l := make(Layout, 0, min(nodes*gpus, 1<<21))
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
	need := fmt.Sprintf("layout %dx%d needs %s with at least %s", nodes, gpus, words.Plural(nodes, "node"), words.Plural(gpus, "GPU"))
	has := words.Plural(len(c.Hosts), "node")
	switch {
	case most == 0:
		return fmt.Errorf("%s; no node of the cluster has a GPU", need)
	case most < gpus:
		return fmt.Errorf("%s; the cluster's nodes have at most %s: ask for fewer GPUs a node", need, words.Plural(most, "GPU"))
	case fit < len(c.Hosts):
		return fmt.Errorf("%s; the cluster has %s, %d of them with as many GPUs: describe more such nodes or ask for fewer", need, has, fit)
	}
	return fmt.Errorf("%s; the cluster has %s: describe more of them (CLUSTER:%d) or ask for fewer", need, has, nodes)
}

// group is the ranks of one of NCCL's nodes.
type group struct {
	host  int
	ranks []int
	gpus  []int // devices, in order of rank
	parts int   // into which NCCL splits the host, where it does
}

// maxLocal bounds the GPUs of one node; NCCL's own tables end there.
const maxLocal = 576

// groups puts ranks together that share a node: a host, or an NVLink domain of
// several hosts where the release can use it as one. It makes few and large
// allocations, for layouts may have a million ranks.
func (l Layout) groups(c *cluster.Cluster, v Version, env map[string]string) ([]group, error) {
	n, set := envInt(env, "NCCL_MNNVL_ENABLE")
	of, sizes, err := l.assign(c, !v.From(21) || set && n == 0)
	if err != nil {
		return nil, err
	}
	ranks, gpus := make([]int, len(l)), make([]int, len(l))
	list := make([]group, len(sizes))
	at := 0
	for i, size := range sizes {
		list[i].ranks, list[i].gpus = ranks[at:at:at+size], gpus[at:at:at+size]
		at += size
	}
	for rank, r := range l {
		g := &list[of[rank]]
		if slices.Contains(g.gpus, r.GPU) {
			return nil, fmt.Errorf("rank %d: %s of %s has a rank already; NCCL refuses two on one GPU", rank, c.TypeOf(r.Host).Devices[r.GPU].Name, hostName(c, r.Host))
		}
		g.host, g.ranks, g.gpus = r.Host, append(g.ranks, rank), append(g.gpus, r.GPU)
	}
	return list, nil
}

// assign gives every rank the number of its node, by lowest rank, and every node
// its number of ranks.
func (l Layout) assign(c *cluster.Cluster, split bool) (of []int32, sizes []int, err error) {
	type key struct{ host, tray int }
	index := map[key]int32{}
	of = make([]int32, len(l))
	last, lastIndex := key{-1, 0}, int32(0)
	for rank, r := range l {
		t := c.TypeOf(r.Host)
		if t == nil {
			return nil, nil, fmt.Errorf("rank %d: nobody described host %d", rank, r.Host)
		}
		if r.GPU < 0 || r.GPU >= len(t.Devices) || t.Devices[r.GPU].Kind != cluster.GPU {
			return nil, nil, fmt.Errorf("rank %d: device %d of %s is no GPU", rank, r.GPU, hostName(c, r.Host))
		}
		k := key{host: r.Host}
		if split {
			k.tray = t.Devices[r.GPU].Tray
		}
		if k != last {
			i, ok := index[k]
			if !ok {
				i = int32(len(sizes))
				index[k] = i
				sizes = append(sizes, 0)
			}
			last, lastIndex = k, i
		}
		of[rank] = lastIndex
		if sizes[lastIndex]++; sizes[lastIndex] > maxLocal {
			return nil, nil, fmt.Errorf("%s has more than %d ranks, which NCCL does not take", hostName(c, r.Host), maxLocal)
		}
	}
	return of, sizes, nil
}
