package cluster

import (
	"fmt"
	"slices"
	"strconv"
)

// ByTray is the cluster as operating systems and schedulers see it: every host
// whose type has several trays becomes one host per tray, named node0-t00,
// node0-t01 and so on, with a type that holds the devices and links of that tray.
// Trays that are alike share a type. A grouping (Switch with Domain) of the name
// of the old host holds its trays. A cluster without such hosts is returned as it
// is; else what devices are described by is shared with c, and neither should be
// changed afterwards.
//
// A tray keeps the NVSwitch its GPUs hang on, so paths inside a tray are as they
// were. What joins trays inside their rack is lost: the grouping says only who
// belongs together, and Routes finds the way over the NICs. Ask the cluster
// itself, not this view of it, for paths and rates.
func (c *Cluster) ByTray() *Cluster {
	s := splitTrays(c)
	if s == nil {
		return c
	}
	out := *c
	out.Types = s.types
	out.Hosts = make([]Host, 0, s.base[len(c.Hosts)])
	for h := range c.Hosts {
		out.Hosts = s.appendHost(out.Hosts, h)
	}
	out.Network.Switches = slices.Clone(c.Network.Switches)
	out.Network.Links = make([]NetLink, 0, len(c.Network.Links))
	for _, l := range c.Network.Links {
		out.Network.Links = s.appendLink(out.Network.Links, l)
	}
	s.group(&out.Network)
	return &out
}

// TrayName is the name of a tray of a host that has so many: that of the host that ByRack made it of, or what ByTray calls it.
func (h *Host) TrayName(tray, trays int) string {
	if tray < len(h.Trays) {
		return h.Trays[tray]
	}
	return trayName(h.Name, tray, max(2, len(strconv.Itoa(trays-1))))
}

func trayName(host string, tray, width int) string { return fmt.Sprintf("%s-t%0*d", host, width, tray) }

// traySplit says where the parts of a cluster's hosts go.
type traySplit struct {
	c     *Cluster
	racks []*rackSplit // per old type: nil for one that stays whole
	types []*NodeType  // the new ones
	whole []int        // per old type that stays whole: its new index
	base  []int        // per old host: the index of its first tray
}

// splitTrays plans the split, nil when no host has several trays.
func splitTrays(c *Cluster) *traySplit {
	s := &traySplit{c: c, racks: make([]*rackSplit, len(c.Types)), whole: make([]int, len(c.Types)), base: make([]int, len(c.Hosts)+1)}
	taken := make(map[string]bool, len(c.Types))
	for i, t := range c.Types {
		s.racks[i] = splitRack(t)
		taken[t.Name] = true
	}
	any := false
	for h := range c.Hosts {
		n := 1
		if r := s.rack(h); r != nil {
			n, any = len(r.trays), true
		}
		s.base[h+1] = s.base[h] + n
	}
	if !any {
		return nil
	}
	for i, t := range c.Types {
		if r := s.racks[i]; r != nil {
			s.types = r.kinds(s.types, taken)
			continue
		}
		s.whole[i] = len(s.types)
		s.types = append(s.types, t)
	}
	return s
}

// rack is the split of a host's type, nil for a host that stays whole.
func (s *traySplit) rack(h int) *rackSplit {
	if t := s.c.Hosts[h].Type; t >= 0 && t < len(s.racks) {
		return s.racks[t]
	}
	return nil
}

// appendHost adds a host's trays, each with the identities of its own parts.
// Those of NVSwitches, which belong to no tray, are left out.
func (s *traySplit) appendHost(to []Host, h int) []Host {
	host := s.c.Hosts[h]
	r := s.rack(h)
	if r == nil {
		if host.Type >= 0 && host.Type < len(s.whole) {
			host.Type = s.whole[host.Type]
		}
		return append(to, host)
	}
	first := len(to)
	for _, tr := range r.trays {
		name := ""
		if host.Name != "" {
			name = trayName(host.Name, tr.num, r.width)
		}
		to = append(to, Host{Name: name, Type: tr.kind})
	}
	for _, id := range host.IDs {
		d, ok := r.device(id.Device)
		if !ok || r.slot[d] < 0 {
			continue
		}
		id.Device = r.names[d]
		own := &to[first+r.slot[d]]
		own.IDs = append(own.IDs, id)
	}
	return to
}

// appendLink adds a network link with its ends at trays. It becomes several
// where its hosts are of types that number their NICs differently.
func (s *traySplit) appendLink(to []NetLink, l NetLink) []NetLink {
	for _, a := range s.ends(l.A) {
		for _, b := range s.ends(l.B) {
			n := l
			n.A, n.B = a.End, b.End
			if share := max(a.share, b.share); l.Count > 1 {
				n.Count = (l.Count + share - 1) / share
			}
			to = append(to, n)
		}
	}
	return to
}

// trayEnd is an end of a link, shared evenly by so many trays of each host.
type trayEnd struct {
	End
	share int
}

// ends translates one end. The link of a NIC goes to the tray that has it; one of
// which nobody knows the NIC goes to all trays.
func (s *traySplit) ends(e End) []trayEnd {
	if !e.ToHosts() || len(e.Hosts) == 0 {
		return []trayEnd{{e, 1}}
	}
	var out []trayEnd
	for _, span := range e.Hosts {
		for h := max(span.First, 0); h < span.First+span.N && h < len(s.c.Hosts); h++ {
			nic, at := e.NIC, Span{s.base[h], 1}
			if r := s.rack(h); r != nil {
				nic, at.N = -1, len(r.trays)
				if e.NIC >= 0 && e.NIC < len(r.nics) && r.nics[e.NIC].slot >= 0 {
					nic, at = r.nics[e.NIC].pos, Span{at.First + r.nics[e.NIC].slot, 1}
				}
			}
			i := slices.IndexFunc(out, func(o trayEnd) bool { return o.NIC == nic && o.share == at.N })
			if i < 0 {
				i = len(out)
				out = append(out, trayEnd{End{Switch: -1, NIC: nic, Port: e.Port}, at.N})
			}
			out[i].Hosts = appendSpan(out[i].Hosts, at)
		}
	}
	return out
}

// appendSpan adds a run of hosts, joined to the last one where it continues it.
func appendSpan(to []Span, s Span) []Span {
	if n := len(to); n > 0 && to[n-1].First+to[n-1].N == s.First {
		to[n-1].N += s.N
		return to
	}
	return append(to, s)
}

// group adds a grouping per host that was split. It is a leaf because hosts are
// right below it, and comes after the network's own links because whoever asks
// for the switch of a host wants a box.
func (s *traySplit) group(n *Network) {
	taken := make(map[string]bool, len(n.Switches))
	for i := range n.Switches {
		taken[n.Switches[i].Name] = true
	}
	for h := range s.c.Hosts {
		r := s.rack(h)
		if r == nil {
			continue
		}
		name := s.c.Hosts[h].Name
		if taken[name] {
			name += " (group)" // a network's switches have one set of names
		}
		n.Links = append(n.Links, NetLink{
			A: AtSwitch(len(n.Switches), 0),
			B: End{Switch: -1, NIC: -1, Hosts: []Span{{s.base[h], len(r.trays)}}},
		})
		n.Switches = append(n.Switches, Switch{Name: name, Domain: true, Tier: Leaf, Rail: -1})
	}
}
