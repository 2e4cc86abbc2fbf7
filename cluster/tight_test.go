package cluster

import (
	"testing"

	"busbar.dev/unit"
)

// TestTight: a leaf with less upward than its hosts have is tight, and not one whose cables are down or unknown.
func TestTight(t *testing.T) {
	link := func(a, b End, rate float64) NetLink {
		l := NetLink{A: a, B: b, Count: 2, Speed: "4xHDR"}
		l.Rate.Value = unit.Rate(rate)
		return l
	}
	hosts := End{Switch: -1, Hosts: []Span{{First: 0, N: 2}}}
	n := Network{
		Switches: []Switch{{Tier: Leaf}, {Tier: Spine}},
		Links:    []NetLink{link(hosts, End{Switch: 0}, 25e9), link(End{Switch: 0}, End{Switch: 1}, 50e9)},
	}
	if n.Tight(1) {
		t.Error("as much upward as to hosts")
	}
	n.Links[1].Rate.Value /= 2
	if !n.Tight(1) || n.Tight(0.5) {
		t.Error("half as much upward")
	}
	if n.Links[1].State = Down; n.Tight(1) {
		t.Error("no cable upward is known")
	}
}
