package nccl

import (
	"fmt"

	"busbar/cluster"
)

// Rank is where a rank runs.
type Rank struct {
	Host int // index into Cluster.Hosts
	GPU  int // index into the devices of the host's type
}

// Layout says which GPUs take part, in the order of ranks.
type Layout []Rank

// Block places gpus ranks on each of the first nodes hosts that have as many, in
// the order of hosts and of GPU numbers: 2x4 is ranks 0–3 on the first host.
func Block(c *cluster.Cluster, nodes, gpus int) (Layout, error) {
	if nodes < 1 || gpus < 1 {
		return nil, fmt.Errorf("layout %dx%d; expected at least one node and one GPU", nodes, gpus)
	}
	list := map[int][]int{}
	l := make(Layout, 0, min(nodes*gpus, 1<<21))
	most, taken := 0, 0
	for h := range c.Hosts {
		if taken == nodes {
			break
		}
		t := c.TypeOf(h)
		if t == nil {
			continue
		}
		devs, ok := list[c.Hosts[h].Type]
		if !ok {
			devs = t.Of(cluster.GPU)
			list[c.Hosts[h].Type] = devs
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
		return nil, fmt.Errorf("layout %dx%d: %d of %d hosts have %d GPUs (at most %d); describe more nodes or ask for fewer", nodes, gpus, taken, len(c.Hosts), gpus, most)
	}
	return l, nil
}

// group is the ranks of one of NCCL's nodes.
type group struct {
	host  int
	ranks []int
	gpus  []int // devices, in order of rank
}

// groups puts ranks together that share a node: a host, or an NVLink domain of
// several hosts where the release can use it as one.
func (l Layout) groups(c *cluster.Cluster, v Version, env map[string]string) ([]group, error) {
	type key struct{ host, tray int }
	n, set := envInt(env, "NCCL_MNNVL_ENABLE")
	split := !v.From(21) || set && n == 0
	at := make(map[key]int, len(l))
	var list []group
	for rank, r := range l {
		t := c.TypeOf(r.Host)
		if t == nil {
			return nil, fmt.Errorf("rank %d: nobody described host %d", rank, r.Host)
		}
		if r.GPU < 0 || r.GPU >= len(t.Devices) || t.Devices[r.GPU].Kind != cluster.GPU {
			return nil, fmt.Errorf("rank %d: device %d of %s is no GPU", rank, r.GPU, c.Hosts[r.Host].Name)
		}
		k := key{host: r.Host}
		if split {
			k.tray = t.Devices[r.GPU].Tray
		}
		i, ok := at[k]
		if !ok {
			i = len(list)
			at[k] = i
			list = append(list, group{host: r.Host})
		}
		for _, g := range list[i].gpus {
			if g == r.GPU {
				return nil, fmt.Errorf("rank %d: %s of %s has a rank already; NCCL refuses two on one GPU", rank, t.Devices[r.GPU].Name, c.Hosts[r.Host].Name)
			}
		}
		list[i].ranks = append(list[i].ranks, rank)
		list[i].gpus = append(list[i].gpus, r.GPU)
	}
	return list, nil
}
