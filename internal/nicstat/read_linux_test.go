package nicstat

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// TestLoopback asks an interface whose driver counts nothing. Everybody may.
func TestLoopback(t *testing.T) {
	got, err := Read("lo", all, 100)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestNoSuchInterface(t *testing.T) {
	for _, name := range []string{"", "nosuch0", strings.Repeat("x", 16), strings.Repeat("x", 500)} {
		if got, err := Read(name, all, 100); err == nil {
			t.Errorf("%.20q: %v", name, got)
		}
	}
}

// TestVeth asks the kernel about a pair of virtual interfaces in a namespace of its own. Their driver
// counts the packets of each queue, and says whom the other end is.
func TestVeth(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	here, err := netns.Get()
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	defer here.Close()
	space, err := netns.New()
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	defer space.Close()
	defer func() {
		if err := netns.Set(here); err != nil {
			t.Error(err)
		}
	}()
	queues := netlink.NewLinkAttrs()
	queues.Name, queues.NumRxQueues, queues.NumTxQueues = "a0", 3, 3
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: queues, PeerName: "b0"}); err != nil {
		t.Skipf("no virtual interfaces: %v", err)
	}
	peer, err := netlink.LinkByName("b0")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read("a0", all, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got["peer_ifindex"] != uint64(peer.Attrs().Index) {
		t.Errorf("%v; the other end is interface %d", got, peer.Attrs().Index)
	}
	if some, err := Read("a0", all, 1); err != nil || len(some) != 1 {
		t.Errorf("at most one: %v, %v", some, err)
	}
	// Interfaces of other namespaces are not there.
	if err := netlink.LinkDel(&netlink.Veth{LinkAttrs: queues}); err != nil {
		t.Fatal(err)
	}
	if got, err := Read("a0", all, 10); err == nil {
		t.Errorf("an interface that is gone: %v", got)
	}
}
