package nccl

// carries is how many channels of a speed can come in from the network at most. Every ring and tree
// begins with a way from a port to a GPU: it takes the speed from the port, and from one link at least
// by which GPUs and their switches are reached from the rest of the node.
func (s *system) carries(bw float32) int {
	const rounding = 0.002 // GB/s: links are counted in MB/s, and each channel may round a little off
	inside := func(n *topoNode) bool { return n.kind == kindGPU || n.kind == kindNVS }
	links := 0
	for _, list := range s.nodes {
		for _, n := range list {
			for _, l := range n.links {
				if !inside(n) && inside(l.to) {
					links += int(l.full / (bw - rounding))
				}
			}
		}
	}
	whole := float32(int(bw)) // what ports are counted in
	if whole == 0 {
		return links
	}
	ports, nets := 0, s.nodes[kindNET]
	for _, n := range nets {
		most := int(n.net.full / whole)
		for _, o := range nets[:n.index] {
			if o.net.asic == n.net.asic && o.net.port == n.net.port {
				most = 0 // one cable, which has been counted
			}
		}
		ports += most
	}
	return min(links, ports)
}

// cannotImprove reports a round that cannot find a better graph, because too few channels come in from the
// network: fewer than it must have, or so few that they carry less than those found before. One into
// which none fits is over at once and need not be left out.
func (c *compute) cannotImprove() bool {
	g, best := &c.cur, &c.best
	if !c.s.inter || c.exact || c.s.everySpeed || g.Pattern == NVLSPattern || g.Pattern == DirectPattern {
		return false
	}
	n := c.s.carries(g.BwInter)
	if n == 0 || n < g.least {
		return n > 0
	}
	if c.second || !c.s.PairedRings || g.Pattern != RingPattern || best.NChannels == 0 {
		return false
	}
	mine, other := float32(n)*g.BwIntra, float32(best.NChannels)*best.BwIntra
	if mine != other {
		return mine < other
	}
	return g.CrossNIC != best.CrossNIC || n*c.s.fewestHops() >= best.hops
}

// fewestHops is how many hops a ring between ports has at least.
func (s *system) fewestHops() int {
	gpus := len(s.nodes[kindGPU])
	return s.nearestHops(kindNET, kindGPU) + (gpus-1)*s.nearestHops(kindGPU, kindGPU) + s.nearestHops(kindGPU, kindNET)
}

// nearestHops is how many hops a node of a kind is away from another one of another kind at least.
func (s *system) nearestHops(from, to nodeKind) int {
	fewest := 1 << 10
	for _, n := range s.nodes[from] {
		for i := range n.paths[to] {
			if p := &n.paths[to][i]; p.kind < PathDIS && (from != to || i != n.index) {
				fewest = min(fewest, len(p.hops))
			}
		}
	}
	return fewest
}

// leaveOut leaves a round out. How many of its steps it would have left is not known: none, or all. In
// the second pass it is the last, since those after it are faster still.
func (c *compute) leaveOut() {
	c.spare, c.time = c.time, 0
}

// giveBack takes what a round left of its steps to those of the whole search, and reports whether that
// search is over for want of steps. Where it is only if the rounds that were left out took most of
// theirs, it goes on: that makes no difference as long as it finds nothing more.
func (c *compute) giveBack() (over bool) {
	c.left += c.time
	c.owed += c.spare
	switch {
	case c.best.NChannels == 0 || c.left >= 0:
		return false
	case c.left+c.owed < 0:
		return true
	case !c.doubt:
		c.doubt, c.doubted = true, c.found
	}
	return false
}

// sure reports that the first pass found what it would have with the rounds that it left out.
func (c *compute) sure() bool { return !c.doubt || c.found == c.doubted }
