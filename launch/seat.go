package launch

import (
	"fmt"

	"busbar.dev/cluster"
)

// Seat is where a rank sits.
type Seat struct {
	Node         int
	Host         string
	Local, Count int // place among the node's ranks, and how many those are
	Type         *Type
	GPU          *GPU
}

// Host is a node of a plan: its name, its type and its GPUs.
type Host struct {
	Name string
	Type int
	GPUs []int
}

// Hosts are the nodes in the order of ranks.
func (p *Plan) Hosts() ([]Host, error) {
	var list []Host
	for i, n := range p.Nodes {
		names, err := cluster.ParseHosts(n.Hosts)
		if err != nil {
			return nil, fmt.Errorf("nodes[%d].hosts: %w", i, err)
		}
		if len(list)+len(names) > cluster.MaxHosts {
			return nil, fmt.Errorf("nodes[%d]: more than %d hosts", i, cluster.MaxHosts)
		}
		for _, name := range names {
			list = append(list, Host{name, n.Type, n.GPUs})
		}
	}
	return list, nil
}

// Ranks is how many there are.
func (p *Plan) Ranks() int {
	hosts, _ := p.Hosts() // of a plan that cannot be, none
	return ranksOf(hosts)
}

func ranksOf(hosts []Host) (n int) {
	for _, h := range hosts {
		n += len(h.GPUs)
	}
	return n
}

// Seat is where a rank sits.
func (p *Plan) Seat(rank int) (Seat, error) {
	hosts, err := p.Hosts()
	if err != nil {
		return Seat{}, err
	}
	at := 0
	for i, h := range hosts {
		if rank >= at && rank < at+len(h.GPUs) {
			t := &p.Types[h.Type]
			return Seat{i, h.Name, rank - at, len(h.GPUs), t, &t.GPUs[h.GPUs[rank-at]]}, nil
		}
		at += len(h.GPUs)
	}
	return Seat{}, fmt.Errorf("rank %d; the plan has ranks 0 to %d", rank, at-1)
}

// AsGood reports whether a host is one of the plan that is as good for a seat as the seat's own: of the same kind
// and below the same leaf switch.
func (p *Plan) AsGood(at Seat, name string) bool {
	hosts, err := p.Hosts()
	if err != nil || len(p.Leaves) == 0 {
		return false
	}
	first := 0
	for _, n := range p.Leaves {
		if at.Node >= first+n {
			first += n
			continue
		}
		for _, h := range hosts[first : first+n] {
			if cluster.SameHost(h.Name, name) {
				return h.Type == hosts[at.Node].Type
			}
		}
		break
	}
	return false
}
