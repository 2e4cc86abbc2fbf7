package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/unit"
	"busbar.dev/web"
)

// measureLocally takes a first measurement of this machine where there is none, so that a
// new server has something to show: two ranks in this process, over loopback.
func (s *served) measureLocally(e *env) {
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
	list, err := twoRanks(s.ctx)
	if err == nil {
		err = s.hub.Local(s.ctx, fleet.Measured{Part: "first", Sweep: 1, Results: list, Took: time.Since(began)})
	}
	if err != nil && s.ctx.Err() == nil {
		fmt.Fprintln(e.stderr, "note: this machine was not measured:", err)
	}
}

// beNode makes this machine a node of its own fleet, where the bus is within.
func (s *served) beNode(e *env, c *serveRunCmd, dir string) {
	if s.srv == nil {
		return // the keys are somebody else's; busbar agent needs credentials from there
	}
	err := func() error {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		name, err := fleet.ParseName(host)
		if err != nil {
			return err
		}
		cfg := agent.Config{Name: name, Dir: filepath.Join(dir, "agent"), Meet: meetHere(c.BusListen), AnyPort: true, Map: e.ownMap, Version: ownVersion()}
		if cfg.Bus, err = s.srv.Node(name); err != nil {
			return err
		}
		return agent.Run(s.ctx, cfg)
	}()
	if err != nil && s.ctx.Err() == nil {
		fmt.Fprintln(e.stderr, "note: this machine is no node of its own fleet:", err)
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

// twoRanks measures an all-reduce of a few sizes between two ranks of this process over TCP.
func twoRanks(ctx context.Context) (list result.Sweeps, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	meet := l.Addr().String()
	l.Close()
	var secret [16]byte
	rand.Read(secret[:])
	plan := bench.Plan{
		Op: coll.Op{Kind: coll.AllReduce, Type: coll.Float}, Sizes: []unit.Bytes{8, 64 * unit.KiB, 4 * unit.MiB},
		Warm: 2, Iters: 20, Check: true, Transport: engine.TCP,
	}
	var wg sync.WaitGroup
	failed := make([]error, 2)
	for rank := range 2 {
		wg.Go(func() {
			failed[rank] = func() error {
				g, err := engine.Join(ctx, engine.Config{Rank: rank, Size: 2, Meet: meet, Secret: hex.EncodeToString(secret[:]), Transport: engine.TCP, Timeout: 5 * time.Second})
				if err != nil {
					return err
				}
				defer g.Close()
				like := measuredHere(g)
				return bench.Run(ctx, g, plan, func(s *result.Sweep) error {
					s.Describe(&like)
					list.Append(s)
					return nil
				})
			}()
			if failed[rank] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return list, errors.Join(failed...)
}

// localTokenFile is where commands of this user find a token for this server.
const localTokenFile = "local.token"

// localToken lets commands of the server's own user in without further ado: it keeps a token in
// the server's folder, which nobody else can read.
func localToken(tokens *web.Tokens, dir string) error {
	const name = "local"
	file := filepath.Join(dir, localTokenFile)
	list, err := tokens.List()
	if err != nil {
		return failure.Cannot(err)
	}
	there := slices.ContainsFunc(list, func(t web.Token) bool { return t.Name == name })
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure.Cannot(err)
	}
	if there && len(strings.TrimSpace(string(old))) > 0 {
		return nil
	}
	if there {
		if err := tokens.Revoke(name); err != nil {
			return failure.Cannot(err)
		}
	}
	secret, err := tokens.Add(name, web.Order)
	if err != nil {
		return failure.Cannot(err)
	}
	if err := writePrivately(file, []byte(secret+"\n")); err != nil {
		return failure.Cannot(err)
	}
	return nil
}

// writePrivately writes a file whole or not at all, for its owner's eyes.
func writePrivately(file string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
