package lab

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFolderOfAnother finds a folder that another user made before, with a lab in it, or one that others can write to.
// Nothing is kept there, and nobody is asked there.
func TestFolderOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being another user needs root")
	}
	plan := twoNodes(t)
	for name, spoil := range map[string]func(dir string) error{
		"another's":     func(dir string) error { return os.Chown(dir, 12345, 12345) },
		"lab another's": func(dir string) error { return os.Chown(filepath.Join(dir, "t"), 12345, 12345) },
		"open":          func(dir string) error { return os.Chmod(dir, 0o777) },
		"lab open":      func(dir string) error { return os.Chmod(filepath.Join(dir, "t"), 0o770) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "busbar-lab-0")
			f := Folder(dir)
			if err := os.MkdirAll(f.Path("t"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := f.write(&State{Name: "t", Plan: plan}); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int64
			l, err := net.Listen("unix", f.Path("t", socketFile))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					asked.Add(1)
					c.Close()
				}
			}()
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			_, opened := f.Open("t")
			_, down := f.Down("t")
			started := opened
			if !strings.HasPrefix(name, "lab") { // in a folder of one's own, a lab that is not replaces it
				_, started = Start(t.Context(), Config{Folder: f, Name: "t", Plan: plan, Program: self(), Args: holderArgs()})
			}
			for what, err := range map[string]error{"open": opened, "down": down, "start": started} {
				if err == nil || !strings.Contains(err.Error(), "user") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("whoever listens there was asked %d times", n)
			}
		})
	}
}

// TestHolderOfAnother finds a socket in a folder of one's own behind which another user listens: no environment is
// sent to it.
func TestHolderOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being another user needs root")
	}
	f := Folder(t.TempDir())
	if err := os.MkdirAll(f.Path("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.write(&State{Name: "t", Plan: twoNodes(t)}); err != nil {
		t.Fatal(err)
	}
	open, err := os.MkdirTemp("", "busbar")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Listener)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 12345, 12345, 12345); e != 0 {
			t.Error(e)
		}
		l, err := net.Listen("unix", filepath.Join(open, "s"))
		if err != nil {
			t.Error(err)
		}
		listening <- l
	}()
	l := <-listening
	defer l.Close()
	read := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			read <- 0
			return
		}
		n, _ := c.Read(make([]byte, 1))
		read <- n
	}()
	if err := os.Symlink(filepath.Join(open, "s"), f.Path("t", socketFile)); err != nil {
		t.Fatal(err)
	}
	_, err = (&Lab{folder: f, State: &State{Name: "t"}}).Exec(t.Context(), Program{
		Node: "node0", Path: "/bin/true", Env: []string{"SECRET=1"},
	})
	if err == nil || !strings.Contains(err.Error(), "user 12345") {
		t.Errorf("%v", err)
	}
	if n := <-read; n > 0 {
		t.Error("something was sent to another user's socket")
	}
}
