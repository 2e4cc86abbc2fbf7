package board

import "busbar.dev/cluster"

// GPU begins a GPU; its index is -1 where the source does not give one.
func GPU(vendor string, index int) cluster.Device {
	return cluster.Device{Kind: cluster.GPU, Index: index, Parent: -1, GPU: &cluster.GPUInfo{Vendor: vendor}}
}

// NIC begins a NIC, which the operating system calls label.
func NIC(label string) cluster.Device {
	return cluster.Device{Kind: cluster.NIC, Index: -1, Label: label, Parent: -1, NIC: &cluster.NICInfo{}}
}

// FreePort is the port of a NIC with a number that no network interface has yet, added where there is none.
func FreePort(n *cluster.NICInfo, num int) *cluster.Port {
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Num == num && p.Label == "" {
			return p
		}
	}
	n.Ports = append(n.Ports, cluster.Port{Num: num})
	return &n.Ports[len(n.Ports)-1]
}

// Fact is a value as read; the zero value is unknown.
func Fact[T comparable](v T, source string) (f cluster.Fact[T]) {
	if v != f.Value {
		f = cluster.FromRead(v, source)
	}
	return f
}
