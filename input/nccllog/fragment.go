package nccllog

import (
	"cmp"
	"maps"
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
		hosts[h] = &cluster.NodeType{}
	}
	l.addGPUs(hosts)
	l.addNICs(hosts)
	types := cluster.Types{}
	for _, h := range l.Hosts {
		if t := hosts[h]; len(t.Devices) > 0 {
			types.AddNode(f, h, t)
		} else {
			f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: -1})
		}
	}
	if l.NotUnderstood > 0 && len(l.Unknown) > 0 {
		f.Warnf(0, "", "%d of %d records of NCCL were not understood; most often %q", l.NotUnderstood, l.Records,
			l.Unknown[0].Text)
	}
	return f
}

// addGPUs adds each GPU once, whatever communicators it took part in.
func (l *Log) addGPUs(hosts map[string]*cluster.NodeType) {
	gpus := map[string]map[cluster.PCI]int{}
	for _, m := range l.Comms {
		for _, k := range m.Ranks {
			if k.PCI == "" || hosts[k.Host] == nil {
				continue
			}
			if gpus[k.Host] == nil {
				gpus[k.Host] = map[cluster.PCI]int{}
			}
			if old, ok := gpus[k.Host][k.PCI]; !ok || old < 0 {
				gpus[k.Host][k.PCI] = k.NvmlDev
			}
		}
	}
	vendor := "nvidia"
	if l.AMD {
		vendor = "amd"
	}
	for host, index := range gpus {
		for _, pci := range slices.Sorted(maps.Keys(index)) {
			hosts[host].Add(cluster.Device{
				Kind: cluster.GPU, Index: index[pci], PCI: pci, Parent: -1, GPU: &cluster.GPUInfo{Vendor: vendor},
			})
		}
	}
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
