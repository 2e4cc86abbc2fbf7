package web

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// mostConnections is how many clients may be connected at once, and mostOfOne how many
// connections one of them may have: a host that holds all would keep others out. What
// comes over loopback may be many people behind one proxy.
const (
	mostConnections = 1024
	mostOfOne       = mostConnections / 8
)

// Bounded is a listener that takes so many connections at once. Where all places are taken, a connection on which
// nobody has shown a token makes room, the oldest first: who only holds connections keeps nobody out. Where all have,
// the token that holds the most gives its oldest up.
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
	open []*boundedConn // the oldest first
}

// Accept waits for a client, then for a place.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who := l.client(c.RemoteAddr())
		if !l.enter(who) && !(l.evict(who) && l.enter(who)) {
			c.Close()
			continue
		}
		if !l.place() {
			l.leave(who, nil)
			c.Close()
			return nil, net.ErrClosed
		}
		b := &boundedConn{Conn: c, who: who}
		b.leave = func() { l.leave(who, b); <-l.places }
		l.mu.Lock()
		l.open = append(l.open, b)
		l.mu.Unlock()
		return b, nil
	}
}

// place takes one of the places, and has another connection give its own up where there is none.
func (l *boundedListener) place() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	l.evict("")
	select {
	case l.places <- struct{}{}:
		return true
	case <-l.done:
		return false
	}
}

// evict closes the oldest connection without a token, of one client or of all; of all, else the oldest of the token
// that holds the most. It is false where there is none.
func (l *boundedListener) evict(who string) bool {
	l.mu.Lock()
	i := slices.IndexFunc(l.open,
		func(c *boundedConn) bool { return c.token.Load() == nil && (who == "" || c.who == who) })
	if i < 0 && who == "" {
		i = l.oldestOfLargest()
	}
	var old *boundedConn
	if i >= 0 {
		old = l.open[i]
	}
	l.mu.Unlock()
	if old == nil {
		return false
	}
	old.Close()
	return true
}

// oldestOfLargest is the oldest connection of the token that holds the most, -1 where none holds two. The caller holds
// mu.
func (l *boundedListener) oldestOfLargest() int {
	count := map[string]int{}
	most := ""
	for _, c := range l.open {
		if t := c.token.Load(); t != nil {
			if count[*t]++; count[*t] > count[most] {
				most = *t
			}
		}
	}
	if count[most] < 2 {
		return -1
	}
	return slices.IndexFunc(l.open, func(c *boundedConn) bool { t := c.token.Load(); return t != nil && *t == most })
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

func (l *boundedListener) leave(who string, c *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.each[who]--; l.each[who] <= 0 {
		delete(l.each, who)
	}
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
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
	who   string
	token atomic.Pointer[string] // the name of the one that was shown on it; nil for none
	once  sync.Once
	leave func()
}

// Close gives the place back.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.leave)
	return err
}

type connKey struct{}

// withConn has requests know their connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if b, ok := c.(*boundedConn); ok {
		return context.WithValue(ctx, connKey{}, b)
	}
	return ctx
}

// proven notes that a token was shown on the connection of a request.
func proven(ctx context.Context, token string) {
	if b, ok := ctx.Value(connKey{}).(*boundedConn); ok {
		b.token.Store(&token)
	}
}
