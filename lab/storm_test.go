//go:build linux

package lab

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"busbar.dev/hardware"
)

// Switches that reach each other over several spines carry no multicast and no broadcast round
// and round.
func TestNothingGoesRound(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{Nodes: 2, GPUs: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Cables) < 4 {
		t.Fatalf("%d cables between switches; expected several spines", len(p.Cables))
	}
	l := up(t, p, false)
	// What nobody has an address for goes to everybody, where switches flood.
	if out, code := run(t, l, p.Nodes[0].Name, "shout"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	ns, err := netns.GetFromPid(l.State.Pid)
	if err != nil {
		t.Skip(err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Skip(err)
	}
	defer h.Close()
	passed := func() (sum uint64) {
		list, err := h.LinkList()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if s := x.Attrs().Statistics; s != nil {
				sum += s.RxPackets
			}
		}
		return sum
	}
	before, began := passed(), time.Now()
	time.Sleep(200 * time.Millisecond) // the kernel's own time: packets that nobody should send
	if more, took := passed()-before, time.Since(began); float64(more) > 100*took.Seconds() {
		t.Errorf("%d packets in %v of a lab in which nobody talks", more, took)
	}
}
