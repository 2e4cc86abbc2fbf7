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
	return &boundedListener{Listener: l, places: mostConnections, client: clientAt}
}

type boundedListener struct {
	net.Listener
	places int
	client func(net.Addr) string // whom connections are counted for, "" for nobody

	mu   sync.Mutex     // guards following
	open []*boundedConn // the oldest first
}

// Accept waits for a client that there is a place for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c, who: l.client(c.RemoteAddr()), of: l}
		old, ok := l.admit(b)
		if old != nil {
			old.Close()
		}
		if ok {
			return b, nil
		}
		c.Close()
	}
}

// admit takes a connection in; old gives its place up for it.
func (l *boundedListener) admit(b *boundedConn) (old *boundedConn, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := 0
	for _, c := range l.open {
		if c.who == b.who {
			own++
		}
	}
	crowded := b.who != "" && own >= mostOfOne
	if crowded || len(l.open) >= l.places {
		old = oldest(l.open, func(c *boundedConn) bool { return c.token.Load() == nil && (!crowded || c.who == b.who) })
		if old == nil && !crowded {
			old = oldestOfLargest(l.open)
		}
		if old == nil {
			return nil, false
		}
	}
	l.open = append(l.open, b)
	return old, true
}

func oldest(open []*boundedConn, is func(*boundedConn) bool) *boundedConn {
	if i := slices.IndexFunc(open, is); i >= 0 {
		return open[i]
	}
	return nil
}

// oldestOfLargest is the oldest connection of the token that holds the most, nil where none holds two.
func oldestOfLargest(open []*boundedConn) *boundedConn {
	count := map[string]int{}
	most := ""
	for _, c := range open {
		if t := c.token.Load(); t != nil {
			if count[*t]++; count[*t] > count[most] {
				most = *t
			}
		}
	}
	if count[most] < 2 {
		return nil
	}
	return oldest(open, func(c *boundedConn) bool { t := c.token.Load(); return t != nil && *t == most })
}

// clientAt is the host of an address, "" for this machine.
func clientAt(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); !ok || t.IP.IsLoopback() {
		return ""
	}
	return clientOf(a.String())
}

type boundedConn struct {
	net.Conn
	who   string
	token atomic.Pointer[string] // the name of the one that was shown on it; nil for none
	of    *boundedListener
}

// Close gives the place back.
func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(x *boundedConn) bool { return x == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
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
