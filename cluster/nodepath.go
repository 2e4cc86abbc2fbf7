package cluster

import "slices"

// step is one traversed link of a node: the link's index and the end reached.
type step struct{ link, to int }

// nodeRoutes answers for paths inside one node type. It is built once per type
// and never changes.
type nodeRoutes struct {
	t *NodeType
	// up[d] is the link from d to its parent on the traffic tree, -1 at the top.
	up []int
	// direct[d] lists NVLink, xGMI and other point-to-point links that leave d.
	direct [][]step
	smp    map[[2]int]int // link between two NUMA domains
	pairs  map[[2]int]int // index into t.Pairs
	nics   []int          // device indexes of NICs, by position
	gpus   []int
	near   [][]int           // per device: nearest NICs
	chains [][]int           // per GPU and NIC: it and what is above it
	behind map[[2]int][]step // per NVSwitch and device: the links from one to the other
	above  map[int][]step    // per NVSwitch: the links to other NVSwitches
}

func newNodeRoutes(t *NodeType) *nodeRoutes {
	n := &nodeRoutes{
		t:      t,
		up:     slices.Repeat([]int{-1}, len(t.Devices)),
		direct: make([][]step, len(t.Devices)),
		smp:    make(map[[2]int]int),
		pairs:  make(map[[2]int]int, len(t.Pairs)),
		nics:   t.Of(NIC),
		gpus:   t.Of(GPU),
		near:   make([][]int, len(t.Devices)),
	}
	n.chains = make([][]int, len(t.Devices))
	for _, ends := range [][]int{n.gpus, n.nics} {
		for _, d := range ends {
			n.chains[d] = n.chain(d)
		}
	}
	for i, l := range t.Links {
		n.addLink(i, l)
	}
	for d, list := range n.direct {
		n.direct[d] = n.nearestLinks(list)
	}
	n.behind, n.above = map[[2]int][]step{}, map[int][]step{}
	for d := range t.Devices {
		if t.Devices[d].Kind == NVSwitch {
			for _, e := range n.direct[d] {
				n.behind[[2]int{d, e.to}] = append(n.behind[[2]int{d, e.to}], e)
				if t.Devices[e.to].Kind == NVSwitch {
					n.above[d] = append(n.above[d], e)
				}
			}
		}
	}
	for i, p := range t.Pairs {
		n.pairs[[2]int{p.A, p.B}] = i
	}
	for _, g := range n.gpus {
		n.near[g] = n.nearest(g)
	}
	return n
}

func (n *nodeRoutes) addLink(i int, l Link) {
	d := n.t.Devices
	switch {
	case l.Kind == SMP:
		n.smp[[2]int{l.A, l.B}] = i
		if !l.OneWay {
			n.smp[[2]int{l.B, l.A}] = i
		}
	case d[l.B].Parent == l.A:
		n.up[l.B] = i
	case d[l.A].Parent == l.B:
		n.up[l.A] = i
	default:
		n.direct[l.A] = append(n.direct[l.A], step{i, l.B})
		if !l.OneWay {
			n.direct[l.B] = append(n.direct[l.B], step{i, l.A})
		}
	}
}

// nearestLinks leaves one link to each device where there are very many, the nearest: a text may name a million of them
// between the same two.
func (n *nodeRoutes) nearestLinks(list []step) []step {
	if len(list) <= 64 {
		return list
	}
	at := make(map[int]int, len(list))
	out := list[:0]
	for _, s := range list {
		k, known := at[s.to]
		switch {
		case !known:
			at[s.to] = len(out)
			out = append(out, s)
		case linkClass(&n.t.Links[s.link]).Nearer(linkClass(&n.t.Links[out[k].link])):
			out[k] = s
		}
	}
	return out
}

// parent is the device above d that carries its traffic: sockets only contain.
func (n *nodeRoutes) parent(d int) int {
	p := n.t.Devices[d].Parent
	if p >= 0 && n.t.Devices[p].Kind == Socket {
		return -1
	}
	return p
}

// fast finds a direct link, one through an NVSwitch, or one through two NVSwitches and the second level that joins
// them. What a pair of GPUs has is what each of the two has at its switch: links between switches are shared by all
// GPUs behind them.
func (n *nodeRoutes) fast(a, b int) ([]step, Class) {
	var best []step
	var class Class
	take := func(c Class, steps ...step) {
		if best == nil || c.Nearer(class) {
			best, class = steps, c
		}
	}
	for _, s := range n.direct[a] {
		c := linkClass(&n.t.Links[s.link])
		switch {
		case s.to == b:
			take(c, s)
			continue
		case n.t.Devices[s.to].Kind != NVSwitch:
			continue
		}
		for _, e := range n.behind[[2]int{s.to, b}] {
			take(c.atMost(linkClass(&n.t.Links[e.link])), s, e)
		}
	}
	if best == nil {
		return n.secondLevel(a, b)
	}
	return best, class
}

// secondLevel finds the way between GPUs behind two NVSwitches that one of a second level joins.
func (n *nodeRoutes) secondLevel(a, b int) ([]step, Class) {
	for _, s := range n.direct[a] {
		for _, up := range n.above[s.to] {
			for _, e := range n.direct[b] {
				if down := n.behind[[2]int{up.to, e.to}]; len(down) > 0 && len(n.above[e.to]) > 0 && !n.t.Links[e.link].OneWay {
					return []step{s, up, down[0], {e.link, b}}, linkClass(&n.t.Links[s.link]).atMost(linkClass(&n.t.Links[e.link]))
				}
			}
		}
	}
	return nil, Class{}
}

// atMost is a class with no more links than another has.
func (c Class) atMost(far Class) Class {
	c.Links = min(c.Links, far.Links)
	return c
}

func linkClass(l *Link) Class {
	switch l.Kind {
	case NVLink:
		return Class{NV, l.Lanes}
	case C2C:
		return Class{Type: C2}
	case PCIe:
		return Class{Type: PIX}
	case XGMI:
		return Class{Type: XG, Links: l.Lanes}
	}
	return Class{Type: LK, Links: l.Lanes}
}

// tree finds the path over the PCIe tree and, between NUMA domains, the SMP link.
func (n *nodeRoutes) tree(a, b int) ([]step, Class) {
	pathA, pathB := n.chain(a), n.chain(b)
	// Drop what the two chains share above their meeting point.
	i, j := len(pathA)-1, len(pathB)-1
	for i > 0 && j > 0 && pathA[i] == pathB[j] && pathA[i-1] == pathB[j-1] {
		i, j = i-1, j-1
	}
	var steps []step
	rise := func(chain []int) {
		for k := 0; k+1 < len(chain); k++ {
			steps = append(steps, step{n.up[chain[k]], chain[k+1]})
		}
	}
	fall := func(chain []int) {
		for k := len(chain) - 1; k > 0; k-- {
			steps = append(steps, step{n.up[chain[k-1]], chain[k-1]})
		}
	}
	rise(pathA[:i+1])
	if pathA[i] == pathB[j] {
		fall(pathB[:j+1])
		return steps, n.meetClass(a, b, pathA[:i+1], pathB[:j+1])
	}
	top, other := pathA[len(pathA)-1], pathB[len(pathB)-1]
	d := n.t.Devices
	if d[top].Kind != NUMA || d[other].Kind != NUMA || d[top].Tray != d[other].Tray {
		return nil, Class{}
	}
	link, ok := n.smp[[2]int{top, other}]
	if !ok {
		link = -1
	}
	steps = append(steps, step{link, other})
	fall(pathB)
	return steps, Class{Type: SYS}
}

// maxChain is more than the levels of any device tree: PCI buses end at 255.
const maxChain = 1024

// chain lists d and what is above it.
func (n *nodeRoutes) chain(d int) []int {
	if n.chains[d] != nil {
		return n.chains[d]
	}
	var c []int
	for ; d >= 0 && len(c) <= maxChain; d = n.parent(d) {
		c = append(c, d)
	}
	return c
}

// meetClass names a tree path by where its two halves meet.
func (n *nodeRoutes) meetClass(a, b int, pathA, pathB []int) Class {
	d := n.t.Devices
	meet := pathA[len(pathA)-1]
	switches := 0
	for _, x := range append(pathA[:len(pathA):len(pathA)], pathB[:len(pathB)-1]...) {
		if d[x].Kind == PCISwitch && x != a && x != b {
			switches++
		}
	}
	sameCard := d[a].PCI != "" && d[a].PCI.Slot() == d[b].PCI.Slot() && d[a].Parent == d[b].Parent
	switch {
	case sameCard:
		return Class{Type: PIX}
	case d[meet].Kind == NUMA && meet != a && meet != b:
		return Class{Type: NODE}
	case d[meet].Kind == NUMA || d[meet].Kind == RootComplex:
		if n.isC2C(a, b, pathA, pathB) {
			return Class{Type: C2}
		}
		return Class{Type: PHB}
	case switches > 1:
		return Class{Type: PXB}
	}
	return Class{Type: PIX}
}

// isC2C reports whether one end is the CPU and the other hangs on it by C2C.
func (n *nodeRoutes) isC2C(a, b int, pathA, pathB []int) bool {
	if len(pathA)+len(pathB) != 3 {
		return false
	}
	child := a
	if len(pathB) == 2 {
		child = b
	}
	return n.up[child] >= 0 && n.t.Links[n.up[child]].Kind == C2C
}

// path finds the path traffic takes between two devices of the node.
func (n *nodeRoutes) path(a, b int) ([]step, Class) {
	if a == b {
		return nil, Class{Type: Self}
	}
	if s, c := n.fast(a, b); s != nil {
		return s, c
	}
	steps, c := n.tree(a, b)
	if c.Type != Apart {
		return steps, c
	}
	return n.proxied(a, b)
}

// proxied finds the path between a GPU and a NIC of another tray: over NVLink
// to a GPU near that NIC, as NCCL's PXN does.
func (n *nodeRoutes) proxied(a, b int) ([]step, Class) {
	d := n.t.Devices
	if d[a].Kind == NIC && d[b].Kind == GPU {
		if s, c := n.proxied(b, a); s != nil {
			return n.reverse(b, s), c
		}
		return nil, Class{}
	}
	if d[a].Kind != GPU || d[b].Kind != NIC {
		return nil, Class{}
	}
	return n.viaPeer(a, b, func(peer int, _ ClassType) bool { return d[peer].Tray == d[b].Tray })
}

// reverse turns a path from a into the path to a.
func (n *nodeRoutes) reverse(a int, steps []step) []step {
	out := make([]step, 0, len(steps))
	for i, s := range slices.Backward(steps) {
		to := a
		if i > 0 {
			to = steps[i-1].to
		}
		out = append(out, step{s.link, to})
	}
	return out
}
