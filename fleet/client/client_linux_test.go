package client

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"busbar.dev/fleet"
)

// listener counts who asks, and with a token.
type listener struct{ asked, tokens atomic.Int64 }

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.asked.Add(1)
	if h := r.Header.Get("Authorization"); h != "" && h != "Bearer" {
		l.tokens.Add(1)
	}
	_, _ = w.Write([]byte("{}"))
}

// folder is one that a server left.
func folder(t *testing.T, l Local) string {
	t.Helper()
	t.Setenv("BUSBAR_TOKEN", "")
	dir := t.TempDir()
	if err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func call(t *testing.T, o Options) error {
	t.Helper()
	var out struct{}
	return New(o).Call(t.Context(), "GET", "/api/fleet/nodes", nil, &out)
}

// TestOnlyItsOwnServer has somebody else listen at an address that was asked for, and at the port of the server's own
// page while that is down. Neither is asked for want of a token.
func TestOnlyItsOwnServer(t *testing.T) {
	thief := &listener{}
	other := httptest.NewServer(thief)
	defer other.Close()
	dir := folder(t, Local{Page: "http://127.0.0.1:1", Socket: true})
	err := call(t, Options{Folder: Folder{dir}, Server: other.URL})
	if err == nil || !strings.Contains(err.Error(), "only your own busbar serve with --data "+dir) {
		t.Errorf("asked another server: %v", err)
	}
	dir = folder(t, Local{Page: other.URL, Socket: true})
	if err := call(t, Options{Folder: Folder{dir}}); err == nil {
		t.Error("a server that is down answers")
	}
	dir = folder(t, Local{Page: other.URL})
	if err := call(t, Options{Folder: Folder{dir}}); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("without a socket: %v", err)
	}
	if n := thief.asked.Load(); n > 0 {
		t.Errorf("%d requests went to another", n)
	}
	// A token that was meant for it goes there.
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("given"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := call(t, Options{Folder: Folder{dir}, Server: other.URL, TokenFile: file}); err != nil ||
		thief.tokens.Load() != 1 {
		t.Errorf("a token of --token-file: %v", err)
	}
}

// TestLocalSocket reaches a server by the socket of its folder, however long its path is, and another one after that
// was killed.
func TestLocalSocket(t *testing.T) {
	for _, sub := range []string{"", strings.Repeat("d", 120)} {
		dir := filepath.Join(folder(t, Local{}), sub)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := (Local{Page: "https://127.0.0.1:7641", Socket: true}).Write(dir); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			l, err := Listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			page := &listener{}
			go func() { _ = http.Serve(l, page) }()
			if err := call(t, Options{Folder: Folder{dir}}); err != nil || page.asked.Load() != 1 || page.tokens.Load() != 0 {
				t.Errorf("%v, %d requests, %d tokens", err, page.asked.Load(), page.tokens.Load())
			}
			l.Close()
			if err := call(t, Options{Folder: Folder{dir}}); !errors.Is(err, fleet.ErrGone) {
				t.Errorf("a server that has ended: %v", err)
			}
		}
	}
}

// as runs a function as another user.
func as(t *testing.T, user uintptr, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user); e != 0 {
			t.Error(e)
		}
		f()
	}()
	<-done
}

// TestSocketOfAnother has another user listen at the socket.
func TestSocketOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being another user needs root")
	}
	dir := folder(t, Local{Page: "http://127.0.0.1:7641", Socket: true})
	open, err := os.MkdirTemp("", "busbar")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	thief := &listener{}
	var l net.Listener
	as(t, 12345, func() { l, err = net.Listen("unix", filepath.Join(open, "s")) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = http.Serve(l, thief) }()
	if err := os.Symlink(filepath.Join(open, "s"), filepath.Join(dir, socketFile)); err != nil {
		t.Fatal(err)
	}
	if err := call(t, Options{Folder: Folder{dir}}); err == nil ||
		!strings.Contains(err.Error(), "user 12345 is at the other end") {
		t.Errorf("%v", err)
	}
	if n := thief.asked.Load(); n > 0 {
		t.Errorf("%d requests went to another user", n)
	}
}

// TestSocketForNobodyElse has another user reach a server's socket, where the folder lets him: he is not answered.
func TestSocketForNobodyElse(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("being another user needs root")
	}
	open, err := os.MkdirTemp("", "busbar")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	page := &listener{}
	l, err := Listen(open)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = http.Serve(l, page) }()
	path := filepath.Join(open, socketFile)
	connect := func() (err error) {
		as(t, 12345, func() {
			var c net.Conn
			if c, err = net.Dial("unix", path); err == nil {
				_, _ = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
				if _, err = c.Read(make([]byte, 1)); err == nil {
					err = errors.New("answered")
				}
				c.Close()
			}
		})
		return err
	}
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := connect(); !errors.Is(err, os.ErrPermission) {
		t.Errorf("by its mode: %v", err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := connect(); err == nil || err.Error() == "answered" || page.asked.Load() > 0 {
		t.Errorf("another user was answered: %v", err)
	}
}
