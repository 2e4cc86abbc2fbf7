//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"busbar.dev/hardware"
	"busbar.dev/internal/test/eventually"
)

// The test binary is also the holder of the labs it makes, the program that starts
// one and is killed, and what runs inside: the first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hold":
			fmt.Fprintln(os.Stderr, Hold())
			os.Exit(3)
		case "start":
			_, err := Start(context.Background(), Config{
				Folder: Folder(os.Args[2]), Name: "t", Plan: twoNodes(nil), Program: self(), Args: holderArgs(),
				Rootless: os.Args[3] == "rootless",
			})
			fmt.Fprintln(os.Stderr, err)
			os.Exit(0)
		case "rank":
			if err := beRank(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "inside":
			if err := inside(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

func self() string {
	s, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return s
}

func holderArgs() []string { return []string{self(), "hold"} }

func twoNodes(t *testing.T) *Plan {
	c, err := hardware.Preset("baskerville", 2)
	if err == nil {
		var p *Plan
		if p, err = New(c, Options{GPUs: 1}); err == nil {
			return p
		}
	}
	if t == nil {
		panic(err)
	}
	t.Fatal(err)
	return nil
}

// inside is what runs in a node: echo listens and sends back, call sends and expects it,
// rate prints what its interface may send, callfrom calls from an address, links prints the
// rate of every link inside the node that carried something.
func inside(args []string) error {
	switch args[0] {
	case "echo":
		l, err := net.Listen("tcp", ":7000")
		if err != nil {
			return err
		}
		fmt.Println("listening")
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	case "call":
		patience := eventually.Limit
		if len(args) > 2 { // nobody is expected to answer
			patience = 2 * time.Second
		}
		c, err := net.DialTimeout("tcp", args[1]+":7000", patience)
		if err != nil {
			return err
		}
		return talkOver(c, patience)
	case "callfrom":
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(args[1])}, Timeout: eventually.Limit}
		c, err := d.Dial("tcp", args[2]+":7000")
		if err != nil {
			return err
		}
		return talkOver(c, eventually.Limit)
	case "shout": // to everybody
		c, err := net.Dial("udp", "10.64.255.255:9")
		if err != nil {
			return err
		}
		for range 20 {
			c.Write([]byte("is anybody there?"))
		}
		return nil
	case "links":
		return printLinks(args[1:])
	case "rate":
		l, err := netlink.LinkByName(args[1])
		if err != nil {
			return err
		}
		list, err := netlink.QdiscList(l)
		if err != nil {
			return err
		}
		for _, q := range list {
			if b, ok := q.(*netlink.Tbf); ok {
				fmt.Println(b.Rate, l.Attrs().MTU)
			}
		}
	}
	return nil
}

// talkOver sends and expects the same.
func talkOver(c net.Conn, patience time.Duration) error {
	c.SetDeadline(time.Now().Add(patience))
	sent := bytes.Repeat([]byte("busbar"), 20000)
	go c.Write(sent)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	name, _ := os.Hostname()
	fmt.Println(name, bytes.Equal(sent, got))
	return nil
}

// up starts a lab of two nodes, or skips where that is not allowed.
func up(t *testing.T, p *Plan, rootless bool) *Lab {
	t.Helper()
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	_, err := Start(t.Context(), Config{
		Folder: folder, Name: "t", Plan: p, Program: self(), Args: holderArgs(), Rootless: rootless,
	})
	skipWithout(t, err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := folder.Down("t"); err != nil {
			t.Error(err)
		}
		if names, _ := folder.Names(); len(names) > 0 {
			t.Errorf("left in the folder: %v", names)
		}
	})
	l, err := folder.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func skipWithout(t *testing.T, err error) {
	t.Helper()
	var rights *RightsError
	if errors.As(err, &rights) ||
		err != nil && (errors.Is(err, syscall.EPERM) || strings.Contains(err.Error(), "not permitted")) {
		t.Skipf("needs rights: %v", err)
	}
}

// begin starts this binary in a node; what it prints can be read until the test ends.
func begin(t *testing.T, l *Lab, node string, args ...string) (*Running, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	x, err := l.Exec(t.Context(), Program{
		Node: node, Path: self(), Args: append([]string{"lab.test", "inside"}, args...), Dir: "/",
		Files: [3]*os.File{null, w, w},
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return x, r
}

// run runs this binary in a node and returns what it printed.
func run(t *testing.T, l *Lab, node string, args ...string) (string, int) {
	t.Helper()
	x, r := begin(t, l, node, args...)
	out, _ := io.ReadAll(r)
	code, err := x.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)), code
}

// serve starts an echo server on a node and waits until it listens.
func serve(t *testing.T, l *Lab, node string) *Running {
	t.Helper()
	x, r := begin(t, l, node, "echo")
	if _, err := r.Read(make([]byte, 64)); err != nil {
		t.Fatal("the server does not start")
	}
	return x
}

func TestNodesTalkAndFaultsBreakThem(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for many seconds; what it starts is started by others too")
	}
	l := up(t, twoNodes(t), false)
	serve(t, l, "node1")
	talk := func(want bool) {
		t.Helper()
		words := []string{"call", "node1", "in vain"}
		if want {
			words = words[:2]
		}
		out, code := run(t, l, "node0", words...)
		if ok := code == 0 && out == "node0 true"; ok != want {
			t.Fatalf("talking: %v (%q, exit %d), want %v", ok, out, code, want)
		}
	}
	full, _ := run(t, l, "node1", "rate", "mlx5_0")
	if full != "125000000 4096" {
		t.Errorf("rate and MTU %q", full)
	}
	talk(true)
	for _, x := range []struct {
		fault Fault
		talks bool
	}{
		{Fault{Kind: "link", Where: "node1:mlx5_0", What: "rate", Share: 0.5}, true},
		{Fault{Kind: "link", Where: "node1", What: "loss", Share: 1}, false},
		{Fault{Kind: "link", Where: "node1:mlx5_0", What: "down"}, false},
		{Fault{Kind: "node", Where: "node1", What: "pause"}, false},
	} {
		if _, err := l.Fault(x.fault); err != nil {
			t.Fatalf("%v: %v", x.fault, err)
		}
		if x.fault.What == "rate" {
			if half, _ := run(t, l, "node1", "rate", "mlx5_0"); half != "62500000 4096" {
				t.Errorf("at half the rate: %q", half)
			}
		}
		if x.fault.What == "pause" { // the kernel still takes the connection, and nobody answers it
			if got := l.faults(t); len(got) != 1 || got[0] != x.fault {
				t.Errorf("faults %v, want %v", got, x.fault)
			}
		} else {
			talk(x.talks)
		}
		if left, err := l.Repair(""); err != nil || len(left) > 0 {
			t.Fatalf("healing %v: %v, left %v", x.fault, err, left)
		}
		talk(true)
	}
	if now, _ := run(t, l, "node1", "rate", "mlx5_0"); now != full {
		t.Errorf("healed: %q, was %q", now, full)
	}
}

func (l *Lab) faults(t *testing.T) []Fault {
	t.Helper()
	a, err := l.ask(request{Do: "status"})
	if err != nil {
		t.Fatal(err)
	}
	return a.Faults
}

func TestLinkFlaps(t *testing.T) {
	l := up(t, twoNodes(t), false)
	serve(t, l, "node1")
	if _, err := l.Fault(Fault{Kind: "link", Where: "node1", What: "flap", Every: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	// Another state of the same link takes its place.
	if _, err := l.Fault(Fault{Kind: "link", Where: "node1", What: "down"}); err != nil {
		t.Fatal(err)
	}
	if got := l.faults(t); len(got) != 1 || got[0].What != "down" {
		t.Errorf("faults %v, want one", got)
	}
	if _, err := l.Repair("node1:mlx5_0"); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, l, "node0", "call", "node1"); code != 0 {
		t.Errorf("after healing: %s", out)
	}
}

func TestKilledNode(t *testing.T) {
	l := up(t, twoNodes(t), false)
	x := serve(t, l, "node1")
	if _, err := l.Fault(Fault{Kind: "node", Where: "node1", What: "kill"}); err != nil {
		t.Fatal(err)
	}
	if code, err := x.Wait(); err != nil || code != 128+9 {
		t.Errorf("exit code %d, %v; want 137", code, err)
	}
	if _, err := l.Fault(Fault{Kind: "node", Where: "node9", What: "kill"}); err == nil {
		t.Error("a node that is not there")
	}
}

func TestHalfDuplexPath(t *testing.T) {
	p := twoNodes(t)
	p.Staging = 20e6
	p.Local = true
	l := up(t, p, false)
	serve(t, l, "node1")
	if out, code := run(t, l, "node0", "call", "node1"); code != 0 {
		t.Error(out)
	}
	if out, code := run(t, l, "node1", "call", "127.0.0.1"); code != 0 {
		t.Error(out)
	}
	if out, _ := run(t, l, "node0", "rate", "ifb0"); !strings.HasPrefix(out, "20000000 ") {
		t.Errorf("rate of the path: %q", out)
	}
}

func TestRootless(t *testing.T) {
	l := up(t, twoNodes(t), true)
	if !l.State.Rootless {
		t.Error("not in a user namespace")
	}
	serve(t, l, "node1")
	if out, code := run(t, l, "node0", "call", "node1-mlx5_0"); code != 0 || out != "node0 true" {
		t.Errorf("%q, exit %d", out, code)
	}
	if _, err := l.Fault(Fault{Kind: "link", Where: "node1", What: "loss", Share: 1}); err != nil {
		t.Error(err)
	}
}

func TestOneLabOfAName(t *testing.T) {
	l := up(t, twoNodes(t), false)
	_, err := Start(t.Context(), Config{
		Folder: l.folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs(),
	})
	if err == nil || !strings.Contains(err.Error(), "is up") {
		t.Errorf("a second one: %v", err)
	}
	if _, code := run(t, l, "node0", "rate", "mlx5_0"); code != 0 {
		t.Error("the first one is gone")
	}
}
