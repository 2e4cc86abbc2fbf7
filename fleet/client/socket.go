package client

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/osdep"
)

// socketFile is where a server listens for programs of its own user, in its folder. They need no token, and who takes
// the port of a page that is down cannot take this.
const socketFile = "page.sock"

// mostPath is the longest path of a socket that every system takes.
const mostPath = 100

// Listen is where programs of the server's own user reach it, and nobody else.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, socketFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // that of the last start
		return nil, err
	}
	l, err := withPath(dir, func(at *net.UnixAddr) (*net.UnixListener, error) { return net.ListenUnix("unix", at) })
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by a name that may be another's by then
	return ownListener{l}, os.Chmod(path, 0o600)
}

// ownListener takes connections of this user.
type ownListener struct{ *net.UnixListener }

// Accept leaves out those of others, who may come before the socket has its mode.
func (l ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if osdep.OwnPeer(c) == nil {
			return c, nil
		}
		c.Close()
	}
}

// dial reaches the server of a folder, and makes sure that it runs as this user.
func dial(dir string) (net.Conn, error) {
	c, err := withPath(dir, func(at *net.UnixAddr) (*net.UnixConn, error) { return net.DialUnix("unix", nil, at) })
	if err != nil {
		return nil, err
	}
	if err := osdep.OwnPeer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, socketFile), err)
	}
	return c, nil
}

// Join copies between two streams and the socket of the folder's server, until either side has ended.
func (f Folder) Join(in io.Reader, out io.Writer) error {
	dir, err := f.Path()
	if err != nil {
		return err
	}
	conn, err := dial(dir)
	if err != nil {
		return failure.Cannot(fmt.Errorf("--data %s: %w; does busbar serve run there?", dir, err))
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, in) // whoever asks has ended, or the server has
		conn.Close()
	}()
	_, err = io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return failure.Cannot(err)
}

// withPath calls back with a path of the socket that is short enough.
func withPath[T any](dir string, use func(*net.UnixAddr) (T, error)) (none T, err error) {
	at := &net.UnixAddr{Name: filepath.Join(dir, socketFile), Net: "unix"}
	if len(at.Name) > mostPath && runtime.GOOS == "linux" {
		f, err := os.Open(dir)
		if err != nil {
			return none, err
		}
		defer f.Close()
		at.Name = fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketFile)
	}
	return use(at)
}
