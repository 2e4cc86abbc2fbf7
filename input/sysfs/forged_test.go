//go:build unix

package sysfs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Forged folders: files without end, pipes, links in circles, and a bus that
// names itself as its own parent.
func TestForged(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, data string) {
		name = filepath.Join(dir, name)
		must(os.MkdirAll(filepath.Dir(name), 0o755))
		must(os.WriteFile(name, []byte(data), 0o644))
	}
	link := func(to, name string) {
		must(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(os.Symlink(to, filepath.Join(dir, name)))
	}
	put("sys/devices/system/node/node0/cpulist", "0-3")
	put("sys/devices/system/node/node0/meminfo", strings.Repeat("x", 1<<20))
	must(syscall.Mkfifo(filepath.Join(dir, "sys/devices/system/node/node0/cpumap"), 0o644))
	must(os.MkdirAll(filepath.Join(dir, "proc"), 0o755))
	must(syscall.Mkfifo(filepath.Join(dir, "proc/cpuinfo"), 0o644))
	link("loop", "sys/class/net/loop")
	link("/dev/zero", "proc/meminfo")
	link("../../../devices/pci0000:00/0000:01:00.0/0000:01:00.0", "sys/bus/pci/devices/0000:01:00.0")
	link("../../../devices/pci0000:00/0000:03:00.0/0000:02:00.0", "sys/bus/pci/devices/0000:02:00.0")
	link("../../../devices/pci0000:00/0000:02:00.0/0000:03:00.0", "sys/bus/pci/devices/0000:03:00.0")
	link(strings.Repeat("0000:05:00.0/", 300)+"0000:04:00.0", "sys/bus/pci/devices/0000:04:00.0")
	done := make(chan error, 1)
	go func() {
		f, err := Read("", os.DirFS(dir))
		if err == nil {
			err = f.Types[0].Check()
		}
		done <- err
	}()
	select {
	case err := <-done:
		must(err)
	case <-time.After(20 * time.Second):
		t.Fatal("still reading")
	}
}
