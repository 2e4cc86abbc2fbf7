package nccl

import "slices"

// setPaths finds the paths from every node to base, breadth first: fewer hops
// first, then more bandwidth (NCCL 2.28 src/graph/paths.cc, ncclTopoSetPaths).
func (s *system) setPaths(base *topoNode) {
	need := func(x *topoNode) *topoPath { return &x.paths[base.kind][base.index] }
	*need(base) = topoPath{bw: locBw, kind: PathLOC}
	nvb := s.env["NCCL_NVB_DISABLE"] != "1"
	for list := []*topoNode{base}; len(list) > 0; {
		var next []*topoNode
		for _, node := range list {
			path := need(node)
			for _, l := range node.links {
				far := l.to
				remote := need(far)
				bw := min(path.bw, l.bw)
				// Another GPU may be passed once, over NVLink.
				if node != base && node.kind == kindGPU &&
					(!nvb || l.kind != linkNVL || far.kind != kindGPU || len(path.hops) > 1) {
					continue
				}
				if !((remote.bw == 0 || len(remote.hops) > len(path.hops)) && remote.bw < bw) {
					continue
				}
				back := far.linkTo(node, l.kind)
				if back == nil {
					continue
				}
				remote.hops = append([]*topoLink{back}, path.hops...)
				remote.bw = bw
				remote.kind = max(path.kind, hopType(node, far, l, path.kind, len(remote.hops)))
				if !slices.Contains(next, far) {
					next = append(next, far)
				}
			}
		}
		list = next
	}
}

// hopType is what a hop from node to far makes of a path.
func hopType(node, far *topoNode, l *topoLink, before PathType, hops int) PathType {
	t := l.kind.path()
	if node.kind == kindPCI && far.kind == kindPCI {
		t = PathPXB
	}
	if l.kind == linkPCI && (node.kind == kindCPU || far.kind == kindCPU) {
		t = PathPHB
	}
	if node.kind == kindGPU && before == PathNVL && t == PathNVL && hops > 1 {
		t = PathNVB
	}
	return t
}

func (n *topoNode) linkTo(to *topoNode, kind linkKind) *topoLink {
	for _, l := range n.links {
		if l.to == to && l.kind == kind {
			return l
		}
	}
	return nil
}

// localCPU is the processor with fewest hops from a GPU.
func (s *system) localCPU(gpu *topoNode) int {
	best, hops := -1, 0
	for c := range gpu.paths[kindCPU] {
		if h := len(gpu.paths[kindCPU][c].hops); h > 0 && (best < 0 || h < hops) {
			best, hops = c, h
		}
	}
	return best
}

// mergeType joins the types of two parts of a path: C2C and then PCIe is a kind
// of its own since 2.27.
func (s *system) mergeType(a, b PathType) PathType {
	if max(a, b) == PathPHB && min(a, b) == PathC2C && s.P2C {
		return PathP2C
	}
	return max(a, b)
}

// noPaths gives every node a path to every node that others look for, of which
// none leads anywhere yet: those that nothing joins stay so.
func (s *system) noPaths() {
	for _, list := range s.nodes {
		for _, n := range list {
			for _, k := range pathKinds {
				n.paths[k] = make([]topoPath, len(s.nodes[k]))
				for i := range n.paths[k] {
					n.paths[k][i].kind = PathDIS
				}
			}
		}
	}
}

// divert sends the path from src to dst through a node on the way. Where that
// node is not on any way, there is no path left.
func (s *system) divert(src, via, dst *topoNode) {
	p := &src.paths[dst.kind][dst.index]
	first, second := &src.paths[via.kind][via.index], &via.paths[dst.kind][dst.index]
	if first.kind >= PathNET || second.kind >= PathNET {
		*p = topoPath{kind: PathDIS}
		return
	}
	kind := s.mergeType(first.kind, second.kind)
	if via.kind == kindGPU {
		kind = PathPXN
	}
	*p = topoPath{hops: append(slices.Clone(first.hops), second.hops...), bw: min(first.bw, second.bw), kind: kind}
}

// pathKinds are the nodes that paths lead to.
var pathKinds = [...]nodeKind{kindCPU, kindGPU, kindNET, kindNVS}

// computePaths finds all paths and then bends those that peer access, GPUDirect
// RDMA or PXN change (NCCL 2.28 src/graph/paths.cc, ncclTopoComputePaths).
func (s *system) computePaths() {
	s.noPaths()
	for _, k := range pathKinds {
		for _, n := range s.nodes[k] {
			s.setPaths(n)
		}
	}
	s.nearNet()
	for _, g := range s.nodes[kindGPU] {
		c := s.localCPU(g)
		for _, p := range s.nodes[kindGPU] {
			peers := s.p2p(p, g)
			if !peers && c >= 0 {
				s.divert(p, s.nodes[kindCPU][c], g)
			}
			if path := &p.paths[kindGPU][g.index]; p != g && s.apart(p, g, peers) {
				path.kind = max(path.kind, PathNET)
			}
		}
	}
	s.markP2C()
	for _, n := range s.nodes[kindNET] {
		for _, g := range s.nodes[kindGPU] {
			s.netPath(g, n)
		}
	}
	for _, n := range s.nodes[kindNET] {
		n.net.localGPU = s.localGPU(n)
	}
}

// userLevel reads a path type from a setting: its name, or the numbers of old.
func userLevel(env map[string]string, key string) (PathType, bool) {
	v, ok := env[key]
	if !ok {
		return 0, false
	}
	if p, ok := parsePath(v); ok && p <= PathSYS {
		return p, true
	}
	if n, ok := envInt(env, key); ok && n >= 0 {
		old := []PathType{PathLOC, PathPIX, PathPXB, PathPHB, PathSYS, PathSYS}
		return old[min(n, len(old)-1)], true
	}
	return 0, false
}

// p2p reports whether GPUs reach each other's memory.
func (s *system) p2p(a, b *topoNode) bool {
	if s.p2pOff[[2]int{a.index, b.index}] && a != b {
		return false
	}
	return a.paths[kindGPU][b.index].kind <= s.peerLevel()
}

// peerLevel is how far apart GPUs may be and still write to each other's memory: up to 2.22 through any processor of
// AMD, since then only where there are two of them (NCCL 2.27 src/graph/paths.cc, ncclTopoCheckP2p).
func (s *system) peerLevel() PathType {
	if n, ok := envInt(s.env, "NCCL_P2P_DISABLE"); ok && n == 1 {
		return PathLOC
	} else if p, ok := userLevel(s.env, "NCCL_P2P_LEVEL"); ok {
		return p
	}
	cpu := s.nodes[kindCPU][0].cpu
	switch amd := cpu.arch == ArchX86 && cpu.vendor == AMD; {
	case s.AMDPairs && amd && len(s.nodes[kindGPU]) <= 2, !s.AMDPairs && (amd || cpu.arch == ArchPower):
		return PathSYS
	case s.IntelPeers && cpu.arch == ArchX86 && cpu.vendor == Intel:
		return PathPHB
	}
	return PathPXB
}

// PeerLevel is how far apart GPUs of the node may be and still write to each other's memory.
func (v *View) PeerLevel() PathType { return v.sys.peerLevel() }

// markP2C gives the GPU–NIC paths over C2C and PCIe their own type (2.27+; since
// 2.29 to the nearest NICs only).
func (s *system) markP2C() {
	if !s.P2C {
		return
	}
	s.nearNet()
	for _, g := range s.nodes[kindGPU] {
		c := s.localCPU(g)
		nets := s.nodes[kindNET]
		if s.P2CNear {
			nets = s.localNets(g)
		}
		for _, n := range nets {
			if c < 0 || s.mergeType(g.paths[kindCPU][c].kind, n.paths[kindCPU][c].kind) != PathP2C {
				continue
			}
			for _, p := range []*topoPath{&g.paths[kindNET][n.index], &n.paths[kindGPU][g.index]} {
				if p.kind != PathDIS {
					p.kind = min(p.kind, PathP2C)
				}
			}
		}
	}
}

// netPath bends the path between a GPU and a NIC: over a peer nearer to the NIC
// (PXN, sending only), or through the processor where the NIC cannot reach the
// GPU's memory.
func (s *system) netPath(g, n *topoNode) {
	if v, ok := envInt(s.env, "NCCL_PXN_DISABLE"); !(ok && v == 1) {
		if l := s.localGPU(n); l >= 0 && l != g.index {
			peer := s.nodes[kindGPU][l]
			near, far := PathPXB, PathPXB
			if v, ok := envInt(s.env, "NCCL_PXN_C2C"); s.PXNFar && !(ok && v == 0) {
				near = PathP2C
			}
			if s.PXNFar {
				far = PathPXN
			}
			toNIC, mine := &peer.paths[kindNET][n.index], &g.paths[kindNET][n.index]
			if toNIC.kind <= near && peer.paths[kindGPU][g.index].kind <= PathNVL && peer.host == g.host &&
				(toNIC.bw > mine.bw || mine.kind > far) {
				s.divert(g, peer, n)
			}
		}
	}
	if g.paths[kindNET][n.index].kind < PathPHB || !s.GDRByPath {
		if !s.gdr(g, n) {
			if c := s.localCPU(g); c >= 0 {
				cpu := s.nodes[kindCPU][c]
				s.divert(n, cpu, g)
				s.divert(g, cpu, n)
			}
		}
	}
}

// gdr reports whether a NIC writes into a GPU's memory.
func (s *system) gdr(g, n *topoNode) bool {
	if !n.net.gdr || !g.gpu.gdr {
		return false
	}
	level := PathPXB
	if p, ok := userLevel(s.env, "NCCL_NET_GDR_LEVEL"); ok {
		level = p
	}
	kind := g.paths[kindNET][n.index].kind
	if kind == PathPXN {
		for _, l := range g.paths[kindNET][n.index].hops {
			if l.to.kind == kindGPU {
				kind = l.to.paths[kindNET][n.index].kind
				break
			}
		}
	}
	if v, ok := envInt(s.env, "NCCL_NET_GDR_C2C"); kind == PathP2C && s.P2C && !(ok && v == 0) {
		kind = PathC2C
	}
	return kind <= level
}
