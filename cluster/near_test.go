package cluster

import (
	"slices"
	"testing"

	"busbar.dev/unit"
)

// pcieNode has one NUMA domain with a switch for each string: every g in it is
// a GPU, every n a NIC of 200 Gb/s.
func pcieNode(switches ...string) *NodeType {
	t := &NodeType{Name: "pcie"}
	numa := t.Add(Device{Kind: NUMA, Index: -1, Parent: -1})
	for _, s := range switches {
		root := t.Add(Device{Kind: RootComplex, Index: -1, Parent: numa})
		pci := t.Add(Device{Kind: PCISwitch, Index: -1, Parent: root})
		for _, c := range s {
			if c == 'g' {
				t.Add(Device{Kind: GPU, Index: -1, Parent: pci})
				continue
			}
			port := Port{Num: 1, Rate: FromRead(200*unit.Gbps, "test"), State: Up}
			t.Add(Device{Kind: NIC, Index: -1, Parent: pci, NIC: &NICInfo{Ports: []Port{port}}})
		}
	}
	return t
}

func TestShares(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches []string
		gpus     []int // per group
		nics     []int
		each     []unit.Rate
	}{
		{"one each", []string{"gn", "gn"}, []int{1, 1}, []int{1, 1}, []unit.Rate{25e9, 25e9}},
		{"four on one", []string{"gggg", "n"}, []int{4}, []int{1}, []unit.Rate{6.25e9}},
		{"two on two", []string{"ggnn"}, []int{2}, []int{2}, []unit.Rate{25e9}},
		{"far ones take both", []string{"gn", "gn", "g"}, []int{3}, []int{2}, []unit.Rate{50e9 / 3}},
		{"no NIC", []string{"gg"}, nil, nil, nil},
	} {
		var gpus, nics []int
		var each []unit.Rate
		for _, s := range pcieNode(c.switches...).Shares() {
			gpus, nics, each = append(gpus, len(s.GPUs)), append(nics, len(s.NICs)), append(each, s.Each.Value)
			if s.Crowded() != (len(s.GPUs) > len(s.NICs)) {
				t.Errorf("%s: Crowded %v", c.name, s.Crowded())
			}
		}
		if !slices.Equal(gpus, c.gpus) || !slices.Equal(nics, c.nics) || !slices.Equal(each, c.each) {
			t.Errorf("%s: GPUs %v, NICs %v, each %v; want %v, %v, %v", c.name, gpus, nics, each, c.gpus, c.nics, c.each)
		}
	}
	unknown := pcieNode("gn")
	unknown.Devices[unknown.Of(NIC)[0]].NIC.Ports = nil
	if s := unknown.Shares(); len(s) != 1 || s[0].Each.Known() {
		t.Errorf("a NIC without a rate gave %+v", s)
	}
}

func TestNearestStaysInTheTray(t *testing.T) {
	n := &NodeType{Name: "rack", Trays: 2}
	sw := n.Add(Device{Kind: NVSwitch, Index: -1, Parent: -1})
	for tray := range 2 {
		numa := n.Add(Device{Kind: NUMA, Index: -1, Parent: -1, Tray: tray})
		g := n.Add(Device{Kind: GPU, Index: -1, Parent: numa, Tray: tray})
		n.Connect(Link{A: g, B: sw, Kind: NVLink, Lanes: 18})
		root := n.Add(Device{Kind: RootComplex, Index: -1, Parent: numa, Tray: tray})
		n.Add(Device{Kind: NIC, Index: -1, Parent: root, Tray: tray})
	}
	nics := n.Of(NIC)
	for i, near := range n.Nearest() {
		if !slices.Equal(near.NICs, nics[i:i+1]) {
			t.Errorf("GPU %d: NICs %v by %v, want %v", i, near.NICs, near.Class, nics[i:i+1])
		}
	}
}
