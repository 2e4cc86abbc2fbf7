//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar/hardware"
)

// Between two spines anything that is flooded goes round for ever, and the kernels of nodes
// send multicast by themselves as soon as an interface is up. What arrives is the few packets
// that the switch at the other end of the cable sends itself, not the thousands of a storm.
func TestNothingIsFlooded(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 16)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{GPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	spines := 0
	for i := range p.Switches {
		if strings.HasPrefix(p.Switches[i].Name, "spine") {
			spines++
		}
	}
	if spines < 2 {
		t.Fatalf("%d spines; the test needs several", spines)
	}
	l := up(t, p, false)
	time.Sleep(time.Second)
	for _, name := range []string{"mlx5_0", "mlx5_11"} {
		out, code := run(t, l, p.Nodes[0].Name, "received", name)
		if n, err := strconv.Atoi(out); code != 0 || err != nil || n > 50 {
			t.Errorf("%s has received %q packets (exit code %d) though nobody sent it any", name, out, code)
		}
	}
}

// Faults that come at once leave one in place, which heal ends.
func TestFaultsAtOnce(t *testing.T) {
	l := up(t, twoNodes(t), false)
	f, err := ParseFault("link", "node1:mlx5_0", "flap=10ms")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := l.Fault(f); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := l.faults(t); len(got) != 1 {
		t.Errorf("faults %v; expected one", got)
	}
	if _, err := l.Heal("node1"); err != nil { // a node with its links
		t.Fatal(err)
	}
	serve(t, l, "node1")
	for range 5 {
		if out, code := run(t, l, "node0", "call", "node1"); code != 0 {
			t.Fatalf("a link that flaps after it was healed: %s", out)
		}
	}
}

// What cannot be done leaves the fault that was there.
func TestRefusedFaults(t *testing.T) {
	l := up(t, twoNodes(t), false)
	quarter := Fault{Kind: "link", Where: "node1:mlx5_0", What: "rate", Share: 0.25}
	if err := l.Fault(quarter); err != nil {
		t.Fatal(err)
	}
	var bad *RequestError
	next := quarter
	next.Share = 1e-11
	if err := l.Fault(next); !errors.As(err, &bad) {
		t.Errorf("a rate of next to nothing: %v", err)
	}
	for _, where := range []string{"node9", "node9:mlx5_0", "node1:mlx5_9", "nope"} {
		if _, err := l.Heal(where); !errors.As(err, &bad) {
			t.Errorf("heal %s: %v", where, err)
		}
	}
	if got := l.faults(t); len(got) != 1 || got[0] != quarter {
		t.Errorf("faults %v; expected %v", got, quarter)
	}
	if left, err := l.Heal("node1:0"); err != nil || len(left) != 0 { // a NIC by its number
		t.Errorf("left %v, %v", left, err)
	}
}

// A lab goes into no folder in which down would not find it, and says what is wrong.
func TestOddFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "t")); err != nil {
		t.Fatal(err)
	}
	for text, folder := range map[string]string{
		"not a folder":   dir,
		"BUSBAR_LAB_DIR": filepath.Join(dir, strings.Repeat("d", 120)),
	} {
		_, err := Start(t.Context(), Config{Folder: Folder(folder), Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs()})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; expected something about %q", err, text)
		}
	}
	for _, name := range []string{"..", "", "a/b", "-x", strings.Repeat("a", 33)} {
		var bad *RequestError
		if err := CheckName(name); !errors.As(err, &bad) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}
