package cluster

import (
	"fmt"
	"slices"
	"strconv"
)

// Rack is an NVLink domain of several hosts, each a tray of it.
type Rack struct {
	Name  string
	Hosts []int
}

// ByRack makes one host of the hosts that share an NVLink domain, with a tray for each, whose GPUs all hang on one
// NVSwitch. A rack stays apart where a host of it has GPUs on no NVSwitch, has trays itself or is in a
// rack before it. What devices are described by is shared with c, and neither should be changed afterwards.
func (c *Cluster) ByRack(racks []Rack) *Cluster {
	m := rackMerge{c: c, at: make([]trayAt, len(c.Hosts))}
	for i := range m.at {
		m.at[i].host = -1
	}
	out := *c
	out.Types = c.Types[:len(c.Types):len(c.Types)]
	out.Hosts = nil
	types := map[string]int{}
	for _, r := range racks {
		if !m.whole(r.Hosts) {
			continue
		}
		var kinds []int
		var names []string
		nics := 0
		for _, h := range r.Hosts {
			m.at[h] = trayAt{len(out.Hosts), nics}
			nics += c.TypeOf(h).Count(NIC)
			kinds, names = append(kinds, c.Hosts[h].Type), append(names, c.Hosts[h].Name)
		}
		typ, ok := types[fmt.Sprint(kinds)]
		if !ok {
			typ = len(out.Types)
			types[fmt.Sprint(kinds)] = typ
			out.Types = append(out.Types, m.build(r))
		}
		out.Hosts = append(out.Hosts, Host{Name: r.Name, Type: typ, Trays: names})
	}
	if len(out.Hosts) == 0 {
		return c
	}
	for h := range c.Hosts {
		if m.at[h].host < 0 {
			m.at[h] = trayAt{host: len(out.Hosts)}
			out.Hosts = append(out.Hosts, c.Hosts[h])
		}
	}
	out.Network.Links = nil
	for _, l := range c.Network.Links {
		out.Network.Links = append(out.Network.Links, l.moved(len(c.Hosts), func(h, nic int, put func(host, nic int)) {
			if nic >= 0 {
				nic += m.at[h].nic
			}
			put(m.at[h].host, nic)
		})...)
	}
	return &out
}

// TrayName is the name of a tray of a host that has so many: that of the host that ByRack made it of, else node0-t00.
func (h *Host) TrayName(tray, trays int) string {
	if tray < len(h.Trays) {
		return h.Trays[tray]
	}
	return fmt.Sprintf("%s-t%0*d", h.Name, max(2, len(strconv.Itoa(trays-1))), tray)
}

// trayAt is where a host went: a host of the new cluster, and the position of its first NIC there.
type trayAt struct{ host, nic int }

type rackMerge struct {
	c  *Cluster
	at []trayAt // per old host; host -1: not yet placed
}

// whole reports whether hosts can be the trays of one rack.
func (m *rackMerge) whole(hosts []int) bool {
	seen := map[int]bool{}
	for _, h := range hosts {
		t := m.c.TypeOf(h)
		if t == nil || t.Trays > 1 || m.at[h].host >= 0 || seen[h] || t.Count(GPU) == 0 {
			return false
		}
		seen[h] = true
		for _, g := range t.Of(GPU) {
			if switchOf(t, g) < 0 {
				return false
			}
		}
	}
	return len(hosts) > 1
}

// switchOf is the NVSwitch that a GPU hangs on, or -1.
func switchOf(t *NodeType, gpu int) int {
	for _, l := range t.Links {
		switch {
		case l.A == gpu && t.Devices[l.B].Kind == NVSwitch:
			return l.B
		case l.B == gpu && t.Devices[l.A].Kind == NVSwitch:
			return l.A
		}
	}
	return -1
}

// build makes the type of a rack. Names count through it; labels and addresses are left out, because trays have the
// same ones.
func (m *rackMerge) build(r Rack) *NodeType {
	first := m.c.TypeOf(r.Hosts[0])
	t := &NodeType{Name: first.Name + "-rack", Tree: first.Tree, Trays: len(r.Hosts)}
	for n := 2; m.named(t.Name); n++ {
		t.Name = fmt.Sprintf("%s-rack%d", first.Name, n)
	}
	shared := t.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
	for k, h := range r.Hosts {
		old := m.c.TypeOf(h)
		to := make([]int, len(old.Devices))
		for i, n := 0, len(t.Devices); i < len(to); i++ {
			if to[i] = shared; old.Devices[i].Kind != NVSwitch {
				to[i] = n
				n++
			}
		}
		for _, d := range old.Devices {
			if d.Kind == NVSwitch {
				continue
			}
			d.Name, d.Label, d.PCI, d.UUID, d.Tray = "", "", "", "", k
			if d.Parent >= 0 {
				d.Parent = to[d.Parent]
			}
			t.Add(d)
		}
		for _, l := range old.Links {
			if l.A, l.B = to[l.A], to[l.B]; l.A != l.B {
				t.Connect(l)
			}
		}
	}
	return t
}

func (m *rackMerge) named(name string) bool {
	return slices.ContainsFunc(m.c.Types, func(t *NodeType) bool { return t.Name == name })
}
