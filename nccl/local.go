package nccl

// nearest lists the nodes of a kind that a node reaches with most bandwidth, and
// among those with the best type, and that type. They are put into room where they fit:
// a rack is asked for them ten thousand times.
func (s *system) nearest(room []*topoNode, from *topoNode, kind nodeKind) ([]*topoNode, PathType) {
	list := room[:0]
	best, bw := PathDIS, float32(0)
	for i := range from.paths[kind] {
		p := &from.paths[kind][i]
		if p.kind == PathDIS {
			continue
		}
		if p.bw > bw || p.bw == bw && p.kind < best {
			bw, best = p.bw, p.kind
			list = list[:0]
		}
		if p.bw == bw && p.kind == best {
			list = append(list, s.nodes[kind][i])
		}
	}
	return list, best
}

func (s *system) localNets(g *topoNode) []*topoNode {
	list, _ := s.nearest(nil, g, kindNET)
	return list
}

// localNet is the NIC a GPU prefers for a channel. Several GPUs that share several NICs
// spread by their number, its bits reversed (NCCL 2.28 src/graph/topo.cc,
// ncclTopoGetLocalNet). It is nil where the GPU reaches none.
func (s *system) localNet(g *topoNode, channel int) *topoNode {
	var room, peers [80]*topoNode
	nets, _ := s.nearest(room[:], g, kindNET)
	k := len(nets)
	if k == 0 {
		return nil
	}
	gpus, _ := s.nearest(peers[:], nets[0], kindGPU)
	each := divUp(k, max(len(gpus), 1))
	i := g.gpu.dev
	if s.LocalTurn {
		i %= max(len(gpus), 1)
	}
	if k&(k-1) == 0 {
		i = mirror(i, k)
	}
	return nets[(i+channel%each)%k]
}

// mirror reverses the low bits of a number below the power of two n.
func mirror(x, n int) int {
	out := 0
	for b, m := 1, n>>1; b < n; b, m = b<<1, m>>1 {
		if x&b != 0 {
			out |= m
		}
	}
	return out
}

// localGPU is the GPU that prefers a NIC, -1 where none does.
func (s *system) localGPU(n *topoNode) int {
	var room [80]*topoNode
	gpus, _ := s.nearest(room[:], n, kindGPU)
	// Channels beyond the number of NICs repeat what the first ones do.
	for c := range min(s.MaxChannels, len(s.nodes[kindNET])) {
		for _, g := range gpus {
			if s.localNet(g, c) == n {
				return g.index
			}
		}
	}
	return -1
}

// preferred lists the NICs that GPUs prefer, in the order of channels (or, in an
// NVLink domain of several hosts, of GPUs); gpu is nil for all GPUs.
func (s *system) preferred(gpu *topoNode) []*topoNode {
	gpus := s.nodes[kindGPU]
	if gpu != nil {
		gpus = []*topoNode{gpu}
	}
	per := make([][]*topoNode, len(gpus))
	for i, g := range gpus {
		for c := range s.MaxChannels {
			n := s.localNet(g, c)
			if n == nil || c > 0 && n == per[i][0] {
				break
			}
			per[i] = append(per[i], n)
		}
	}
	var list []*topoNode
	if s.hosts > 1 && s.ScatterNets && s.env["NCCL_MNNVL_SCATTER_NETS_ENABLE"] != "0" {
		for c, more := 0, true; more; c++ {
			more = false
			for i := range per {
				if c < len(per[i]) {
					more = true
					list = once(list, per[i][c])
				}
			}
		}
		return list
	}
	for i := range per {
		for _, n := range per[i] {
			list = once(list, n)
		}
	}
	return list
}

// selectNets lists the NICs to try: the preferred, then all others within a type
// of path, nearest first.
func (s *system) selectNets(most PathType, gpu *topoNode) []*topoNode {
	list := s.preferred(gpu)
	gpus := s.nodes[kindGPU]
	if gpu != nil {
		gpus = []*topoNode{gpu}
	}
	for t := PathLOC; t <= most; t++ {
		for _, g := range gpus {
			for i := range g.paths[kindNET] {
				if g.paths[kindNET][i].kind == t {
					list = once(list, s.nodes[kindNET][i])
				}
			}
		}
	}
	return list
}

func once(list []*topoNode, n *topoNode) []*topoNode {
	for _, x := range list {
		if x == n {
			return list
		}
	}
	return append(list, n)
}
