package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/hardware"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// machine is the cluster of a job as far as the evidence tells: enough to predict
// what a fault costs there, not what the job does.
type machine struct {
	spec       hardware.Spec
	nodes, per int
	assumed    []string
}

// Sizes of jobs for which a cost is predicted; larger ones cost alike.
const (
	mostNodes = 8
	mostGPUs  = 8
)

// String names the machine: "2 nodes of 8 H100 with 8 NICs of 400 Gb/s".
func (m *machine) String() string {
	nodes := "1 node"
	if m.nodes > 1 {
		nodes = fmt.Sprintf("%d nodes", m.nodes)
	}
	s := fmt.Sprintf("%s of %d %s", nodes, m.per, strings.ToUpper(m.spec.GPU))
	if m.nodes > 1 {
		s += fmt.Sprintf(" with %s of %v", words.Plural(m.spec.NICs, "NIC"), m.spec.Port)
	}
	if len(m.assumed) > 0 {
		s += ", " + strings.Join(m.assumed, " and ") + " assumed"
	}
	return s
}

// machine puts together what log and tables say; nil where the GPU or the
// number of GPUs stays unknown.
func (c *Case) machine() *machine {
	if c.known == nil {
		m := c.build()
		c.known = &m
	}
	return *c.known
}

func (c *Case) build() *machine {
	m := &machine{}
	m.spec.GPU = c.gpu()
	c.sizes(m)
	if m.spec.GPU == "" || m.per < 1 || m.nodes < 1 || m.nodes*m.per < 2 {
		return nil
	}
	if m.nodes > 1 {
		c.nics(m)
	}
	m.nodes, m.per = min(m.nodes, mostNodes), min(m.per, mostGPUs)
	m.spec.Count = m.per
	return m
}

// gpu is the model of the GPUs, as the catalogue knows it.
func (c *Case) gpu() string {
	for _, t := range c.Tables {
		for _, r := range t.Ranks {
			if g, ok := hardware.GPUByName(r.Model); ok {
				return g.Name
			}
		}
	}
	for _, o := range c.All(evidence.GPUName) {
		if g, ok := hardware.GPUByName(o.Arg(0)); ok {
			return g.Name
		}
	}
	if on := cmp.Or(c.Cluster, c.Given); on != nil {
		for _, t := range on.Types {
			for _, i := range t.Of(cluster.GPU) {
				if g, ok := hardware.GPUByName(t.Devices[i].Model.Value); ok {
					return g.Name
				}
			}
		}
	}
	return ""
}

// noPeerAccess reports GPUs whose driver refuses peer access.
func (c *Case) noPeerAccess() bool {
	g, _ := hardware.GPUByName(c.gpu())
	return g.Peers == cluster.No
}

// sizes fills the number of nodes and of GPUs of each.
func (c *Case) sizes(m *machine) {
	if c.Log != nil {
		for i := range c.Log.Comms {
			x := &c.Log.Comms[i]
			if x.NNodes < 1 || x.NRanks <= m.nodes*m.per {
				continue
			}
			m.nodes, m.per = x.NNodes, max(1, x.NRanks/x.NNodes)
		}
	}
	if m.nodes > 0 {
		return
	}
	for _, t := range c.Tables {
		hosts := map[string]bool{}
		for _, r := range t.Ranks {
			hosts[r.Host] = true
		}
		if n := len(hosts); n > 0 && t.NRanks() > m.nodes*m.per {
			m.nodes, m.per = n, max(1, t.NRanks()/n)
		}
	}
}

// nics fills the NICs of a node.
func (c *Case) nics(m *machine) {
	m.spec.Kind = cluster.InfiniBand
	if c.layer() == "RoCE" {
		m.spec.Kind = cluster.RoCE
	}
	if list := c.All(evidence.IBUsing); len(list) > 0 {
		m.spec.NICs = strings.Count(list[0].Arg(0), ",") + 1
	}
	if c.Log != nil {
		for _, n := range c.Log.NICs {
			if n.Net == "IB" && n.Mbps > 0 {
				m.spec.Port = unit.Rate(n.Mbps) * unit.Gbps / 1000
			}
		}
	}
	if m.spec.NICs == 0 {
		m.spec.NICs = max(1, m.per)
		m.assumed = append(m.assumed, "a NIC for every GPU")
	}
	if m.spec.Port == 0 {
		m.spec.Port = 200 * unit.Gbps
		m.assumed = append(m.assumed, "200 Gb/s a NIC")
	}
}
