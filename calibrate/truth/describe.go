package truth

import (
	"fmt"
	"math"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
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
	Unread  []string // words of the source that nothing was made of
}

// trayGPUs and rackGPUs are those of the NVL72 racks.
const (
	trayGPUs = 4
	rackGPUs = 72
)

// Describe builds the cluster of nodes that a source describes, with as many GPUs each.
func Describe(m *result.Machine, nodes, per int, without sim.Mechanisms) (*Place, error) {
	return (&described{Machine: m, nodes: nodes, per: per, without: without}).place()
}

// described are nodes in the words of a source.
type described struct {
	*result.Machine
	nodes, per int
	without    sim.Mechanisms
}

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
	s := hardware.Spec{GPU: gpuName(g.GPU), Count: g.per}
	m, ok := hardware.GPUByName(s.GPU)
	if !ok {
		return nil, fmt.Errorf("GPU %q is not in the catalogue", g.GPU)
	}
	if g.Gbps != nil {
		s.Port = unit.Rate(*g.Gbps * float64(unit.Gbps))
	}
	rack, unread := s.Read(g.Joined)
	apart, more := s.Read(g.Fabric)
	p.Unread = append(unread, more...)
	if apart != cluster.Maybe {
		rack = apart
	}
	if s.Behind == 0 && g.without.Has(sim.SwitchPairs) {
		s.Behind = 1
	}
	racks := g.racks(m, rack)
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
	case s.Of > 0 && s.NICs > per: // of all of them
		s.Count, s.Of = s.Of, 0
	case g.nodes == 1 || per > 4 || s.NICs > per:
		s.Count = max(per, g.server(m))
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

// racks is the number of NVLink domains the nodes stand in, 0 where each node is
// one of its own. Nodes are spread evenly over as few racks as hold them.
func (g *described) racks(m hardware.GPUModel, rack cluster.Tri) int {
	if rack == cluster.No || rack == cluster.Maybe && m.Domain == 0 || g.nodes == 1 && g.per <= trayGPUs {
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
	known := s.Kind != ""
	if !known {
		s.Kind = cluster.InfiniBand
	}
	if s.Kind == cluster.Ethernet {
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
	if s.Port == 0 {
		s.Port = 100 * unit.Gbps
		if s.Kind == cluster.Ethernet || s.Kind == cluster.TCPX || s.Kind == cluster.TCPXO {
			s.Port = 200 * unit.Gbps
		}
	}
	if g.Gbps == nil || *g.Gbps == 0 {
		p.Assumed = append(p.Assumed, fmt.Sprintf("ports of %g Gb/s", float64(s.Port)/float64(unit.Gbps)))
	}
	return nil
}
