package plan

import (
	"busbar.dev/cluster"
	"busbar.dev/nccl"
)

// LeafRanks is how many ranks of a layout hang on a leaf switch, one after the other; 0 where that
// is not known, differs, or where one leaf has all.
func LeafRanks(c *cluster.Cluster, l nccl.Layout) int {
	routes := cluster.NewRoutes(c)
	leaves := map[int]int{} // by host
	leaf := func(host int) int {
		sw, ok := leaves[host]
		if !ok {
			sw = -1
			for _, nic := range c.TypeOf(host).Of(cluster.NIC) {
				if sw, _ = routes.Leaf(host, nic); sw >= 0 {
					break
				}
			}
			leaves[host] = sw
		}
		return sw
	}
	size, run := 0, 0
	for i, r := range l {
		sw := leaf(r.Host)
		if sw < 0 {
			return 0
		}
		if i > 0 && sw != leaf(l[i-1].Host) {
			if size > 0 && run != size {
				return 0
			}
			size, run = run, 0
		}
		run++
	}
	if run > size { // the last leaf may have fewer of them
		return 0
	}
	return size
}
