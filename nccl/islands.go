package nccl

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/cluster"
)

// kinds numbers the kinds of nodes: a node type and the GPUs that take part.
type kinds struct {
	c    *cluster.Cluster
	seen map[string]int
	prev *PlanNode
	last int
}

func newKinds(c *cluster.Cluster) *kinds { return &kinds{c: c, seen: map[string]int{}, last: -1} }

// kindOf is the number of a node's kind. Neighbours are mostly of one kind, which
// saves making a key.
func (k *kinds) kindOf(n *PlanNode) int {
	if k.last >= 0 && k.c.Hosts[n.Host].Type == k.c.Hosts[k.prev.Host].Type && slices.Equal(n.gpus, k.prev.gpus) {
		return k.last
	}
	key := viewKey(k.c.Hosts[n.Host].Type, n.gpus)
	i, ok := k.seen[key]
	if !ok {
		i = len(k.seen)
		k.seen[key] = i
	}
	k.prev, k.last = n, i
	return i
}

// separate splits nodes at GPUs that do not reach each other inside, or whose NICs are
// faster: NCCL takes the parts for nodes of their own (NCCL 2.28 src/graph/paths.cc,
// ncclTopoTrimSystem and ncclTopoCheckNet).
func separate(c *cluster.Cluster, list []PlanNode, v Version, env map[string]string) ([]PlanNode, error) {
	var parts [][][]int // by kind: positions among the ranks, by part
	kind := newKinds(c)
	split := false
	for i := range list {
		g := &list[i]
		if kind.kindOf(g) < len(parts) {
			continue
		}
		t := c.TypeOf(g.Host)
		if err := t.Check(); err != nil {
			return nil, err
		}
		nets, _ := netsOf(t, g.gpus, env) // without NICs there is nothing faster
		s, err := newSystem(t, g.gpus, nets, v, env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hostName(c, g.Host), err)
		}
		parts = append(parts, s.islands())
		split = split || len(parts[len(parts)-1]) > 1
	}
	if !split {
		return list, nil
	}
	var out []PlanNode
	for i := range list {
		g := &list[i]
		all := parts[kind.kindOf(g)]
		for _, part := range all {
			sub := PlanNode{Host: g.Host, parts: int32(len(all))}
			for _, i := range part {
				sub.Ranks, sub.gpus = append(sub.Ranks, g.Ranks[i]), append(sub.gpus, g.gpus[i])
			}
			out = append(out, sub)
		}
	}
	slices.SortFunc(out, func(a, b PlanNode) int { return cmp.Compare(a.Ranks[0], b.Ranks[0]) })
	return out, nil
}

// islands lists the GPUs that stay together, as positions among the node's ranks.
// A GPU joins the first of those before it that it reaches; two islands do not
// merge when a later GPU reaches both.
func (s *system) islands() [][]int {
	gpus := s.nodes[kindGPU]
	domain := make([]int, len(gpus))
	member := map[int][]int{}
	for i, g := range gpus {
		domain[i] = i
		for p := range i {
			if g.paths[kindGPU][p].kind < PathNET {
				domain[i] = min(domain[i], domain[p])
			}
		}
		member[domain[i]] = append(member[domain[i]], g.gpu.rank)
	}
	var all [][]int
	for _, part := range member {
		slices.Sort(part)
		all = append(all, part)
	}
	slices.SortFunc(all, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return all
}

// apart reports whether a GPU reaches another neither by peer access nor by
// shared memory, or would be served better by the network.
func (s *system) apart(a, b *topoNode, peers bool) bool {
	path := &a.paths[kindGPU][b.index]
	if peers && len(path.hops) == 2 && path.hops[0].to.kind == kindGPU {
		return false
	}
	if s.netFaster(a, b) {
		return true
	}
	off, ok := envInt(s.env, "NCCL_SHM_DISABLE")
	return !peers && (a.host != b.host || ok && off == 1)
}

// netFaster reports whether both GPUs have a NIC nearby that carries more than the
// path between them.
func (s *system) netFaster(a, b *topoNode) bool {
	reach := a.paths[kindGPU][b.index].bw
	return a.gpu.net > reach && b.gpu.net > reach
}

// nearNet notes what every GPU's best NIC nearby carries, unless the user does not
// want the network inside of a host.
func (s *system) nearNet() {
	if n, ok := envInt(s.env, "NCCL_NET_DISABLE_INTRA"); ok && n == 1 {
		return
	}
	for _, g := range s.nodes[kindGPU] {
		for i := range g.paths[kindNET] {
			if p := &g.paths[kindNET][i]; p.kind <= PathPXB {
				g.gpu.net = max(g.gpu.net, p.bw)
			}
		}
	}
}
