package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// chain is a machine of n devices, each hanging on the one before.
func chain(n int) *NodeType {
	t := &NodeType{Name: "t"}
	for i := range n {
		t.Devices = append(t.Devices, Device{Kind: PCISwitch, Name: fmt.Sprint("d", i), Parent: i - 1})
	}
	return t
}

// TestDeepTrees refuses trees deeper than any: a path is walked for every pair of devices.
func TestDeepTrees(t *testing.T) {
	if err := chain(maxChain).Check(); err != nil {
		t.Error(err)
	}
	if err := chain(400_000).Check(); err == nil || !strings.Contains(err.Error(), "devices above it") {
		t.Errorf("a chain of 400,000 devices: %v", err)
	}
	loop := chain(5)
	loop.Devices[1].Parent = 3
	if err := loop.Check(); err == nil || !strings.Contains(err.Error(), "form a loop") {
		t.Errorf("a loop: %v", err)
	}
	if got := fmt.Sprint(loop.Levels()); got != "[1 0 0 0 0]" {
		t.Errorf("levels of a loop: %v", got)
	}
}

// TestSteps counts what paths cost before anybody walks them.
func TestSteps(t *testing.T) {
	few := chain(3)
	for range 100 {
		few.Devices = append(few.Devices, Device{Kind: GPU, Name: fmt.Sprint("g", len(few.Devices)), Parent: 2})
	}
	if err := NewBudget(Limits{Steps: 100_000}, nil).TakeType(few); err != nil {
		t.Error(err)
	}
	if err := NewBudget(Limits{Steps: 10_000}, nil).TakeType(few); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v; want that it is too large", err)
	}
}

// TestParallelLinks finds the nearest of very many links between the same devices.
func TestParallelLinks(t *testing.T) {
	x := &NodeType{
		Name: "t", Devices: []Device{
			{Kind: GPU, Name: "a", Parent: -1}, {Kind: GPU, Name: "b", Parent: -1}, {Kind: NVSwitch, Name: "s", Parent: -1},
		},
	}
	for i := range 100_000 {
		x.Connect(Link{A: 0, B: 2, Kind: NVLink, Lanes: 1 + i%18})
		x.Connect(Link{A: 2, B: 1, Kind: NVLink, Lanes: 1 + i%12})
	}
	if got := x.Matrix().Class[0][1]; got != "NV12" {
		t.Errorf("%s; want NV12", got)
	}
	n := newNodeRoutes(x)
	if len(n.direct[0]) != 1 || len(n.direct[2]) != 2 || len(n.behind[[2]int{2, 1}]) != 1 {
		t.Errorf("%d, %d and %d links are looked at for every pair", len(n.direct[0]), len(n.direct[2]),
			len(n.behind[[2]int{2, 1}]))
	}
}

// TestJoinStops gives joining up at every place at which it may, and asks that it does so then.
func TestJoinStops(t *testing.T) {
	frag := func(name string) *Fragment {
		f := &Fragment{Source: name}
		typ := chain(3)
		for i := range 8 {
			typ.Devices = append(typ.Devices, Device{Kind: GPU, Name: fmt.Sprint(name, i), Index: -1, Parent: 2})
			typ.Connect(Link{A: 2, B: len(typ.Devices) - 1, Kind: PCIe})
		}
		f.Types = []*NodeType{typ}
		f.Network.Switches = []Switch{{Name: "leaf"}}
		for i := range 4 {
			f.Hosts = append(f.Hosts, Host{Name: fmt.Sprint("h", i)})
			f.Network.Links = append(f.Network.Links, NetLink{
				A: AtSwitch(0, 0), B: End{Switch: -1, Hosts: []Span{{i, 1}}, NIC: -1},
			})
		}
		return f
	}
	stop, asked, most := errors.New("nobody waits"), 0, 0
	join := func() error {
		asked = 0
		_, err := JoinWithin(NewBudget(Limits{}, func() error {
			if asked++; asked > most {
				return stop
			}
			return nil
		}), frag("a"), frag("b"))
		return err
	}
	most = 1 << 30
	if err := join(); err != nil || asked < 50 {
		t.Fatalf("it asks %d times whether somebody waits, %v; want more often", asked, err)
	}
	for all := asked; most > 0; most = min(most, all) - 1 {
		if err := join(); most < all && (!errors.Is(err, stop) || asked > most+1) {
			t.Fatalf("given up after %d of %d, it asks %d times: %v", most, all, asked, err)
		}
	}
}

// TestNamelessNodes gives what nodes without a name say to every host, and counts that first.
func TestNamelessNodes(t *testing.T) {
	named, nameless := &Fragment{Source: "a"}, &Fragment{Source: "b"}
	for i := range 2000 {
		named.Hosts = append(named.Hosts, Host{Name: fmt.Sprint("h", i), Type: -1})
		nameless.Hosts = append(nameless.Hosts, Host{Type: -1})
	}
	if _, err := JoinWithin(NewBudget(Limits{Names: 640_000}, nil), named, nameless); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v; want that four million descriptions are too many", err)
	}
	nameless.Hosts = nameless.Hosts[:2]
	if c, err := JoinWithin(NewBudget(Limits{Names: 640_000}, nil), named, nameless); err != nil || len(c.Hosts) != 2000 {
		t.Error(err)
	}
}
