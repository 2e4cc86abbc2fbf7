package device

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Hub is where workers come to that somebody else starts: a launcher, on other hosts.
type Hub struct {
	listener net.Listener
	// Token is what workers show, in BUSBAR_GPU_TOKEN.
	Token string
}

// Listen opens a hub at an address such as :0.
func Listen(address string) (*Hub, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Hub{l, rand.Text()}, nil
}

// Port is where it listens.
func (h *Hub) Port() int { return h.listener.Addr().(*net.TCPAddr).Port }

// Close ends waiting.
func (h *Hub) Close() error { return h.listener.Close() }

// Accept waits until so many workers have come, and orders them by host. Connections without the token are closed.
func (h *Hub) Accept(ctx context.Context, n int) (Team, error) {
	stop := context.AfterFunc(ctx, func() { h.listener.Close() })
	defer stop()
	var t Team
	for len(t) < n {
		conn, err := h.listener.Accept()
		if err != nil {
			t.End()
			if ctx.Err() != nil {
				return nil, fmt.Errorf("%d of %d workers came: %w", len(t), n, context.Cause(ctx))
			}
			return nil, err
		}
		c := &connection{Conn: conn, r: bufio.NewReaderSize(conn, 4096)}
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		line, err := c.r.ReadSlice('\n')
		conn.SetReadDeadline(time.Time{})
		if err != nil || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(string(line))), []byte(h.Token)) != 1 {
			conn.Close()
			continue
		}
		w, err := NewWorker(ctx, len(t), c)
		if err != nil {
			t.End()
			return nil, err
		}
		t = append(t, w)
	}
	slices.SortStableFunc(t, func(a, b *Worker) int { return strings.Compare(a.Hello.Host, b.Hello.Host) })
	for i, w := range t {
		w.Rank = i
	}
	return t, nil
}

// connection is a worker's.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func (c *connection) Read(p []byte) (int, error) { return c.r.Read(p) }
func (c *connection) End(time.Duration)          { c.Close() }
func (c *connection) Why() error                 { return errors.New("its connection is closed") }
