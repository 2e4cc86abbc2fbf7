package osdep

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// OwnPeer refuses a connection with a process of another user at its other end.
func OwnPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) {
		peer,
			err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("a process of user %d is at the other end, and this is user %d: nothing is sent to it", peer.Uid,
			os.Geteuid())
	}
	return nil
}
