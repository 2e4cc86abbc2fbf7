package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/query"
)

// written is a buffer that several goroutines use.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// TestAgentBeforeItsServer starts an agent, then the server that it joins, and ends the agent.
func TestAgentBeforeItsServer(t *testing.T) {
	t.Parallel()
	address, dir := freeport.Address(t), t.TempDir()
	keys, err := bus.OpenKeys(filepath.Join(dir, "bus", "keys"))
	if err != nil {
		t.Fatal(err)
	}
	creds, _, err := keys.Issue("gpu01", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var stdout, stderr written
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, strings.NewReader(""), &stdout, &stderr, []string{
			"agent", "--join", "nats://" + address, "--creds", file, "--name", "gpu01", "--data", filepath.Join(dir, "agent"),
			"--bind", "127.0.0.1", "--json",
		})
	}()
	for !strings.Contains(stdout.String(), "no connection") { // it has tried, and goes on
		select {
		case c := <-code:
			t.Fatalf("exit %d without a server\n%s%s", c, stdout.String(), stderr.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	srv, err := bus.Start(bus.ServerConfig{Dir: filepath.Join(dir, "bus"), Listen: address})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	hub, err := srv.Connect(bus.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	bound, stop := context.WithTimeout(t.Context(), eventually.Limit)
	defer stop()
	if err := hub.Ensure(bound); err != nil {
		t.Fatal(err)
	}
	joined := false
	err = hub.Follow(bound, bus.Following{Each: func(e bus.Entry) {
		n := e.Event
		if n.Kind != fleet.KindJoined {
			return
		}
		var m query.MapDoc
		if err := json.Unmarshal(n.Joined.Map, &m); err != nil || m.Summary.Nodes != 1 || n.Node != "gpu01" ||
			!strings.HasPrefix(n.Joined.Meet, "127.0.0.1:7") {
			t.Errorf("%s joins at %s with %s, %v", n.Node, n.Joined.Meet, n.Joined.Map, err)
		}
		joined = true
		stop()
	}})
	if !joined {
		t.Fatalf("%v\n%s", err, stdout.String())
	}
	cancel(context.Canceled)
	if c := <-code; c != exitCannot { // no signal, so it was not meant to end
		t.Errorf("exit %d\n%s", c, stderr.String())
	}
	for line := range strings.Lines(stdout.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}
