package hub

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/eventually"
)

// flooder is a connection with a node's credentials that keeps to no rule of ours.
func flooder(t *testing.T, srv *bus.Server, name fleet.Name) *nats.Conn {
	t.Helper()
	creds, _, err := srv.Keys().Issue(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "evil.creds")
	if err := writeAll(file, creds); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(srv.URL(), nats.UserCredentials(file), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.CustomInboxPrefix("_INBOX.node."+name.Token()), nats.ReconnectBufSize(-1), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestFlood has one node's credentials flood every subject that they may publish on. Nobody else is called
// unreachable by that, what others send is kept, and the flooder is named.
func TestFlood(t *testing.T) {
	shut := make(chan bus.Flood, 64)
	srv, err := bus.Start(bus.ServerConfig{Dir: t.TempDir(), Lazy: true, OnFlood: func(f bus.Flood) { shut <- f }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	h, _ := hubOn(t, srv)
	one := func(fleet.Name) float64 { return 1 }
	honest := map[fleet.Name]*remote{}
	for i := range 8 {
		name := fleet.Name(fmt.Sprintf("n%d", i))
		honest[name] = newRemote(t, srv, name, one)
	}
	eventually.Holds(t, "all are up", func() bool { return len(h.Nodes()) == 8 })
	padding := strings.Repeat("[", 4000) + strings.Repeat("]", 4000)
	beat := func(n fleet.Name) []byte {
		return []byte(`{"node":"` + string(n) + `","at":"2026-01-01T00:00:00Z","x":` + padding + `}`)
	}
	floods := []struct {
		what    string
		subject func(fleet.Name) string
		data    func(fleet.Name) []byte
		pause   time.Duration // after each 64 messages
	}{
		{"beats", fleet.BeatOf, beat, 0},
		{"progress", fleet.ProgressOf, beat, 0},
		{"events", func(n fleet.Name) string { return "busbar.say." + n.Token() }, beat, 0},
		{"questions", func(n fleet.Name) string { return "busbar.last." + n.Token() }, func(fleet.Name) []byte { return nil }, 0},
		{"megabytes", fleet.BeatOf, func(fleet.Name) []byte { return make([]byte, 1<<20) }, 0},
		{"slow beats", fleet.BeatOf, func(n fleet.Name) []byte { return []byte(`{"node":"` + string(n) + `"}`) }, 15 * time.Millisecond},
		{"slow events", func(n fleet.Name) string { return "busbar.say." + n.Token() }, func(fleet.Name) []byte { return []byte("{}") }, 15 * time.Millisecond},
	}
	blamed := map[fleet.Name]bool{}
	for i, f := range floods {
		evil := fleet.Name(fmt.Sprintf("evil%d", i))
		nc := flooder(t, srv, evil)
		sent, slowest := 0, time.Duration(0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			m := &nats.Msg{Subject: f.subject(evil), Reply: "_INBOX.node." + evil.Token() + ".x", Data: f.data(evil)}
			began := time.Now()
			for time.Since(began) < 1500*time.Millisecond || sent < 192 && time.Since(began) < 20*time.Second {
				time.Sleep(f.pause) // the pace of a real flood
				for range 64 {
					if nc.PublishMsg(m) == nil {
						sent++
					} else {
						time.Sleep(time.Millisecond) // the server has shut it out; it dials again
					}
				}
			}
		}()
		for flooding := true; flooding; {
			select {
			case <-done:
				flooding = false
			case <-time.After(50 * time.Millisecond):
			}
			for _, s := range h.Nodes() {
				if honest[s.Name] != nil && (s.State != fleet.NodeUp || s.Unhealthy || len(s.Findings) > 0) {
					blamed[s.Name] = true
				}
			}
			began := time.Now()
			if err := honest["n3"].s.Publish(t.Context(), &fleet.Event{At: time.Now().UTC(), Node: "n3", Kind: fleet.KindLink, Link: &fleet.Link{Port: "eth0", Up: true}}); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(began))
		}
		nc.Close()
		t.Logf("flood of %s: %d messages; the slowest message of another node took %v", f.what, sent, slowest.Round(time.Millisecond))
		if slowest > 2*time.Second {
			t.Errorf("a message of another node took %v", slowest)
		}
		eventually.Holds(t, string(evil)+" is named", func() bool {
			for len(shut) > 0 {
				h.Flood(<-shut)
			}
			s, ok := h.view.Finding(string(Flooding) + ":" + string(evil))
			return ok && drains(s)
		})
	}
	if len(blamed) > 0 {
		t.Errorf("called unreachable or blamed while another node flooded: %v", blamed)
	}
	for _, f := range h.View().Findings() {
		if !strings.HasPrefix(f.Nodes[0], "evil") {
			t.Errorf("a finding about another: %s", f.Text)
		}
	}
}
