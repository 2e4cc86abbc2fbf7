package nccltests

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
)

// Fragment lists the hosts with the GPUs that took part. Hosts with the same GPUs share a node type.
func (o *Output) Fragment(source string) *cluster.Fragment {
	f := &cluster.Fragment{Format: Format, Source: source}
	f.Warnings = append(f.Warnings, o.Warnings...)
	hosts := map[string]map[Rank]bool{}
	var order []string
	for i := range o.Tables {
		alike := map[Rank]int{}
		for _, r := range o.Tables[i].Ranks {
			if hosts[r.Host] == nil {
				hosts[r.Host] = map[Rank]bool{}
				order = append(order, r.Host)
			}
			// Where each rank sees one GPU alone, on a bus of a PCI domain of its own that is not printed, all look alike.
			s := r.seat()
			alike[s]++
			if s.Rank = alike[s] - 1; s.PCI != "" {
				s.Rank = 0
			}
			hosts[r.Host][s] = true
		}
	}
	types := cluster.Types{}
	for _, host := range order {
		types.AddNode(f, host, nodeType(hosts[host]))
	}
	return f
}

// seat is a GPU as a rank line shows it. The CUDA ordinal and the bus count only where the
// line has no whole address.
func (r Rank) seat() Rank {
	r.Rank = 0
	if r.PCI != "" {
		r.Bus, r.Device = "", 0
	}
	return r
}

// nodeType makes the node of one host.
func nodeType(seats map[Rank]bool) *cluster.NodeType {
	list := slices.Collect(maps.Keys(seats))
	onBus := map[string]int{}
	for _, s := range list {
		onBus[s.Bus]++
	}
	for i := range list {
		// The bus alone is an address when nothing else in the host is on it: GPUs
		// sit at device 0 behind a bridge of their own, except in virtual machines,
		// where several share a bus or all are on bus 0.
		if s := &list[i]; s.PCI == "" && onBus[s.Bus] == 1 && strings.TrimLeft(s.Bus, "0x") != "" {
			s.PCI, _ = cluster.ParsePCI("0:" + strings.TrimPrefix(s.Bus, "0x") + ":0.0")
		}
	}
	slices.SortFunc(list, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.PCI, b.PCI), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Bus, b.Bus),
			cmp.Compare(a.Model, b.Model), cmp.Compare(a.Rank, b.Rank))
	})
	t := &cluster.NodeType{}
	seen := map[cluster.PCI]bool{}
	for _, s := range list {
		if s.PCI != "" && seen[s.PCI] { // under another name
			continue
		}
		seen[s.PCI] = true
		d := board.GPU(vendor(s.Model), -1)
		if d.PCI, d.Model = s.PCI, board.Fact(s.Model, Format); s.PCI == "" {
			d.Index = s.Device + s.Rank // the only handle left
		}
		t.Add(d)
	}
	return t
}

// vendor is told by the name; RCCL's fork of the tests prints AMD's.
func vendor(model string) string {
	switch {
	case strings.HasPrefix(model, "AMD"), strings.HasPrefix(model, "Instinct"), strings.Contains(model, "Radeon"):
		return "amd"
	case model == "":
		return ""
	}
	return "nvidia"
}
