package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

// server starts a NATS server of our own in a folder.
func server(t *testing.T, dir string) *bus.Server {
	t.Helper()
	s, err := bus.Start(bus.ServerConfig{Dir: dir, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// remote is a node that speaks over NATS and measures nothing.
type remote struct {
	b *bus.Bus
	s *bus.Publisher
	// gap is the longest time between two of its heartbeats, which a busy machine stretches, in nanoseconds.
	gap atomic.Int64
}

func newRemote(t *testing.T, srv *bus.Server, name fleet.Name, slow func(fleet.Name) float64) *remote {
	t.Helper()
	creds, _, err := srv.Keys().Issue(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return newRemoteAt(t, srv.URL(), creds, name, slow)
}

func newRemoteAt(t *testing.T, url string, creds []byte, name fleet.Name, slow func(fleet.Name) float64) *remote {
	t.Helper()
	file := filepath.Join(t.TempDir(), "node.creds")
	if err := writeAll(file, creds); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(bus.Config{URLs: []string{url}, Creds: file, Node: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	r := &remote{b: b, s: b.Publisher()}
	send := func(n *fleet.Event) {
		n.At, n.Node = time.Now().UTC(), name
		if err := r.s.Publish(t.Context(), n); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	send(&fleet.Event{Kind: fleet.KindJoined, Joined: &fleet.Joined{Version: "test", Meet: "127.0.0.1:1"}})
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	if err := b.Serve(func(p *fleet.Part) fleet.Answer {
		if p.Stop {
			return fleet.Answer{}
		}
		if p.Rank == 0 {
			rate := unit.Rate(1e10 * slow(p.Ranks[0]) * slow(p.Ranks[1]))
			wg.Go(func() {
				send(&fleet.Event{Kind: fleet.KindMeasured, Measured: &fleet.Measured{
					Order: p.Order, Part: p.ID, Sweep: p.Sweep, Round: p.Round,
					Pairs: []fleet.PairSample{
						{From: name, To: p.Ranks[1], Rate: rate, Latency: 1e7}, {From: p.Ranks[1], To: name, Rate: rate, Latency: 1e7},
					},
				}})
			})
		}
		return fleet.Answer{Begins: true}
	}); err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		last := time.Now()
		for tick := time.Tick(50 * time.Millisecond); ; {
			r.gap.Store(max(r.gap.Load(), int64(time.Since(last))))
			last = time.Now()
			_ = b.Beat(&fleet.Beat{Node: name, At: time.Now()}) // the next one will do
			select {
			case <-tick:
			case <-t.Context().Done():
				return
			}
		}
	})
	return r
}

// hubOn runs a hub on a server.
func hubOn(t *testing.T, srv *bus.Server) (h *Hub, stop func()) {
	t.Helper()
	b, err := srv.Connect(bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return hubAt(t, b)
}

// hubAt runs a hub on a connection. It takes nobody for unreachable soon: heartbeats come every 50 ms, but machines
// that test may be busy.
func hubAt(t *testing.T, b *bus.Bus) (h *Hub, stop func()) {
	t.Helper()
	return hubWith(t, b, 20*time.Second)
}

func hubWith(t *testing.T, b *bus.Bus, unreachable time.Duration) (h *Hub, stop func()) {
	t.Helper()
	if err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	h = New(Config{
		Bus: OnBus(b), Unreachable: unreachable, Look: 100 * time.Millisecond, Warn: func(err error) { t.Log(err) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait(); b.Close() }) }
	t.Cleanup(stop)
	<-h.Ready()
	return h, stop
}

func TestFleetOverNATS(t *testing.T) {
	srv := server(t, t.TempDir())
	h, stop := hubOn(t, srv)
	var mu sync.Mutex
	sick := ""
	slow := func(n fleet.Name) float64 {
		mu.Lock()
		defer mu.Unlock()
		if string(n) == sick {
			return 0.5
		}
		return 1
	}
	for i := range 6 {
		newRemote(t, srv, fleet.Name(fmt.Sprintf("n%d.x", i)), slow)
	}
	up := func(h *Hub) func() bool {
		return func() bool {
			n := 0
			for _, s := range h.Nodes() {
				if s.State == fleet.NodeUp {
					n++
				}
			}
			return n == 6
		}
	}
	eventually.Holds(t, "all are up", up(h))
	sweeps(t, h, 3)
	mu.Lock()
	sick = "n3.x"
	mu.Unlock()
	sweeps(t, h, 2)
	eventually.Holds(t, "n3 is found", func() bool { s, _ := h.Node("n3.x"); return s.Unhealthy })
	stop()
	// Another hub on the same stream knows all of it.
	h, _ = hubOn(t, srv)
	if s, _ := h.Node("n3.x"); !s.Unhealthy {
		t.Error("a new hub does not know that n3 is bad")
	}
	eventually.Holds(t, "all are up again", up(h))
	sweeps(t, h, 1)
	h.view.ask(func(s *health.History) {
		if got := len(s.Pair("n0.x", "n1.x", health.Way{})); got != 6 {
			t.Errorf("%d samples of a link after 6 sweeps", got)
		}
	})
	if d := h.View().Ignored(); len(d) != 0 {
		t.Errorf("ignored: %v", d)
	}
}

func TestTwoHubsOverNATS(t *testing.T) {
	srv := server(t, t.TempDir())
	a, stopA := hubOn(t, srv)
	eventually.Holds(t, "the first leads", a.Leads)
	b, _ := hubOn(t, srv)
	one := func(fleet.Name) float64 { return 1 }
	newRemote(t, srv, "x", one)
	newRemote(t, srv, "y", one)
	eventually.Holds(t, "both hear both",
		func() bool {
			return len(a.View().asked(&fleet.Order{})) == 2 && len(b.View().asked(&fleet.Order{})) == 2
		})
	var wg sync.WaitGroup
	for _, h := range []*Hub{a, b, a, b} { // both speak at once
		wg.Go(func() { sweeps(t, h, 1) })
	}
	wg.Wait()
	eventually.Holds(t, "the first has the orders of both", func() bool { return len(a.View().Orders(time.Now())) == 4 })
	eventually.Holds(t, "one leads", func() bool { return a.Leads() != b.Leads() })
	stopA()
	eventually.Holds(t, "the other leads", b.Leads)
	sweeps(t, b, 1)
}

func writeAll(file string, data []byte) error { return os.WriteFile(file, data, 0o600) }

// TestStreamThatRanEmpty starts a hub when all that was ever said is too old to be kept.
func TestStreamThatRanEmpty(t *testing.T) {
	srv := server(t, t.TempDir())
	connect := func() *bus.Bus {
		b, err := srv.Connect(bus.Config{Keep: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := connect()
	defer b.Close()
	if err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := b.Publisher().Publish(t.Context(),
			&fleet.Event{At: time.Now().UTC(), Kind: fleet.KindTokens, Tokens: &fleet.Tokens{Node: "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "nothing is left", func() bool {
		last, err := b.Last(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return last == 0
	})
	h, _ := hubAt(t, connect())
	eventually.Holds(t, "it leads", h.Leads)
	newRemote(t, srv, "x", func(fleet.Name) float64 { return 1 })
	eventually.Holds(t, "it hears what is said now", func() bool { return len(h.View().asked(&fleet.Order{})) == 1 })
}
