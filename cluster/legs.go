package cluster

// Leg is one traversal of a link on a way: Link is its index among the links of
// the node's type or of the network, -1 where the way is known and no link
// describes it. Forward is from the link's A to its B.
type Leg struct {
	Link    int
	Forward bool
}

// Inside is the way between two devices of a node type, link by link; no legs and
// class Apart where there is none.
func (r *Routes) Inside(typ, a, b int) ([]Leg, Class) {
	return r.way(typ, a, func(n *nodeRoutes) ([]step, Class) { return n.path(a, b) })
}

// way is a way inside a node type.
func (r *Routes) way(typ, from int, find func(n *nodeRoutes) ([]step, Class)) ([]Leg, Class) {
	if typ < 0 || typ >= len(r.types) {
		return nil, Class{}
	}
	steps, c := find(r.types[typ])
	return r.types[typ].legs(from, steps), c
}

// Tree is the way between two devices of a node type over the PCIe tree and
// between sockets, whatever faster links there are: the way of staged copies.
func (r *Routes) Tree(typ, a, b int) ([]Leg, Class) {
	return r.way(typ, a, func(n *nodeRoutes) ([]step, Class) {
		if a == b {
			return nil, Class{Type: Self}
		}
		return n.tree(a, b)
	})
}

// Through is the way from a GPU to a NIC over NVLink and a peer beside that NIC
// (PXN); nil where there is none.
func (r *Routes) Through(typ, gpu, nic int) []Leg {
	legs, _ := r.way(typ, gpu, func(n *nodeRoutes) ([]step, Class) { return n.over(gpu, nic) })
	return legs
}

func (n *nodeRoutes) legs(from int, steps []step) []Leg {
	if len(steps) == 0 {
		return nil
	}
	legs := make([]Leg, 0, len(steps))
	for _, s := range steps {
		g := Leg{Link: s.link}
		if s.link >= 0 {
			g.Forward = n.t.Links[s.link].A == from
		}
		legs = append(legs, g)
		from = s.to
	}
	return legs
}

// Between is the way over the network from a NIC of one host to a NIC of another:
// the links of the network, up and down. False where no source says how the two
// are joined.
func (r *Routes) Between(hostA, nicA, hostB, nicB int) ([]Leg, Reach, bool) {
	leafA, linkA := r.Leaf(hostA, nicA)
	leafB, linkB := r.Leaf(hostB, nicB)
	if leafA < 0 || leafB < 0 {
		return nil, OverNet, false
	}
	net := &r.c.Network
	legs := []Leg{{linkA, net.Links[linkA].A.ToHosts()}}
	path := r.between(leafA, leafB)
	if leafA != leafB && path == nil {
		return nil, OverNet, false
	}
	at, top := leafA, net.Switches[leafA].Tier
	for _, i := range path {
		l := &net.Links[i]
		legs = append(legs, Leg{int(i), l.A.Switch == at})
		at = l.A.Switch + l.B.Switch - at
		top = max(top, net.Switches[at].Tier)
	}
	return append(legs, Leg{linkB, !net.Links[linkB].A.ToHosts()}), reachOf(len(path), top), true
}

func reachOf(trunks int, top Tier) Reach {
	switch {
	case trunks == 0:
		return OverLeaf
	case top >= Core:
		return OverCore
	}
	return OverSpine
}
