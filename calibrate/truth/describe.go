package truth

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Place is a cluster and the ranks on it.
type Place struct {
	Cluster *cluster.Cluster
	Layout  nccl.Layout
	Assumed []string // what the source leaves open
}

// trayGPUs and rackGPUs are those of the NVL72 racks.
const (
	trayGPUs = 4
	rackGPUs = 72
)

// describe builds the cluster of nodes that a source describes, with as many GPUs each.
func describe(m *result.Machine, nodes, per int, without sim.Mechanisms) (*Place, error) {
	return (&described{Machine: m, nodes: nodes, per: per, without: without}).place()
}

// described are nodes in the words of a source.
type described struct {
	*result.Machine
	nodes, per int
	without    sim.Mechanisms
}

// on tells whether a mechanism counts.
func (g *described) on(m sim.Mechanisms) bool { return !g.without.Has(m) }

func (g *described) place() (*Place, error) {
	const most = 1024 // GPUs a node
	if g.nodes < 1 || g.per < 1 || g.nodes > hardware.MaxNodes || g.per > most {
		return nil, fmt.Errorf("%d nodes with %d GPUs each; expected 1 to %d nodes and 1 to %d GPUs", g.nodes, g.per,
			hardware.MaxNodes, most)
	}
	if g.NICs != nil && *g.NICs < 0 {
		return nil, fmt.Errorf("nics_per_node is %g; expected a count, or null where the source does not state it", *g.NICs)
	}
	if g.Gbps != nil && (*g.Gbps < 0 || *g.Gbps >= 1e5) {
		return nil, fmt.Errorf("nic_gbps is %g; expected the rate of a port in Gb/s, or null where the source does not "+
			"state it", *g.Gbps)
	}
	p := &Place{}
	s := hardware.Spec{GPU: gpuName(g.GPU), Join: g.joining()}
	m, ok := hardware.GPUByName(s.GPU)
	if !ok {
		return nil, fmt.Errorf("GPU %q is not in the catalogue", g.GPU)
	}
	s.Behind = g.behind()
	if g.noPeers() {
		s.Peers = cluster.No
	}
	s.Slots, s.Sockets = g.slots()
	racks := g.racks(m)
	if g.nodes > racks || racks > 0 {
		if err := g.network(&s, p, racks); err != nil {
			return nil, err
		}
	}
	nodes, per := g.nodes, g.per
	switch {
	case racks > 0:
		s.Count = rackGPUs
		nodes, per = racks, g.nodes*g.per/racks
	case g.nodes == 1 || per > 4 || g.part(s.NICs):
		s.Count = max(per, g.server(m))
	default:
		s.Count = per
	}
	c, err := s.Cluster(nodes)
	if err != nil {
		return nil, err
	}
	p.Cluster = c
	if p.Layout, err = nccl.Block(c, nodes, per); err != nil {
		return nil, err
	}
	return p, nil
}

// gpuName is the model without what stands in brackets behind it.
func gpuName(gpu string) string {
	name, _, _ := strings.Cut(gpu, "(")
	return strings.TrimSpace(name)
}

// server is how many GPUs a whole server has, of which a run may use a part.
func (g *described) server(m hardware.GPUModel) int {
	if m.LinkKind == cluster.NVLink && m.Links >= 8 {
		return m.PerNode
	}
	return g.per
}

// part tells whether the GPUs are some of a server's: it has more NICs than they are, or says so.
func (g *described) part(nics int) bool {
	return nics > g.per || strings.Contains(g.Joined, "take part") || strings.Contains(g.Joined, "takes part")
}

// says tells whether the source's words about a node or its network have one of some in them.
func (g *described) says(words ...string) bool {
	text := strings.ToLower(g.Joined + "; " + g.Fabric)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// behind is how many GPUs hang on one PCIe switch, 0 where nothing says it.
func (g *described) behind() int {
	switch {
	case g.says("behind one pcie switch"):
		return g.per
	case g.says("switches (pairs of gpus)"):
		return 2
	case !g.on(sim.SwitchPairs):
		return 1
	}
	return 0
}

// noPeers tells whether the source says that GPUs do not reach each other's memory.
func (g *described) noPeers() bool {
	return g.says("no p2p", "p2p not available", "without p2p", "p2p disabled", "uses shm", "(shm)")
}

var (
	pcieWords = lazyre.New(`(?i)\bPCIe? ?(?:gen ?)?([3-6])\b|\bgen ?([3-6])\b`)
	busWords  = lazyre.New(`(?i)\b(?:at|bus|GPUs)((?:(?: |,|and)+[0-9a-f]{2}(?::00(?:\.0)?)?\b)+)`)
	busNumber = lazyre.New(`(?i)\b([0-9a-f]{2})(?::|\b)`)
)

// slots is the generation of the host's PCIe and on how many sockets the GPUs are, as far as the words or the numbers
// of the GPUs' buses say it: the second socket's begin at 80, and those of Intel's processors with PCIe 3 are always
// the same (ports 17, 3a, 5d, 85, ae and d7, and what hangs on them is one further).
func (g *described) slots() (gen, sockets int) {
	text := g.Joined
	if m := pcieWords.FindStringSubmatch(text); m != nil {
		gen, _ = strconv.Atoi(m[1] + m[2])
	}
	if g.says("different sockets", "per socket", "two sockets") {
		sockets = 2
	}
	m := busWords.FindStringSubmatch(text)
	if m == nil {
		return gen, sockets
	}
	const gen3 = " 17 18 3a 3b 5d 5e 85 86 ae af d7 d8 "
	old, first, second := true, false, false
	for _, b := range busNumber.FindAllString(m[1], -1) {
		b = strings.ToLower(strings.TrimSuffix(b, ":"))
		old = old && strings.Contains(gen3, " "+b+" ")
		first, second = first || b < "80", second || b >= "80"
	}
	if old && gen == 0 {
		gen = 3
	}
	if sockets == 0 {
		sockets = 1
		if first && second {
			sockets = 2
		}
	}
	return gen, sockets
}

var perPair = lazyre.New(`(?:nv(\d{1,2})|(\d{1,2}) links) per pair`)

// joining reads how the GPUs of a node are joined, as hardware.Spec has it.
func (g *described) joining() string {
	s := strings.ToLower(g.Joined)
	has := func(word string) bool { return strings.Contains(s, word) }
	switch pair := perPair.FindStringSubmatch(s); {
	case has("nvswitch"), has("nvl72"):
		return "nvswitch"
	case pair != nil:
		return "mesh " + pair[1] + pair[2]
	case has("mesh"), has("all-to-all"), has("per pair"):
		return "mesh"
	case has("bridge") && !has("bridge not stated"):
		return "bridge"
	case has("pcie"), has("bridge"):
		return "none"
	}
	return ""
}

// racks is the number of NVLink domains the nodes stand in, 0 where each node is
// one of its own. Nodes are spread evenly over as few racks as hold them.
func (g *described) racks(m hardware.GPUModel) int {
	rack := strings.Contains(g.Joined, "NVL72") || strings.Contains(g.Joined, "MNNVL")
	if g.says("different nvlink domains", "distinct nvlink domains") {
		return 0
	}
	if !rack && m.Domain == 0 || g.nodes == 1 && g.per <= trayGPUs {
		return 0
	}
	n := (g.nodes*g.per + rackGPUs - 1) / rackGPUs
	for g.nodes%n != 0 {
		n++
	}
	return n
}

// network fills the NICs of a spec.
func (g *described) network(s *hardware.Spec, p *Place, racks int) error {
	var known bool
	s.Kind, s.GDR, known = g.kind()
	if g.says("no gpudirect", "without gpudirect", "gpudirect off", "gpudirect rdma off", "no gdr",
		"gdr off", "gdr 0") {
		s.GDR = cluster.No
	}
	if racks == 1 || racks == 0 && g.nodes == 1 {
		s.NICs, s.Port, s.Kind = trayGPUs, 400*unit.Gbps, cluster.InfiniBand
		if racks == 0 {
			s.NICs = 0
		}
		return nil
	}
	if g.NICs != nil {
		s.NICs = int(math.Round(*g.NICs))
	} else if t := offer(g.GPU); t != nil {
		s.NICs = t.Count(cluster.NIC)
		p.Assumed = append(p.Assumed, fmt.Sprintf("%d NICs per node", s.NICs))
	} else {
		return fmt.Errorf("the source does not state how many NICs a node has")
	}
	if s.NICs < 1 || s.NICs > 1024 {
		return fmt.Errorf("%d NICs per node; expected 1 to 1024", s.NICs)
	}
	if g.Gbps != nil && *g.Gbps == 0 {
		return fmt.Errorf("nic_gbps is 0 on %d nodes; expected the rate of a port in Gb/s, or null where the source does "+
			"not state it", g.nodes)
	}
	switch {
	case known:
	case g.Fabric == "":
		p.Assumed = append(p.Assumed, "InfiniBand; the source does not state the fabric")
	default:
		p.Assumed = append(p.Assumed, fmt.Sprintf("fabric %.40q is none that is known: taken as InfiniBand", g.Fabric))
	}
	rate, assumed := g.port()
	if assumed != "" {
		p.Assumed = append(p.Assumed, assumed)
	}
	s.Port = rate
	return nil
}

// kind reads the family of the network, and whether it reaches GPU memory; false where its
// words name none, and the usual one is taken.
func (g *described) kind() (cluster.NetKind, cluster.Tri, bool) {
	s := strings.ToLower(g.Fabric)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	}
	switch {
	case has("plain tcp", "sockets", "ipoib", "without rdma"):
		return cluster.Ethernet, cluster.No, true
	case has("efa"):
		return cluster.EFA, cluster.Yes, true
	case has("tcpxo", "tcp-xo", "fastrak"):
		return cluster.TCPXO, cluster.Yes, true
	case has("tcpx"):
		return cluster.TCPX, cluster.Yes, true
	case has("slingshot"):
		return cluster.Slingshot, cluster.Yes, true
	case has("omni"):
		return cluster.OmniPath, cluster.Yes, true
	case has("roce"):
		return cluster.RoCE, cluster.Yes, true
	case has("infiniband", "ndr", "hdr", "edr", "xdr"):
		return cluster.InfiniBand, cluster.Yes, true
	case has("ethernet", "tcp", "gbe"):
		return cluster.Ethernet, cluster.No, true
	}
	return cluster.InfiniBand, cluster.Yes, false
}

// port is the rate of a port, and what had to be assumed.
func (g *described) port() (unit.Rate, string) {
	if g.Gbps != nil && *g.Gbps > 0 {
		return unit.Rate(*g.Gbps * float64(unit.Gbps)), ""
	}
	s := strings.ToLower(g.Fabric)
	for _, x := range []struct {
		word string
		gbps float64
	}{{"x800", 800}, {"xdr", 800}, {"ndr", 400}, {"hdr", 200}, {"edr", 100}, {"tcp", 200}} {
		if strings.Contains(s, x.word) {
			return unit.Rate(x.gbps * float64(unit.Gbps)), fmt.Sprintf("ports of %g Gb/s", x.gbps)
		}
	}
	return 100 * unit.Gbps, "ports of 100 Gb/s"
}
