package web

import (
	"net"
	"sync"
)

// mostConnections is how many clients may be connected at once.
const mostConnections = 1024

// Bounded is a listener that takes so many connections at once; others wait in the
// system's queue until one ends.
func Bounded(l net.Listener) net.Listener {
	return &boundedListener{l, make(chan struct{}, mostConnections), make(chan struct{}), sync.Once{}}
}

type boundedListener struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

// Accept waits for a place, then for a client.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &boundedConn{Conn: c, leave: func() { <-l.places }}, nil
}

// Close ends waiting too.
func (l *boundedListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type boundedConn struct {
	net.Conn
	once  sync.Once
	leave func()
}

// Close gives the place back.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}
