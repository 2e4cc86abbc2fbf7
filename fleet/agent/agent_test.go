package agent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/unit"
)

// fixture is a server with its reader, and agents in this process.
type fixture struct {
	t   *testing.T
	srv *bus.Server
	hub *bus.Bus
	ctx context.Context

	ended chan error // of agents, as they end

	mu      sync.Mutex
	events  []*fleet.Event
	beat    map[fleet.Name]*fleet.Beat
	running map[fleet.Name]string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	srv, err := bus.Start(bus.ServerConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := srv.Connect(bus.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t, srv: srv, hub: hub, ctx: ctx, ended: make(chan error, 100), beat: map[fleet.Name]*fleet.Beat{},
		running: map[fleet.Name]string{},
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		_ = hub.Transient(ctx, bus.Transient{
			Beat: func(b *fleet.Beat) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.beat[b.Node] = b
			},
			Progress: func(d *fleet.Progress) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.running[d.Node] = d.Text
			},
		})
	})
	reading.Go(func() {
		_ = hub.Follow(ctx, bus.Following{Each: func(e bus.Entry) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.events = append(f.events, e.Event)
		}})
	})
	t.Cleanup(func() { cancel(); reading.Wait(); hub.Close(); srv.Close() })
	return f
}

// agent starts a node and returns what ends it.
func (f *fixture) agent(name fleet.Name, change func(*Config)) (c Config, end func() error) {
	f.t.Helper()
	creds, _, err := f.srv.Keys().Issue(name, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	file := filepath.Join(f.t.TempDir(), "creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		f.t.Fatal(err)
	}
	c = Config{
		Name: name, Bus: bus.Config{URLs: []string{f.srv.URL()}, Creds: file}, Dir: f.t.TempDir(),
		Meet: freeport.Address(f.t),
		Bind: "127.0.0.1",
		Sys:  fstest.MapFS{}, Beat: 100 * time.Millisecond, Look: 50 * time.Millisecond,
		Measure: ThisProgram("127.0.0.1", "").Measure,
		On:      func(e Event) { f.t.Logf("%s: %s %v %s", name, e.What, e.OK, e.Text) },
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	out := make(chan struct{})
	var result error
	go func() { result = Run(ctx, c); f.ended <- result; close(out) }()
	end = func() error { cancel(); <-out; return result }
	f.t.Cleanup(func() { _ = end() })
	return c, end
}

// until waits for something to be so.
func (f *fixture) until(what string, so func() bool) {
	f.t.Helper()
	eventually.Holds(f.t, what, so)
}

// said is the news of a node of a kind.
func (f *fixture) sent(name fleet.Name, k fleet.Kind) (list []*fleet.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.events {
		if n.Node == name && n.Kind == k {
			list = append(list, n)
		}
	}
	return list
}

// ask asks until the node is there.
func (f *fixture) ask(node fleet.Name, p fleet.Part) *fleet.Answer {
	f.t.Helper()
	var a *fleet.Answer
	eventually.Holds(f.t, "the node is there", func() bool {
		var err error
		a, err = f.hub.Ask(f.ctx, node, &p)
		if f.ctx.Err() != nil {
			f.t.Fatal(err)
		}
		return err == nil
	})
	return a
}

func pairPart(id string, ranks []fleet.Name, meet string) fleet.Part {
	return fleet.Part{
		ID: id, Order: "o", Ranks: ranks, Meet: meet, Secret: "0123456789abcdef",
		Hosts: slices.Repeat([]string{"127.0.0.1"}, len(ranks)),
		What:  fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 256 << 10, Iters: 3},
		Caps:  fleet.Caps{Time: 20 * time.Second},
	}
}

func TestMeasures(t *testing.T) {
	f := newFixture(t)
	names := []fleet.Name{"a", "b", "c.rack"}
	var first Config
	for i, n := range names {
		c, _ := f.agent(n, nil)
		if i == 0 {
			first = c
		}
	}
	give := func(p fleet.Part) {
		t.Helper()
		for i, n := range p.Ranks {
			p.Rank = i
			f.until("a free node", func() bool { // its last beat may be older than what it does
				a := f.ask(n, p)
				if !a.Begins && !a.Busy {
					t.Fatalf("%s: %+v", n, a)
				}
				return a.Begins
			})
		}
	}
	give(pairPart("pair", names[:2], first.Meet))
	f.until("a pair", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 1 })
	m := f.sent("a", fleet.KindMeasured)[0].Measured
	if m.Failed != "" || m.Part != "pair" || m.Order != "o" || len(m.Pairs) != 2 {
		t.Fatalf("%+v", m)
	}
	for _, s := range m.Pairs {
		if s.From == s.To || s.Rate <= 0 || s.Latency <= 0 || s.Both <= 0 {
			t.Errorf("%+v", s)
		}
	}
	// Every node is idle again before it is asked for the next.
	idle := func() bool {
		for _, n := range names {
			f.mu.Lock()
			b := f.beat[n]
			f.mu.Unlock()
			if b == nil || b.Part != "" {
				return false
			}
		}
		return true
	}
	f.until("idle nodes", idle)
	p := pairPart("all", names, first.Meet)
	p.What = fleet.What{Measure: fleet.MeasureCollective, Op: coll.AllReduce, Sizes: []unit.Bytes{1024, 65536}, Iters: 3}
	p.Caps.Rate = 500e6
	give(p)
	f.until("a collective", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 2 })
	m = f.sent("a", fleet.KindMeasured)[1].Measured
	if m.Failed != "" || len(m.Results) == 0 {
		t.Fatalf("%+v", m)
	}
	for _, r := range m.Results.Rows() {
		if err := r.Check(); err != nil || r.Time.Mean <= 0 || r.Ranks != 3 || r.Transport != "tcp" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	// A bound on the rate holds.
	f.until("idle nodes", idle)
	p = pairPart("slow", names[:2], first.Meet)
	p.What.Large, p.Caps.Rate = 1<<20, 50e6
	give(p)
	f.until("a bounded pair", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 3 })
	m = f.sent("a", fleet.KindMeasured)[2].Measured
	for _, s := range m.Pairs {
		if runtime.GOOS == "linux" && (s.Rate > 2*p.Caps.Rate || s.Both > 2*p.Caps.Rate) {
			t.Errorf("%+v with a bound of %v", s, p.Caps.Rate)
		}
	}
	if m.Failed != "" || len(m.Pairs) != 2 {
		t.Errorf("%+v", m)
	}
	// A measurement under way ends when it is told to, on both sides.
	f.until("idle nodes", idle)
	p = pairPart("long", names[:2], first.Meet)
	p.What.Iters, p.Caps.Rate, p.Caps.Time = fleet.MaxIters, 10e6, 5*time.Minute
	give(p)
	f.until("the measurement", func() bool { // by what is said again and again: how far it is, a busy machine may lose
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.beat["a"] != nil && f.beat["a"].Part == p.ID
	})
	for _, n := range p.Ranks {
		f.ask(n, fleet.Part{ID: p.ID, Stop: true})
	}
	f.until("its end", func() bool {
		return len(f.sent("a", fleet.KindMeasured)) == 4 && len(f.sent("b", fleet.KindMeasured)) == 1
	})
	if m := f.sent("a", fleet.KindMeasured)[3].Measured; m.Failed != "stopped" {
		t.Errorf("%+v", m)
	}
	f.until("idle nodes", idle)
}

// TestRefuses asks for what a node must not do.
func TestRefuses(t *testing.T) {
	f := newFixture(t)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	c, _ := f.agent("a", func(c *Config) {
		c.MaxMemory = 64 * unit.MiB
		c.Measure = func(ctx context.Context, p *fleet.Part, at func(int, int, string)) (*fleet.Measured, error) {
			begun <- struct{}{}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-release:
				return &fleet.Measured{}, nil
			}
		}
	})
	ranks := []fleet.Name{"a", "b"}
	for name, change := range map[string]func(*fleet.Part){
		"is node b":            func(p *fleet.Part) { p.Rank = 1 },
		"this node listens at": func(p *fleet.Part) { p.Meet = "127.0.0.1:1" },
		"rendezvous address":   func(p *fleet.Part) { p.Meet = "/tmp/file" },
		"memory":               func(p *fleet.Part) { p.What.Large = 64 << 20 },
		"secret":               func(p *fleet.Part) { p.Secret = "short" },
		"iterations":           func(p *fleet.Part) { p.What.Iters = 0 },
		"a cap":                func(p *fleet.Part) { p.Caps.Time = 24 * time.Hour },
		"no-such-algo": func(p *fleet.Part) {
			p.What = fleet.What{
				Measure: fleet.MeasureCollective, Op: coll.AllReduce, Algo: "no-such-algo", Sizes: []unit.Bytes{8}, Iters: 1,
			}
		},
	} {
		p := pairPart("x", ranks, c.Meet)
		change(&p)
		a := f.ask("a", p)
		if a.Begins || a.Busy {
			t.Errorf("%s: %+v", name, a)
		} else if !strings.Contains(a.Why, name) {
			t.Errorf("%s: %s", name, a.Why)
		}
	}
	// One at a time; the same question gets the same answer; a part can be stopped, also before
	// it begins.
	if a := f.ask("a", pairPart("p1", ranks, c.Meet)); !a.Begins {
		t.Fatalf("%+v", a)
	}
	<-begun
	if a := f.ask("a", pairPart("p1", ranks, c.Meet)); !a.Begins {
		t.Errorf("asked again: %+v", a)
	}
	if a := f.ask("a", pairPart("p2", ranks, c.Meet)); a.Begins || !a.Busy {
		t.Errorf("a second part: %+v", a)
	}
	f.ask("a", fleet.Part{ID: "p1", Stop: true})
	f.until("the stopped part's end", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 1 })
	if m := f.sent("a", fleet.KindMeasured)[0].Measured; m.Failed != "stopped" || m.Part != "p1" {
		t.Errorf("%+v", m)
	}
	f.ask("a", fleet.Part{ID: "p3", Stop: true})
	if a := f.ask("a", pairPart("p3", ranks, c.Meet)); a.Begins {
		t.Error("a part begins that was stopped before")
	}
	p := pairPart("p4", ranks, c.Meet)
	p.Caps.Time = 50 * time.Millisecond
	f.until("a free node", func() bool { return f.ask("a", p).Begins })
	f.until("a part that takes too long", func() bool { return len(f.sent("a", fleet.KindMeasured)) == 2 })
	if m := f.sent("a", fleet.KindMeasured)[1].Measured; !strings.Contains(m.Failed, "longer than") {
		t.Errorf("%+v", m)
	}
	close(release)
}
