package traffic

import (
	"cmp"
	"slices"
)

// hops lists the edges of rings and trees with the ways they take.
func (b *builder) hops() {
	b.nics = map[[2]int]int{}
	index := map[edge]int{}
	get := func(e edge) *Hop {
		at, ok := index[e]
		if !ok {
			at = len(b.Hops)
			index[e] = at
			b.Hops = append(b.Hops, b.hop(e))
		}
		return &b.Hops[at]
	}
	for i := range b.Channels {
		c := &b.Channels[i]
		for k, from := range c.Ring {
			if c.Cut && k == len(c.Ring)-1 {
				break // who follows is not printed
			}
			if to := c.Ring[(k+1)%len(c.Ring)]; from != to && from >= 0 && to >= 0 && from < b.NRanks && to < b.NRanks {
				get(edge{c.Index, from, to}).Ring = true
			}
		}
		for child, parent := range c.Parent {
			if parent >= 0 && parent != child {
				get(edge{c.Index, child, parent}).Tree = true
				get(edge{c.Index, parent, child}).Tree = true
			}
		}
	}
	b.list()
}

// list adds the NICs that the log names and nothing uses, and puts NICs in order.
func (b *builder) list() {
	used := map[string]bool{}
	for _, n := range b.NICs {
		used[n.Net] = true
	}
	for i := range b.log.NICs {
		o := &b.log.NICs[i]
		if o.Index < 0 || o.Net == "Socket" && !used["Socket"] {
			continue
		}
		for h := range b.Hosts {
			if b.Hosts[h].Name == o.Host && len(b.Hosts) > 1 &&
				(o.Net != "IB" || used["IB"] || used["IBext"] || len(used) == 0) {
				b.nic(h, o.Index, o.Net)
			}
		}
	}
	sorted, to := reorder(b.NICs, func(x, y *NIC) int { return cmp.Or(x.Host-y.Host, x.Dev-y.Dev) })
	for i := range b.Hosts {
		b.Hosts[i].NICs = nil
	}
	for i, n := range sorted {
		b.Hosts[n.Host].NICs = append(b.Hosts[n.Host].NICs, i)
	}
	b.NICs = sorted
	for i := range b.Hops {
		h := &b.Hops[i]
		if h.Out >= 0 {
			h.Out = to[h.Out]
		}
		if h.In >= 0 {
			h.In = to[h.In]
		}
	}
}

// reorder is a list in order, and where each of its elements went.
func reorder[T any](list []T, compare func(x, y *T) int) (sorted []T, to []int) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return compare(&list[x], &list[y]) })
	sorted, to = make([]T, len(list)), make([]int, len(list))
	for i, from := range order {
		sorted[i], to[from] = list[from], i
	}
	return sorted, to
}

// hop looks up how an edge is connected.
func (b *builder) hop(e edge) Hop {
	h := Hop{Channel: e.channel, From: e.from, To: e.to, Out: -1, In: -1, Proxy: -1}
	sent, received := b.send[e], b.recv[e]
	n := cmp.Or(sent, received)
	if n == nil {
		return h
	}
	h.Transport, h.Via, h.GDR, h.Line = n.Transport, n.Via, n.GDR, n.First.Line
	if n.Transport != "NET" {
		return h
	}
	if sent != nil {
		h.Out, h.Proxy = b.nic(b.Ranks[e.from].Host, sent.NetDev, sent.Net), sent.Proxy
	}
	if received != nil && received.Transport == n.Transport {
		h.In = b.nic(b.Ranks[e.to].Host, received.NetDev, received.Net)
	}
	return h
}

// crosses reports whether a hop goes from host to host.
func (r *Run) crosses(h *Hop) bool {
	a, b := r.Ranks[h.From].Host, r.Ranks[h.To].Host
	return h.Transport == "NET" || a >= 0 && b >= 0 && a != b
}

// loads adds up what passes each NIC and marks the busiest.
func (b *builder) loads() {
	ring, tree := b.RingPart(), b.TreePart()
	ways := map[string]*Transport{}
	pairs := map[string]map[[2]int]bool{}
	for i := range b.Hops {
		h := &b.Hops[i]
		for _, end := range []struct {
			nic, rank int
			in        bool
		}{{h.Out, h.From, false}, {h.In, h.To, true}} {
			if end.nic < 0 {
				continue
			}
			n := &b.NICs[end.nic]
			if h.Ring {
				n.Ring.add(ring, end.in)
			}
			if h.Tree {
				n.Tree.add(tree, end.in)
			}
			n.Hops++
			if h.GDR {
				n.GDR++
			}
			n.Channels, n.Ranks = put(n.Channels, h.Channel), put(n.Ranks, end.rank)
		}
		via := way(h)
		if ways[via] == nil {
			ways[via], pairs[via] = &Transport{Via: via}, map[[2]int]bool{}
		}
		ways[via].Hops++
		pairs[via][[2]int{h.From, h.To}] = true
	}
	for via, t := range ways {
		t.Pairs = len(pairs[via])
		b.Transports = append(b.Transports, *t)
	}
	slices.SortFunc(b.Transports, func(x, y Transport) int { return cmp.Or(y.Hops-x.Hops, cmp.Compare(x.Via, y.Via)) })
	b.busiest()
}

// way is how a hop goes, without device numbers.
func way(h *Hop) string {
	switch h.Transport {
	case "":
		return "not in the log"
	case "NET":
		s := "NET"
		if h.GDR {
			s += "/GDRDMA"
		}
		if h.Proxy >= 0 {
			s += " through another GPU (PXN)"
		}
		return s
	}
	return h.Via
}

// put adds a number to an ordered list once.
func put(list []int, v int) []int {
	i, ok := slices.BinarySearch(list, v)
	if ok {
		return list
	}
	return slices.Insert(list, i, v)
}

// weight is what a NIC is judged by: the ring's traffic, or the tree's where the
// log shows no ring that leaves a host.
func (r *Run) weight(n *NIC) float64 {
	if r.ringed() {
		return n.Ring.most()
	}
	return n.Tree.most()
}

func (r *Run) ringed() bool {
	return slices.ContainsFunc(r.NICs, func(n NIC) bool { return n.Ring.most() > 0 })
}

// busiest marks the NICs that carry most.
func (b *builder) busiest() {
	most := 0.0
	for i := range b.NICs {
		most = max(most, b.weight(&b.NICs[i]))
	}
	for i := range b.NICs {
		b.NICs[i].Busiest = most > 0 && b.weight(&b.NICs[i]) > most*0.999
	}
}

// flows adds up what goes between hosts.
func (b *builder) flows() {
	index := map[[4]int]int{}
	ring, tree := b.RingPart(), b.TreePart()
	for i := range b.Hops {
		h := &b.Hops[i]
		from, to := b.Ranks[h.From].Host, b.Ranks[h.To].Host
		if !b.crosses(h) {
			continue
		}
		key := [4]int{from, to, h.Out, h.In}
		at, ok := index[key]
		if !ok {
			at = len(b.Flows)
			index[key] = at
			b.Flows = append(b.Flows, Flow{From: from, To: to, Out: h.Out, In: h.In})
		}
		f := &b.Flows[at]
		if h.Ring {
			f.Ring += ring
		}
		if h.Tree {
			f.Tree += tree
		}
		f.Channels = put(f.Channels, h.Channel)
	}
	slices.SortFunc(b.Flows, func(x, y Flow) int {
		return cmp.Or(x.From-y.From, x.To-y.To, x.Out-y.Out, x.In-y.In)
	})
}
