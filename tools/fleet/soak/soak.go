package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/stats"
)

// soak is one run.
type soak struct {
	*crew
	cluster int
	round   time.Duration

	keys    *bus.Keys
	hub     *bus.Bus
	servers []*process

	mu     sync.Mutex
	idle   map[fleet.Name]time.Time // when a node was last heard to have nothing to say or to do
	delays []time.Duration          // from said to read by the server

	begun atomic.Int64
}

func (s *soak) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "soak-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	defer func() {
		for _, p := range append(s.nodes, s.servers...) {
			p.end(syscall.SIGKILL)
		}
	}()
	if err := s.setUp(ctx); err != nil {
		return err
	}
	defer s.hub.Close()
	s.idle = map[fleet.Name]time.Time{}
	reading, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = s.hub.Follow(reading, bus.Following{Each: s.heard}) })
	tasks.Go(func() { _ = s.hub.Transient(reading, bus.Transient{Beat: s.beat, Deaf: func() {}}) })
	began := time.Now()
	fmt.Fprintf(s.out, "%d agents in %d processes, %d servers, %v\n", s.agents, len(s.nodes), s.cluster, s.length)
	if err = until(patience, s.quiet(time.Time{})); err == nil {
		s.work(ctx)
		err = until(patience, s.quiet(time.Now().Add(3*time.Second)))
	}
	took := time.Since(began)
	s.end(syscall.SIGTERM)
	stop()
	tasks.Wait()
	err = errors.Join(err, ctx.Err(), s.check(context.Background(), s.hub))
	for _, p := range s.servers {
		p.end(syscall.SIGKILL)
	}
	s.report(took)
	return err
}

func (s *soak) heard(e bus.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Event != nil && e.Event.Kind == fleet.KindMeasured {
		s.delays = append(s.delays, time.Since(e.Event.At))
	}
}

func (s *soak) beat(b *fleet.Beat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.idle, b.Node); b.Waiting == 0 && b.Part == "" {
		s.idle[b.Node] = time.Now()
	}
}

// quiet tells whether all nodes have been heard since a time, and had nothing to say or to do.
func (s *soak) quiet(since time.Time) func() error {
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, at := range s.idle {
			if at.After(since) {
				n++
			}
		}
		if n < s.agents {
			return fmt.Errorf("%d of %d agents are up and have nothing to say", n, s.agents)
		}
		return nil
	}
}

// report prints what it took.
func (s *soak) report(took time.Duration) {
	fmt.Fprintf(s.out, "%d parts begun; processes killed: %d, lines cut: %d\n", s.begun.Load(), s.kills.Load(),
		s.cuts.Load())
	slices.Sort(s.delays)
	fmt.Fprintf(s.out, "from said to read by the server, outages included: %d results, median %v, p99 %v, most %v\n",
		len(s.delays),
		stats.Nearest(s.delays, 0.5), stats.Nearest(s.delays, 0.99), stats.Nearest(s.delays, 1))
	for name, list := range map[string][]*process{"servers": s.servers, "agents, ten to a process": s.nodes} {
		var cpu time.Duration
		rss := int64(0)
		for _, p := range list {
			cpu, rss = cpu+p.cpu, rss+p.rss
		}
		fmt.Fprintf(s.out, "%s: %.1f%% of one processor, %d MiB of memory in %d processes\n", name,
			100*cpu.Seconds()/took.Seconds(), rss>>10, len(list))
	}
}

// setUp starts servers, proxies and agents.
func (s *soak) setUp(ctx context.Context) (err error) {
	ports, err := freePorts(2 * s.cluster)
	if err != nil {
		return err
	}
	keyDir := filepath.Join(s.dir, "s0", "keys")
	if s.keys, err = bus.OpenKeys(keyDir); err != nil {
		return err
	}
	var addresses []string
	starts := make([]error, s.cluster)
	var all sync.WaitGroup
	for i := range s.cluster {
		p := part{
			Dir: filepath.Join(s.dir, fmt.Sprintf("s%d", i)), Keys: keyDir, Name: fmt.Sprintf("s%d", i),
			Listen: fmt.Sprintf("127.0.0.1:%d", ports[i]),
		}
		if s.cluster > 1 {
			p.Route, p.Routes = ports[s.cluster+i], ports[s.cluster:]
		}
		addresses = append(addresses, p.Listen)
		s.servers = append(s.servers, &process{part: p})
	}
	for i, p := range s.servers {
		all.Go(func() { starts[i] = p.start() })
	}
	all.Wait()
	if err := errors.Join(starts...); err != nil {
		return err
	}
	if err := s.connect(ctx, addresses); err != nil {
		return err
	}
	return s.launch(s.keys, addresses)
}

func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (s *soak) connect(ctx context.Context, addresses []string) error {
	creds, err := s.keys.Hub()
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "hub.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		return err
	}
	c := bus.Config{Creds: file, MaxBytes: 2 << 30}
	for _, a := range addresses {
		c.URLs = append(c.URLs, "nats://"+a)
	}
	if s.hub, err = bus.Connect(c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.hub.Ensure(ctx)
}

// work gives orders for the whole time. The first fifth is calm; then things break.
func (s *soak) work(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	var tasks sync.WaitGroup
	calm := time.AfterFunc(s.length/5, func() {
		tasks.Go(func() { s.breakProcesses(ctx, s.servers, 20*time.Second) })
		tasks.Go(func() { s.breakProcesses(ctx, s.nodes, 6*time.Second) })
		tasks.Go(func() { s.breakLines(ctx) })
	})
	defer calm.Stop()
	tick := time.NewTicker(s.round)
	defer tick.Stop()
	for round := 0; ctx.Err() == nil; round++ {
		order := rand.Perm(s.agents)
		for k := 0; k+1 < len(order); k += 2 {
			tasks.Go(func() { s.pair(ctx, round, order[k], order[k+1]) })
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	tasks.Wait()
}

// pair asks two nodes to measure each other.
func (s *soak) pair(ctx context.Context, round, a, b int) {
	p := &fleet.Part{
		ID: fmt.Sprintf("r%d-%d-%d", round, a, b), Order: "soak", Round: round, Ranks: []fleet.Name{nodeName(a), nodeName(b)},
		Meet: meetOf(a), Hosts: []string{"127.0.0.1", "127.0.0.1"},
		Secret: "a secret of sixteen", What: fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 1 << 20, Iters: 1},
		Caps: fleet.Caps{Always: true},
	}
	for rank, n := range p.Ranks {
		q := *p
		q.Rank = rank
		answer, err := s.hub.Ask(ctx, n, &q)
		switch {
		case err != nil || answer.Busy:
		case answer.Begins:
			s.begun.Add(1)
		default:
			fmt.Fprintf(os.Stderr, "soak: %s refuses %s: %s\n", n, p.ID, answer.Why)
		}
	}
}
