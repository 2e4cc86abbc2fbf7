package switchtree

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// Domain is a grouping of hosts.
type Domain struct {
	Switch int // index into Network.Switches
	Hosts  []int
}

// Domains lists the network's groupings that hold hosts themselves, each host
// in the smallest one that has it. Hosts in none are left out, and so are the
// zones and regions of clouds, which say nothing of who is near whom.
func Domains(c *cluster.Cluster) []Domain {
	n := &c.Network
	var all []Domain
	for i := range n.Links {
		l := &n.Links[i]
		if l.A.ToHosts() || !l.B.ToHosts() || l.A.Switch >= len(n.Switches) || !n.Switches[l.A.Switch].Domain {
			continue
		}
		if key, _, _ := strings.Cut(n.Switches[l.A.Switch].Label, "="); strings.HasSuffix(key, "/zone") ||
			strings.HasSuffix(key, "/region") {
			continue
		}
		d := Domain{Switch: l.A.Switch}
		d.Hosts = slices.Collect(l.B.EachHost(len(c.Hosts)))
		all = append(all, d)
	}
	best := slices.Repeat([]int{-1}, len(c.Hosts))
	for i := range all {
		for _, h := range all[i].Hosts {
			if best[h] < 0 || len(all[i].Hosts) < len(all[best[h]].Hosts) {
				best[h] = i
			}
		}
	}
	out := all[:0:0]
	for i := range all {
		d := Domain{Switch: all[i].Switch}
		for _, h := range all[i].Hosts {
			if best[h] == i {
				d.Hosts = append(d.Hosts, h)
			}
		}
		if len(d.Hosts) > 0 {
			out = append(out, d)
		}
	}
	return out
}
