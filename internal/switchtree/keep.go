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
	numbers := make([][]int, len(c.Types))
	for i, t := range c.Types {
		numbers[i] = traysOf(t)
	}
	to := make([]cluster.Span, len(c.Hosts))
	for h := range c.Hosts {
		host := &c.Hosts[h]
		to[h] = cluster.Span{First: len(out.Hosts), N: 1}
		if t := c.TypeOf(h); t == nil || len(numbers[host.Type]) < 2 {
			out.Hosts = append(out.Hosts, cluster.Host{Name: host.Name, Type: -1})
			continue
		}
		to[h].N = len(numbers[host.Type])
		for _, tray := range numbers[host.Type] {
			name := ""
			if host.Name != "" {
				name = host.TrayName(tray, c.TypeOf(h).Trays)
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
		span := to[h]
		if t := c.TypeOf(h); t != nil && nic >= 0 && nic < t.Count(cluster.NIC) && span.N > 1 {
			if at := slices.Index(numbers[c.Hosts[h].Type], t.Devices[t.Of(cluster.NIC)[nic]].Tray); at >= 0 {
				return cluster.Span{First: span.First + at, N: 1}
			}
		}
		return span
	})
	out.Network.Switches = slices.Clone(c.Network.Switches)
	taken := make(map[string]bool, len(c.Network.Switches)) // a network's switches have one set of names
	for i := range c.Network.Switches {
		taken[c.Network.Switches[i].Name] = true
	}
	for h, span := range to {
		if span.N < 2 {
			continue
		}
		name := c.Hosts[h].Name
		if taken[name] {
			name += " (group)"
		}
		out.Network.Links = append(out.Network.Links, cluster.NetLink{
			A: cluster.AtSwitch(len(out.Network.Switches), 0),
			B: cluster.End{Switch: -1, NIC: -1, Hosts: []cluster.Span{span}},
		})
		// It is a leaf because hosts are right below it.
		out.Network.Switches = append(out.Network.Switches,
			cluster.Switch{Name: name, Domain: true, Tier: cluster.Leaf, Rail: -1})
	}
	return out, note
}

// traysOf lists the trays that have devices, whatever number a type says that there are.
func traysOf(t *cluster.NodeType) []int {
	var list []int
	for i := range t.Devices {
		if d := &t.Devices[i]; d.Kind != cluster.NVSwitch && d.Tray >= 0 && d.Tray < t.Trays {
			list = append(list, d.Tray)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
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
