package switchtree

import (
	"fmt"

	"busbar.dev/cluster"
)

// ByTray returns the cluster with one host per tray, as schedulers count them,
// and a sentence about the names this gives, "" when no host has several trays.
func ByTray(c *cluster.Cluster) (*cluster.Cluster, string) {
	trays := c.ByTray()
	if trays == c {
		return c, ""
	}
	for _, l := range trays.Network.Links {
		if l.A.Switch < len(c.Network.Switches) {
			continue
		}
		if name := trays.Hosts[l.B.Hosts[0].First].Name; name != "" {
			return trays, fmt.Sprintf("Racks of several hosts are written host by host, %q and so on; put in the names that "+
				"the hosts have.", name)
		}
	}
	return trays, ""
}

// Keep returns the hosts and the network of a cluster with the hosts renamed. A
// host whose new name is empty, or taken by an earlier host, is left out; the
// old names of those come back as dropped.
func Keep(c *cluster.Cluster, rename func(string) string) (kept *cluster.Cluster, dropped []string) {
	kept = &cluster.Cluster{Name: c.Name, Network: c.Network}
	to := make([]int, len(c.Hosts))
	taken := make(map[string]bool, len(c.Hosts))
	for i := range c.Hosts {
		name := rename(c.Hosts[i].Name)
		if name == "" || taken[name] {
			to[i] = -1
			dropped = append(dropped, c.Hosts[i].Name)
			continue
		}
		taken[name] = true
		to[i] = len(kept.Hosts)
		kept.Hosts = append(kept.Hosts, cluster.Host{Name: name, Type: c.Hosts[i].Type})
	}
	if len(dropped) == 0 {
		return kept, nil
	}
	kept.Network.Links = make([]cluster.NetLink, len(c.Network.Links))
	for i, l := range c.Network.Links {
		l.A.Hosts, l.B.Hosts = renumber(l.A, to), renumber(l.B, to)
		kept.Network.Links[i] = l
	}
	return kept, dropped
}

// renumber translates runs of hosts.
func renumber(e cluster.End, to []int) []cluster.Span {
	var out []cluster.Span
	for h := range e.EachHost(len(to)) {
		if to[h] >= 0 {
			out = cluster.AppendSpan(out, cluster.Span{First: to[h], N: 1})
		}
	}
	return out
}
