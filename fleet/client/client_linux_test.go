package client

import (
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
)

// listener counts who comes with a token.
type listener struct{ tokens atomic.Int64 }

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
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
	if err := os.WriteFile(filepath.Join(dir, TokenFile), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func call(t *testing.T, o Options) error {
	t.Helper()
	var out struct{}
	return New(o).Call(t.Context(), "GET", "/api/fleet/nodes", nil, &out)
}

// TestLocalTokenStaysLocal has somebody else listen at an address that was asked for, and at the port of the server's
// own page while that is down. The token of the server's folder goes to neither.
func TestLocalTokenStaysLocal(t *testing.T) {
	thief := &listener{}
	other := httptest.NewServer(thief)
	defer other.Close()
	dir := folder(t, Local{Page: "http://127.0.0.1:1", Socket: true})
	err := call(t, Options{Folder: Folder{dir}, Server: other.URL})
	if err == nil || !strings.Contains(err.Error(), "only for the server of that folder") {
		t.Errorf("asked another server: %v", err)
	}
	dir = folder(t, Local{Page: other.URL, Socket: true})
	if err := call(t, Options{Folder: Folder{dir}}); err == nil {
		t.Error("a server that is down answers")
	}
	dir = folder(t, Local{Page: other.URL})
	if err := call(t, Options{Folder: Folder{dir}}); err == nil || !strings.Contains(err.Error(), "socket") {
		t.Errorf("without a socket: %v", err)
	}
	if n := thief.tokens.Load(); n > 0 {
		t.Errorf("%d requests brought the token to another", n)
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

// TestLocalSocket reaches a server by the socket of its folder, however long its path is.
func TestLocalSocket(t *testing.T) {
	for _, sub := range []string{"", strings.Repeat("d", 120)} {
		dir := filepath.Join(folder(t, Local{}), sub)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := (Local{Page: "https://127.0.0.1:7641", Socket: true}).Write(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, TokenFile), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		page := &listener{}
		go func() { _ = http.Serve(l, page) }()
		if err := call(t, Options{Folder: Folder{dir}}); err != nil || page.tokens.Load() != 1 {
			t.Errorf("%v, %d tokens", err, page.tokens.Load())
		}
		l.Close()
		if _, err := os.Lstat(filepath.Join(dir, socketFile)); err == nil {
			t.Error("the socket is left")
		}
	}
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
	go func() { _ = http.Serve(l, thief) }()
	if err := os.Symlink(filepath.Join(open, "s"), filepath.Join(dir, socketFile)); err != nil {
		t.Fatal(err)
	}
	if err := call(t, Options{Folder: Folder{dir}}); err == nil ||
		!strings.Contains(err.Error(), "user 12345 is at the other end") {
		t.Errorf("%v", err)
	}
	if n := thief.tokens.Load(); n > 0 {
		t.Errorf("%d requests brought the token to another user", n)
	}
}
