package step

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// Wiring is ranks on their network with one thing changed: the order of hosts, what is summed first, a setting of NCCL,
// or a part that is bought.
type Wiring struct {
	Change
	Cluster *cluster.Cluster
	Layout  nccl.Layout
	Env     map[string]string
	Rack    int // ranks of a rack, inside which is summed first; 0: all at once
}

// Wirings are the changes that cost nothing and may help ranks: the GPUs of each node that are nearest to its NICs, and
// on a network whose leaves have less upward than their hosts send, hosts of a leaf as neighbours, and a sum inside
// each rack before the one between racks.
func Wirings(c *cluster.Cluster, l nccl.Layout, env map[string]string) (list []Wiring) {
	if near, numbers := nearGPUs(c, l); near != nil {
		list = append(list, Wiring{
			Change{Text: "the GPUs that are nearest to the NICs", Setting: "--devices " + numbers}, c, near, env, 0,
		})
	}
	below := leavesOf(c)
	if !below.oversubscribed || !below.crosses(l) {
		return list
	}
	near := below.neighbours(l)
	order := ""
	if !slices.Equal(near, l) {
		order = "--hosts " + hostNames(c, near)
		list = append(list, Wiring{
			Change{Text: "hosts of a leaf switch one after another: fewer hops go up", Setting: order}, c, near, env, 0,
		})
	}
	if n := below.rack(l); n > 1 {
		setting := "HOOK=rack in ddp.sh of busbar plan --emit"
		if order != "" {
			setting = order + " and " + setting
		}
		list = append(list, Wiring{
			Change{
				Text: fmt.Sprintf("two phases: sum inside each rack of %d ranks first, then a share of each rank between "+
					"racks", n),
				Setting: setting,
			}, c, near, env, n,
		})
	}
	return list
}

// nearGPUs is a layout on as many GPUs of each node that are nearer to its NICs, and their numbers; nil where none are.
func nearGPUs(c *cluster.Cluster, l nccl.Layout) (nccl.Layout, string) {
	t := c.TypeOf(l[0].Host)
	nearest := t.Nearest()
	slices.SortStableFunc(nearest, func(a, b cluster.Near) int { return cmp.Compare(a.Class.Type, b.Class.Type) })
	var near nccl.Layout // where it is another one: layouts may have a million ranks
	taken, hosts := make([]int32, len(c.Hosts)), 0
	var numbers []string
	for i, r := range l {
		k := int(taken[r.Host])
		if c.TypeOf(r.Host) != t || k == len(nearest) {
			return nil, ""
		}
		gpu := nearest[k].GPU
		if near == nil && gpu != r.GPU {
			near = slices.Clone(l)
		}
		if near != nil {
			near[i].GPU = gpu
		}
		if taken[r.Host]++; k == 0 {
			hosts++
		}
		if r.Host == l[0].Host {
			numbers = append(numbers, strconv.Itoa(slices.Index(t.Of(cluster.GPU), gpu)))
		}
	}
	if hosts == 1 || near == nil {
		return nil, ""
	}
	return near, strings.Join(numbers, ",")
}

// neighbours is a layout with the hosts of a leaf one after another, leaves in the order in which they are first met.
func (l *leaves) neighbours(list nccl.Layout) nccl.Layout {
	first := map[int]int{}
	for i, r := range list {
		if _, met := first[l.of[r.Host]]; !met {
			first[l.of[r.Host]] = i
		}
	}
	near := slices.Clone(list)
	slices.SortStableFunc(near, func(a, b nccl.Rank) int { return first[l.of[a.Host]] - first[l.of[b.Host]] })
	return near
}

// rack is how many ranks each leaf has, 0 where they differ.
func (l *leaves) rack(list nccl.Layout) int {
	count := map[int]int{}
	for _, r := range list {
		count[l.of[r.Host]]++
	}
	each := count[l.of[list[0].Host]]
	for _, n := range count {
		if n != each {
			return 0
		}
	}
	return each
}

// hostNames are the hosts of a layout in its order, as a hostlist.
func hostNames(c *cluster.Cluster, l nccl.Layout) string {
	var names []string
	for i, r := range l {
		if i == 0 || l[i-1].Host != r.Host {
			names = append(names, c.Hosts[r.Host].Name)
		}
	}
	return cluster.FormatHosts(names)
}

// TwoPhase is the time of a sum over all replicas in three parts: a reduce-scatter inside each rack of so many ranks,
// an all-reduce of every rank's share between racks, and an all-gather inside.
func (f *Fabric) TwoPhase(rack int, bytes unit.Volume) (all unit.Span, limit string, err error) {
	s := f.split
	s.Shard = rack
	g := f.With(s)
	longest := unit.Span(0)
	for _, part := range []struct {
		group Group
		kind  coll.Kind
		bytes unit.Volume
	}{
		{Shards, coll.ReduceScatter, bytes},
		{Copies, coll.AllReduce, bytes / unit.Volume(rack)},
		{Shards, coll.AllGather, bytes},
	} {
		t, text, err := g.Time(part.group, part.kind, part.bytes)
		if err != nil {
			return 0, "", err
		}
		if all += t; t > longest {
			longest, limit = t, text
		}
	}
	return all, limit, nil
}

// On is the fabric of a split under the change.
func (w *Wiring) On(like *Fabric) *Fabric {
	f := NewFabric(w.Cluster, w.Layout, like.split, like.version)
	f.Env = w.Env
	return f
}
