package bus

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/outfile"
	"busbar.dev/internal/test/eventually"
)

// line is a way to a server on which answers can be lost.
type line struct {
	l    net.Listener
	deaf atomic.Bool // what the server says is dropped

	mu   sync.Mutex
	open []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &line{l: l}
	t.Cleanup(func() { l.Close(); x.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			x.mu.Lock()
			x.open = append(x.open, c, s)
			x.mu.Unlock()
			go func() { _, _ = io.Copy(s, c); s.Close() }()
			go x.answers(c, s)
		}
	}()
	return x
}

func (x *line) answers(c, s net.Conn) {
	defer c.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := s.Read(b)
		if err != nil {
			return
		}
		if !x.deaf.Load() {
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}
}

func (x *line) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.open {
		c.Close()
	}
	x.open = nil
}

// nodeOn connects as a node over a line.
func nodeOn(t *testing.T, s *Server, x *line, name fleet.Name, expiry time.Duration,
	on func(connected bool, text string),
) (b *Bus, file string) {
	t.Helper()
	creds, _, err := s.Keys().Issue(name, expiry)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err = Connect(Config{
		URLs: []string{"nats://" + x.l.Addr().String()}, Creds: file, Node: name, On: on,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, file
}

// TestLostAnswer lets the store take a message and loses its answer, again and again. Sent
// again, the message must not be there twice, and this also long after the store has forgotten
// identities: the condition on sequences decides.
func TestLostAnswer(t *testing.T) {
	s, hub := open(t, ServerConfig{Dir: t.TempDir()})
	x := newLine(t, strings.TrimPrefix(s.URL(), "nats://"))
	b, _ := nodeOn(t, s, x, "n", 0, nil)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	count := func() int { list, _ := stored(t, hub); return len(list) }
	publisher := b.Publisher()
	for k := 1; k <= 5; k++ {
		x.deaf.Store(true)
		published := make(chan error, 1)
		n := left("n")
		go func() { published <- publisher.Publish(ctx, n) }()
		// The first has to learn before, and hears nothing.
		eventually.Holds(t, "it is stored", func() bool { return k == 1 || count() >= k })
		x.deaf.Store(false)
		x.cut()
		if err := <-published; err != nil || n.Seq != uint64(k) {
			t.Fatalf("number %d, %v", n.Seq, err)
		}
		if got := count(); got != k {
			t.Fatalf("%d stored after %d were said", got, k)
		}
	}
}

// TestCredentialsReplaced lets credentials expire under a connection and gives it others.
func TestCredentialsReplaced(t *testing.T) {
	s, _ := open(t, ServerConfig{Dir: t.TempDir()})
	x := newLine(t, strings.TrimPrefix(s.URL(), "nats://"))
	lost := make(chan struct{}, 100)
	b, file := nodeOn(t, s, x, "n", 6*time.Second, func(connected bool, _ string) {
		if !connected {
			lost <- struct{}{}
		}
	})
	select {
	case <-lost:
	case <-time.After(eventually.Limit):
		t.Fatal("a connection outlives its credentials")
	}
	creds, _, err := s.Keys().Issue("n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := outfile.Private(file, creds); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	if err := b.Publisher().Publish(ctx, left("n")); err != nil {
		t.Errorf("with new credentials: %v", err)
	}
}

// TestNoServerYet: what is published before there ever was a connection waits, and is no error of its own.
func TestNoServerYet(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	b, err := Connect(Config{URLs: []string{"nats://" + l.Addr().String()}, Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := b.Publisher().Publish(ctx, left("n1")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a server: %v; expected to wait until the context ends", err)
	}
}
