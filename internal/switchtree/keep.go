package switchtree

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
)

// ByTray returns hosts and network with one host per tray, as schedulers count them, named node0-t00, node0-t01 and so
// on, below a grouping of the old host's name. Of what is inside the hosts nothing is kept. note is a sentence about
// the names that this gives, "" when no host has several trays.
func ByTray(c *cluster.Cluster) (trays *cluster.Cluster, note string) {
	out := &cluster.Cluster{Name: c.Name, Network: c.Network}
	of := make([]rack, len(c.Types))
	for i, t := range c.Types {
		of[i] = rackOf(t)
	}
	to, racks := make([]cluster.Span, len(c.Hosts)), make([]rack, len(c.Hosts))
	for h := range c.Hosts {
		host := &c.Hosts[h]
		to[h] = cluster.Span{First: len(out.Hosts), N: 1}
		t := c.TypeOf(h)
		if t == nil || len(of[host.Type].trays) < 2 {
			out.Hosts = append(out.Hosts, cluster.Host{Name: host.Name, Type: -1})
			continue
		}
		racks[h] = of[host.Type]
		to[h].N = len(racks[h].trays)
		for _, tray := range racks[h].trays {
			name := ""
			if host.Name != "" {
				name = host.TrayName(tray, t.Trays)
			}
			out.Hosts = append(out.Hosts, cluster.Host{Name: name, Type: -1})
		}
		if name := out.Hosts[to[h].First].Name; note == "" && name != "" {
			note = fmt.Sprintf("Racks of several hosts are written host by host, %q and so on; put in the names that the "+
				"hosts have.", name)
		}
	}
	if len(out.Hosts) == len(c.Hosts) {
		return c, ""
	}
	out.Network.Links = moved(c, func(h, nic int) cluster.Span {
		if nic < 0 || nic >= len(racks[h].nics) {
			return to[h]
		}
		return cluster.Span{First: to[h].First + racks[h].nics[nic], N: 1}
	})
	group(&out.Network, c.Hosts, to)
	return out, note
}

// rack is a node type of several trays: their numbers, and which of them has each NIC.
type rack struct{ trays, nics []int }

// rackOf takes a type apart. Only trays with devices count, whatever number the type says that there are.
func rackOf(t *cluster.NodeType) (r rack) {
	for i := range t.Devices {
		if d := &t.Devices[i]; d.Kind != cluster.NVSwitch && d.Tray >= 0 && d.Tray < t.Trays {
			r.trays = append(r.trays, d.Tray)
		}
	}
	slices.Sort(r.trays)
	r.trays = slices.Compact(r.trays)
	for _, d := range t.Of(cluster.NIC) {
		r.nics = append(r.nics, max(0, slices.Index(r.trays, t.Devices[d].Tray)))
	}
	return r
}

// group adds a grouping per host that became several. It is a leaf because hosts are right below it.
func group(n *cluster.Network, hosts []cluster.Host, to []cluster.Span) {
	n.Switches = slices.Clone(n.Switches)
	taken := make(map[string]bool, len(n.Switches)) // a network's switches have one set of names
	for i := range n.Switches {
		taken[n.Switches[i].Name] = true
	}
	for h, span := range to {
		if span.N < 2 {
			continue
		}
		name := hosts[h].Name
		if taken[name] {
			name += " (group)"
		}
		n.Links = append(n.Links, cluster.NetLink{
			A: cluster.AtSwitch(len(n.Switches), 0), B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{span}},
		})
		n.Switches = append(n.Switches, cluster.Switch{Name: name, Domain: true, Tier: cluster.Leaf, Rail: -1})
	}
}

// Keep returns the hosts and the network of a cluster with the hosts renamed. A
// host whose new name is empty, or taken by an earlier host, is left out; the
// old names of those come back as dropped.
func Keep(c *cluster.Cluster, rename func(string) string) (kept *cluster.Cluster, dropped []string) {
	kept = &cluster.Cluster{Name: c.Name, Network: c.Network}
	to := make([]cluster.Span, len(c.Hosts))
	taken := make(map[string]bool, len(c.Hosts))
	for i := range c.Hosts {
		name := rename(c.Hosts[i].Name)
		if name == "" || taken[name] {
			dropped = append(dropped, c.Hosts[i].Name)
			continue
		}
		taken[name] = true
		to[i] = cluster.Span{First: len(kept.Hosts), N: 1}
		kept.Hosts = append(kept.Hosts, cluster.Host{Name: name, Type: -1})
	}
	if len(dropped) > 0 {
		kept.Network.Links = moved(c, func(h, _ int) cluster.Span { return to[h] })
	}
	return kept, dropped
}

// moved are the links of a cluster where hosts, or those of their NICs at a link, are others.
func moved(c *cluster.Cluster, to func(host, nic int) cluster.Span) []cluster.NetLink {
	links := slices.Clone(c.Network.Links)
	for i := range links {
		for _, e := range []*cluster.End{&links[i].A, &links[i].B} {
			old := *e
			e.Hosts = nil
			for h := range old.EachHost(len(c.Hosts)) {
				if span := to(h, old.NIC); span.N > 0 {
					e.Hosts = cluster.AppendSpan(e.Hosts, span)
				}
			}
		}
	}
	return links
}
