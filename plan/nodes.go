package plan

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/switchtree"
	"busbar.dev/nccl"
)

// NVLinkDomains are groupings of hosts that share NVLink: what Kubernetes calls a clique or accelerator, and blocks of
// Slurm with trays of GB200 or GB300. A block of other machines is only near each other.
func NVLinkDomains(cl *cluster.Cluster) (racks []cluster.Rack) {
	for _, d := range switchtree.Domains(cl) {
		sw := &cl.Network.Switches[d.Switch]
		key, _, _ := strings.Cut(sw.Label, "=")
		joined := strings.HasSuffix(key, "gpu.clique") || strings.HasSuffix(key, "/accelerator")
		gpus, most, trays := 0, 0, true
		for _, h := range d.Hosts {
			t := cl.TypeOf(h)
			if t == nil {
				trays = false
				break
			}
			for _, g := range t.Of(cluster.GPU) {
				m, ok := hardware.GPUByName(t.Devices[g].Model.Value)
				trays, most = trays && ok && m.Domain > 0, m.Domain
				gpus++
			}
		}
		if joined || trays && gpus <= most {
			racks = append(racks, cluster.Rack{Name: sw.Name, Hosts: d.Hosts})
		}
	}
	return racks
}

// Nodes are the nodes of a cluster that a job may take: hosts, or trays of racks.
type Nodes struct {
	Names []string
	Racks []string // of each, "" where it is a host of its own
	Ranks []nccl.Layout
}

// NodesFor lists a cluster's nodes, with the first gpus GPUs of each; 0 is all.
func NodesFor(cl *cluster.Cluster, gpus int) *Nodes {
	x := &Nodes{}
	for h := range cl.Hosts {
		t := cl.TypeOf(h)
		if t == nil {
			continue
		}
		byTray := map[int][]int{}
		for _, g := range t.Of(cluster.GPU) {
			tray := 0
			if t.Trays > 1 {
				tray = t.Devices[g].Tray
			}
			byTray[tray] = append(byTray[tray], g)
		}
		for tray := range max(t.Trays, 1) {
			list := byTray[tray]
			if len(list) == 0 || gpus > len(list) {
				continue
			}
			if gpus > 0 {
				list = list[:gpus]
			}
			var l nccl.Layout
			for _, g := range list {
				l = append(l, nccl.Rank{Host: h, GPU: g})
			}
			name, rack := cl.Hosts[h].Name, ""
			if t.Trays > 1 {
				name, rack = cl.Hosts[h].TrayName(tray, t.Trays), name
			}
			x.Names, x.Racks, x.Ranks = append(x.Names, name), append(x.Racks, rack), append(x.Ranks, l)
		}
	}
	return x
}

// Named are the nodes of names, and the names that no node has. A rack's name is all of its trays.
func (x *Nodes) Named(names []string) (out *Nodes, strange []string) {
	index := map[string][]int{}
	key := func(n string) string { s, _, _ := strings.Cut(strings.ToLower(n), "."); return s }
	for i, n := range x.Names {
		index[key(n)] = append(index[key(n)], i)
		if x.Racks[i] != "" {
			index[key(x.Racks[i])] = append(index[key(x.Racks[i])], i)
		}
	}
	out = &Nodes{}
	taken := map[int]bool{}
	for _, n := range names {
		found := false
		for _, i := range index[key(n)] {
			if !cluster.SameHost(x.Names[i], n) && !cluster.SameHost(x.Racks[i], n) {
				continue
			}
			if found = true; !taken[i] {
				taken[i] = true
				out.Names, out.Racks, out.Ranks = append(out.Names, x.Names[i]), append(out.Racks, x.Racks[i]),
					append(out.Ranks, x.Ranks[i])
			}
		}
		if !found {
			strange = append(strange, n)
		}
	}
	return out, strange
}
