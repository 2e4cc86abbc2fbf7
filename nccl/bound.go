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

// tooFast reports a round that cannot find as many channels as it must, because fewer come in from the
// network. One that finds none at all is over at once and need not be left out.
func (c *compute) tooFast() bool {
	g := &c.cur
	if !c.s.inter || c.exact || c.s.everySpeed || g.least < 2 || g.Pattern == NVLSPattern || g.Pattern == DirectPattern {
		return false
	}
	n := c.s.carries(g.BwInter)
	return n > 0 && n < g.least
}

// leaveOut leaves a round out. How many of its steps it would have left is not known: none, or all. In
// the second pass it is the last, since those after it are faster still.
func (c *compute) leaveOut() {
	c.spare, c.time = c.time, 0
}

// giveBack takes what a round left of its steps to those of the whole search, and reports whether that
// search is over for want of steps.
func (c *compute) giveBack() (over bool) {
	c.left += c.time
	c.owed += c.spare
	if c.best.NChannels == 0 || c.left >= 0 {
		return false
	}
	c.unsure = c.unsure || c.left+c.owed >= 0
	return true
}
