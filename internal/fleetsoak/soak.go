package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
)

// soak is one run.
type soak struct {
	agents, procs, cluster int
	length, round          time.Duration
	out                    io.Writer

	dir     string
	keys    *bus.Keys
	hub     *bus.Bus
	servers []*process
	nodes   []*process
	proxies []*proxy
	view    *view

	asked, begun, refused, absent       atomic.Int64
	serverKills, agentKills, cuts, deaf atomic.Int64
}

func (s *soak) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "fleetsoak-"); err != nil {
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
	s.view = newView()
	reading, stop := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { s.view.follow(reading, s.hub) })
	var deaf atomic.Int64
	tasks.Go(func() {
		_ = s.hub.Transient(reading, bus.Transient{Beat: s.view.beat, Deaf: func() { deaf.Add(1) }})
	})
	began := time.Now()
	fmt.Fprintf(s.out, "%d agents in %d processes, %d servers, %v\n", s.agents, s.procs, s.cluster, s.length)
	if err = s.lives(ctx); err == nil {
		s.work(ctx)
		err = s.settle(ctx)
	}
	took := time.Since(began)
	for _, p := range s.nodes {
		p.end(syscall.SIGTERM)
	}
	stop()
	tasks.Wait()
	if err == nil {
		err = ctx.Err()
	}
	wrong := s.check()
	for _, p := range s.servers {
		p.end(syscall.SIGKILL)
	}
	s.report(took, deaf.Load())
	return errors.Join(err, wrong)
}

// setUp starts servers, proxies and agents.
func (s *soak) setUp(ctx context.Context) (err error) {
	ports, err := freePorts(2 * s.cluster)
	if err != nil {
		return err
	}
	keyDir := filepath.Join(s.dir, "s0", "keys")
	if s.cluster > 1 {
		keyDir = filepath.Join(s.dir, "keys")
	}
	if s.keys, err = bus.OpenKeys(keyDir); err != nil {
		return err
	}
	var addresses []string
	for i := range s.cluster {
		p := part{Dir: filepath.Join(s.dir, fmt.Sprintf("s%d", i)), Keys: keyDir, Name: fmt.Sprintf("s%d", i), Listen: fmt.Sprintf("127.0.0.1:%d", ports[i])}
		if s.cluster > 1 {
			p.Route, p.Routes = ports[s.cluster+i], ports[s.cluster:]
		}
		addresses = append(addresses, p.Listen)
		s.servers = append(s.servers, &process{part: p, ready: true})
	}
	starts := make([]error, s.cluster)
	var all sync.WaitGroup
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
	per := (s.agents + s.procs - 1) / s.procs
	for from := 0; from < s.agents; from += per {
		x, err := newProxy(addresses)
		if err != nil {
			return err
		}
		s.proxies = append(s.proxies, x)
		p := part{Dir: s.dir, From: from, To: min(from+per, s.agents), URL: x.url(), Ledger: filepath.Join(s.dir, fmt.Sprintf("ledger%d", len(s.nodes)))}
		for i := p.From; i < p.To; i++ {
			creds, _, err := s.keys.Issuer().Node(nodeName(i), 0)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(s.dir, string(nodeName(i))+".creds"), creds, 0o600); err != nil {
				return err
			}
		}
		s.nodes = append(s.nodes, &process{part: p})
		if err := s.nodes[len(s.nodes)-1].start(); err != nil {
			return err
		}
	}
	return nil
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
	creds, _, err := s.keys.Issuer().Hub(0)
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "hub.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		return err
	}
	c := bus.Config{Creds: file, Patient: true, MaxBytes: 2 << 30}
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

// lives waits until all nodes have been heard of.
func (s *soak) lives(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("not all agents came up in five minutes"))
	defer cancel()
	for s.view.alive() < s.agents {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// work gives orders for the whole time. The first fifth is calm; then things break.
func (s *soak) work(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	var tasks sync.WaitGroup
	calm := time.AfterFunc(s.length/5, func() {
		s.view.disturbed()
		tasks.Go(func() { s.breakServers(ctx) })
		tasks.Go(func() { s.breakAgents(ctx) })
		tasks.Go(func() { s.breakLines(ctx) })
	})
	defer calm.Stop()
	tasks.Go(func() { s.watch(ctx) })
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
		ID: fmt.Sprintf("r%d-%d-%d", round, a, b), Order: "soak", Round: round, Ranks: []fleet.Name{nodeName(a), nodeName(b)}, Meet: meetOf(a),
		Secret: "a secret of sixteen", What: fleet.What{Measure: fleet.MeasurePairs, Small: 8, Large: 1 << 20, Iters: 1}, Caps: fleet.Caps{Always: true},
	}
	for rank, n := range p.Ranks {
		q := *p
		q.Rank = rank
		s.asked.Add(1)
		answer, err := s.hub.Ask(ctx, n, &q)
		switch {
		case err != nil:
			s.absent.Add(1)
		case answer.Begins:
			s.begun.Add(1)
		case answer.Busy:
			s.refused.Add(1)
		default:
			fmt.Fprintf(os.Stderr, "fleetsoak: %s refuses %s: %s\n", n, p.ID, answer.Why)
		}
	}
}

// settle waits until the agents have nothing more to say.
func (s *soak) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("five minutes after the end agents still have things to say"))
	defer cancel()
	since := time.Now()
	for !s.view.quiet(since, s.agents) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
	fmt.Fprintf(s.out, "everything was stored %v after the end\n", time.Since(since).Round(100*time.Millisecond))
	return nil
}
