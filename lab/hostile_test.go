//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

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
			if _, err := l.Fault(f); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := l.faults(t); len(got) != 1 {
		t.Errorf("faults %v; expected one", got)
	}
	if _, err := l.Repair("node1"); err != nil { // a node with its links
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
	if _, err := l.Fault(quarter); err != nil {
		t.Fatal(err)
	}
	var bad *RequestError
	next := quarter
	next.Share = 1e-11
	if _, err := l.Fault(next); !errors.As(err, &bad) {
		t.Errorf("a rate of next to nothing: %v", err)
	}
	for _, where := range []string{"node9", "node9:mlx5_0", "node1:mlx5_9", "nope"} {
		if _, err := l.Repair(where); !errors.As(err, &bad) {
			t.Errorf("heal %s: %v", where, err)
		}
	}
	if got := l.faults(t); len(got) != 1 || got[0] != quarter {
		t.Errorf("faults %v; expected %v", got, quarter)
	}
	if left, err := l.Repair("node1:0"); err != nil || len(left) != 0 { // a NIC by its number
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
		_, err := Start(t.Context(), Config{
			Folder: Folder(folder), Name: "t", Plan: twoNodes(t), Program: self(), Args: holderArgs(),
		})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v; expected something about %q", err, text)
		}
	}
	for _, name := range []string{"..", "", "a/b", "-x", strings.Repeat("a", 33)} {
		var bad *RequestError
		if err := checkName(name); !errors.As(err, &bad) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

// A lab whose state was overwritten still ends.
func TestDownWithoutState(t *testing.T) {
	l := up(t, twoNodes(t), false)
	if err := os.WriteFile(l.folder.Path("t", stateFile), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ended, err := l.folder.Down("t"); !ended || err != nil {
		t.Errorf("ended %v, %v", ended, err)
	}
}
