package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"
)

// UsualPort is where nodes meet when nobody says otherwise.
const UsualPort = 7643

// nextPorts is how many ports after the one that is taken are tried before the kernel chooses one: whoever has a
// firewall can open so few.
const nextPorts = 32

// hold keeps the place to meet for this agent as long as it runs, so that several on one machine do not clash when
// they measure. The port for TCP is open during measurements only; it is held by the one for UDP of the same
// number, which nobody reads. Where it is taken and a free one will do, another one is held.
func hold(meet string, free bool) (at string, held io.Closer, err error) {
	c, err := holdAt(meet)
	if err == nil || !free || !errors.Is(err, syscall.EADDRINUSE) {
		return meet, c, err
	}
	host, text, _ := net.SplitHostPort(meet) // it was checked
	port, _ := strconv.Atoi(text)
	for next := port + 1; next <= min(port+nextPorts, 65535); next++ {
		at := net.JoinHostPort(host, strconv.Itoa(next))
		if c, err := holdAt(at); err == nil {
			return at, c, nil
		}
	}
	for range nextPorts { // one that UDP has free may be taken for TCP
		c, err := net.ListenPacket("udp", net.JoinHostPort(host, "0"))
		if err != nil {
			return meet, nil, err
		}
		at := net.JoinHostPort(host, strconv.Itoa(c.LocalAddr().(*net.UDPAddr).Port))
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			return at, c, nil
		}
		c.Close()
	}
	return meet, nil, fmt.Errorf("no port is free at %s: %w", host, err)
}

// holdAt holds one port, where neither another agent nor another program has it.
func holdAt(meet string) (io.Closer, error) {
	c, err := net.ListenPacket("udp", meet)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", meet)
	if err != nil {
		c.Close()
		return nil, err
	}
	l.Close()
	return c, nil
}

// holdMeet holds this node's place and says which it is. A place that cannot be held is no reason to end: what has
// it may be gone when it is needed, and until then the node tells how it does.
func (a *agent) holdMeet() {
	at, held, err := hold(a.Meet, a.AnyPort)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		a.event("meet", false, "%s is taken by another agent or program, and measurements that begin here fail while it "+
			"is: give each agent of a machine a port of its own, or none for a free one", a.Meet)
	case err != nil:
		a.event("meet", false, "%s cannot be held: %v", a.Meet, err)
	case at != a.Meet:
		a.event("meet", true, "%s is taken by another agent or program; other nodes reach this one at %s", a.Meet, at)
	default:
		a.event("meet", true, "other nodes reach this one at %s", at)
	}
	a.Meet, a.held = at, held
}

// letGo frees the place.
func (a *agent) letGo() {
	if a.held != nil {
		a.held.Close()
	}
}
