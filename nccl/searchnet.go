package nccl

// netsFor lists the NICs to try, remembered because the search asks often.
func (x *searcher) netsFor(gpu *topoNode) []*topoNode {
	k, most := 0, x.cur.TypeInter
	if gpu != nil {
		k = 1 + gpu.index
	}
	if x.nets[most] == nil {
		x.nets[most] = make([][]*topoNode, x.ngpus+1)
	}
	if x.nets[most][k] == nil {
		x.nets[most][k] = x.s.selectNets(most, gpu)
	}
	return x.nets[most][k]
}

// toNet leaves the node from a GPU, or attaches a tree's link to it.
func (x *searcher) toNet(gpu *topoNode, step, backToFirst, order int, time *int) {
	g := &x.cur
	start := x.s.nodes[kindNET][g.inter[g.NChannels*2]]
	for _, n := range x.netsFor(gpu) {
		if !x.fits(start, n, step) {
			continue
		}
		again := -1
		full := g.BwInter
		balanced := g.Pattern == BalancedTree
		if balanced {
			// The first two GPUs carry half each.
			if step == 0 {
				again = 1
			}
			g.BwInter /= 2
		}
		ok := x.lead(gpu, n, 1)
		g.BwInter = full
		if !ok {
			continue
		}
		g.inter[g.NChannels*2+1] = n.index
		x.fromGPU(gpu, step, again, backToFirst, order, time)
		if balanced {
			g.BwInter /= 2
		}
		x.lead(gpu, n, -1)
		g.BwInter = full
	}
}

// fits reports whether a channel that came in by one NIC may leave by another
// (NCCL 2.28 src/graph/search.cc, ncclTopoSearchRecGpu).
func (x *searcher) fits(start, n *topoNode, step int) bool {
	g, v := &x.cur, x.s.v
	if g.Pattern == TreePattern && n != start {
		return false
	}
	other := n.net.asic != start.net.asic || n.net.port != start.net.port
	odd := g.NChannels&1 == 1
	crossed := odd && n.index != g.inter[max(g.NChannels-1, 0)*2]
	switch {
	case v.From(23):
		if g.Pattern == RingPattern && g.CrossNIC == 2 {
			if crossed {
				return false
			}
		} else if g.CrossNIC == 0 && other {
			return false
		}
	default:
		if g.CrossNIC != 1 && other || v.From(20) && g.CrossNIC != 0 && crossed {
			return false
		}
	}
	return g.Pattern != BalancedTree || step == 0 || n.index == g.inter[g.NChannels*2+1]
}

// share takes or gives back whole GB/s of every port that is the same cable.
func (x *searcher) share(n *topoNode, bw float32) {
	for _, o := range x.s.nodes[kindNET] {
		if o.net.asic == n.net.asic && o.net.port == n.net.port {
			o.net.bw -= bw
		}
	}
}

// fromNets begins a channel at a NIC.
func (x *searcher) fromNets(backToNet, backToFirst int, time *int) {
	g, v := &x.cur, x.s.v
	bw := float32(int(g.BwInter))
	nets := x.netsFor(nil)
	heads := g.Pattern == NVLSPattern || g.Pattern == DirectPattern
	found := false
	for i := range nets {
		if heads && found {
			break
		}
		n := nets[i]
		if v.From(19) || heads {
			n = nets[(g.NChannels+i)%len(nets)]
		}
		if g.collNet && !n.net.coll {
			continue
		}
		if n.net.bw < bw {
			x.limit.short(n.net.full, n.net.bw, bw)
			continue
		}
		cross := v.From(23) && g.Pattern == RingPattern && g.CrossNIC == 2 || v.From(20) && !v.From(23) && g.CrossNIC != 0
		if cross && g.NChannels&1 == 1 && n.index != g.inter[(g.NChannels-1)*2+1] {
			continue
		}
		g.inter[g.NChannels*2] = n.index
		g.LatencyInter = n.net.latency
		x.share(n, bw)
		if heads {
			found = x.head(n, len(nets), backToNet, backToFirst, time) || !v.From(22)
		} else {
			x.start(n, bw, backToNet, backToFirst, time)
		}
		x.share(n, -bw)
	}
}

// head makes the GPU beside a NIC a head, unless it is one.
func (x *searcher) head(n *topoNode, nets, backToNet, backToFirst int, time *int) bool {
	g := &x.cur
	l := n.net.localGPU
	if g.NChannels >= nets || l < 0 {
		return false
	}
	if x.s.v.From(22) {
		for c := range g.NChannels {
			if g.intra[c*x.ngpus] == x.gpus()[l].gpu.rank {
				return false
			}
		}
	}
	from := n
	if !x.s.v.From(19) {
		from = nil
	}
	x.tryGPU(0, backToNet, backToFirst, freeOrder, time, from, l)
	return true
}

// start tries the GPUs a ring or tree may begin at behind a NIC.
func (x *searcher) start(n *topoNode, bw float32, backToNet, backToFirst int, time *int) {
	g, v := &x.cur, x.s.v
	try := func(order, gpu int, t *int) { x.tryGPU(0, backToNet, backToFirst, order, t, n, gpu) }
	if g.NChannels > 0 && (g.SameChannels || !v.From(27)) {
		try(replayOrder, x.replay(-1), time)
	}
	if g.NChannels > 0 && g.SameChannels {
		return
	}
	if g.NChannels == 0 && (len(x.s.nodes[kindNVS]) == 0 || !v.From(19)) {
		// PCI order sets a reference, outside of the budget.
		t := 1 << 10
		try(pciOrder, 0, &t)
		if t == -1 {
			*time = -1
		}
	}
	if v.From(27) {
		if l := n.net.localGPU; l >= 0 {
			try(freeOrder, l, time)
		}
		for _, g := range x.near[n.index] {
			if g != n.net.localGPU {
				try(freeOrder, g, time)
			}
		}
		return
	}
	x.startOld(n, bw, try, time)
}

// startOld is the choice up to 2.26: GPUs of most bandwidth and fewest hops, in
// turn by channel; in 2.18 those with PCIe bandwidth left first.
func (x *searcher) startOld(n *topoNode, bw float32, try func(order, gpu int, t *int), time *int) {
	paths := n.paths[kindGPU]
	var best float32
	hops := 1 << 30
	for i := range paths {
		h := len(paths[i].hops)
		if paths[i].bw > best {
			best, hops = paths[i].bw, h
		} else if paths[i].bw == best && h > 0 && h < hops {
			hops = h
		}
	}
	if best < bw {
		x.limit.short(best, best, bw)
		return
	}
	is := func(g int) bool { return paths[g].bw == best && len(paths[g].hops) == hops }
	if x.s.v.From(19) {
		for i := range x.ngpus {
			if g := (x.cur.NChannels + i) % x.ngpus; is(g) {
				try(freeOrder, g, time)
			}
		}
		return
	}
	x.limit.ordered = true
	for used := range 2 {
		for g := range x.ngpus {
			if is(g) && bit(pciLeft(x.gpus()[g]) <= 0) == used {
				try(freeOrder, g, time)
			}
		}
	}
}
