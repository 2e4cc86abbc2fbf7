package plan

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
)

// Part is a part of a cluster that checks measure by itself, and stands for Count parts that are like it.
type Part struct {
	Name   string // node, NVLink domain, two nodes on one leaf, two nodes on two leaves, rail 0, leaf, all
	Nodes  string // of the one that stands for all, as a hostlist
	Count  int
	Layout nccl.Layout
}

// Parts are a cluster's nodes, pairs of them, rails, leaves and all of it, those that are alike once. Of pairs one of a
// kind is given, and counted as one.
func Parts(c *cluster.Cluster) []Part {
	nodes := NodesFor(c, 0)
	hosts := make([]host, len(nodes.Ranks))
	for i, l := range nodes.Ranks {
		hosts[i] = host(l)
	}
	x := partition{nodes: nodes, at: places(c, hosts), kind: make([]string, len(hosts)), index: map[string]int{}}
	domains, leaves := map[string][]int{}, map[int][]int{}
	var racks []string
	var switches []int
	for i, h := range hosts {
		x.kind[i] = fmt.Sprintf("%d:%d", c.Hosts[h[0].Host].Type, len(h))
		if rack, leaf := nodes.Racks[i], x.at[i].leaf(); rack != "" && domains[rack] == nil {
			racks = append(racks, rack)
		} else if leaf >= 0 && leaves[leaf] == nil {
			switches = append(switches, leaf)
		}
		domains[nodes.Racks[i]] = append(domains[nodes.Racks[i]], i)
		leaves[x.at[i].leaf()] = append(leaves[x.at[i].leaf()], i)
		if len(h) > 1 {
			x.add("node", i)
		}
	}
	for _, r := range racks {
		x.add("NVLink domain", domains[r]...)
	}
	x.pairs()
	x.rails()
	for _, s := range switches {
		if list := leaves[s]; len(list) > 1 && len(list) < len(hosts) {
			x.add("leaf", list...)
		}
	}
	if len(hosts) > 1 {
		x.add("all", identity(len(hosts))...)
	}
	return x.list
}

// partition is the parts that were found so far.
type partition struct {
	nodes *Nodes
	at    []place
	kind  []string // of each node: what it is made of
	list  []Part
	index map[string]int
}

// add counts a part with those like it: of the same name, with as many nodes of the same kinds.
func (x *partition) add(name string, nodes ...int) {
	var names, kinds []string
	var l nccl.Layout
	for _, i := range nodes {
		names, kinds, l = append(names, x.nodes.Names[i]), append(kinds, x.kind[i]), append(l, x.nodes.Ranks[i]...)
	}
	slices.Sort(kinds)
	key := fmt.Sprint(name, kinds)
	if k, ok := x.index[key]; ok {
		x.list[k].Count++
		return
	}
	x.index[key] = len(x.list)
	x.list = append(x.list, Part{Name: name, Nodes: cluster.FormatSlurmHosts(names), Count: 1, Layout: l})
}

// pairs adds two nodes on one leaf and two on different ones, of every two kinds.
func (x *partition) pairs() {
	type spot struct {
		kind string
		leaf int
	}
	var some []int // two of each kind on each leaf: the others are like them
	count := map[spot]int{}
	for i := range x.at {
		if s := (spot{x.kind[i], x.at[i].leaf()}); count[s] < 2 && len(some) < mostStarts*mostStarts {
			count[s]++
			some = append(some, i)
		}
	}
	seen := map[string]bool{}
	for k, i := range some {
		for _, j := range some[k+1:] {
			name := "two nodes"
			switch a, b := x.at[i].leaf(), x.at[j].leaf(); {
			case x.nodes.Racks[i] != "" && x.nodes.Racks[i] == x.nodes.Racks[j]:
				name = "two nodes of an NVLink domain"
			case a >= 0 && a == b:
				name = "two nodes on one leaf"
			case a >= 0 && b >= 0:
				name = "two nodes on two leaves"
			}
			if key := fmt.Sprint(name, x.kind[i], x.kind[j]); !seen[key] {
				seen[key] = true
				x.add(name, i, j)
			}
		}
	}
}

// rails adds the k-th GPU of every node, where nodes have several.
func (x *partition) rails() {
	most := 0
	for _, l := range x.nodes.Ranks {
		most = max(most, len(l))
	}
	if len(x.nodes.Ranks) < 2 || most < 2 {
		return
	}
	for k := range most {
		var l nccl.Layout
		var names []string
		for i, of := range x.nodes.Ranks {
			if k < len(of) {
				l, names = append(l, of[k]), append(names, x.nodes.Names[i])
			}
		}
		if len(l) > 1 {
			x.list = append(x.list, Part{
				Name: fmt.Sprintf("rail %d", k), Nodes: cluster.FormatSlurmHosts(names), Count: 1, Layout: l,
			})
		}
	}
}
