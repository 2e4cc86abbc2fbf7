package cluster

import (
	"fmt"
	"slices"
	"strconv"
)

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
