package nccl

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"busbar.dev/cluster"
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

	found    *Planner // on systems of a shape
	occasion string
}

// PlanNode is one of NCCL's nodes. Nodes of equal shape share View.
type PlanNode struct {
	Host  int   // index into Cluster.Hosts
	Ranks []int // lowest first
	View  *View

	gpus  []int // devices, in order of rank
	tray  int   // of the host, where trays are nodes of their own
	next  int32 // 1 and the number of another node of the host; 0 none
	parts int32 // into which NCCL splits the host, where it does
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

// Plan decides as the release would for the ranks of a layout under an
// environment: search on each kind of node, agreement, rings and trees, channels,
// the table of estimates.
func (f *Planner) Plan(c *cluster.Cluster, l Layout, v Version, env map[string]string) (*Plan, error) {
	if len(l) == 0 {
		return nil, fmt.Errorf("a layout without ranks")
	}
	list, err := l.nodes(c, splits(v, env))
	if err != nil {
		return nil, err
	}
	return f.plan(c, list, len(l), v, env)
}

// Under is the plan for the same ranks under another environment.
func (p *Plan) Under(c *cluster.Cluster, l Layout, env map[string]string) (*Plan, error) {
	if splits(p.Version, env) != splits(p.Version, p.Env) ||
		slices.ContainsFunc(p.Nodes, func(n PlanNode) bool { return n.parts > 1 }) {
		return p.found.Plan(c, l, p.Version, env)
	}
	return p.found.plan(c, slices.Clone(p.Nodes), p.NRanks, p.Version, env)
}

// plan decides for nodes of so many ranks.
func (f *Planner) plan(c *cluster.Cluster, list []PlanNode, ranks int, v Version,
	env map[string]string,
) (*Plan, error) {
	var err error
	if list, err = separate(c, list, v, env); err != nil {
		return nil, err
	}
	p := &Plan{
		Comm: Comm{Version: v, rules: v.rules(), NRanks: ranks, NNodes: len(list), MinCC: 1 << 30, Env: env}, found: f,
	}
	if collNet, set := envInt(env, "NCCL_COLLNET_ENABLE"); set && collNet == 1 {
		least := 2
		if n, ok := envInt(env, "NCCL_COLLNET_NODE_THRESHOLD"); ok {
			least = n
		}
		p.CollNet = len(list) >= least && len(list) > 1
	}
	p.occasion = p.Comm.searchKey()
	p.Nodes = list
	var views []*View
	var found []Graphs
	work, kind := 0, newKinds(c)
	for i := range list {
		g := &list[i]
		k := kind.kindOf(g)
		if k == len(views) {
			view, err := p.look(c, g, len(list) > 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", hostName(c, g.Host), err)
			}
			if work += view.sys.work; work > hopeless*8 {
				return nil, fmt.Errorf("%s: the search took %d steps over %d kinds of nodes and found little; use fewer kinds of "+
					"nodes", hostName(c, g.Host), work, k+1)
			}
			views, found = append(views, view), append(found, view.Graphs)
			p.describe(view.sys, i == 0)
		}
		p.MaxLocalRanks = max(p.MaxLocalRanks, len(g.Ranks))
		g.View = views[k]
	}
	p.Graphs = agree(found)
	p.Wiring = newWiring(p.rules, p.Nodes, p.Graphs.Ring.NChannels)
	if p.RCCL = p.Graphs.rccl; p.RCCL != nil {
		p.channelsRCCL()
	} else {
		p.channels()
	}
	p.p2pChannels()
	p.Table, err = NewTable(&p.Comm, &p.Graphs)
	return p, err
}

// SameOrders reports plans for the same nodes whose rings and trees are the same and use the same NICs, whatever their
// number.
func (p *Plan) SameOrders(o *Plan) bool {
	n := p.Period()
	if n != o.Period() || !slices.Equal(p.origin[:n], o.origin[:n]) || p.Wiring.search != o.Wiring.search ||
		p.split != o.split || len(p.Nodes) != len(o.Nodes) {
		return false
	}
	type pair struct{ a, b *View }
	seen := map[pair]bool{}
	for i := range p.Nodes {
		a, b := &p.Nodes[i], &o.Nodes[i]
		k := pair{a.View, b.View}
		if a.Host != b.Host || !slices.Equal(a.Ranks, b.Ranks) ||
			!seen[k] && !(slices.Equal(a.View.NICs, b.View.NICs) && reflect.DeepEqual(a.View.Graphs, b.View.Graphs)) {
			return false
		}
		seen[k] = true
	}
	return true
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
func (p *Plan) look(c *cluster.Cluster, g *PlanNode, inter bool) (*View, error) {
	v := p.Version
	t := c.TypeOf(g.Host)
	var nets []int
	if inter {
		var err error
		if nets, err = netsOf(t, g.gpus, p.Env); err != nil && g.parts > 1 {
			return nil, fmt.Errorf("its GPUs do not reach each other by peer access or shared memory and form %d nodes: %w",
				g.parts, err)
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
	key := p.occasion + s.shape()
	if g, ok := p.found.graphsOf(key); ok {
		w.Graphs = g
		return w, nil
	}
	if s.arch != "" {
		p.searchRCCL(w)
	} else {
		p.search(w)
	}
	p.found.remember(key, w.Graphs)
	return w, nil
}

// search finds the graphs of a node.
func (p *Plan) search(w *View) {
	s, most := w.sys, p.rules.MaxChannels
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

// nvls reports whether the GPUs can reduce in their switch (NCCL 2.28
// src/transport/nvls.cc, ncclNvlsInit). Two GPUs are enough since 2.28.
func (s *system) nvls() bool {
	if n, ok := envInt(s.env, "NCCL_NVLS_ENABLE"); ok && n == 0 {
		return false
	}
	gpus := len(s.nodes[kindGPU])
	return s.NVLSLeast > 0 && gpus >= s.NVLSLeast && len(s.nodes[kindNVS]) > 0 && s.minCC() >= 90
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
