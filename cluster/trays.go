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

// TrayName is the name of a tray of a host that has so many: that of the host that ByRack made it of, or what ByTray
// calls it.
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
	s := &traySplit{
		c: c, racks: make([]*rackSplit, len(c.Types)), whole: make([]int, len(c.Types)), base: make([]int, len(c.Hosts)+1),
	}
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
	for h := range e.EachHost(len(s.c.Hosts)) {
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
		out[i].Hosts = AppendSpan(out[i].Hosts, at)
	}
	return out
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

// trayNIC is where a NIC of a rack went: the tray's slot in rackSplit.trays, -1
// for none, and its position among the tray's NICs.
type trayNIC struct{ slot, pos int }

// tray is one host of a rack.
type tray struct {
	num     int // Device.Tray
	kind    int // index of its type among the new types
	devices []int
	links   []int
	pairs   []int
}

// rackSplit is a node type of several trays, taken apart.
type rackSplit struct {
	t     *NodeType
	trays []tray
	width int      // digits of a tray's number
	slot  []int    // per device: position in trays; -1 for an NVSwitch
	names []string // per device: its name in its tray
	nics  []trayNIC
	at    map[string]int // device by name, made when it is asked for
}

// splitRack takes a type apart, nil when it is one host: devices of fewer than
// two trays are known. Only trays with devices count, whatever Trays says.
func splitRack(t *NodeType) *rackSplit {
	if t.Trays <= 1 {
		return nil
	}
	slots := map[int]int{}
	for i := range t.Devices {
		if d := &t.Devices[i]; d.Kind != NVSwitch && d.Tray >= 0 && d.Tray < t.Trays {
			slots[d.Tray] = 0
		}
	}
	if len(slots) < 2 {
		return nil
	}
	r := &rackSplit{t: t, slot: make([]int, len(t.Devices)), names: make([]string, len(t.Devices))}
	for num := range slots {
		r.trays = append(r.trays, tray{num: num})
	}
	slices.SortFunc(r.trays, func(a, b tray) int { return a.num - b.num })
	for i := range r.trays {
		slots[r.trays[i].num] = i
	}
	r.width = max(2, len(strconv.Itoa(r.trays[len(r.trays)-1].num)))
	r.deal(slots)
	return r
}

// deal gives every tray its devices, links and pairs. Names count through the
// rack; a tray's are counted anew, so that equal trays are equal types.
func (r *rackSplit) deal(slots map[int]int) {
	count := map[trayStem]int{}
	for i := range r.t.Devices {
		d := &r.t.Devices[i]
		slot, ok := slots[d.Tray]
		if !ok || d.Kind == NVSwitch {
			slot = -1
		}
		n := count[trayStem{slot, d.Kind}]
		count[trayStem{slot, d.Kind}]++
		r.slot[i], r.names[i] = slot, d.Kind.String()+strconv.Itoa(n)
		if slot >= 0 {
			r.trays[slot].devices = append(r.trays[slot].devices, i)
		}
		if d.Kind == NIC {
			r.nics = append(r.nics, trayNIC{slot, n})
		}
	}
	for i := range r.t.Links {
		if slot := r.of(r.t.Links[i].A, r.t.Links[i].B); slot >= 0 {
			r.trays[slot].links = append(r.trays[slot].links, i)
		}
	}
	for i := range r.t.Pairs {
		if slot := r.of(r.t.Pairs[i].A, r.t.Pairs[i].B); slot >= 0 {
			r.trays[slot].pairs = append(r.trays[slot].pairs, i)
		}
	}
}

// trayStem counts the devices of a kind in a tray.
type trayStem struct {
	slot int
	kind Kind
}

// of is the tray that two devices are in; an NVSwitch is in the other's. It is
// -1 for devices of two trays and for two NVSwitches.
func (r *rackSplit) of(a, b int) int {
	switch {
	case r.slot[a] == r.slot[b], r.t.Devices[b].Kind == NVSwitch:
		return r.slot[a]
	case r.t.Devices[a].Kind == NVSwitch:
		return r.slot[b]
	}
	return -1
}

// device finds a device by its name.
func (r *rackSplit) device(name string) (int, bool) {
	if r.at == nil {
		r.at = make(map[string]int, len(r.t.Devices))
		for i := range r.t.Devices {
			r.at[r.t.Devices[i].Name] = i
		}
	}
	d, ok := r.at[name]
	return d, ok
}

// kinds appends the types of the trays, one for all that are alike.
func (r *rackSplit) kinds(to []*NodeType, taken map[string]bool) []*NodeType {
	known := map[[32]byte]int{}
	for i := range r.trays {
		tr := &r.trays[i]
		t := r.build(tr)
		shape := t.shape()
		kind, ok := known[shape]
		if !ok {
			kind = len(to)
			known[shape] = kind
			t.Name = r.t.Name + "-tray"
			for n := tr.num; taken[t.Name]; n++ {
				t.Name = fmt.Sprintf("%s-tray-t%0*d", r.t.Name, r.width, n)
			}
			taken[t.Name] = true
			to = append(to, t)
		}
		tr.kind = kind
	}
	return to
}

// build makes the type of a tray.
func (r *rackSplit) build(tr *tray) *NodeType {
	t := &NodeType{Tree: r.t.Tree}
	to := make(map[int]int, len(tr.devices)+1)
	for k, d := range tr.devices {
		to[d] = k
	}
	for _, d := range tr.devices {
		dev := r.t.Devices[d]
		dev.Name, dev.Tray = r.names[d], 0
		if p, ok := to[dev.Parent]; ok {
			dev.Parent = p
		} else {
			dev.Parent = -1
		}
		t.Devices = append(t.Devices, dev)
	}
	// An NVSwitch comes with the first link to it.
	end := func(d int) int {
		k, ok := to[d]
		if !ok {
			k = len(t.Devices)
			to[d] = k
			dev := r.t.Devices[d]
			dev.Name, dev.Parent, dev.Tray = NVSwitch.String()+strconv.Itoa(len(t.Devices)-len(tr.devices)), -1, 0
			t.Devices = append(t.Devices, dev)
		}
		return k
	}
	for _, i := range tr.links {
		l := r.t.Links[i]
		l.A, l.B = end(l.A), end(l.B)
		t.Links = append(t.Links, l)
	}
	for _, i := range tr.pairs {
		p := r.t.Pairs[i]
		p.A, p.B = end(p.A), end(p.B)
		t.Pairs = append(t.Pairs, p)
	}
	return t
}
