package launch

import (
	"busbar.dev/cluster"
	"busbar.dev/nccl"
)

// railsOf is how many leaf switches the NICs of a host are cabled to.
func railsOf(c *cluster.Cluster, host int) int {
	routes := cluster.NewRoutes(c)
	seen := map[int]bool{}
	for _, nic := range c.TypeOf(host).Of(cluster.NIC) {
		if leaf, _ := routes.Leaf(host, nic); leaf >= 0 {
			seen[leaf] = true
		}
	}
	return len(seen)
}

// leaves counts the hosts below each leaf switch in the order of ranks: none where that is not known of
// a host, or where the order comes back to a leaf that it had left.
func leaves(c *cluster.Cluster, l nccl.Layout) []int {
	routes := cluster.NewRoutes(c)
	var list []int
	last, seen := -1, map[int]bool{}
	for i, r := range l {
		if i > 0 && l[i-1].Host == r.Host {
			continue
		}
		leaf := -1
		for _, nic := range c.TypeOf(r.Host).Of(cluster.NIC) {
			if leaf, _ = routes.Leaf(r.Host, nic); leaf >= 0 {
				break
			}
		}
		switch {
		case leaf < 0 || leaf != last && seen[leaf]:
			return nil
		case leaf != last:
			list, seen[leaf], last = append(list, 0), true, leaf
		}
		list[len(list)-1]++
	}
	return list
}
