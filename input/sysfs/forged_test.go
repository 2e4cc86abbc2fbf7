//go:build unix

package sysfs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
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
	case <-time.After(eventually.Limit):
		t.Fatal("still reading")
	}
}

// TestForgedFolders has pipes in the place of folders, by name and through a link: who looks below one waits for ever.
func TestForgedFolders(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
		os.Symlink("pipe", filepath.Join(dir, "link")),
		os.MkdirAll(filepath.Join(dir, "machine/sys/class/net/eth0"), 0o755),
		syscall.Mkfifo(filepath.Join(dir, "machine/sys/class/net/eth0/device"), 0o644),
		syscall.Mkfifo(filepath.Join(dir, "machine/sys/class/infiniband"), 0o644),
		syscall.Mkfifo(filepath.Join(dir, "machine/sys/devices"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".", "machine"} {
		root, err := os.OpenRoot(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { _, err := Read("", root.FS()); done <- err }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s was read as a machine", name)
			}
		case <-time.After(eventually.Limit):
			t.Fatalf("%s: still reading", name)
		}
		root.Close()
	}
}
