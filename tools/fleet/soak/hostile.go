package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
	"busbar.dev/fleet/hub"
)

// hostile is a fleet of which one node is in the wrong hands, and does what its credentials let it do. Nothing of the
// others may be lost, nobody else may be blamed, and it must be named.
type hostile struct {
	*crew
	srv    *bus.Server
	bus    *bus.Bus
	hub    *hub.Hub
	evil   *evil
	mu     sync.Mutex
	blamed map[string]int // honest nodes, by what was said of them
	orders int
	began  time.Time
}

const evilName = fleet.Name("evil")

func (s *hostile) run(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "soak-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	s.blamed, s.began = map[string]int{}, time.Now()
	stop, err := s.setUp(ctx)
	defer stop()
	if err != nil {
		return err
	}
	if err := until(patience, func() error { return s.allUp() }); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d agents in %d processes and one that is hostile, %v\n", s.agents, len(s.nodes), s.length)
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	var tasks sync.WaitGroup
	tasks.Go(func() { s.measure(working) })
	tasks.Go(func() { s.watch(working) })
	tasks.Go(func() { s.breakProcesses(working, s.nodes, 6*time.Second) })
	tasks.Go(func() { s.breakLines(working) })
	tasks.Go(func() {
		defer cancel()
		s.evil.run(ctx, s.length)
	})
	tasks.Wait()
	if err := until(patience, s.settled); err != nil {
		return err
	}
	wrong := errors.Join(s.check(ctx, s.bus), s.judge())
	s.end(syscall.SIGTERM)
	return errors.Join(ctx.Err(), wrong)
}

const silence = 20 * time.Second // after which the hub calls a node silent

// setUp starts the server, its hub, the agents and the hostile one.
func (s *hostile) setUp(ctx context.Context) (stop func(), err error) {
	var ends []func()
	stop = func() {
		for _, f := range slices.Backward(ends) {
			f()
		}
	}
	s.srv, err = bus.Start(bus.ServerConfig{Dir: filepath.Join(s.dir, "bus")})
	if err != nil {
		return stop, err
	}
	ends = append(ends, s.srv.Close)
	if s.bus, err = s.srv.Connect(bus.Config{MaxBytes: 2 << 30}); err != nil {
		return stop, err
	}
	ends = append(ends, s.bus.Close)
	if err := s.bus.Ensure(ctx); err != nil {
		return stop, err
	}
	s.hub = hub.New(hub.Config{
		Bus: hub.OnBus(s.bus), Unreachable: silence, Look: time.Second,
	})
	running, cancel := context.WithCancel(ctx)
	var tasks sync.WaitGroup
	ends = append(ends, func() { cancel(); tasks.Wait() })
	tasks.Go(func() { _ = s.hub.Run(running) })
	<-s.hub.Ready()
	ends = append(ends, func() { s.end(syscall.SIGKILL) })
	at, err := url.Parse(s.srv.URL())
	if err != nil {
		return stop, err
	}
	if err := s.launch(s.srv.Keys(), []string{at.Host}); err != nil {
		return stop, err
	}
	s.evil = &evil{url: s.srv.URL(), agents: s.agents, out: s.out}
	if s.evil.creds, err = s.credentials(s.srv.Keys(), evilName, ""); err == nil {
		s.evil.second, err = s.credentials(s.srv.Keys(), evilName, ".second")
	}
	return stop, err
}

func (s *hostile) allUp() error {
	up := 0
	for _, n := range s.hub.Nodes() {
		if n.State == fleet.NodeUp && n.Name != evilName {
			up++
		}
	}
	if up < s.agents {
		return fmt.Errorf("%d of %d agents are up", up, s.agents)
	}
	return nil
}

// measure gives orders one after the other, some of them checks before a job.
func (s *hostile) measure(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		o := fleet.Order{By: "soak", Rounds: 4, Caps: fleet.Caps{Always: true, Time: 2 * time.Second}}
		if n%2 == 0 {
			o.Job = fmt.Sprintf("job%d", n)
		}
		hub.Fill(&o)
		began := time.Now()
		got, err := s.hub.Give(ctx, o)
		if err != nil {
			return
		}
		s.orders++
		for ctx.Err() == nil {
			if o, ok := s.hub.View().Order(got.ID, time.Now()); !ok || o.Final() {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if ctx.Err() != nil {
			return
		}
		v, err := s.hub.Verdict(got.ID)
		if err != nil {
			return
		}
		for _, u := range v.Unhealthy {
			// That a node is not there the server sees itself, and it is true of those that were just killed or cut off.
			absent := strings.HasPrefix(u.Why, "does not answer") || strings.HasPrefix(u.Why, "silent for")
			if u.Node != evilName && !(absent && s.away(u.Node, began)) {
				s.blame(fmt.Sprintf("%s by an order: %s", u.Node, u.Why))
			}
		}
	}
}

func (s *hostile) blame(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blamed[text]++
}

// watch looks what is said of honest nodes. On a machine that stopped for a while they were silent through no fault of
// theirs or the hostile one's.
func (s *hostile) watch(ctx context.Context) {
	last, stopped := time.Now(), time.Time{}
	for ctx.Err() == nil {
		now := time.Now()
		if now.Sub(last) > time.Second {
			stopped = now
		}
		last = now
		judged := now.Sub(stopped) > 3*silence
		for _, n := range s.hub.Nodes() {
			if n.Name != evilName && (n.State != fleet.NodeUp && judged || n.Unhealthy) {
				s.blame(fmt.Sprintf("%s is %s, unhealthy: %v", n.Name, n.State, n.Unhealthy))
			}
		}
		for _, f := range s.hub.View().Findings() {
			honest := slices.ContainsFunc(f.Nodes, func(n string) bool { return n != string(evilName) })
			if honest && f.Cleared.IsZero() && len(health.Drain([]finding.Finding{f})) > 0 {
				s.blame(f.Text)
			}
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// settled tells whether nobody has anything to say any more.
func (s *hostile) settled() error {
	for _, n := range s.hub.Nodes() {
		if n.Name != evilName && (n.Waiting > 0 || n.Progress != nil) {
			return fmt.Errorf("%s still has %d events to send", n.Name, n.Waiting)
		}
	}
	return nil
}

// judge holds what is said against who it is said of.
func (s *hostile) judge() error {
	var wrong []error
	fmt.Fprintf(s.out, "orders: %d; processes killed: %d, lines cut: %d; honest nodes blamed: %d\n", s.orders,
		s.kills.Load(), s.cuts.Load(), len(s.blamed))
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
		fmt.Fprintf(s.out, "server and hostile node, one process: %.1f%% of one processor, at most %d MiB of memory\n",
			100*cpu.Seconds()/time.Since(s.began).Seconds(), used.Maxrss>>10)
	}
	for text, n := range s.blamed {
		wrong = append(wrong, fmt.Errorf("blamed %d times: %s", n, text))
		if len(wrong) > 20 {
			break
		}
	}
	named := map[string]bool{}
	for _, f := range append(s.hub.View().Findings(), s.hub.View().Past()...) {
		if slices.Equal(f.Nodes, []string{string(evilName)}) {
			named[string(f.Kind)] = true
		}
	}
	fmt.Fprintf(s.out, "the hostile node is named by: %v; ignored: %v\n", named, s.hub.View().Ignored())
	if !named[string(hub.Flooding)] {
		wrong = append(wrong, errors.New("the hostile node is not named as one that floods"))
	}
	return errors.Join(wrong...)
}
