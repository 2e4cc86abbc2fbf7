// Soak runs a fleet of simulated nodes on one machine, kills its servers and agents, cuts their connections, and proves
// afterwards that everything an agent had said is in the store exactly once.
//
//	go run ./soak -agents 200 -for 10m
//	go run ./soak -agents 200 -for 10m -cluster 3
//	go run ./soak -agents 200 -for 10m -hostile
//
// Agents are the real ones, ten to a process; only what they read of their machine and what they measure is made up.
// Servers are processes of their own.
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
	if err := begin(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func begin() error {
	if role := os.Getenv(roleVariable); role != "" {
		return play(role)
	}
	agents := flag.Int("agents", 200, "how many nodes")
	servers := flag.Int("cluster", 1, "how many servers: 1, or 3 for a cluster")
	length := flag.Duration("for", 10*time.Minute, "how long")
	bad := flag.Bool("hostile", false, "instead: one more node, which is in the wrong hands")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all := &crew{agents: *agents, length: *length, out: os.Stdout}
	if *bad {
		return (&hostile{crew: all}).run(ctx)
	}
	return (&soak{crew: all, cluster: *servers, round: 2 * time.Second}).run(ctx)
}
