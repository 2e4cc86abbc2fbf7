package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// builder makes NCCL's topology from a node type.
type builder struct {
	t     *cluster.NodeType
	s     *system
	done  map[int]bool      // devices that the walk down the tree has met
	made  map[int]*topoNode // by device; NICs of one card share a node
	up    map[int]cluster.Link
	cards map[string]*topoNode
	nets  []int // NICs in use, in the order NCCL numbers them
	fused []fused
	gpus  []int // devices in order of rank
	numa  map[int]*topoNode
	none  map[int]*topoNode // processors of hosts that nobody described
}

// maxMesh bounds the GPUs of a node without switches, among which every order may
// be tried.
const maxMesh = 64

// newSystem is what NCCL sees on a node: the GPUs that take part (devices, in
// order of local rank) and the NICs, of which it has none where all ranks are here.
func newSystem(t *cluster.NodeType, gpus, nets []int, v Version, env map[string]string) (*system, error) {
	b := &builder{
		t: t, gpus: gpus, nets: nets, s: &system{rules: v.rules(), env: env, inter: len(nets) > 0, p2pOff: map[[2]int]bool{}},
		done: map[int]bool{}, made: map[int]*topoNode{}, up: map[int]cluster.Link{}, cards: map[string]*topoNode{},
		numa: map[int]*topoNode{}, none: map[int]*topoNode{},
	}
	for _, l := range t.Links {
		switch {
		case l.Kind != cluster.PCIe:
		case t.Devices[l.A].Parent == l.B:
			b.up[l.A] = l
		case t.Devices[l.B].Parent == l.A:
			b.up[l.B] = l
		}
	}
	var err error
	if b.fused, err = fuse(t, nets, b.s.rules, env); err != nil {
		return nil, err
	}
	if len(gpus) > maxMesh && t.Count(cluster.NVSwitch) == 0 {
		return nil, fmt.Errorf("node type %s: %d GPUs without an NVLink switch; the search is for at most %d", t.Name,
			len(gpus), maxMesh)
	}
	if err := b.devices(); err != nil {
		return nil, err
	}
	b.nvlinks()
	b.finish()
	return b.s, nil
}

// devices creates processors, switches, GPUs and NICs in the order of NCCL's own XML:
// what the first rank finds (its GPU and every NIC, by bus id), then what the others
// add (NCCL 2.28 src/graph/xml.cc, ncclTopoFuseXml; before 2.21 everything by bus id).
func (b *builder) devices() error {
	want := map[int]int{} // device: order of appearance among siblings
	mark := func(d, order int) {
		for ; d >= 0; d = b.t.Devices[d].Parent {
			if o, ok := want[d]; !ok || order < o {
				want[d] = order
			}
		}
	}
	late := bit(b.s.FusedXML)
	for i, g := range b.gpus {
		if err := b.usable(g); err != nil {
			return err
		}
		mark(g, i*late)
	}
	for _, n := range b.nets {
		mark(n, 0)
	}
	var numas []int
	place := func(d int) {
		n := b.t.Above(d, cluster.NUMA)
		if !slices.Contains(numas, n) {
			numas = append(numas, n)
		}
	}
	if late == 1 {
		place(b.gpus[0])
	} else {
		for _, g := range b.gpus {
			place(g)
		}
	}
	for _, n := range b.nets {
		place(n)
	}
	for _, g := range b.gpus {
		place(g)
	}
	for _, n := range numas {
		if n >= 0 {
			b.children(n, b.cpu(n), want)
			continue
		}
		// Devices whose NUMA domain nobody knows hang on a processor without number.
		for d := range b.t.Devices {
			if _, ok := want[d]; ok && b.t.Above(d, cluster.NUMA) < 0 && b.top(d) {
				b.device(d, b.anyCPU(b.t.Devices[d].Tray), want)
			}
		}
	}
	for _, d := range slices.Concat(b.gpus, b.nets) {
		if !b.done[d] {
			return fmt.Errorf("%s of node type %s hangs on nothing that leads to a processor; give it a parent under a NUMA "+
				"domain, or none", b.t.Devices[d].Name, b.t.Name)
		}
	}
	return nil
}

// usable says why NCCL could not run on a device.
func (b *builder) usable(g int) error {
	if g < 0 || g >= len(b.t.Devices) || b.t.Devices[g].Kind != cluster.GPU {
		return fmt.Errorf("device %d of node type %s is no GPU", g, b.t.Name)
	}
	x := &b.t.Devices[g]
	switch {
	case x.GPU != nil && x.GPU.Vendor == amd:
		return b.usableRCCL(x)
	case x.GPU != nil && x.GPU.Vendor != "" && x.GPU.Vendor != "nvidia":
		return foreign(x, b.t.Name)
	case x.GPU == nil || x.GPU.SM == 0:
		return fmt.Errorf("%s of node type %s: compute capability is not known, and NCCL decides by it; name the GPU's "+
			"model", x.Name, b.t.Name)
	}
	return nil
}

// top reports whether nothing above a device is part of the PCIe tree.
func (b *builder) top(d int) bool {
	p := b.t.Devices[d].Parent
	for ; p >= 0; p = b.t.Devices[p].Parent {
		switch b.t.Devices[p].Kind {
		case cluster.RootComplex, cluster.PCISwitch:
			return false
		}
	}
	return true
}

// children adds what hangs below a device, in NCCL's order.
func (b *builder) children(d int, at *topoNode, want map[int]int) {
	var kids []int
	for k := range b.t.Devices {
		if _, ok := want[k]; ok && b.t.Devices[k].Parent == d {
			if b.t.Devices[k].Kind == cluster.RootComplex {
				// NCCL has no host bridges: their devices hang on the processor.
				b.rootChildren(k, want, &kids)
				continue
			}
			kids = append(kids, k)
		}
	}
	slices.SortStableFunc(kids, func(x, y int) int {
		dx, dy := &b.t.Devices[x], &b.t.Devices[y]
		if c := cmp.Compare(want[x], want[y]); c != 0 {
			return c
		}
		if dx.PCI == "" || dy.PCI == "" {
			return 0
		}
		return cmp.Compare(dx.PCI, dy.PCI)
	})
	for _, k := range kids {
		b.device(k, at, want)
	}
}

func (b *builder) rootChildren(root int, want map[int]int, kids *[]int) {
	for k := range b.t.Devices {
		if _, ok := want[k]; ok && b.t.Devices[k].Parent == root {
			*kids = append(*kids, k)
		}
	}
}

// device adds one device under a node, and what is below it.
func (b *builder) device(d int, at *topoNode, want map[int]int) {
	if b.done[d] {
		return
	}
	b.done[d] = true
	x := &b.t.Devices[d]
	switch kind := x.Kind; {
	case kind == cluster.NUMA: // the root of a tree of its own, wherever it hangs
	case kind == cluster.PCISwitch:
		n := b.s.addNode(kindPCI, x.Tray, busID(x, d))
		n.pci = switchID(x)
		b.children(d, n, want)
		join(n, at, linkPCI, b.pciBw(d))
	case kind == cluster.GPU && slices.Contains(b.gpus, d):
		n := b.s.addNode(kindGPU, x.Tray, busID(x, d))
		dev := x.Index
		if dev < 0 {
			dev = slices.Index(b.t.Of(cluster.GPU), d)
		}
		n.gpu = gpuNode{dev: dev, rank: slices.Index(b.gpus, d), cc: x.GPU.SM, gdr: x.GPU.GDR != cluster.No}
		if x.GPU.Vendor == amd {
			b.s.arch = x.GPU.Arch
		}
		b.made[d] = n
		join(n, at, linkPCI, b.pciBw(d))
		b.children(d, at, want)
	case kind == cluster.NIC && slices.Contains(b.nets, d):
		b.nic(d, at)
		b.children(d, at, want)
	default:
		b.children(d, at, want) // what NCCL has no node for is passed through
	}
}

// cpu makes the node of a NUMA domain.
func (b *builder) cpu(d int) *topoNode {
	x := &b.t.Devices[d]
	n := b.s.addNode(kindCPU, x.Tray, uint64(x.Index)&(1<<56-1))
	info := x.CPU
	if s := b.t.Above(d, cluster.Socket); s >= 0 && b.t.Devices[s].CPU != nil &&
		(info == nil || info.Vendor == "" && info.Arch == "") {
		info = b.t.Devices[s].CPU
	}
	n.cpu = b.s.describeCPU(info)
	b.numa[d] = n
	return n
}

func (b *builder) anyCPU(host int) *topoNode {
	if b.none[host] == nil {
		b.none[host] = b.s.addNode(kindCPU, host, 1<<56-1)
		b.none[host].cpu = b.s.describeCPU(nil)
	}
	return b.none[host]
}

// describeCPU turns a CPUID into NCCL's numbers. An unknown processor is taken for
// an Intel one of the Skylake family, the most common.
func (r *rules) describeCPU(c *cluster.CPUInfo) cpuNode {
	n := cpuNode{arch: ArchX86, vendor: Intel, model: modelSKL}
	if c == nil {
		return n
	}
	switch c.Arch {
	case "arm64", "aarch64":
		return cpuNode{arch: ArchARM, model: -1}
	case "ppc64", "ppc64le":
		return cpuNode{arch: ArchPower, model: -1}
	}
	switch strings.TrimSpace(c.Vendor) {
	case "AuthenticAMD":
		n.vendor, n.rome = AMD, isRome(c.Family, c.Model)
	case "CentaurHauls", "Shanghai":
		n.vendor = Zhaoxin
	case "":
		return n
	}
	if n.vendor != Intel || c.Model != 0 {
		n.model = r.cpuModel(n.vendor, c.Family, c.Model)
	}
	return n
}

// pciBw is the bandwidth of a device's link up, by the generation both ends can do and
// its width: NCCL does not look at what was trained (NCCL 2.28 src/graph/xml.cc reads
// max_link_speed, topo.cc has the speeds in kvDictPciGen).
func (b *builder) pciBw(d int) float32 {
	l := b.up[d]
	lanes, gts := cmp.Or(l.MaxLanes, l.Lanes, 16), cmp.Or(l.MaxGTs, l.GTs)
	if lanes < 1 || lanes > 1024 {
		lanes = 16
	}
	speed := 60 // what NCCL takes where it cannot read the link
	switch {
	case gts == 0 && l.Rate.Known():
		// Only a rate is known: the generation that comes nearest.
		per := float64(l.Rate.Value/unit.GBps) / float64(lanes)
		for speed = 15; speed < 480 && per > 1.5*float64(speed)*.985/120*2; speed *= 2 {
		}
	case gts == 0:
	case gts < 4:
		speed = 15
	case gts < 7:
		speed = 30
	case gts < 12:
		speed = 60
	case gts < 24:
		speed = 120
	case gts < 48:
		speed = 240
	default:
		speed = 480
	}
	return float32(float64(lanes*speed) / 80)
}

// busID is a device's number: its PCI address as digits, or its place.
func busID(x *cluster.Device, d int) uint64 {
	var id uint64
	if x.PCI == "" {
		return uint64(d) << 12
	}
	for _, r := range x.PCI {
		switch {
		case r >= '0' && r <= '9':
			id = id<<4 | uint64(r-'0')
		case r >= 'a' && r <= 'f':
			id = id<<4 | uint64(r-'a'+10)
		}
	}
	return id
}

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
	loose := x.PCI == "" && at.kind == kindCPU && up.Lanes+up.MaxLanes == 0 && up.GTs+up.MaxGTs == 0 &&
		up.Rate.Origin <= cluster.Assumed
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
		card = b.s.addNode(kindNIC, x.Tray, id)
		b.cards[key] = card
		join(card, at, linkPCI, bw)
	}
	for i, f := range b.fused {
		if f.functions[0] != d {
			continue
		}
		n := b.s.addNode(kindNET, x.Tray, uint64(f.number))
		n.net = netNode{
			bw: float32(float64(f.rate / unit.GBps)), asic: i, functions: f.functions, localGPU: -1,
			gdr:  x.NIC.GDR == cluster.Yes || x.NIC.GDR == cluster.Maybe && verbs(x.NIC.Kind),
			coll: x.NIC.Reduction == cluster.Yes,
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
		case l.Kind == cluster.C2C && b.s.C2C:
			b.c2c(l, x, y)
		case l.Kind == cluster.XGMI && x != nil && y != nil:
			x.connect(y, linkNVL, float32(max(l.Lanes, 1))*xgmiBw(b.s.arch))
			if !l.OneWay {
				y.connect(x, linkNVL, float32(max(l.Lanes, 1))*xgmiBw(b.s.arch))
			}
		case l.Kind != cluster.NVLink || l.Lanes <= 0:
		case x != nil && y != nil:
			x.connect(y, linkNVL, float32(l.Lanes)*b.s.nvlinkBw(x.gpu.cc))
			if !l.OneWay {
				y.connect(x, linkNVL, float32(l.Lanes)*b.s.nvlinkBw(y.gpu.cc))
			}
		case x != nil && ky == cluster.NVSwitch:
			join(x, b.nvswitch(), linkNVL, float32(l.Lanes)*b.s.nvlinkBw(x.gpu.cc))
		case y != nil && kx == cluster.NVSwitch:
			join(y, b.nvswitch(), linkNVL, float32(l.Lanes)*b.s.nvlinkBw(y.gpu.cc))
		}
	}
}

func (b *builder) nvswitch() *topoNode {
	if len(b.s.nodes[kindNVS]) == 0 {
		b.s.addNode(kindNVS, 0, 0)
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
				c.connect(o, linkSYS, s.interCPU(c.cpu))
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
		if s.LoneTotal {
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
