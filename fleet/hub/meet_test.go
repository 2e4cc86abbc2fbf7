package hub

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/fleet"
)

// meetAt has a node say anew where it is met.
func (m *memory) meetAt(n fleet.Name, meet string) {
	m.keep(&fleet.Event{
		At: time.Now().UTC(), Node: n, Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "test", Meet: meet},
	})
}

// reached is which partners a meeting point can be reached by; nil is all.
type reached func(meet string, partner fleet.Name) (ok bool, refuses string)

// TestHostileMeetingPoint has one node offer a meeting point that nobody reaches: on loopback, by a name, or an address
// at which nobody listens. Its partners are not to blame, and after it fails with several it is.
func TestHostileMeetingPoint(t *testing.T) {
	const evil = fleet.Name("n0")
	for name, x := range map[string]struct {
		meet    string
		refuses bool // partners see before they begin that nobody can be there
	}{
		"loopback":    {"127.0.0.1:7000", true},
		"name":        {"innocent.example:7000", true},
		"unreachable": {"10.255.255.1:7000", false},
	} {
		bubble := func(t *testing.T) {
			m := newMemory()
			list := m.join(5)
			for _, n := range list {
				n.reach = func(meet string, partner fleet.Name) (bool, string) {
					switch {
					case meet != x.meet:
						return true, ""
					case x.refuses:
						return false, "the group's rendezvous is " + meet + ", which no other node can reach"
					}
					return false, ""
				}
			}
			m.meetAt(evil, x.meet)
			h, _ := start(t, m, nil)
			o := pairOrder()
			o.Job = "job"
			s, err := h.Give(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			finish(t, h, s.ID)
			v, err := h.Verdict(s.ID)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("unhealthy %v, healthy %v, unmeasured %v, notes %v", v.Unhealthy, v.Healthy, v.Unmeasured, v.Notes)
			for _, u := range v.Unhealthy {
				if u.Node != evil {
					t.Errorf("%s is blamed: %s", u.Node, u.Why)
				}
			}
			if !slices.ContainsFunc(v.Unhealthy,
				func(u fleet.Out) bool { return u.Node == evil && strings.Contains(u.Why, "reach") }) {
				t.Error("the node that cannot be met is not named")
			}
			if len(v.Healthy) != 4 {
				t.Errorf("healthy are %v; the other four were measured with each other", v.Healthy)
			}
		}
		t.Run(name, func(t *testing.T) { synctest.Test(t, bubble) })
	}
}

// TestOneWitnessBlamesNobody has two nodes of which one says that the other cannot be met.
func TestOneWitnessBlamesNobody(t *testing.T) { synctest.Test(t, oneWitness) }

func oneWitness(t *testing.T) {
	m := newMemory()
	list := m.join(3)
	for _, n := range list {
		n.reach = func(_ string, partner fleet.Name) (bool, string) { return partner != "n1", "" }
	}
	h, _ := start(t, m, nil)
	o := pairOrder()
	o.Nodes = []fleet.Name{"n0", "n1"}
	o.Job = "job"
	s, err := h.Give(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	finish(t, h, s.ID)
	v, err := h.Verdict(s.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Unhealthy) > 0 {
		t.Errorf("blamed: %v", v.Unhealthy)
	}
}
