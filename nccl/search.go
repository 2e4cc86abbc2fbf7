package nccl

import (
	"slices"
)

// trial is a graph under search.
type trial struct {
	Graph
	hops         int
	least, most  int // channels
	collNet      bool
	intra, inter []int // flat, as long as most channels need
}

// searcher looks for one graph on a system. It takes bandwidth from links as it goes
// and gives it back when it returns (NCCL 2.28 src/graph/search.cc, ncclTopoSearchRec
// and followPath).
type searcher struct {
	s      *system
	ngpus  int
	byRank []int
	cur    trial
	best   trial
	nets   [PathDIS + 1][][]*topoNode // to try, by the worst type of path and the GPU; the first is for all
	stack  []int                      // lists of next GPUs, one behind the other
	buf    []score                    // of the list being sorted
	near   [][]int                    // GPUs nearest to each NIC
	work   int                        // hops looked at: what the search has cost so far
	found  int                        // times that a better graph came up
	limit  limit
	seen   seen
}

// Orders the search may force.
const (
	freeOrder = iota
	pciOrder
	replayOrder
)

func newSearcher(s *system) *searcher {
	x := &searcher{s: s, ngpus: len(s.nodes[kindGPU])}
	x.byRank = make([]int, x.ngpus)
	for i, g := range s.nodes[kindGPU] {
		x.byRank[g.gpu.rank] = i
	}
	x.near = make([][]int, len(s.nodes[kindNET]))
	for i, n := range s.nodes[kindNET] {
		n.net.full = n.net.bw
		near, kind := s.nearest(nil, n, kindGPU)
		for _, g := range near {
			if kind != PathDIS {
				x.near[i] = append(x.near[i], g.index)
			}
		}
	}
	for _, list := range s.nodes {
		for _, n := range list {
			for _, l := range n.links {
				l.full = l.bw
			}
			for _, paths := range n.paths {
				for i := range paths {
					paths[i].plain = paths[i].isPlain(n)
				}
			}
		}
	}
	return x
}

func (x *searcher) gpus() []*topoNode { return x.s.nodes[kindGPU] }

// copyTrial copies what has been found so far.
func (t *trial) copyTrial() trial {
	c := *t
	c.intra, c.inter = slices.Clone(t.intra), slices.Clone(t.inter)
	return c
}

// take subtracts a channel's bandwidth from a link, in steps of MB/s as NCCL
// does against rounding.
func take(l *topoLink, bw float32) {
	// Half away from zero, as math.Round, which takes a fifth of a search.
	x, half := float64((l.bw-bw)*1000), 0.5
	if x < 0 {
		half = -0.5
	}
	l.bw = float32(int64(x+half)) / 1000
}

// slowBridge reports a path between GPUs over Intel's host bridge, which is slow between peers.
func (p *topoPath) slowBridge(start *topoNode) bool {
	return p.kind == PathPHB && start.kind == kindGPU && slices.ContainsFunc(p.hops, func(l *topoLink) bool {
		return l.to.kind == kindCPU && l.to.cpu.arch == ArchX86 && l.to.cpu.vendor == Intel
	})
}

// readBack reports a hop to an older GPU that takes an eighth the other way.
func (l *topoLink) readBack(start *topoNode) bool {
	return l.to.kind == kindGPU && l.to.gpu.cc < 80 && start.kind != kindGPU
}

// power reports an NVLink to a POWER processor, which carries both ways at once.
func (l *topoLink) power() bool {
	return l.to.kind == kindCPU && l.to.cpu.arch == ArchPower && l.kind == linkNVL
}

func (p *topoPath) isPlain(start *topoNode) bool {
	return !p.slowBridge(start) && !slices.ContainsFunc(p.hops, func(l *topoLink) bool { return l.readBack(start) || l.power() })
}

// follow takes bandwidth along a path, hop by hop, and returns how many hops had
// enough.
func (x *searcher) follow(p *topoPath, start *topoNode, steps int, bw float32) int {
	if p.plain {
		for i, l := range p.hops[:steps] {
			if l.bw < bw {
				x.limit.short(l.full, l.bw, bw)
				return i
			}
			take(l, bw)
		}
		return steps
	}
	pci := bw
	if p.slowBridge(start) {
		pci = bw * 6 / 5
	}
	node := start
	for i, l := range p.hops[:steps] {
		fw := bw
		if l.kind == linkPCI {
			fw = pci
		}
		var rev float32
		var back *topoLink
		if l.readBack(start) {
			back, rev = l.to.linkTo(node, l.kind), fw/8
		}
		if l.power() {
			back = l.to.linkTo(node, l.kind)
			rev += fw
		}
		if l.bw < fw {
			x.limit.short(l.full, l.bw, fw)
			return i
		}
		if back != nil && rev != 0 && back.bw < rev {
			x.limit.short(back.full, back.bw, rev)
			return i
		}
		take(l, fw)
		if back != nil && rev != 0 {
			take(back, rev)
		}
		node = l.to
	}
	return steps
}

// lead tries to lead the channel from one node to another; mult -1 undoes it. It
// reports whether it succeeded.
func (x *searcher) lead(from, to *topoNode, mult float32) bool {
	if from == nil {
		return true
	}
	x.work++
	p := &from.paths[to.kind][to.index]
	g := &x.cur
	intra := (from.kind == kindGPU || from.kind == kindNVS) && (to.kind == kindGPU || to.kind == kindNVS)
	bw, kind := g.BwInter, g.TypeInter
	if intra {
		bw, kind = g.BwIntra, g.TypeIntra
	}
	if p.kind >= PathDIS {
		return false
	}
	if mult == 1 {
		if p.kind > kind {
			return false
		}
		tree := g.Pattern == BalancedTree || g.Pattern == TreePattern || g.Pattern == SplitTree
		if back := to.paths[from.kind]; tree && back != nil && back[from.index].kind > kind {
			return false
		}
	}
	bw *= mult
	x.work += len(p.hops)
	if n := x.follow(p, from, len(p.hops), bw); n < len(p.hops) {
		x.follow(p, from, n, -bw)
		return false
	}
	g.hops += int(mult * float32(len(p.hops)))
	return true
}

// better reports whether the graph under search beats the best so far: more
// bandwidth, then fewer hops; for NVLS more heads.
func (x *searcher) better() bool {
	c, b, v := &x.cur, &x.best, x.s.v
	if c.NChannels < c.least {
		return false
	}
	if c.Pattern == NVLSPattern {
		return c.NChannels > b.NChannels && c.NChannels <= x.ngpus ||
			v.From(19) && float32(c.NChannels)*c.BwInter > float32(b.NChannels)*b.BwInter
	}
	target := float32(1)
	if !v.From(20) {
		target = 1 - float32(b.CrossNIC-c.CrossNIC)*.15 // not crossing NICs was worth something
	}
	mine, other := float32(c.NChannels)*c.BwIntra, float32(b.NChannels)*b.BwIntra*target
	if mine != other {
		return mine > other
	}
	return c.Pattern == b.Pattern && c.CrossNIC == b.CrossNIC && c.hops < b.hops
}

// tryGPU goes to a GPU and on from there, and comes back.
func (x *searcher) tryGPU(step, backToNet, backToFirst, order int, time *int, from *topoNode, g int) {
	flag := uint64(1) << x.cur.NChannels
	gpu := x.gpus()[g]
	if !x.lead(from, gpu, 1) {
		return
	}
	gpu.gpu.used ^= flag
	x.fromGPU(gpu, step, backToNet, backToFirst, order, time)
	gpu.gpu.used ^= flag
	x.lead(from, gpu, -1)
}

// fromGPU continues a channel at a GPU.
func (x *searcher) fromGPU(gpu *topoNode, step, backToNet, backToFirst, order int, time *int) {
	if *time <= 0 {
		return
	}
	*time--
	g := &x.cur
	if step == x.ngpus {
		x.complete(time)
		return
	}
	g.intra[g.NChannels*x.ngpus+step] = gpu.gpu.rank
	switch {
	case step == backToNet:
		if x.s.inter {
			x.toNet(gpu, step, backToFirst, order, time)
		}
	case g.Pattern == NVLSPattern:
		x.tryNVLS(gpu.index, time)
	case g.Pattern == DirectPattern:
		x.tryDirect(gpu.index, time)
	case step < x.ngpus-1:
		mark := len(x.stack)
		for _, n := range x.next(gpu, step, backToNet, order) {
			x.tryGPU(step+1, backToNet, backToFirst, order, time, gpu, n)
		}
		x.stack = x.stack[:mark]
	case step == backToFirst:
		first := x.gpus()[x.byRank[g.intra[g.NChannels*x.ngpus]]]
		if x.lead(gpu, first, 1) {
			x.fromGPU(first, step+1, backToNet, -1, order, time)
			x.lead(gpu, first, -1)
		}
	default:
		x.fromGPU(gpu, x.ngpus, -1, -1, order, time)
	}
}

// complete ends a channel: keeps the graph if it is better, and goes on to the
// next channel.
func (x *searcher) complete(time *int) {
	g := &x.cur
	g.NChannels++
	if x.better() {
		x.best = g.copyTrial()
		x.found++
		if g.NChannels == g.most {
			*time = -1
		}
	}
	x.seen.reach(g.NChannels, g.hops)
	if g.NChannels < g.most {
		x.further(time)
	}
	g.NChannels--
}

// channel begins a channel.
func (x *searcher) channel(time *int) {
	g := &x.cur
	backToNet, backToFirst := -1, -1
	switch {
	case x.s.inter && g.Pattern == RingPattern:
		backToNet = x.ngpus - 1
	case x.s.inter && g.Pattern == SplitTree:
		backToNet = 1
	case x.s.inter:
		backToNet = 0
	case g.Pattern == RingPattern:
		backToFirst = x.ngpus - 1
	}
	if x.s.inter {
		x.fromNets(backToNet, backToFirst, time)
		return
	}
	if g.Pattern == NVLSPattern {
		x.tryGPU(0, backToNet, backToFirst, freeOrder, time, nil, g.NChannels)
		return
	}
	if g.NChannels == 0 {
		x.tryGPU(0, backToNet, backToFirst, pciOrder, time, nil, 0)
	} else {
		x.tryGPU(0, backToNet, backToFirst, replayOrder, time, nil, x.replay(-1))
	}
	if !g.SameChannels || g.NChannels == 0 {
		for i := range x.ngpus {
			x.tryGPU(0, backToNet, backToFirst, freeOrder, time, nil, i)
		}
	}
}

// replay is the GPU after a step of the channel before.
func (x *searcher) replay(step int) int {
	return x.byRank[x.cur.intra[(x.cur.NChannels-1)*x.ngpus+step+1]]
}

// tryNVLS takes the bandwidth of a head: all GPUs send to it through the switch,
// and it sends twice.
func (x *searcher) tryNVLS(head int, time *int) {
	nvs := x.s.nodes[kindNVS][0]
	share := func(i int) float32 {
		if i == head {
			return 2
		}
		return 1
	}
	down := 0
	for down < x.ngpus && x.lead(nvs, x.gpus()[down], share(down)) {
		down++
	}
	if down == x.ngpus {
		upN := 0
		for upN < x.ngpus && x.lead(x.gpus()[upN], nvs, share(upN)) {
			upN++
		}
		if upN == x.ngpus {
			x.fromGPU(nil, x.ngpus, -1, -1, freeOrder, time)
		}
		for upN--; upN >= 0; upN-- {
			x.lead(x.gpus()[upN], nvs, -share(upN))
		}
	}
	for down--; down >= 0; down-- {
		x.lead(nvs, x.gpus()[down], -share(down))
	}
}

// tryDirect takes the bandwidth of a head that all other GPUs talk to.
func (x *searcher) tryDirect(head int, time *int) {
	h := x.gpus()[head]
	share := 1 / float32(x.ngpus-1)
	out := 0
	for out < x.ngpus && x.lead(h, x.gpus()[out], share) {
		out++
	}
	if out == x.ngpus {
		in := 0
		for in < x.ngpus && x.lead(x.gpus()[in], h, share) {
			in++
		}
		if in == x.ngpus {
			step := 1
			for i, g := range x.gpus() {
				if i != head {
					x.cur.intra[x.cur.NChannels*x.ngpus+step] = g.gpu.rank
					step++
				}
			}
			x.fromGPU(nil, x.ngpus, -1, -1, freeOrder, time)
		}
		for in--; in >= 0; in-- {
			x.lead(x.gpus()[in], h, -share)
		}
	}
	for out--; out >= 0; out-- {
		x.lead(h, x.gpus()[out], -share)
	}
}
