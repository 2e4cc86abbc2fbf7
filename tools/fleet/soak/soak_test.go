package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSoak is the command for some seconds. Lengths and pauses are its own; what it checks is
// that nothing is lost and nothing is stored twice.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for ten seconds")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var out bytes.Buffer
	s := soak{crew: &crew{agents: 20, length: 6 * time.Second, out: &out}, cluster: 1, round: 200 * time.Millisecond}
	err := s.run(ctx)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileNode has one node of a fleet in the wrong hands for some seconds. The command does it for ten minutes
// among 200: -hostile.
func TestHostileNode(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a fleet for twenty seconds")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var out bytes.Buffer
	s := hostile{crew: &crew{agents: 12, length: 20 * time.Second, out: &out}}
	err := s.run(ctx)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
}
