package nccllog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/ifname"
	"busbar.dev/internal/words"
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
	vendor := "nvidia"
	if l.AMD {
		vendor = "amd"
	}
	l.addGPUs(f, vendor, hosts)
	l.addNICs(hosts)
	types := cluster.Types{}
	for _, h := range l.Hosts {
		if t := hosts[h]; len(t.Devices) > 0 {
			types.AddNode(f, h, t)
		} else {
			f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: -1})
		}
	}
	l.missing(f)
	if l.NotUnderstood > 0 && len(l.Unknown) > 0 {
		f.Warnf(0, "", "%d of %d records of NCCL were not understood; most often %q", l.NotUnderstood, l.Records,
			l.Unknown[0].Text)
	}
	return f
}

// addGPUs adds each GPU once, whatever communicators it took part in.
func (l *Log) addGPUs(f *cluster.Fragment, vendor string, hosts map[string]*cluster.NodeType) {
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
	for _, x := range l.moved() {
		if gpus[x.host][x.pci] == x.dev {
			delete(gpus[x.host], x.pci)
		}
		f.Warnf(0, x.host, "GPU %d stands here at %s and later at another address: the log is of two runs on machines of "+
			"one name; the later one is taken", x.dev, x.pci)
	}
	for host, index := range gpus {
		for _, pci := range slices.Sorted(maps.Keys(index)) {
			d := board.GPU(vendor, index[pci])
			d.PCI = pci
			hosts[host].Add(d)
		}
	}
}

// seat is a GPU by its number on a host, and its address.
type seat struct {
	host string
	dev  int
	pci  cluster.PCI
}

// moved are the GPUs that have another address in a later communicator of all ranks: it is of another run, on a machine
// of the same name. Processes that see one GPU each call all of them number 0, and tell nothing.
func (l *Log) moved() (list []seat) {
	most := 0
	for i := range l.Comms {
		most = max(most, l.Comms[i].NRanks)
	}
	last := map[seat]cluster.PCI{}
	for i := range l.Comms {
		if l.Comms[i].NRanks < most {
			continue
		}
		now, unclear := map[seat]cluster.PCI{}, false
		for _, k := range l.Comms[i].Ranks {
			at := seat{host: k.Host, dev: k.NvmlDev}
			unclear = unclear || now[at] != ""
			if now[at] = k.PCI; k.NvmlDev < 0 || k.PCI == "" {
				delete(now, at)
			}
		}
		for _, k := range l.Comms[i].Ranks {
			at := seat{host: k.Host, dev: k.NvmlDev}
			if pci := last[at]; pci != "" && now[at] != "" && now[at] != pci && !unclear {
				list = append(list, seat{at.host, at.dev, pci})
			}
		}
		if !unclear {
			maps.Copy(last, now)
		}
	}
	return list
}

// missing warns of ranks that are not found although their processes wrote into the log.
func (l *Log) missing(f *cluster.Fragment) {
	ranks, found := 0, 0
	for i := range l.Comms {
		m := &l.Comms[i]
		if m.NRanks > ranks {
			ranks, found = m.NRanks, 0
		}
		if m.NRanks == ranks {
			found = max(found, len(m.Ranks))
		}
	}
	if found < min(ranks, l.Processes) {
		f.Warnf(0, "", "%d processes wrote into this log, and %d of the %s of its largest communicator can be read: lines "+
			"were left out, or those of several processes ran together; NCCL_DEBUG_FILE=nccl.%%h.%%p.log gives each its own",
			l.Processes, found, words.Plural(ranks, "rank"))
	} else if 0 < found && found < ranks {
		f.Warnf(0, "", "%d of the %s of the largest communicator wrote into this log: GPUs and hosts of the others are not "+
			"in "+
			"it", found, words.Plural(ranks, "rank"))
	}
}

// addNICs adds the devices of networks that drive hardware, and interfaces where
// NCCL fell back to sockets.
func (l *Log) addNICs(hosts map[string]*cluster.NodeType) {
	rdma := map[string]bool{}
	for _, n := range l.NICs {
		rdma[n.Host] = rdma[n.Host] || n.Net != "Socket" && n.Layer != ""
	}
	list := slices.DeleteFunc(slices.Clone(l.NICs), func(n NIC) bool {
		return n.Net == "Socket" && (rdma[n.Host] || n.Addr == "" || !ifname.Of(n.Name).Card) ||
			n.Net != "Socket" && n.Layer == ""
	})
	slices.SortStableFunc(list, func(a, b NIC) int { return cmp.Or(cmp.Compare(a.Host, b.Host), a.Index-b.Index) })
	type key struct{ host, what string }
	seen := map[key]bool{}
	for _, n := range list {
		t := hosts[n.Host]
		if t == nil || seen[key{n.Host, n.Name}] { // the same device under two networks
			continue
		}
		seen[key{n.Host, n.Name}] = true
		d := board.NIC(n.Name)
		if n.Net == "OFI" {
			d.Label = ""
		}
		d.Index, d.NIC = n.Index, n.info()
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
	case providers[n.Layer] != "":
		i.Kind = providers[n.Layer]
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

// Virtual says what an interface is when its name tells that it leads nowhere; "" of all others.
func Virtual(name string) string { return ifname.Of(name).What }
