package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// pause waits about so long; false when the time is over.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d/2 + rand.N(d)):
		return ctx.Err() == nil
	}
}

// often is how long to wait between disturbances: longer runs have more of them, short ones some.
func (s *soak) often(usual time.Duration) time.Duration { return min(usual, s.length/8) }

// breakServers kills a server and starts it again. What it had acknowledged must be there.
func (s *soak) breakServers(ctx context.Context) {
	for pause(ctx, s.often(20*time.Second)) {
		s.restart(ctx, s.servers[rand.IntN(len(s.servers))], 2*time.Second)
		s.serverKills.Add(1)
		if len(s.servers) > 1 && !pause(ctx, s.often(20*time.Second)) { // two at once would be more than a cluster promises
			return
		}
	}
}

// breakAgents kills a process of agents and starts it again.
func (s *soak) breakAgents(ctx context.Context) {
	for pause(ctx, s.often(6*time.Second)) {
		s.restart(ctx, s.nodes[rand.IntN(len(s.nodes))], time.Second)
		s.agentKills.Add(1)
	}
}

// restart starts the process again whatever happens to the context.
func (s *soak) restart(ctx context.Context, p *process, after time.Duration) {
	p.end(syscall.SIGKILL)
	pause(ctx, after)
	if err := p.start(); err != nil {
		fmt.Fprintln(os.Stderr, "fleetsoak:", err)
	}
}

// breakLines cuts connections, loudly or so that nobody is told.
func (s *soak) breakLines(ctx context.Context) {
	for pause(ctx, s.often(4*time.Second)) {
		silent := rand.IntN(2) == 0
		if silent {
			s.deaf.Add(1)
		} else {
			s.cuts.Add(1)
		}
		s.proxies[rand.IntN(len(s.proxies))].cut(silent, rand.N(s.often(5*time.Second))+time.Millisecond)
	}
}

// watch takes note of memory.
func (s *soak) watch(ctx context.Context) {
	for {
		for _, p := range s.servers {
			p.look()
		}
		for _, p := range s.nodes {
			p.look()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
