//go:build linux

package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// printLinks prints the classes of interfaces that carried more than a few packets: the link's
// number and its rate in MB/s.
func printLinks(names []string) error {
	for _, name := range names {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		list, err := netlink.ClassList(l, netlink.MakeHandle(1, 0))
		if err != nil {
			return err
		}
		for _, c := range list {
			h, ok := c.(*netlink.HtbClass)
			if s := c.Attrs().Statistics; ok && s != nil && s.Basic != nil && s.Basic.Bytes > 100000 {
				fmt.Println(c.Attrs().Handle&0xffff-1, (h.Rate+5e5)/1e6)
			}
		}
	}
	return nil
}

// slowInner halves the last link of the way that was taken, in both directions, and heals it.
func slowInner(t *testing.T, l *Lab, name string, in *Inner) {
	t.Helper()
	way := in.Routes[1][3]
	link := in.Links[way[len(way)-1]]
	where := "node0:" + strings.ReplaceAll(link.Name, "→", "-")
	half := fmt.Sprint(uint64(float64(link.Rate)/2+5e5) / 1e6)
	count := func() int {
		out, _ := run(t, l, "node0", "links", "lo")
		return strings.Count(out+"\n", " "+half+"\n")
	}
	if _, err := l.Fault(Fault{Kind: "link", Where: where, What: "down"}); err == nil {
		t.Errorf("%s: %s can be taken down", name, where)
	}
	if _, err := l.Fault(Fault{Kind: "link", Where: where, What: "rate", Share: 0.5}); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if count() == 0 {
		t.Errorf("%s: %s has its whole rate", name, where)
	}
	if left, err := l.Repair(where); err != nil || len(left) > 0 || count() > 0 {
		t.Errorf("%s: healing: %v, left %v", name, err, left)
	}
}

// What one GPU sends to another crosses the links between them and no others, whether they
// lie side by side or one behind the other; the plain loopback crosses none.
func TestLinksInsideNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for many seconds; what it starts is started by others too")
	}
	pcie, err := New(read(t, pcieOnly), Options{Inside: Links, Nodes: 1, Scale: Scale{1, 200}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name     string
		p        *Plan
		rootless bool
		addr     string // of GPU 3, from GPU 1
	}{
		{"mesh", preset(t, "baskerville", 2, Options{Scale: Scale{1, 400}}), false, "10.64.4.1"},
		{"switch, without rights", preset(t, "dgx-a100", 1, Options{Inside: Links}), true, "10.67.4.1"},
		{"PCIe", pcie, false, "10.64.4.1"},
	} {
		l := up(t, x.p, x.rootless)
		serve(t, l, "node0")
		if out, code := run(t, l, "node0", "call", "127.0.0.1"); code != 0 || out != "node0 true" {
			t.Errorf("%s: on the loopback: %q, exit %d", x.name, out, code)
		}
		from, _, _ := strings.Cut(x.p.Bind(Slot{Local: 1, NICs: x.p.Nodes[0].Near[1]}), ",")
		if out, code := run(t, l, "node0", "callfrom", from, x.addr); code != 0 || out != "node0 true" {
			t.Errorf("%s: from %s to %s: %q, exit %d", x.name, from, x.addr, out, code)
		}
		in := &x.p.Inner[0]
		names := []string{"links", "lo"}
		for _, s := range []int{stageBefore, stageBehind} {
			if in.has(s) {
				names = append(names, detourName(s))
			}
		}
		out, code := run(t, l, "node0", names...)
		got := map[string]bool{}
		for _, line := range strings.Split(out, "\n") {
			got[line] = true
		}
		want := append(append([]int{}, in.Routes[1][3]...), in.Routes[3][1]...)
		for _, k := range want {
			if line := fmt.Sprint(k, " ", uint64(float64(in.Links[k].Rate)+5e5)/1e6); !got[line] {
				t.Errorf("%s: nothing crossed %s, want %q in %q (exit %d)", x.name, in.Links[k].Name, line, out, code)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d links were crossed, want %d: %q", x.name, len(got), len(want), out)
		}
		slowInner(t, l, x.name, in)
		l.folder.Down("t")
	}
}
