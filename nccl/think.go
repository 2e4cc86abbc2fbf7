package nccl

import (
	"fmt"
	"slices"
	"strconv"

	"busbar/cluster"
)

// Plan is what NCCL would do for one communicator.
type Plan struct {
	Comm
	*Wiring
	*Table
	// Graphs are what the nodes agreed upon.
	Graphs Graphs
	// P2PChannels and P2PPerPeer are for sends and receives.
	P2PChannels, P2PPerPeer int
	// Nodes are NCCL's nodes, by lowest rank.
	Nodes []PlanNode

	shapes map[string]Graphs // what was found on systems of a shape
}

// PlanNode is one of NCCL's nodes. Nodes of equal shape share View.
type PlanNode struct {
	Host  int   // index into Cluster.Hosts
	Ranks []int // lowest first
	View  *View
}

// View is how NCCL sees a kind of node, and what it found there.
type View struct {
	NICs   []int   // devices of the node type, in NCCL's order; none on a single node
	Fused  [][]int // for each of them, all functions of the card that NCCL uses as one
	Graphs Graphs
	sys    *system
}

// String prints the topology as NCCL's GRAPH subsystem does.
func (v *View) String() string { return v.sys.String() }

// Think decides as the release would for the ranks of a layout under an
// environment: search on each kind of node, agreement, rings and trees, channels,
// the table of estimates.
func Think(c *cluster.Cluster, l Layout, v Version, env map[string]string) (*Plan, error) {
	if len(l) == 0 {
		return nil, fmt.Errorf("a layout without ranks")
	}
	list, err := l.groups(c, v, env)
	if err != nil {
		return nil, err
	}
	if list, err = separate(c, list, v, env); err != nil {
		return nil, err
	}
	p := &Plan{Comm: Comm{Version: v, NRanks: len(l), NNodes: len(list), MinCC: 1 << 30, Env: env}, shapes: map[string]Graphs{}}
	if collNet, set := envInt(env, "NCCL_COLLNET_ENABLE"); set && collNet == 1 {
		least := 2
		if n, ok := envInt(env, "NCCL_COLLNET_NODE_THRESHOLD"); ok {
			least = n
		}
		p.CollNet = len(list) >= least && len(list) > 1
	}
	members := make([]Member, 0, len(list))
	p.Nodes = make([]PlanNode, 0, len(list))
	var views []*View
	var found []Graphs
	work, kind := 0, newKinds(c)
	for i, g := range list {
		k := kind.of(g)
		if k == len(views) {
			view, err := p.look(c, g, len(list) > 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", hostName(c, g.host), err)
			}
			if work += view.sys.work; work > hopeless*8 {
				return nil, fmt.Errorf("%s: the search took %d steps over %d kinds of nodes and found little; use fewer kinds of nodes", hostName(c, g.host), work, k+1)
			}
			views, found = append(views, view), append(found, view.Graphs)
			p.describe(view.sys, i == 0)
		}
		p.MaxLocalRanks = max(p.MaxLocalRanks, len(g.ranks))
		p.Nodes = append(p.Nodes, PlanNode{g.host, g.ranks, views[k]})
		members = append(members, Member{g.ranks, &views[k].Graphs})
	}
	p.Graphs = Agree(found)
	p.Wiring = newWiring(v, members, p.Graphs.Ring.NChannels)
	p.channels()
	p.p2pChannels()
	p.Table, err = NewTable(&p.Comm, &p.Graphs)
	return p, err
}

func hostName(c *cluster.Cluster, h int) string {
	if n := c.Hosts[h].Name; n != "" {
		return n
	}
	return "host " + strconv.Itoa(h)
}

// viewKey tells kinds of nodes apart by type and the GPUs that take part.
func viewKey(typ int, gpus []int) string {
	b := strconv.AppendInt(nil, int64(typ), 10)
	for _, g := range gpus {
		b = strconv.AppendInt(append(b, ','), int64(g), 10)
	}
	return string(b)
}

// look searches a node's graphs.
func (p *Plan) look(c *cluster.Cluster, g group, inter bool) (*View, error) {
	v := p.Version
	t := c.TypeOf(g.host)
	var nets []int
	if inter {
		var err error
		if nets, err = netsOf(t, g.gpus, p.Env); err != nil && g.parts > 1 {
			return nil, fmt.Errorf("its GPUs do not reach each other by peer access or shared memory and form %d nodes: %w", g.parts, err)
		} else if err != nil {
			return nil, err
		}
	}
	s, err := newSystem(t, g.gpus, nets, v, p.Env)
	if err != nil {
		return nil, err
	}
	if c.Network.Reduction == cluster.Yes {
		for _, n := range s.nodes[kindNET] {
			n.net.coll = true
		}
	}
	w := &View{sys: s}
	for _, n := range s.nodes[kindNET] {
		w.NICs = append(w.NICs, n.net.functions[0])
		w.Fused = append(w.Fused, n.net.functions)
	}
	shape := s.shape()
	if g, ok := p.shapes[shape]; ok {
		w.Graphs = g
		return w, nil
	}
	p.search(w)
	p.shapes[shape] = w.Graphs
	return w, nil
}

// search finds the graphs of a node.
func (p *Plan) search(w *View) {
	s, most := w.sys, p.Version.maxChannels()
	w.Graphs.Ring = s.findGraph(0, RingPattern, 1, most/2, false)
	n := w.Graphs.Ring.NChannels
	w.Graphs.Tree = s.findGraph(1, BalancedTree, n, n, false)
	w.Graphs.Chain = Graph{ID: 2, Pattern: TreePattern}
	w.Graphs.Direct = Graph{ID: 4, Pattern: DirectPattern}
	w.Graphs.NVLS = Graph{ID: 3, Pattern: NVLSPattern}
	if p.CollNet {
		w.Graphs.Chain = s.findGraph(2, TreePattern, n, n, true)
		w.Graphs.Direct = s.findGraph(4, DirectPattern, 1, most, true)
	}
	if s.nvls() {
		w.Graphs.NVLS = s.findGraph(3, NVLSPattern, 1, most, false)
	}
}

// nvls reports whether the GPUs can reduce in their switch (facts 1.7). Two GPUs
// are enough since 2.28.
func (s *system) nvls() bool {
	if n, ok := envInt(s.env, "NCCL_NVLS_ENABLE"); ok && n == 0 {
		return false
	}
	gpus := len(s.nodes[kindGPU])
	return len(s.nodes[kindNVS]) > 0 && s.minCC() >= 90 && (gpus > 2 || gpus == 2 && s.v.From(28))
}

// describe takes a kind of node into what the model knows of the communicator.
func (p *Plan) describe(s *system, first bool) {
	for _, g := range s.nodes[kindGPU] {
		p.MinCC, p.MaxCC = min(p.MinCC, g.gpu.cc), max(p.MaxCC, g.gpu.cc)
	}
	cpu := s.nodes[kindCPU][0].cpu
	if first {
		p.Arch, p.Vendor = cpu.arch, cpu.vendor
	}
	if cpu.arch != p.Arch {
		p.Arch = ArchMixed
	}
	if cpu.vendor != p.Vendor {
		p.Vendor = MixedVendor
	}
	p.NVSwitch = p.NVSwitch || len(s.nodes[kindNVS]) > 0
}

// channels decides how many channels collectives use (facts 2.5).
func (p *Plan) channels() {
	v, w, g := p.Version, p.Wiring, &p.Graphs
	most := v.maxChannels()
	if g.Chain.NChannels == 0 {
		p.CollNet = false
	}
	if p.CollNet {
		p.CollNetHeads = g.Direct.NChannels
		if g.Chain.BwIntra > g.Chain.BwInter && p.NRanks > p.NNodes {
			w.repeat(min(most, w.Count()+w.Count()/2))
		}
	}
	if n := w.Count(); p.NNodes > 1 && g.Ring.BwIntra > 45 && (p.MinCC == 90 || p.MinCC > 90 && v.From(25)) {
		if n < 16 && v.From(20) || 2*n <= most && !v.From(20) {
			w.repeat(2 * n)
		}
	}
	for _, key := range []string{"NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"} {
		if n, ok := envInt(p.Env, key); ok {
			w.limit(max(n, 1))
		}
	}
	for _, key := range []string{"NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"} {
		if n, ok := envInt(p.Env, key); ok {
			w.repeat(min(n, most))
		}
	}
	p.Channels = w.Count()
	p.nvlsChannels()
}

// nvlsChannels is how many channels NVLS uses (facts 1.7).
func (p *Plan) nvlsChannels() {
	if p.Graphs.NVLS.NChannels == 0 {
		return
	}
	n := 16
	switch {
	case p.MinCC < 100 || !p.Version.From(25):
	case p.NNodes == 1 && p.Version.From(27):
		n = 24
	default:
		n = 32
	}
	if asked, ok := envInt(p.Env, "NCCL_NVLS_NCHANNELS"); ok && asked > 0 {
		n = asked
	}
	if least, ok := envInt(p.Env, "NCCL_MIN_CTAS"); ok {
		n = max(n, least)
	}
	if most, ok := envInt(p.Env, "NCCL_MAX_CTAS"); ok && most > 0 {
		n = min(n, most)
	}
	p.NVLSChannels = max(1, min(n, p.Version.maxChannels()))
}

// p2pChannels decides the channels of sends and receives (facts 2.5).
func (p *Plan) p2pChannels() {
	n := p.Channels
	if most, ok := envInt(p.Env, "NCCL_MAX_P2P_NCHANNELS"); ok {
		n = min(n, most)
	}
	if least, ok := envInt(p.Env, "NCCL_MIN_P2P_NCHANNELS"); ok {
		n = max(n, least)
	}
	n = max(1, min(n, p.Version.maxChannels()))
	per := n
	for _, node := range p.Nodes[:min(len(p.Nodes), 1)] {
		for _, g := range node.View.sys.nodes[kindGPU] {
			per = min(per, p.perPeer(node.View.sys, g, n))
		}
	}
	p.P2PChannels = pow2(n)
	p.P2PPerPeer = min(pow2(per), p.P2PChannels)
}

// perPeer is the least number of channels a GPU uses to any peer.
func (p *Plan) perPeer(s *system, g *topoNode, channels int) int {
	least := channels
	for i := range g.paths[kindGPU] {
		path := &s.nodes[kindGPU][i].paths[kindGPU][g.index]
		switch {
		case i == g.index:
		case path.kind == PathNVL:
			least = min(least, 2*max(1, int(path.bw/nvlinkBw(p.Version, g.gpu.cc))))
		default:
			least = min(least, 2)
		}
	}
	if !s.inter {
		return least
	}
	each := 2
	if n, ok := envInt(p.Env, "NCCL_NCHANNELS_PER_NET_PEER"); ok && n > 0 {
		return min(least, n)
	}
	var mine, total float32
	for _, l := range g.links {
		if l.to.kind == kindCPU {
			mine = l.bw
		}
	}
	nets := 0
	for _, n := range s.localNets(g) {
		if total >= mine {
			break
		}
		total += g.paths[kindNET][n.index].bw
		nets++
	}
	switch {
	case p.Version.From(29):
		each = max(nets, divUp(int(total), 14), 1)
		for each > 1 && pow2(each)*divUp(p.NRanks, 8) > pow2(channels) {
			each /= 2
		}
	case p.Version.From(20):
		for each*p.NRanks > channels*4 && each > 1 {
			each /= 2
		}
		each = max(nets, each)
	}
	return min(least, each)
}

// pow2 is the next power of two; far more than there are channels is as good.
func pow2(n int) int {
	p := 1
	for p < n && p < 1<<30 {
		p *= 2
	}
	return p
}

// Devices are the NICs a channel of a ring uses on a node, as devices of its type:
// the one it receives by and the one it sends by; -1 on a single node.
func (p *Plan) Devices(node, c int) [2]int {
	ends := p.NIC(node, c)
	for i, e := range ends {
		if e >= 0 && e < len(p.Nodes[node].View.NICs) {
			ends[i] = p.Nodes[node].View.NICs[e]
		} else {
			ends[i] = -1
		}
	}
	return ends
}

// Heads are the ranks that reduce in the switch, by node; nil without NVLS.
func (p *Plan) Heads() [][]int {
	if p.NVLSChannels == 0 {
		return nil
	}
	var all [][]int
	for _, n := range p.Nodes {
		var heads []int
		for _, order := range n.View.Graphs.NVLS.Intra {
			if r := n.Ranks[order[0]]; !slices.Contains(heads, r) {
				heads = append(heads, r)
			}
		}
		all = append(all, heads)
	}
	return all
}
