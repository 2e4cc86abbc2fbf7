package cluster

import (
	"slices"
	"sync"

	"busbar.dev/unit"
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
	r.cable = slices.Repeat([]int32{-1}, r.base[len(c.Hosts)])
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
	if l.State == Down || r.c.Network.groups(l) {
		return
	}
	if !l.A.ToHosts() && !l.B.ToHosts() && !whole {
		r.adj[l.A.Switch] = append(r.adj[l.A.Switch], int32(i))
		r.adj[l.B.Switch] = append(r.adj[l.B.Switch], int32(i))
	}
	e, _, ok := l.HostEnd()
	if !ok || (e.NIC < 0) != whole {
		return
	}
	for h := range e.EachHost(len(r.c.Hosts)) {
		cables := r.cable[r.base[h]:r.base[h+1]]
		if !whole {
			cables = cables[min(e.NIC, len(cables)):min(e.NIC+1, len(cables))]
		}
		for k := range cables {
			if cables[k] < 0 {
				cables[k] = int32(i)
			}
		}
	}
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
	slices.Reverse(path)
	return path
}

func (r *Routes) tree(from int) []int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.trees[from]; ok {
		return t
	}
	t := slices.Repeat([]int32{-1}, len(r.adj))
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

// Path finds the way between two places: inside a node over NVLink or PCIe,
// between nodes out of a near NIC, over the switches and into a near NIC. In a
// rail-optimised network traffic to another rail first hops over NVLink to the
// GPU beside that rail's NIC (PXN) where there is NVLink, so that it stays on one
// leaf.
func (r *Routes) Path(a, b Place) Path {
	p := Path{From: a, To: b, Slowest: -1}
	ta, tb := r.typeOf(a.Host), r.typeOf(b.Host)
	if ta == nil || tb == nil {
		p.Via = "no known path"
		return p
	}
	if a.Host == b.Host {
		r.inNode(&p, ta)
	} else {
		r.overNet(&p, ta, tb)
	}
	p.finish()
	return p
}

func (r *Routes) inNode(p *Path, n *nodeRoutes) {
	steps, c := n.path(p.From.Device, p.To.Device)
	p.Class = c
	p2p := Maybe
	if i, ok := n.pairs[[2]int{p.From.Device, p.To.Device}]; ok {
		pair := &n.t.Pairs[i]
		p2p = pair.P2P
		if pair.Rate.Origin == Measured {
			p.Rate = pair.Rate
		}
	}
	d := n.t.Devices
	p.Via = viaInNode([2]Kind{d[p.From.Device].Kind, d[p.To.Device].Kind}, c, p2p)
	r.addSteps(p, n, p.From.Host, p.From.Device, steps)
}

// addSteps appends the hops of a path inside a node.
func (r *Routes) addSteps(p *Path, n *nodeRoutes, host, from int, steps []step) {
	name := func(d int) string { return r.c.Hosts[host].Name + "/" + n.t.Devices[d].Title() }
	for _, s := range steps {
		h := Hop{From: name(from), To: name(s.to), Kind: SMP.String()}
		if s.link >= 0 {
			l := &n.t.Links[s.link]
			h.Kind, h.Rate, h.Latency = l.Kind.String(), l.Rate, l.Latency
		}
		p.Hops = append(p.Hops, h)
		from = s.to
	}
}

func (r *Routes) overNet(p *Path, ta, tb *nodeRoutes) {
	exit, enter := r.nicFor(p.From), r.nicFor(p.To)
	if exit < 0 || enter < 0 {
		p.Via = "no known path: a node has no usable NIC near the device"
		return
	}
	pxn := false
	if r.c.Network.Rails > 1 {
		exit, pxn = r.sameRail(p.From, ta, exit, r.ordinal(p.To.Host, enter))
	}
	out, ca := ta.path(p.From.Device, exit)
	if pxn {
		out, ca = ta.over(p.From.Device, exit)
	}
	in, cb := tb.path(enter, p.To.Device)
	p.Class = netClass(ca, cb)
	r.addSteps(p, ta, p.From.Host, p.From.Device, out)
	r.addCables(p, exit, enter)
	r.addSteps(p, tb, p.To.Host, enter, in)
	switch {
	case pxn:
		p.Via = "NVLink hop to the rail's NIC (PXN), " + p.Via
	case p.Class.Type == NET: // from NIC to NIC
	case ca.Type <= PXB && cb.Type <= PXB && r.c.Network.Rails > 1 &&
		r.ordinal(p.From.Host, exit) == r.ordinal(p.To.Host, enter):
		p.Via = "rail-local NIC, " + p.Via
	case ca.Type <= PXB && cb.Type <= PXB:
		p.Via = "near NIC, " + p.Via
	default:
		p.Via = "NIC through the host (" + p.Class.String() + "), " + p.Via
	}
}

// netClass is the class of a path between nodes: that of its worse end, or NET
// when both ends are NICs.
func netClass(a, b Class) Class {
	switch {
	case a.Type == Self && b.Type == Self:
		return Class{Type: NET}
	case b.Type == Apart || b.Nearer(a):
		return a
	}
	return b
}

// sameRail picks the NIC of the sender that is on the receiver's rail, when it
// can be reached over NVLink through the GPU beside it.
func (r *Routes) sameRail(a Place, n *nodeRoutes, exit, rail int) (nic int, pxn bool) {
	if rail < 0 || rail >= len(n.nics) || n.nics[rail] == exit || n.t.Devices[a.Device].Kind != GPU {
		return exit, false
	}
	if steps, _ := n.over(a.Device, n.nics[rail]); steps == nil {
		return exit, false
	}
	return n.nics[rail], true
}

// over is the PXN path from a GPU to a NIC through a peer beside that NIC.
func (n *nodeRoutes) over(gpu, nic int) ([]step, Class) {
	return n.viaPeer(gpu, nic, func(_ int, c ClassType) bool { return c <= PXB })
}

// viaPeer is the first path from a GPU over NVLink to a peer, and from there to a NIC by a path that will do.
func (n *nodeRoutes) viaPeer(gpu, nic int, will func(peer int, c ClassType) bool) ([]step, Class) {
	for _, g := range n.gpus {
		if g == gpu {
			continue
		}
		rest, c := n.tree(g, nic)
		if c.Type == Apart || !will(g, c.Type) {
			continue
		}
		if first, c := n.fast(gpu, g); c.Type == NV {
			return append(first[:len(first):len(first)], rest...), Class{Type: PXN}
		}
	}
	return nil, Class{}
}

// addCables appends the hops from NIC to NIC over the switches. Of a NIC's cable both say a rate; the lower one counts.
func (r *Routes) addCables(p *Path, exit, enter int) {
	a, b := &r.typeOf(p.From.Host).t.Devices[exit], &r.typeOf(p.To.Host).t.Devices[enter]
	from, end := r.c.Hosts[p.From.Host].Name+"/"+a.Title(), r.c.Hosts[p.To.Host].Name+"/"+b.Title()
	legs, reach, ok := r.Between(p.From.Host, exit, p.To.Host, enter)
	p.Reach, p.Via = reach, reachWords[reach]
	if !ok {
		rate := slower(nicRate(a.NIC), nicRate(b.NIC))
		if rate.Known() {
			rate = FromAssumed(rate.Value, "the slower NIC's rate; no source says how the two are cabled")
		}
		p.Hops = append(p.Hops, Hop{From: from, To: end, Kind: "network", Rate: rate})
		return
	}
	for i, leg := range legs {
		l := &r.c.Network.Links[leg.Link]
		h := Hop{From: from, To: end, Kind: "cable", Rate: l.Rate, Latency: l.Latency}
		if i == 0 {
			h.Rate = slower(nicRate(a.NIC), h.Rate)
		}
		if i == len(legs)-1 {
			h.Rate = slower(nicRate(b.NIC), h.Rate)
		} else {
			to := l.A
			if leg.Forward {
				to = l.B
			}
			h.To = r.c.Network.Switches[to.Switch].Name
		}
		p.Hops = append(p.Hops, h)
		from = h.To
	}
}

// slower is the lower of two rates, as far as they are known; of equal ones the first.
func slower(a, b Fact[unit.Rate]) Fact[unit.Rate] {
	if !a.Known() || b.Known() && b.Value < a.Value {
		return b
	}
	return a
}

func nicRate(n *NICInfo) Fact[unit.Rate] {
	if n == nil {
		return Fact[unit.Rate]{}
	}
	return n.Rate()
}
