//go:build unix

package outfile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestLock: of many that read a file, change it and write it none loses another's change, and who was killed while it
// held the lock holds nobody up.
func TestLock(t *testing.T) {
	name := os.Getenv("BUSBAR_TEST_LOCKED")
	if name != "" { // the process that is killed
		if _, err := Lock(t.Context(), name, func() {}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		select {}
	}
	name = filepath.Join(t.TempDir(), "site.yaml")
	killed := exec.Command(os.Args[0], "-test.run=^TestLock$")
	killed.Env = append(os.Environ(), "BUSBAR_TEST_LOCKED="+name)
	out, err := killed.StdoutPipe()
	if err == nil {
		err = killed.Start()
	}
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, len("locked")))
	}
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan bool, 100)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			unlock, err := Lock(t.Context(), name, func() { waits <- true })
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			data, _ := os.ReadFile(name)
			n, _ := strconv.Atoi(string(data))
			var w Writer
			if err := w.Write(name, func(to io.Writer) error { _, err := fmt.Fprint(to, n+1); return err }); err != nil {
				t.Error(err)
			}
		})
	}
	<-waits
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	_ = killed.Wait()
	if data, _ := os.ReadFile(name); string(data) != "20" {
		t.Errorf("20 changes left %q", data)
	}
	if list, _ := os.ReadDir(filepath.Dir(name)); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

// TestLockHeld: one that is stopped holds others up for a time only.
func TestLockHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "site.yaml")
		unlock, err := Lock(t.Context(), name, func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if _, err := Lock(t.Context(), name, func() {}); err == nil ||
			!strings.Contains(err.Error(), name+": another busbar") {
			t.Errorf("%v; expected what is locked", err)
		}
	})
}

func TestRemoveStale(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Skip("no command that ends:", err)
	}
	dead := gone.Process.Pid
	dir := t.TempDir()
	held := fmt.Sprintf(".busbar-%d-7", dead)
	names := map[string]bool{ // and whether they stay
		fmt.Sprintf(".busbar-%d-0", dead):        false,
		fmt.Sprintf(".busbar-%d-12", dead):       false,
		held:                                     true,
		fmt.Sprintf(".busbar-%d-0", os.Getpid()): true,
		fmt.Sprintf(".busbar-%d-0.yaml", dead):   true,
		fmt.Sprintf("busbar-%d-0", dead):         true,
		fmt.Sprintf(".busbar-%d-0x", dead):       true,
		".busbar-0-0":                            true,
	}
	for name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, held), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Skip("no locks here:", err)
	}
	removeStale(dir)
	for name, stays := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: there %v, expected %v", name, !stays, stays)
		}
	}
}
