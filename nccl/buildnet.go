package nccl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// verbs reports whether NCCL or a plugin drives a NIC other than by sockets.
func verbs(k cluster.NetKind) bool {
	switch k {
	case cluster.Ethernet, cluster.NVLinkNet:
		return false
	}
	return true
}

// useNets picks the NICs NCCL would use, in the order it numbers them: those it
// drives directly where there are any, else network interfaces.
func useNets(t *cluster.NodeType, env map[string]string) ([]int, error) {
	var fast, slow []int
	for _, d := range t.Of(cluster.NIC) {
		x := &t.Devices[d]
		if x.NIC == nil || !alive(x.NIC) {
			continue
		}
		switch {
		case verbs(x.NIC.Kind):
			if named(env["NCCL_IB_HCA"], x.Title()) {
				fast = append(fast, d)
			}
		case x.NIC.Kind == cluster.Ethernet:
			if named(env["NCCL_SOCKET_IFNAME"], x.Title()) {
				slow = append(slow, d)
			}
		}
	}
	if env["NCCL_IB_DISABLE"] == "1" || env["NCCL_NET"] == "Socket" {
		fast = nil
	}
	list := fast
	if len(list) == 0 {
		list = slow
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("node type %s has no NIC that NCCL could use between nodes", t.Name)
	}
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := &t.Devices[a], &t.Devices[b]
		if x.Index >= 0 && y.Index >= 0 {
			return x.Index - y.Index
		}
		return 0
	})
	return list, nil
}

// netsOf lists the NICs that a node uses: in an NVLink domain of several hosts,
// those of the hosts of its GPUs.
func netsOf(t *cluster.NodeType, gpus []int, env map[string]string) ([]int, error) {
	nets, err := useNets(t, env)
	if err != nil {
		return nil, err
	}
	nets = slices.DeleteFunc(nets, func(n int) bool {
		return !slices.ContainsFunc(gpus, func(g int) bool { return t.Devices[g].Tray == t.Devices[n].Tray })
	})
	switch {
	case len(nets) == 0:
		return nil, fmt.Errorf("node type %s has no NIC beside its GPUs that NCCL could use between nodes", t.Name)
	case len(nets) > maxLocal:
		return nil, fmt.Errorf("node type %s has %d NICs; NCCL takes %d", t.Name, len(nets), maxLocal)
	}
	return nets, nil
}

// alive reports whether some port may carry traffic.
func alive(n *cluster.NICInfo) bool {
	return len(n.Ports) == 0 || slices.ContainsFunc(n.Ports, livePort)
}

func livePort(p cluster.Port) bool { return p.State != cluster.Down && p.State != cluster.Init }

// named reports whether a setting such as "mlx5_0,mlx5_1", "=mlx5_1:1" or "^eth0"
// lets a device pass: names are beginnings unless = says otherwise.
func named(setting, name string) bool {
	if setting == "" {
		return true
	}
	rest, not := strings.CutPrefix(setting, "^")
	rest, exact := strings.CutPrefix(rest, "=")
	found := false
	for _, w := range splitAt(rest, ",") {
		w, _, _ = strings.Cut(w, ":")
		if exact && name == w || !exact && strings.HasPrefix(name, w) {
			found = true
		}
	}
	return found != not
}

// nic adds a NIC's card and what NCCL has as NICs there. Cards with several
// functions are one node; what is fused stands with its first function.
func (b *builder) nic(d int, at *topoNode) {
	x := &b.t.Devices[d]
	// An interface of which only the NUMA domain is known hangs on the processor.
	up := b.up[d]
	loose := x.PCI == "" && at.kind == kindCPU && up.Lanes+up.MaxLanes == 0 && up.GTs+up.MaxGTs == 0 && up.Rate.Origin <= cluster.Assumed
	key := fmt.Sprintf("%d/%s", x.Tray, x.PCI.Slot())
	switch {
	case loose:
		key = fmt.Sprintf("cpu %d %d", x.Tray, at.index)
	case x.PCI == "":
		key = fmt.Sprintf("device %d", d)
	}
	card := b.cards[key]
	if card == nil {
		id := busID(x, d)
		bw := b.pciBw(d)
		if loose {
			id, bw = 0, locBw
		}
		card = b.s.add(kindNIC, x.Tray, id)
		b.cards[key] = card
		join(card, at, linkPCI, bw)
	}
	for i, f := range b.fused {
		if f.functions[0] != d {
			continue
		}
		n := b.s.add(kindNET, x.Tray, uint64(f.number))
		n.net = netNode{
			bw: float32(float64(f.rate / unit.GBps)), asic: i, functions: f.functions, localGPU: -1,
			gdr: x.NIC.GDR == cluster.Yes || x.NIC.GDR == cluster.Maybe && verbs(x.NIC.Kind), coll: x.NIC.Reduction == cluster.Yes,
		}
		join(card, n, linkNET, n.net.bw)
	}
}

// nvlinks adds the fast links between GPUs, to switches and to processors.
func (b *builder) nvlinks() {
	for _, l := range b.t.Links {
		x, y := b.made[l.A], b.made[l.B]
		kx, ky := b.t.Devices[l.A].Kind, b.t.Devices[l.B].Kind
		switch {
		case l.Kind == cluster.C2C && b.s.v.From(19):
			b.c2c(l, x, y)
		case l.Kind == cluster.XGMI && x != nil && y != nil:
			x.connect(y, linkNVL, float32(max(l.Lanes, 1))*xgmiBw(b.s.arch))
			if !l.OneWay {
				y.connect(x, linkNVL, float32(max(l.Lanes, 1))*xgmiBw(b.s.arch))
			}
		case l.Kind != cluster.NVLink || l.Lanes <= 0:
		case x != nil && y != nil:
			x.connect(y, linkNVL, float32(l.Lanes)*nvlinkBw(b.s.v, x.gpu.cc))
			if !l.OneWay {
				y.connect(x, linkNVL, float32(l.Lanes)*nvlinkBw(b.s.v, y.gpu.cc))
			}
		case x != nil && ky == cluster.NVSwitch:
			join(x, b.nvswitch(), linkNVL, float32(l.Lanes)*nvlinkBw(b.s.v, x.gpu.cc))
		case y != nil && kx == cluster.NVSwitch:
			join(y, b.nvswitch(), linkNVL, float32(l.Lanes)*nvlinkBw(b.s.v, y.gpu.cc))
		}
	}
}

func (b *builder) nvswitch() *topoNode {
	if len(b.s.nodes[kindNVS]) == 0 {
		b.s.add(kindNVS, 0, 0)
	}
	return b.s.nodes[kindNVS][0]
}

// c2c joins a GPU to its processor.
func (b *builder) c2c(l cluster.Link, x, y *topoNode) {
	gpu, other := x, l.B
	if gpu == nil {
		gpu, other = y, l.A
	}
	cpu := b.numa[b.t.Above(other, cluster.NUMA)]
	if gpu == nil || cpu == nil || !l.Rate.Known() || !(l.Rate.Value > 0) {
		return
	}
	join(gpu, cpu, linkC2C, float32(float64(l.Rate.Value/unit.GBps)))
}

// switchID packs the numbers by which Broadcom switches are known.
func switchID(x *cluster.Device) uint64 {
	if x.PCIID == nil {
		return 0
	}
	var id uint64
	for _, s := range []string{x.PCIID.Vendor, x.PCIID.Device, x.PCIID.SubVendor, x.PCIID.SubDevice} {
		n, _ := strconv.ParseUint(s, 16, 16)
		id = id<<16 | n
	}
	return id
}

// finish joins processors, flattens switches, sorts, and computes paths.
func (b *builder) finish() {
	s := b.s
	s.flatten()
	seen := map[int]bool{}
	for _, c := range s.nodes[kindCPU] {
		seen[c.host] = true
		for _, o := range s.nodes[kindCPU] {
			if c != o && c.host == o.host {
				c.connect(o, linkSYS, interCPU(s.v, c.cpu))
			}
		}
	}
	s.hosts = len(seen)
	for _, c := range s.nodes[kindCPU] {
		c.sortTree(nil)
	}
	for _, p := range b.t.Pairs {
		x, y := b.made[p.A], b.made[p.B]
		if p.P2P == cluster.No && x != nil && y != nil {
			s.p2pOff[[2]int{x.index, y.index}] = true
			s.p2pOff[[2]int{y.index, x.index}] = true
		}
	}
	s.computePaths()
	s.bandwidths()
}

// broadcom is the generation of a Broadcom switch that shows itself as two levels
// though it has one; level 1 is the lower.
func broadcom(id uint64, level uint64) int {
	switch id &^ 0xfff {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flatten merges such switches into one node (NCCL 2.28 src/graph/topo.cc,
// ncclTopoFlattenBcmSwitches).
func (s *system) flatten() {
	for i := 0; i < len(s.nodes[kindPCI]); i++ {
		top := s.nodes[kindPCI][i]
		gen := broadcom(top.pci, 0)
		if gen == 0 {
			continue
		}
		var keep []*topoLink
		var subs []*topoNode
		for _, l := range top.links {
			if l.to.kind == kindPCI && broadcom(l.to.pci, 1) == gen {
				subs = append(subs, l.to)
			} else {
				keep = append(keep, l)
			}
		}
		top.links = keep
		for _, sub := range subs {
			for _, l := range sub.links {
				if l.to == top {
					continue
				}
				top.links = append(top.links, l)
				for _, back := range l.to.links {
					if back.to == sub {
						back.to = top
						break
					}
				}
			}
			s.remove(sub)
		}
		top.pci |= 0xffff
		i = -1
	}
}

func (s *system) remove(n *topoNode) {
	list := s.nodes[n.kind]
	list = slices.Delete(list, n.index, n.index+1)
	for i, x := range list {
		x.index = i
	}
	s.nodes[n.kind] = list
}

// bandwidths is the most that one channel and that all channels may carry.
func (s *system) bandwidths() {
	gpus := s.nodes[kindGPU]
	if !s.inter && len(gpus) == 1 {
		s.maxBw = locBw
		if s.v.From(21) {
			s.totalBw = locBw
		}
		return
	}
	kind := kindGPU
	if s.inter {
		kind = kindNET
	}
	for _, g := range gpus {
		for _, p := range g.paths[kind] {
			if len(p.hops) > 0 {
				s.maxBw = max(s.maxBw, p.bw)
			}
		}
		var nvl, pci float32
		for _, l := range g.links {
			switch l.kind {
			case linkNVL:
				nvl += l.bw
			case linkPCI:
				pci = l.bw
			}
		}
		s.totalBw = max(s.totalBw, nvl, pci)
	}
}
