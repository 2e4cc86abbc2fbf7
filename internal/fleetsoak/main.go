// Fleetsoak runs a fleet of simulated nodes on one machine, kills its servers and
// agents, cuts their connections, and proves afterwards that everything an agent
// had said is in the store exactly once. It prints load, memory and latencies.
//
//	go run ./internal/fleetsoak -agents 200 -for 10m
//	go run ./internal/fleetsoak -agents 200 -for 10m -cluster 3
//	go run ./internal/fleetsoak -corrupt 100
//	go run ./internal/fleetsoak -hostile -agents 200 -for 10m
//
// Agents are the real ones, several to a process; only what they read of their
// machine and what they measure is made up. Servers are processes of their own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, "fleetsoak:", err)
			os.Exit(1)
		}
		return
	}
	var s soak
	flag.IntVar(&s.agents, "agents", 200, "how many nodes")
	flag.IntVar(&s.procs, "processes", 20, "how many processes the nodes share")
	flag.IntVar(&s.cluster, "cluster", 1, "how many servers: 1, or 3 for a cluster")
	flag.DurationVar(&s.length, "for", 10*time.Minute, "how long")
	flag.DurationVar(&s.round, "round", 2*time.Second, "how often every node is measured")
	var c corruption
	flag.IntVar(&c.times, "corrupt", 0, "instead: how often a store is damaged, and its server started on what is left")
	flag.Uint64Var(&c.seed, "seed", uint64(time.Now().UnixNano()), "of what is damaged")
	bad := flag.Bool("hostile", false, "instead: one more node, which is in the wrong hands")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s.out, c.out = os.Stdout, os.Stdout
	run := s.run
	if c.times > 0 {
		c.agents, c.length = 8, 5*time.Second
		run = c.run
	}
	if *bad {
		x := hostile{agents: s.agents, procs: s.procs, length: s.length, out: os.Stdout}
		run = x.run
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fleetsoak:", err)
		os.Exit(1)
	}
}
