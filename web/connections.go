package web

import (
	"net"
	"sync"
)

// mostConnections is how many clients may be connected at once, and mostOfOne how many
// connections one of them may have: a host that holds all would keep others out. What
// comes over loopback may be many people behind one proxy.
const (
	mostConnections = 1024
	mostOfOne       = mostConnections / 8
)

// Bounded is a listener that takes so many connections at once; others wait in the
// system's queue until one ends.
func Bounded(l net.Listener) net.Listener {
	return &boundedListener{
		Listener: l, places: make(chan struct{}, mostConnections), done: make(chan struct{}),
		client: clientAt, each: map[string]int{},
	}
}

type boundedListener struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
	client func(net.Addr) string // whom connections are counted for, "" for nobody

	mu   sync.Mutex // guards following
	each map[string]int
}

// Accept waits for a place, then for a client.
func (l *boundedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.places
			return nil, err
		}
		who := l.client(c.RemoteAddr())
		if l.enter(who) {
			return &boundedConn{Conn: c, leave: func() { l.leave(who); <-l.places }}, nil
		}
		c.Close()
	}
}

func (l *boundedListener) enter(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if who != "" && l.each[who] >= mostOfOne {
		return false
	}
	l.each[who]++
	return true
}

func (l *boundedListener) leave(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each[who]--; l.each[who] <= 0 {
		delete(l.each, who)
	}
}

// clientAt is the host of an address, "" for this machine.
func clientAt(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); !ok || t.IP.IsLoopback() {
		return ""
	}
	return clientOf(a.String())
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
