package step

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Slow is a node that is behind the others: its GPUs have lost a share of their speed, or its NICs
// of their rate.
type Slow struct {
	Node  string // a host's name or number; "" is wherever it hurts most
	Count int    // of such nodes, where none is named
	NIC   bool
	Loss  float64 // of the speed or rate: 0.2 is a fifth
}

// ParseSlow reads node3=20%, node3:nic=50%, 2x20% (two nodes, wherever it hurts most) or 1x50%:nic.
func ParseSlow(text string) (Slow, error) {
	bad := func(why string) (Slow, error) {
		return Slow{}, fmt.Errorf("%.60q: %s; expected NODE=20%%, NODE:nic=50%% or COUNTx20%%", text, why)
	}
	s := Slow{Count: 1}
	left, loss, named := strings.Cut(strings.TrimSpace(text), "=")
	if !named {
		if left, s.NIC = strings.CutSuffix(left, ":nic"); !strings.Contains(left, "x") {
			return bad("neither a node nor a number of nodes")
		}
		count, rest, _ := strings.Cut(left, "x")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > maxSlow {
			return bad(fmt.Sprintf("%q nodes, of 1 to %d", count, maxSlow))
		}
		s.Count, loss = n, rest
	} else if s.Node, s.NIC = strings.CutSuffix(strings.TrimSpace(left), ":nic"); s.Node == "" {
		return bad("no node")
	}
	share, ok := strings.CutSuffix(strings.TrimSpace(loss), "%")
	v, err := strconv.ParseFloat(share, 64)
	if !ok || err != nil || !(v >= 0 && v <= 99) {
		return bad(fmt.Sprintf("%q of the speed is lost; from 0%% to 99%%", loss))
	}
	s.Loss = v / 100
	return s, nil
}

// maxSlow bounds a number of slow nodes.
const maxSlow = 1 << 20

// Host is a slow node of a layout.
type Host struct {
	Index int // into the cluster's hosts
	Loss  float64
}

// SlowNICs is the cluster with NICs of some hosts that have lost a share of their rate; false where
// those have none whose rate is known.
func SlowNICs(c *cluster.Cluster, list []Host) (*cluster.Cluster, bool) {
	n := *c
	n.Types, n.Hosts = slices.Clone(c.Types), slices.Clone(c.Hosts)
	found := false
	made := map[[2]float64]int{} // types by what they were and what is lost
	for _, h := range list {
		was := n.Hosts[h.Index].Type
		if was < 0 {
			continue
		}
		key := [2]float64{float64(was), h.Loss}
		if _, ok := made[key]; !ok {
			one := variant(&cluster.Cluster{Types: []*cluster.NodeType{n.Types[was]}})
			t := one.Types[0]
			t.Name += " (slow NICs)"
			for i := range t.Devices {
				if nic := t.Devices[i].NIC; nic != nil {
					for k := range nic.Ports {
						r := &nic.Ports[k].Rate
						found = found || r.Value > 0
						r.Value = unit.Rate(float64(r.Value) * (1 - h.Loss))
					}
				}
			}
			made[key] = len(n.Types)
			n.Types = append(n.Types, t)
		}
		n.Hosts[h.Index].Type = made[key]
	}
	return &n, found
}

// PriceSlow is the step on a GPU with some hosts whose GPUs have lost a share of their speed. A replica's
// stages that such a host holds take longer, and all other ranks wait for that replica: what counts is the
// slowest one.
func (p *Prepared) PriceSlow(g *GPU, list []Host) (*Result, error) {
	worst, err := p.Price(g)
	if err != nil {
		return nil, err
	}
	for _, late := range p.replicas(list) {
		r, err := (&pricing{Prepared: p, g: g, late: late}).run()
		if err != nil {
			return nil, err
		}
		if r.Step > worst.Step {
			worst = r
		}
	}
	return worst, nil
}

// replicas are the stages that are late, by how many times their computing takes, for every kind of
// replica that has some.
func (p *Prepared) replicas(list []Host) []map[int]float64 {
	s := p.f.split
	_, _, dp, pp := s.Strides()
	slow := map[int]float64{}
	for _, h := range list {
		slow[h.Index] = max(slow[h.Index], 1/(1-h.Loss))
	}
	late := map[int]map[int]float64{}
	for rank, at := range p.f.layout {
		factor := slow[at.Host]
		if factor <= 1 {
			continue
		}
		replica, stage := rank/dp%s.DP, rank/pp%s.PP
		if late[replica] == nil {
			late[replica] = map[int]float64{}
		}
		late[replica][stage] = max(late[replica][stage], factor)
	}
	var kinds []map[int]float64
	for _, replica := range slices.Sorted(maps.Keys(late)) {
		if !slices.ContainsFunc(kinds, func(k map[int]float64) bool { return maps.Equal(k, late[replica]) }) {
			kinds = append(kinds, late[replica])
		}
	}
	return kinds
}

// delayed is a block on a node that takes so many times as long for its computing; traffic takes what
// it takes.
func (p *pricing) delayed(kind int, took blockTime, factor float64) blockTime {
	if factor <= 1 {
		return took
	}
	b := &p.blocks[kind]
	took.fwd += unit.Span(factor-1) * p.g.Run(b.pass.Forward, p.j)
	took.bwd += unit.Span(factor-1) * (p.g.Run(b.pass.Backward, p.j) + p.g.Run(b.pass.Again, p.j))
	took.weight *= unit.Span(factor)
	return took
}

// lateness is how many times as long a stage computes.
func (p *pricing) lateness(stage int) float64 { return max(1, p.late[stage]) }

// WorstHosts are count hosts where slow GPUs hurt most: one that holds the stage that the step waits for
// longest when it is late, and others spread over the layout.
func (p *Prepared) WorstHosts(g *GPU, count int, loss float64) ([]int, error) {
	s := p.f.split
	_, _, _, per := s.Strides()
	best, most := 0, unit.Span(-1)
	tried := map[int]bool{}
	for stage := range s.PP {
		host := p.f.layout[stage*per].Host
		if tried[host] {
			continue
		}
		tried[host] = true
		r, err := p.PriceSlow(g, []Host{{host, loss}})
		if err != nil {
			return nil, err
		}
		if r.Step > most*(1+1e-12) {
			best, most = host, r.Step
		}
	}
	hosts := p.Hosts()
	if count > len(hosts) {
		return nil, fmt.Errorf("%d slow nodes, and %d take part", count, len(hosts))
	}
	at := slices.Index(hosts, best)
	list := make([]int, count)
	for i := range count {
		list[i] = hosts[(at+i*len(hosts)/count)%len(hosts)]
	}
	return list, nil
}

// Hosts are those of the layout, in its order.
func (p *Prepared) Hosts() []int {
	var list []int
	seen := map[int]bool{}
	for _, r := range p.f.layout {
		if !seen[r.Host] {
			seen[r.Host] = true
			list = append(list, r.Host)
		}
	}
	return list
}

// StragglerReason says why everybody waits for a node that computes slowly.
func (p *Prepared) StragglerReason() string {
	s := p.j.Split
	var why []string
	if s.PP > 1 {
		why = append(why, "a pipeline goes as fast as its slowest stage")
	}
	switch {
	case s.DP > 1 && s.ZeRO == 3:
		why = append(why, "parameters come block by block from all replicas, the last one's too")
	case s.DP > 1:
		why = append(why, "the gradient reduction waits for the last replica")
	case s.PP == 1:
		why = append(why, "ranks that share layers or sequences wait for each other in every layer")
	}
	return strings.Join(why, ", and ")
}
