package client

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"busbar.dev/internal/osdep"
)

// socketFile is where a server listens for programs of its own user, in its folder. Who takes the port of a page that
// is down cannot take this.
const socketFile = "page.sock"

// mostPath is the longest path of a socket that every system takes.
const mostPath = 100

// Listen is where programs of the server's own user reach it. Closing it removes it.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, socketFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // what a server left that was killed
		return nil, err
	}
	var l *net.UnixListener
	err := withPath(dir, func(path string) (err error) {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by a name that may be another's by then
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return &local{l, path}, nil
}

// local is a listener that removes its file.
type local struct {
	*net.UnixListener
	path string
}

func (l *local) Close() error {
	os.Remove(l.path)
	return l.UnixListener.Close()
}

// dial reaches the server of a folder, and makes sure that it runs as this user.
func dial(_ context.Context, dir string) (net.Conn, error) {
	var c *net.UnixConn
	err := withPath(dir, func(path string) (err error) {
		c, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := osdep.OwnPeer(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, socketFile), err)
	}
	return c, nil
}

// withPath calls back with a path of the socket that is short enough.
func withPath(dir string, use func(path string) error) error {
	path := filepath.Join(dir, socketFile)
	if len(path) <= mostPath || runtime.GOOS != "linux" {
		return use(path)
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), socketFile))
}
