package nccllog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Fragment lists the hosts with the GPUs and NICs that the log names. Equal hosts
// share a node type; a host of which the log names neither has none.
func (l *Log) Fragment() *cluster.Fragment {
	f := &cluster.Fragment{Format: Format, Source: strings.Join(l.Sources, ", ")}
	hosts := map[string]*cluster.NodeType{}
	for _, h := range l.Hosts {
		hosts[h.Name] = &cluster.NodeType{}
	}
	l.addGPUs(hosts)
	l.addNICs(hosts)
	types := map[string]int{}
	for _, h := range l.Hosts {
		t := hosts[h.Name]
		at := -1
		if len(t.Devices) > 0 {
			key := signature(t)
			var ok bool
			if at, ok = types[key]; !ok {
				at = len(f.Types)
				types[key] = at
				f.Types = append(f.Types, t)
			}
		}
		f.Hosts = append(f.Hosts, cluster.Host{Name: h.Name, Type: at})
	}
	if l.NotUnderstood > 0 && len(l.Unknown) > 0 {
		f.Warnf(0, "", "%d of %d records of NCCL were not understood; most often %q", l.NotUnderstood, l.Records,
			l.Unknown[0].Text)
	}
	return f
}

// addGPUs adds each GPU once, whatever communicators it took part in.
func (l *Log) addGPUs(hosts map[string]*cluster.NodeType) {
	type seat struct {
		host string
		pci  cluster.PCI
	}
	index := map[seat]int{}
	var seats []seat
	for _, m := range l.Comms {
		for _, k := range m.Ranks {
			if k.PCI == "" || hosts[k.Host] == nil {
				continue
			}
			s := seat{k.Host, k.PCI}
			old, ok := index[s]
			if !ok {
				seats = append(seats, s)
				index[s] = k.NvmlDev
			} else if old < 0 {
				index[s] = k.NvmlDev
			}
		}
	}
	slices.SortFunc(seats, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.pci, b.pci))
	})
	vendor := l.vendor()
	for _, s := range seats {
		hosts[s.host].Add(cluster.Device{
			Kind: cluster.GPU, Index: index[s], PCI: s.pci, Parent: -1, GPU: &cluster.GPUInfo{Vendor: vendor},
		})
	}
}

// vendor is told by the library.
func (l *Log) vendor() string {
	for _, n := range l.Notes {
		if strings.HasPrefix(n.Text, "RCCL version") || strings.HasPrefix(n.Text, "ROCr version") {
			return "amd"
		}
	}
	return "nvidia"
}

// addNICs adds the devices of networks that drive hardware, and interfaces where
// NCCL fell back to sockets.
func (l *Log) addNICs(hosts map[string]*cluster.NodeType) {
	rdma := map[string]bool{}
	for i := range l.NICs {
		if n := &l.NICs[i]; n.Net != "Socket" && n.Layer != "" {
			rdma[n.Host] = true
		}
	}
	list := make([]*NIC, 0, len(l.NICs))
	for i := range l.NICs {
		n := &l.NICs[i]
		if n.Net == "Socket" && (rdma[n.Host] || n.Addr == "" || !isCard(n.Name)) || n.Net != "Socket" && n.Layer == "" {
			continue
		}
		list = append(list, n)
	}
	slices.SortStableFunc(list, func(a, b *NIC) int { return cmp.Or(cmp.Compare(a.Host, b.Host), a.Index-b.Index) })
	type key struct{ host, what string }
	seen := map[key]bool{}
	for _, n := range list {
		t := hosts[n.Host]
		if t == nil || seen[key{n.Host, n.Name}] { // the same device under two networks
			continue
		}
		seen[key{n.Host, n.Name}] = true
		d := cluster.Device{Kind: cluster.NIC, Index: n.Index, Label: n.Name, Parent: -1, NIC: n.info()}
		// a second port has an address of its own, which NCCL does not print
		if n.PCI != "" && !seen[key{n.Host, string(n.PCI)}] {
			seen[key{n.Host, string(n.PCI)}] = true
			d.PCI = n.PCI
		}
		t.Add(d)
	}
}

// info is what the log says about a NIC.
func (n *NIC) info() *cluster.NICInfo {
	i := &cluster.NICInfo{GDR: n.GDR}
	if n.SHARP {
		i.Reduction = cluster.Yes
	}
	switch {
	case strings.HasPrefix(n.Name, "hfi1_"): // announces itself as InfiniBand
		i.Kind = cluster.OmniPath
	case n.Layer == "IB":
		i.Kind = cluster.InfiniBand
	case n.Layer == "RoCE":
		i.Kind = cluster.RoCE
	case n.Net == "Socket" && !strings.HasPrefix(n.Name, "ib"):
		i.Kind = cluster.Ethernet
	}
	if n.Mbps > 0 || n.Port > 0 {
		p := cluster.Port{Num: n.Port, Layer: n.Layer}
		if n.Mbps > 0 {
			p.Rate = cluster.FromRead(unit.Rate(n.Mbps)*1e6/8, Format)
		}
		i.Ports = []cluster.Port{p}
	}
	return i
}

// isCard tells interfaces of cards from those the kernel makes up.
func isCard(name string) bool {
	for _, s := range []string{"lo", "docker", "veth", "virbr", "br-", "cni", "flannel", "tun", "tap"} {
		if strings.HasPrefix(name, s) {
			return false
		}
	}
	return true
}

// signature is equal for nodes with equal devices.
func signature(t *cluster.NodeType) string {
	var b strings.Builder
	for i := range t.Devices {
		d := &t.Devices[i]
		fmt.Fprintf(&b, "%s %s %d %s", d.Name, d.PCI, d.Index, d.Label)
		if n := d.NIC; n != nil {
			fmt.Fprintf(&b, " %s %v %v", n.Kind, n.GDR, n.Reduction)
			for _, p := range n.Ports {
				fmt.Fprintf(&b, " %d %s %v", p.Num, p.Layer, p.Rate.Value)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
