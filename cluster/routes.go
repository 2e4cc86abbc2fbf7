package cluster

import (
	"slices"
	"sync"
)

// Routes answers for paths between any two devices of a cluster. Building it
// costs time and memory in proportion to node types, hosts and links; it is
// safe for concurrent use. The cluster must not change afterwards.
type Routes struct {
	c     *Cluster
	types []*nodeRoutes
	// cable[base[h]+k] is the link that NIC number k of host h hangs on, -1 none.
	base  []int
	cable []int32
	// up[s] lists, per switch, the links to other switches.
	adj [][]int32

	mu    sync.Mutex
	trees map[int][]int32 // per leaf: the link by which each switch was reached
}

// maxTrees bounds the search trees kept; beyond it the oldest work is redone.
const maxTrees = 256

// NewRoutes prepares the paths of a cluster.
func NewRoutes(c *Cluster) *Routes {
	r := &Routes{c: c, trees: make(map[int][]int32)}
	r.types = make([]*nodeRoutes, len(c.Types))
	for i, t := range c.Types {
		r.types[i] = newNodeRoutes(t)
	}
	r.base = make([]int, len(c.Hosts)+1)
	for i, h := range c.Hosts {
		n := 1
		if h.Type >= 0 && h.Type < len(r.types) {
			n = max(1, len(r.types[h.Type].nics))
		}
		r.base[i+1] = r.base[i] + n
	}
	r.cable = make([]int32, r.base[len(c.Hosts)])
	for i := range r.cable {
		r.cable[i] = -1
	}
	r.adj = make([][]int32, len(c.Network.Switches))
	// Links that name their NIC first, so that a whole-node link (NIC -1) fills
	// only what is left.
	for pass := range 2 {
		for i := range c.Network.Links {
			r.attach(i, pass == 1)
		}
	}
	return r
}

func (r *Routes) attach(i int, whole bool) {
	l := &r.c.Network.Links[i]
	if l.State == Down || r.isDomain(l.A) || r.isDomain(l.B) {
		return
	}
	if !l.A.ToHosts() && !l.B.ToHosts() {
		if !whole {
			r.adj[l.A.Switch] = append(r.adj[l.A.Switch], int32(i))
			r.adj[l.B.Switch] = append(r.adj[l.B.Switch], int32(i))
		}
		return
	}
	for _, e := range []End{l.A, l.B} {
		if !e.ToHosts() || (e.NIC < 0) != whole {
			continue
		}
		for _, s := range e.Hosts {
			for h := s.First; h < s.First+s.N && h < len(r.c.Hosts); h++ {
				first, last := r.base[h], r.base[h+1]
				if !whole {
					if e.NIC >= last-first {
						continue
					}
					first += e.NIC
					last = first + 1
				}
				for k := first; k < last; k++ {
					if r.cable[k] < 0 {
						r.cable[k] = int32(i)
					}
				}
			}
		}
	}
}

// isDomain reports an end that is a scheduler's grouping: no traffic goes there.
func (r *Routes) isDomain(e End) bool {
	return !e.ToHosts() && r.c.Network.Switches[e.Switch].Domain
}

func (r *Routes) typeOf(host int) *nodeRoutes {
	if host < 0 || host >= len(r.c.Hosts) {
		return nil
	}
	t := r.c.Hosts[host].Type
	if t < 0 || t >= len(r.types) {
		return nil
	}
	return r.types[t]
}

// nicFor picks the NIC of a's host for traffic between a and b: a itself when it
// is a NIC, else one of the NICs nearest to it. Several equally near NICs are
// dealt out by the GPU's position among the GPUs that share them.
func (r *Routes) nicFor(a Place) int {
	n := r.typeOf(a.Host)
	if n == nil {
		return -1
	}
	if n.t.Devices[a.Device].Kind == NIC {
		return a.Device
	}
	near := n.near[a.Device]
	if near == nil {
		near = n.nearest(a.Device)
	}
	if len(near) == 0 {
		return -1
	}
	pos := 0
	for _, g := range n.gpus {
		if g == a.Device {
			break
		}
		if len(n.near[g]) > 0 && n.near[g][0] == near[0] {
			pos++
		}
	}
	return near[pos%len(near)]
}

// Leaf is the switch that a NIC hangs on, with the link; -1 when unknown.
func (r *Routes) Leaf(host, nic int) (sw, link int) {
	k := r.ordinal(host, nic)
	if k < 0 || r.cable[r.base[host]+k] < 0 {
		return -1, -1
	}
	link = int(r.cable[r.base[host]+k])
	l := &r.c.Network.Links[link]
	if l.A.ToHosts() {
		return l.B.Switch, link
	}
	return l.A.Switch, link
}

// ordinal is the position of a NIC device among the NICs of its host.
func (r *Routes) ordinal(host, nic int) int {
	n := r.typeOf(host)
	if n == nil {
		return -1
	}
	return slices.Index(n.nics, nic)
}

// between finds the links from one switch to another, fewest hops first. The
// search tree from a switch is kept for the next question.
func (r *Routes) between(from, to int) []int32 {
	if from == to {
		return nil
	}
	tree := r.tree(from)
	if tree[to] < 0 {
		return nil
	}
	var path []int32
	for at := to; at != from; {
		l := tree[at]
		path = append(path, l)
		link := &r.c.Network.Links[l]
		if at = link.A.Switch + link.B.Switch - at; len(path) > len(tree) {
			return nil
		}
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

func (r *Routes) tree(from int) []int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.trees[from]; ok {
		return t
	}
	t := make([]int32, len(r.adj))
	for i := range t {
		t[i] = -1
	}
	queue := []int{from}
	seen := make([]bool, len(r.adj))
	seen[from] = true
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, l := range r.adj[at] {
			link := &r.c.Network.Links[l]
			next := link.A.Switch + link.B.Switch - at
			if next < 0 || next >= len(seen) || seen[next] {
				continue
			}
			seen[next] = true
			t[next] = l
			queue = append(queue, next)
		}
	}
	if len(r.trees) >= maxTrees {
		clear(r.trees)
	}
	r.trees[from] = t
	return t
}
