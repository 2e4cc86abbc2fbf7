package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/hub"
)

// corruption damages the store of a stopped server again and again: bits that flip, files that are cut or gone. The
// server must start every time, say which numbers of which node are missing, and get them again from the agents.
type corruption struct {
	agents, times int
	length        time.Duration // of filling the store
	out           io.Writer

	dir    string
	random *rand.Rand
	quiet  atomic.Bool
	listen string
	agent  sync.WaitGroup
}

// contents is which numbers of whom there are.
type contents map[fleet.Name]map[uint64]said

// said is how often a number is in the store, and what it says.
type said struct {
	times int
	says  uint64
}

var seed = maphash.MakeSeed()

// instance is a server with its hub.
type instance struct {
	srv     *bus.Server
	bus     *bus.Bus
	journal *bus.Journal
}

func (c *corruption) run(ctx context.Context) (err error) {
	if c.dir, err = os.MkdirTemp("", "soak-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	c.random = rand.New(rand.NewPCG(uint64(c.times), 1))
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	c.listen = fmt.Sprintf("127.0.0.1:%d", ports[0])
	x, err := c.start(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer c.agent.Wait()
	defer stop()
	if err := c.fill(working, x); err != nil {
		x.close()
		return err
	}
	all, _, err := read(ctx, x.bus)
	x.close()
	if err != nil {
		return err
	}
	numbers := 0
	for _, m := range all {
		numbers += len(m)
	}
	fmt.Fprintf(c.out, "%d events of %d publishers, %d MB\n", numbers, len(all), size(c.store())>>20)
	lost, slowest := 0, time.Duration(0)
	for i := range c.times {
		began := time.Now()
		what, err := c.damage()
		if err != nil {
			return err
		}
		n, err := c.check(ctx, all)
		if err != nil {
			return fmt.Errorf("corruption %d, %s: %w", i+1, what, err)
		}
		lost += n
		slowest = max(slowest, time.Since(began))
		fmt.Fprintf(c.out, "%3d %-60s %6d missing, all reported, all back after %v\n", i+1, what, n,
			time.Since(began).Round(100*time.Millisecond))
	}
	fmt.Fprintf(c.out, "%d corruptions: started every time, %d events missing, every one reported and back; slowest %v\n",
		c.times, lost, slowest.Round(100*time.Millisecond))
	return nil
}

func (c *corruption) store() string { return filepath.Join(c.dir, "bus", "store") }

func (c *corruption) start(ctx context.Context) (*instance, error) {
	srv, err := bus.Start(bus.ServerConfig{Dir: filepath.Join(c.dir, "bus"), Listen: c.listen, Lazy: true})
	if err != nil {
		return nil, err
	}
	x := &instance{srv: srv}
	if x.journal, err = bus.OpenJournal(filepath.Join(c.dir, "bus"), 0); err == nil {
		x.bus, err = srv.Connect(bus.Config{MaxBytes: 2 << 30})
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err = x.bus.Ensure(ctx)
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *instance) close() {
	if x.bus != nil {
		x.bus.Close()
	}
	x.srv.Close()
	x.journal.Close()
}

// hub runs a hub; stop ends it.
func (x *instance) hub(ctx context.Context, b hub.Bus) (h *hub.Hub, stop func(), err error) {
	h = hub.New(hub.Config{
		Bus: b, Unreachable: 10 * time.Second, Look: 200 * time.Millisecond, Mend: 200 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	select {
	case <-h.Ready():
		return h, stop, nil
	case <-time.After(patience):
		share, _ := h.Reading()
		err = fmt.Errorf("a minute after the start the hub is still reading: %.0f%%", 100*share)
	case err = <-ended:
		ended <- err
	}
	stop()
	return nil, nil, err
}

// fill lets agents say things until there is enough of it, and waits until all of it is stored.
func (c *corruption) fill(ctx context.Context, x *instance) error {
	h, stop, err := x.hub(ctx, hub.OnBus(x.bus, x.journal))
	if err != nil {
		return err
	}
	defer stop()
	for i := range c.agents {
		name := nodeName(i)
		creds, _, err := x.srv.Keys().Issuer().Node(name, 0)
		if err != nil {
			return err
		}
		file := filepath.Join(c.dir, string(name)+".creds")
		if err := os.WriteFile(file, creds, 0o600); err != nil {
			return err
		}
		cfg := agent.Config{
			Name: name, Meet: meetOf(i), Version: "soak", Dir: filepath.Join(c.dir, string(name)),
			Bus: bus.Config{URLs: []string{"nats://" + c.listen}, Creds: file}, Measure: measure,
			Sys: &moving{quiet: &c.quiet}, Look: 10 * time.Millisecond, Beat: 200 * time.Millisecond,
			Map: c.mapOf(i), MapEvery: 250 * time.Millisecond,
			On: func(e agent.Event) {
				if e.What == "conflict" {
					fmt.Fprintf(os.Stderr, "soak: %s: %s\n", name, e.Text)
				}
			},
		}
		c.agent.Go(func() {
			if err := agent.Run(ctx, cfg); err != nil {
				fmt.Fprintf(os.Stderr, "soak: %s: %v\n", name, err)
			}
		})
	}
	end := time.Now().Add(c.length)
	for n := 0; time.Now().Before(end); n++ { // what the server itself says must come back too
		o := fleet.Order{By: "soak", Caps: fleet.Caps{Always: true}}
		hub.Fill(&o)
		if _, err := h.Give(ctx, o); err != nil {
			return err
		}
		time.Sleep(c.length / 10)
	}
	c.quiet.Store(true)
	return c.still(ctx, x)
}

// still waits until nothing more is stored.
func (c *corruption) still(ctx context.Context, x *instance) error {
	last := uint64(0)
	for looks := 0; looks < 40; looks++ { // looks and not time: a machine may stop
		n, err := x.bus.Last(ctx)
		if err != nil {
			return err
		}
		if n != last {
			last, looks = n, 0
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// mapOf is a map of a node that changes and is long, so that the store has several files.
func (c *corruption) mapOf(i int) func() (json.RawMessage, error) {
	n := 0
	text := strings.Repeat("x", 60<<10)
	return func() (json.RawMessage, error) {
		if !c.quiet.Load() {
			n++
		}
		return fmt.Appendf(nil, `{"node":%d,"n":%d,"x":"%s"}`, i, n, text), nil
	}
}

// moving is a /sys with a counter that moves whenever it is read.
type moving struct {
	quiet *atomic.Bool
	n     atomic.Int64
}

func (m *moving) Open(name string) (fs.File, error) {
	if !m.quiet.Load() {
		m.n.Add(1)
	}
	sys := machine()
	const counter = "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"
	sys[counter].Data = fmt.Appendln(nil, m.n.Load())
	return sys.Open(name)
}

// read counts what the store has.
func read(ctx context.Context, b *bus.Bus) (contents, int, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := contents{}
	bad := 0
	done := errors.New("read")
	last, err := b.Last(ctx)
	if err != nil || last == 0 {
		return all, 0, err
	}
	reading, stop := context.WithCancelCause(ctx)
	err = b.Follow(reading, bus.Following{
		Each: func(_ uint64, n *fleet.Event) error {
			text, err := json.Marshal(n)
			if err != nil {
				return err
			}
			if all[n.Node] == nil {
				all[n.Node] = map[uint64]said{}
			}
			all[n.Node][n.Seq] = said{all[n.Node][n.Seq].times + 1, maphash.Bytes(seed, text)}
			return nil
		},
		Bad:      func(uint64, string, error) { bad++ },
		CaughtUp: func(uint64) { stop(done) },
	})
	if errors.Is(err, done) {
		err = nil
	}
	return all, bad, err
}

func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
