package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// localTries is how often the first measurement is taken before it is given up: somebody else may take its port between
// two moments, and a machine that starts much at once lets ranks wait.
const localTries = 3

// measureLocally takes a first measurement of this machine where there is none, so that a
// new server has something to show: two ranks over loopback.
func (s *running) measureLocally() {
	select {
	case <-s.hub.Ready():
	case <-s.ctx.Done():
		return
	}
	for _, c := range s.hub.View().Collectives() {
		if c.Order == fleet.LocalOrder && time.Since(c.At) < 24*time.Hour {
			return
		}
	}
	began := time.Now()
	var list result.Sweeps
	var err error
	for range localTries {
		if list, err = s.twoRanks(); err == nil || s.ctx.Err() != nil {
			break
		}
	}
	if err == nil {
		err = s.hub.Local(s.ctx, fleet.Measured{Part: "first", Sweep: 1, Results: list, Took: time.Since(began)})
	}
	if err != nil && s.ctx.Err() == nil {
		s.env.Note(fmt.Sprint("this machine was not measured: ", err))
	}
}

// beNode makes this machine a node of its own fleet, where the bus is within.
func (s *running) beNode(listen, dir string) {
	if s.srv == nil {
		return // the keys are somebody else's; busbar agent needs credentials from there
	}
	err := func() error {
		name, err := hostName()
		if err != nil {
			return err
		}
		cfg := agent.Config{
			Name: name, Dir: filepath.Join(dir, "agent"), Meet: meetHere(listen), AnyPort: true, Map: s.env.Machine,
			Version: s.env.Version, Child: s.env.Child,
		}
		if cfg.Bus, err = s.srv.Node(name); err != nil {
			return err
		}
		return agent.Run(s.ctx, cfg)
	}()
	if err != nil && s.ctx.Err() == nil {
		s.env.Note(fmt.Sprint("this machine is not a node of its fleet: ", err))
	}
}

// meetHere is where this machine is found when it is measured: as agents reach the bus, and where that
// is any address, by the one that leads out.
func meetHere(listen string) string {
	host, _, _ := net.SplitHostPort(listen) // it was listened at
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "192.0.2.1" // of no network (RFC 5737); nothing is sent there
	}
	meet, err := agent.MeetAt("", "nats://"+net.JoinHostPort(host, "1"), agent.UsualPort)
	if err != nil {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(agent.UsualPort))
	}
	return meet
}

// twoRanks measures an all-reduce of a few sizes between two processes of this machine over TCP.
func (s *running) twoRanks() (result.Sweeps, error) {
	bound, end := context.WithTimeout(s.ctx, 10*time.Second)
	defer end()
	ctx, cancel := context.WithCancelCause(bound)
	defer cancel(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.Close()
	name, err := hostName()
	if err != nil {
		return nil, err
	}
	part := fleet.Part{
		ID: "first", Order: fleet.LocalOrder, Ranks: []fleet.Name{name, name}, Meet: l.Addr().String(), Secret: rand.Text(),
		Hosts: []string{"127.0.0.1", "127.0.0.1"},
		What: fleet.What{
			Measure: fleet.MeasureCollective, Op: coll.AllReduce, Sizes: []unit.Bytes{8, 64 * unit.KiB, 4 * unit.MiB},
			Warm: 2, Iters: 20,
		},
	}
	var wg sync.WaitGroup
	var list result.Sweeps
	for rank := range 2 {
		p := part
		p.Rank = rank
		wg.Go(func() {
			m, err := s.env.Child.Measure(ctx, &p, func(int, int, string) {})
			switch {
			case err != nil:
				cancel(err)
			case m != nil && m.Failed != "":
				cancel(errors.New(m.Failed))
			case m != nil && rank == 0:
				list = m.Results
			}
		})
	}
	wg.Wait()
	return list, context.Cause(ctx)
}

// hostName is this machine as a node of a fleet.
func hostName() (fleet.Name, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return fleet.ParseName(host)
}
