//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar/hardware"

	"github.com/vishvananda/netlink"
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
			_, err := Start(context.Background(), Config{Folder: Folder(os.Args[2]), Name: "t", Plan: twoNodes(nil), Program: self(), Args: holderArgs(), Rootless: os.Args[3] == "rootless", Tied: os.Args[3] == "tied"})
			fmt.Fprintln(os.Stderr, err)
			if os.Args[3] == "tied" {
				time.Sleep(time.Minute)
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
// rate prints what its interface may send.
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
		c, err := net.DialTimeout("tcp", args[1]+":7000", 2*time.Second)
		if err != nil {
			return err
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		sent := bytes.Repeat([]byte("busbar"), 20000)
		go c.Write(sent)
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		name, _ := os.Hostname()
		fmt.Println(name, bytes.Equal(sent, got))
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

// up starts a lab of two nodes, or skips where that is not allowed.
func up(t *testing.T, p *Plan, rootless bool) *Lab {
	t.Helper()
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	_, err := Start(t.Context(), Config{Folder: folder, Name: "t", Plan: p, Program: self(), Args: holderArgs(), Rootless: rootless})
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
	if errors.As(err, &rights) || err != nil && (errors.Is(err, syscall.EPERM) || strings.Contains(err.Error(), "not permitted")) {
		t.Skipf("needs rights: %v", err)
	}
}

// run runs this binary in a node and returns what it printed.
func run(t *testing.T, l *Lab, node string, args ...string) (string, int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	x, err := l.Exec(t.Context(), Program{Node: node, Path: self(), Args: append([]string{"lab.test", "inside"}, args...), Dir: "/", Files: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
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
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	x, err := l.Exec(t.Context(), Program{Node: node, Path: self(), Args: []string{"lab.test", "inside", "echo"}, Dir: "/", Files: [3]*os.File{null, w, null}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 64)); err != nil {
		t.Fatal("the server does not start")
	}
	return x
}

func TestNodesTalkAndFaultsBreakThem(t *testing.T) {
	l := up(t, twoNodes(t), false)
	serve(t, l, "node1")
	talk := func(want bool) {
		t.Helper()
		out, code := run(t, l, "node0", "call", "node1")
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
		if err := l.Fault(x.fault); err != nil {
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
		if left, err := l.Heal(""); err != nil || len(left) > 0 {
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
	if err := l.Fault(Fault{Kind: "link", Where: "node1", What: "flap", Every: 20 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	// Another state of the same link takes its place.
	if err := l.Fault(Fault{Kind: "link", Where: "node1", What: "down"}); err != nil {
		t.Fatal(err)
	}
	if got := l.faults(t); len(got) != 1 || got[0].What != "down" {
		t.Errorf("faults %v, want one", got)
	}
	if _, err := l.Heal("node1:mlx5_0"); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, l, "node0", "call", "node1"); code != 0 {
		t.Errorf("after healing: %s", out)
	}
}

func TestKilledNode(t *testing.T) {
	l := up(t, twoNodes(t), false)
	x := serve(t, l, "node1")
	if err := l.Fault(Fault{Kind: "node", Where: "node1", What: "kill"}); err != nil {
		t.Fatal(err)
	}
	if code, err := x.Wait(); err != nil || code != 128+9 {
		t.Errorf("exit code %d, %v; want 137", code, err)
	}
	if err := l.Fault(Fault{Kind: "node", Where: "node9", What: "kill"}); err == nil {
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
	if err := l.Fault(Fault{Kind: "link", Where: "node1", What: "loss", Share: 1}); err != nil {
		t.Error(err)
	}
}

func TestOneLabOfAName(t *testing.T) {
	l := up(t, twoNodes(t), false)
	_, err := Start(t.Context(), Config{Folder: l.folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs()})
	if err == nil || !strings.Contains(err.Error(), "is up") {
		t.Errorf("a second one: %v", err)
	}
	if _, code := run(t, l, "node0", "rate", "mlx5_0"); code != 0 {
		t.Error("the first one is gone")
	}
}

// world is what a lab could leave behind: network namespaces, interfaces, processes.
func world(t *testing.T) (spaces, links []string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if s, err := os.Readlink(p); err == nil && !slices.Contains(spaces, s) {
			if exe, err := os.Readlink(filepath.Join(filepath.Dir(filepath.Dir(p)), "exe")); err == nil && exe == self() {
				spaces = append(spaces, s)
			}
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		links = append(links, l.Name)
	}
	slices.Sort(spaces)
	slices.Sort(links)
	return spaces, links
}

// settled waits until the world is what it was.
func settled(t *testing.T, spaces, links []string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s, l := world(t)
		if slices.Equal(s, spaces) && slices.Equal(l, links) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left behind: namespaces %v, before %v; interfaces %v, before %v", s, spaces, l, links)
		}
	}
}

func cycles(t *testing.T, usual int) int {
	if s := os.Getenv("BUSBAR_LAB_CYCLES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func TestNothingIsLeftAfterDown(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	for i := range cycles(t, 3) {
		_, err := Start(t.Context(), Config{Folder: folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs(), Rootless: i%2 == 1})
		skipWithout(t, err)
		if err != nil {
			t.Fatalf("cycle %d: %v", i, err)
		}
		l, err := folder.Open("t")
		if err != nil {
			t.Fatal(err)
		}
		serve(t, l, "node1") // it does not end by itself
		if was, err := folder.Down("t"); !was || err != nil {
			t.Fatalf("cycle %d: %v, %v", i, was, err)
		}
	}
	settled(t, spaces, links)
	if names, _ := folder.Names(); len(names) > 0 {
		t.Errorf("left in the folder: %v", names)
	}
}

// TestKilledAnywhere kills the program that starts a lab, or the holder, at random
// moments.
func TestKilledAnywhere(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	mode := "root"
	if !privileged() {
		mode = "rootless"
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range cycles(t, 6) {
		cmd := exec.Command(self(), "start", string(folder), mode)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		if i%2 == 0 {
			cmd.Process.Kill()
		}
		cmd.Wait()
		if strings.Contains(said.String(), "needs either root") {
			t.Skipf("needs rights: %s", said.String())
		}
		if s, err := folder.read("t"); err == nil && s.Pid > 0 && i%4 != 0 {
			syscall.Kill(s.Pid, syscall.SIGKILL)
		}
		if i%3 == 0 {
			continue // the next start cleans
		}
		if _, err := folder.Down("t"); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
	}
	if _, err := folder.Down("t"); err != nil {
		t.Fatal(err)
	}
	settled(t, spaces, links)
	if names, _ := folder.Names(); len(names) > 0 {
		t.Errorf("left in the folder: %v", names)
	}
}

// TestTiedLabEndsWithItsStarter kills the process that a lab is tied to.
func TestTiedLabEndsWithItsStarter(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	mode := "tied"
	cmd := exec.Command(self(), "start", string(folder), mode)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	if strings.Contains(said, "needs either root") || strings.Contains(said, "not permitted") {
		cmd.Wait()
		t.Skipf("needs rights: %s", said)
	}
	if _, err := folder.Open("t"); err != nil {
		t.Errorf("%v (%s)", err, said)
	}
	cmd.Process.Kill()
	cmd.Wait()
	settled(t, spaces, links)
	if names, _ := folder.Names(); len(names) > 0 {
		t.Errorf("left in the folder: %v", names)
	}
}

func TestStartIsCancelled(t *testing.T) {
	spaces, links := world(t)
	folder := Folder(filepath.Join(t.TempDir(), "labs"))
	for d := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(d)*5*time.Millisecond)
		_, err := Start(ctx, Config{Folder: folder, Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs()})
		cancel()
		skipWithout(t, err)
		if err == nil {
			if _, err := folder.Down("t"); err != nil {
				t.Fatal(err)
			}
		}
		if names, _ := folder.Names(); len(names) > 0 {
			t.Errorf("left in the folder: %v", names)
		}
	}
	settled(t, spaces, links)
}
