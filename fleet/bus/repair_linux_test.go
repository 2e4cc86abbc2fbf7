package bus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// small is a disk of a few megabytes.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skip("a small disk needs the right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk takes all the room there is; the function gives it back.
func fillDisk(t *testing.T, dir string) func() {
	t.Helper()
	file := filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 4096); ; {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() { os.Remove(file) }
}

// TestDiskReadOnly starts on a disk that is read-only.
func TestDiskReadOnly(t *testing.T) {
	dir := small(t)
	if err := syscall.Mount("tmpfs", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip("read-only: ", err)
	}
	if _, err := Start(ServerConfig{Dir: filepath.Join(dir, "bus"), Listen: "-"}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("a server on a read-only disk: %v", err)
	}
	if err := CheckRoom(dir); !errors.Is(err, syscall.EROFS) {
		t.Errorf("room on a read-only disk: %v", err)
	}
}

// TestFullDisk fills the disk under a server and makes room again: nothing that was acknowledged is lost, nothing
// is kept twice, and the server goes on by itself.
func TestFullDisk(t *testing.T) {
	dir := small(t)
	var mu sync.Mutex
	var logged []string
	hasLogged := func(what string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(logged, "\n"), what)
	}
	srv, err := Start(ServerConfig{Dir: filepath.Join(dir, "bus"), OnLog: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	hub, err := srv.Connect(Config{MaxBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Limit)
	defer cancel()
	if err := hub.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	cfg, err := srv.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	node, err := Connect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	url := srv.URL()
	s := node.Publisher()
	acknowledged := 0
	publish := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		err := s.Publish(ctx, left("n"))
		if err == nil {
			acknowledged++
		}
		return err
	}
	for range 20 {
		if err := publish(eventually.Limit); err != nil {
			t.Fatal(err)
		}
	}
	back := fillDisk(t, dir)
	for range 10_000 { // what is left of the last page of a file
		if err = publish(3 * time.Second); err != nil && hasLogged("cannot write") { // and not because the machine is busy
			break
		}
	}
	if err == nil {
		t.Fatal("a full disk takes everything")
	}
	eventually.Holds(t, "the server says that it cannot write", func() bool { return hasLogged("cannot write") })
	if !hasLogged("free disk space") {
		t.Errorf("a full disk, and it was said: %q", logged)
	}
	back()
	if err := publish(eventually.Limit); err != nil {
		t.Fatal("there is room again: ", err)
	}
	if !hasLogged("writes again") {
		t.Errorf("it was said: %q", logged)
	}
	if srv.URL() != url {
		t.Errorf("the server was at %s and is at %s", url, srv.URL())
	}
	kept, last := 0, uint64(0)
	list, bad := stored(t, hub)
	for _, n := range list {
		kept++
		if n.Seq != last+1 {
			t.Errorf("number %d follows %d", n.Seq, last)
		}
		last = n.Seq
	}
	if bad > 0 {
		t.Errorf("%d are no events", bad)
	}
	// What was said when the disk was full may be kept although nobody heard so, once.
	if kept < acknowledged || kept > acknowledged+1 {
		t.Errorf("%d were acknowledged, %d are kept", acknowledged, kept)
	}
}
