package step

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Tier is a layer of a fabric that can be bought faster.
type Tier uint8

// Tiers.
const (
	Ports  Tier = iota // NICs and the cables to their switches
	Trunks             // cables between switches
	Inner              // NVLink and its like inside a node
	Bus                // PCIe inside a node
)

// Tiers lists them.
func Tiers() []Tier { return []Tier{Ports, Trunks, Inner, Bus} }

func (t Tier) String() string {
	return [...]string{"NICs and their cables", "cables between switches", "NVLink inside nodes", "PCIe inside nodes"}[t]
}

// Faster is the cluster with layers of its fabric so many times as fast; false when it has
// none of them.
func Faster(c *cluster.Cluster, factor float64, tiers ...Tier) (*cluster.Cluster, bool) {
	return scaled(c, tiers, func(_ Tier, f *cluster.Fact[unit.Rate]) bool {
		if f.Value <= 0 {
			return false
		}
		f.Value = unit.Rate(float64(f.Value) * factor)
		return true
	})
}

// guessed reports whether a rate of a layer is only assumed. Cables between switches are, where nobody
// says how many there are: then none is short of what hosts can send.
func guessed(c *cluster.Cluster, t Tier, f *cluster.Fact[unit.Rate]) bool {
	return f.Value > 0 &&
		(f.Origin == cluster.Assumed || t == Trunks && c.Network.Oversubscription.Origin == cluster.Assumed)
}

// Assumed are the layers of a fabric with rates that are only assumed, and for each who says why.
func Assumed(c *cluster.Cluster) (tiers []Tier, why []string) {
	for _, t := range Tiers() {
		text := ""
		scaled(c, []Tier{t}, func(t Tier, f *cluster.Fact[unit.Rate]) bool {
			switch {
			case !guessed(c, t, f) || text != "":
			case f.Origin != cluster.Assumed:
				text = c.Network.Oversubscription.Source
			default:
				text = fmt.Sprintf("%v: %s", f.Value, f.Source)
			}
			return false
		})
		if text != "" {
			tiers, why = append(tiers, t), append(why, text)
		}
	}
	return tiers, why
}

// scaled is a copy whose rates of some layers were changed; false where none was.
func scaled(c *cluster.Cluster, tiers []Tier,
	change func(t Tier, f *cluster.Fact[unit.Rate]) bool,
) (*cluster.Cluster, bool) {
	n := variant(c)
	found := false
	rate := func(t Tier, f *cluster.Fact[unit.Rate]) { found = change(t, f) || found }
	for _, t := range n.Types {
		if slices.Contains(tiers, Ports) {
			for i := range t.Devices {
				if nic := t.Devices[i].NIC; nic != nil {
					for k := range nic.Ports {
						rate(Ports, &nic.Ports[k].Rate)
					}
				}
			}
		}
		for i := range t.Links {
			switch t.Links[i].Kind {
			case cluster.NVLink, cluster.XGMI, cluster.Gaudi:
				if slices.Contains(tiers, Inner) {
					rate(Inner, &t.Links[i].Rate)
				}
			case cluster.PCIe:
				if slices.Contains(tiers, Bus) {
					rate(Bus, &t.Links[i].Rate)
				}
			}
		}
	}
	for i := range n.Network.Links {
		l := &n.Network.Links[i]
		at := Trunks
		if l.A.ToHosts() || l.B.ToHosts() {
			at = Ports
		}
		if slices.Contains(tiers, at) {
			rate(at, &l.Rate)
		}
	}
	return n, found
}

// WithRoCE is the cluster with RDMA where its NICs are driven by kernel sockets; false when none is.
func WithRoCE(c *cluster.Cluster) (*cluster.Cluster, bool) {
	n := variant(c)
	found := false
	for _, t := range n.Types {
		for i := range t.Devices {
			if nic := t.Devices[i].NIC; nic != nil && nic.Kind == cluster.Ethernet {
				nic.Kind, found = cluster.RoCE, true
			}
		}
	}
	if n.Network.Kind == cluster.Ethernet {
		n.Network.Kind = cluster.RoCE
	}
	return n, found
}

// WithPorts is the cluster with so many live ports of NICs a node, spread evenly; false when a node
// has fewer.
func WithPorts(c *cluster.Cluster, ports int) (*cluster.Cluster, bool) {
	n := variant(c)
	for _, t := range n.Types {
		live := livePorts(t)
		if len(live) < ports {
			return nil, false
		}
		for i, p := range live {
			if i*ports/len(live) == (i-1)*ports/len(live) && i > 0 {
				p.State = cluster.Down
			}
		}
	}
	return n, true
}

// variant is a copy whose figures can be changed.
func variant(c *cluster.Cluster) *cluster.Cluster {
	n := *c
	n.Types = slices.Clone(c.Types)
	for i, t := range n.Types {
		own := *t
		own.Devices = slices.Clone(t.Devices)
		own.Links = slices.Clone(t.Links)
		for k := range own.Devices {
			if nic := own.Devices[k].NIC; nic != nil {
				mine := *nic
				mine.Ports = slices.Clone(nic.Ports)
				own.Devices[k].NIC = &mine
			}
		}
		n.Types[i] = &own
	}
	n.Network.Links = slices.Clone(c.Network.Links)
	return &n
}

// nodeRanks is how many ranks every host of the layout has; 0 where they differ.
func (f *Fabric) nodeRanks() int {
	count := map[int]int{}
	for _, r := range f.layout {
		count[r.Host]++
	}
	each := count[f.layout[0].Host]
	for _, n := range count {
		if n != each {
			return 0
		}
	}
	return each
}

// CrossesHosts reports whether groups of a kind have ranks on more than one host.
func (f *Fabric) CrossesHosts(g Group) bool {
	l := f.ranks(g, 0)
	for _, r := range l {
		if r.Host != l[0].Host {
			return true
		}
	}
	return false
}

// NetworkWait is the time of a step that goes to traffic between hosts, and what limits most of it.
func (f *Fabric) NetworkWait(r *Result) (wait unit.Span, limit string) {
	most := unit.Span(0)
	for i := range r.Traffic {
		t := &r.Traffic[i]
		if !f.CrossesHosts(t.Group) {
			continue
		}
		wait += t.Exposed
		if t.Exposed > most {
			most, limit = t.Exposed, t.Limit
		}
	}
	return wait, limit
}
