//go:build unix

package outfile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

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
