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

// takeBandwidth subtracts a channel's bandwidth from a link, in steps of MB/s as NCCL
// does against rounding.
func takeBandwidth(l *topoLink, bw float32) {
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
	return !p.slowBridge(start) &&
		!slices.ContainsFunc(p.hops, func(l *topoLink) bool { return l.readBack(start) || l.power() })
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
			takeBandwidth(l, bw)
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
		takeBandwidth(l, fw)
		if back != nil && rev != 0 {
			takeBandwidth(back, rev)
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
	c, b := &x.cur, &x.best
	if c.NChannels < c.least {
		return false
	}
	if c.Pattern == NVLSPattern {
		return c.NChannels > b.NChannels && c.NChannels <= x.ngpus ||
			x.s.NVLSInter && float32(c.NChannels)*c.BwInter > float32(b.NChannels)*b.BwInter
	}
	target := float32(1)
	if !x.s.PairedRings {
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
	g := &x.cur
	if g.Pattern == TreePattern && n != start {
		return false
	}
	other := n.net.asic != start.net.asic || n.net.port != start.net.port
	odd := g.NChannels&1 == 1
	crossed := odd && n.index != g.inter[max(g.NChannels-1, 0)*2]
	switch {
	case x.s.CrossPairs:
		if g.Pattern == RingPattern && g.CrossNIC == 2 {
			if crossed {
				return false
			}
		} else if g.CrossNIC == 0 && other {
			return false
		}
	default:
		if g.CrossNIC != 1 && other || x.s.PairedRings && g.CrossNIC != 0 && crossed {
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
	g := &x.cur
	bw := float32(int(g.BwInter))
	nets := x.netsFor(nil)
	heads := g.Pattern == NVLSPattern || g.Pattern == DirectPattern
	found := false
	for i := range nets {
		if heads && found {
			break
		}
		n := nets[i]
		if x.s.InTurn || heads {
			n = nets[(g.NChannels+i)%len(nets)]
		}
		if g.collNet && !n.net.coll {
			continue
		}
		if n.net.bw < bw {
			x.limit.short(n.net.full, n.net.bw, bw)
			continue
		}
		cross := x.s.PairedRings && g.CrossNIC != 0
		if x.s.CrossPairs {
			cross = g.Pattern == RingPattern && g.CrossNIC == 2
		}
		if cross && g.NChannels&1 == 1 && n.index != g.inter[(g.NChannels-1)*2+1] {
			continue
		}
		g.inter[g.NChannels*2] = n.index
		g.LatencyInter = n.net.latency
		x.share(n, bw)
		if heads {
			found = x.head(n, len(nets), backToNet, backToFirst, time) || !x.s.DistinctHeads
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
	if x.s.DistinctHeads {
		for c := range g.NChannels {
			if g.intra[c*x.ngpus] == x.gpus()[l].gpu.rank {
				return false
			}
		}
	}
	from := n
	if !x.s.HeadFromNet {
		from = nil
	}
	x.tryGPU(0, backToNet, backToFirst, freeOrder, time, from, l)
	return true
}

// start tries the GPUs a ring or tree may begin at behind a NIC.
func (x *searcher) start(n *topoNode, bw float32, backToNet, backToFirst int, time *int) {
	g := &x.cur
	try := func(order, gpu int, t *int) { x.tryGPU(0, backToNet, backToFirst, order, t, n, gpu) }
	if g.NChannels > 0 && (g.SameChannels || !x.s.NearStart) {
		try(replayOrder, x.replay(-1), time)
	}
	if g.NChannels > 0 && g.SameChannels {
		return
	}
	if g.NChannels == 0 && (len(x.s.nodes[kindNVS]) == 0 || !x.s.SwitchOrder) {
		// PCI order sets a reference, outside of the budget.
		t := 1 << 10
		try(pciOrder, 0, &t)
		if t == -1 {
			*time = -1
		}
	}
	if x.s.NearStart {
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
	if x.s.InTurn {
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

// score ranks a GPU as the next hop; more important fields first.
type score struct {
	g                            int
	interBw, interPCI, interHops int
	intraBw, intraHops           int
	order                        int // by index, from the GPU on
}

// before reports that a GPU is to be tried before another.
func (s *score) before(o *score) bool {
	switch {
	case s.interBw != o.interBw:
		return s.interBw > o.interBw
	case s.interPCI != o.interPCI:
		return s.interPCI > o.interPCI
	case s.interHops != o.interHops:
		return s.interHops < o.interHops
	case s.intraBw != o.intraBw:
		return s.intraBw > o.intraBw
	case s.intraHops != o.intraHops:
		return s.intraHops < o.intraHops
	}
	return s.order < o.order
}

// sortScores puts the best first. Lists are of a node's GPUs, so short that going through them
// one by one is fastest, and the search sorts at every step.
func sortScores(list []score) {
	for i := 1; i < len(list); i++ {
		for k := i; k > 0 && list[k].before(&list[k-1]); k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
}

// push puts a list on the stack of lists, which saves the search an allocation a
// step.
func (x *searcher) push(list ...int) []int {
	mark := len(x.stack)
	x.stack = append(x.stack, list...)
	return x.stack[mark:len(x.stack):len(x.stack)]
}

// next lists the GPUs to try after one, best first.
func (x *searcher) next(gpu *topoNode, step, backToNet, order int) []int {
	switch order {
	case pciOrder:
		return x.push(step + 1)
	case replayOrder:
		return x.push(x.replay(step))
	}
	sortNet := 0
	switch {
	case backToNet == -1:
	case backToNet == step+1:
		sortNet = 1
	default:
		sortNet = -1
	}
	if len(x.s.nodes[kindNVS]) > 0 && x.s.OnlyNeighbours {
		return x.neighbours(gpu, nil)
	}
	scores := x.scores(gpu, sortNet != 0)
	sortScores(scores)
	mark := len(x.stack)
	for _, s := range scores {
		x.stack = append(x.stack, s.g)
	}
	list := x.stack[mark:len(x.stack):len(x.stack)]
	// On the way away from the NIC, among GPUs of equal reach the farthest from the
	// NIC come first.
	equal := !slices.ContainsFunc(scores,
		func(s score) bool { return s.intraBw != scores[0].intraBw || s.intraHops != scores[0].intraHops })
	if sortNet == -1 && equal {
		slices.Reverse(list)
	}
	if len(x.s.nodes[kindNVS]) > 0 && x.s.SwitchOrder {
		return x.neighbours(gpu, list)
	}
	return list
}

func (x *searcher) scores(gpu *topoNode, sortNet bool) []score {
	c := &x.cur
	flag := uint64(1) << c.NChannels
	paths := gpu.paths[kindGPU]
	var net []topoPath
	if sortNet {
		net = x.s.nodes[kindNET][c.inter[c.NChannels*2]].paths[kindGPU]
	}
	x.work += x.ngpus
	x.limit.ordered = x.limit.ordered || net != nil
	list := x.buf[:0]
	for i := 1; i < x.ngpus; i++ {
		g := (gpu.index + i) % x.ngpus
		if len(paths[g].hops) == 0 || x.gpus()[g].gpu.used&flag != 0 {
			continue
		}
		s := score{g: g, order: i, intraHops: len(paths[g].hops), intraBw: int(paths[g].bw)}
		if net != nil {
			s.interHops, s.interBw, s.interPCI = len(net[g].hops), int(net[g].bw), pciLeft(x.gpus()[g])
		}
		list = append(list, s)
	}
	x.buf = list
	return list
}

// pciLeft is what a GPU's PCIe link has left, the lesser of both directions.
func pciLeft(gpu *topoNode) int {
	for _, l := range gpu.links {
		if l.kind != linkPCI {
			continue
		}
		for _, back := range l.to.links {
			if back.to == gpu {
				return int(min(l.bw, back.bw))
			}
		}
	}
	return -1
}

// neighbours puts the GPUs beside one first, because switches like few peers;
// since 2.21 no others are tried, and list is not asked for.
func (x *searcher) neighbours(gpu *topoNode, list []int) []int {
	prev, next := (gpu.index-1+x.ngpus)%x.ngpus, (gpu.index+1)%x.ngpus
	first := [2]int{next, prev} // the last comes out in front
	n := 2
	switch x.cur.Pattern {
	case RingPattern:
	case SplitTree, BalancedTree:
		first = [2]int{prev, next}
	default:
		n = 1
	}
	if !x.s.OnlyNeighbours {
		for _, f := range first[:n] {
			if i := slices.Index(list, f); i >= 0 {
				copy(list[1:i+1], list[:i])
				list[0] = f
			}
		}
		return list
	}
	if next == prev {
		n = 1
	}
	flag := uint64(1) << x.cur.NChannels
	mark := len(x.stack)
	for _, f := range slices.Backward(first[:n]) {
		if len(gpu.paths[kindGPU][f].hops) > 0 && x.gpus()[f].gpu.used&flag == 0 {
			x.stack = append(x.stack, f)
		}
	}
	return x.stack[mark:len(x.stack):len(x.stack)]
}
