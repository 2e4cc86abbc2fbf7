package hub

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
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
	nc, err := nats.Connect(srv.URL(), nats.UserCredentials(file), nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.CustomInboxPrefix("_INBOX.node."+name.Token()), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// soon is when a node without heartbeats is unreachable, and flooded how long others must not be taken for that.
const (
	soon    = 2 * time.Second
	flooded = 1500 * time.Millisecond
)

// TestFlood has one node's credentials flood every subject that they may publish on. Nobody else is called
// unreachable by that, what others send is kept, and the flooder is named.
func TestFlood(t *testing.T) {
	srv, err := bus.Start(bus.ServerConfig{Dir: t.TempDir(), Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	b, err := srv.Connect(bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hubWith(t, b, soon)
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
		{
			"questions", func(n fleet.Name) string { return "busbar.last." + n.Token() }, func(fleet.Name) []byte { return nil },
			0,
		},
		{"megabytes", fleet.BeatOf, func(fleet.Name) []byte { return make([]byte, 1<<20) }, 0},
		{"slow beats", fleet.BeatOf, func(n fleet.Name) []byte { return []byte(`{"node":"` + string(n) + `"}`) }, 15 * time.Millisecond},
		{
			"slow events", func(n fleet.Name) string { return "busbar.say." + n.Token() },
			func(fleet.Name) []byte { return []byte("{}") }, 15 * time.Millisecond,
		},
	}
	blamed := map[fleet.Name]bool{}
	// On a machine that holds the nodes' own heartbeats back, which have no part in the flood, nobody can be blamed for
	// taking them for late.
	paced := func(n fleet.Name) bool { return time.Duration(honest[n].gap.Load()) < soon/10 }
	for i, f := range floods {
		evil := fleet.Name(fmt.Sprintf("evil%d", i))
		nc := flooder(t, srv, evil)
		sent, slowest := 0, time.Duration(0)
		done, named := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			m := &nats.Msg{Subject: f.subject(evil), Reply: "_INBOX.node." + evil.Token() + ".x", Data: f.data(evil)}
			began := time.Now()
			// a busy machine sends fewer: until they are too many
			for n := (<-chan struct{})(named); n != nil || time.Since(began) < flooded; {
				select {
				case <-n:
					n = nil
				default:
				}
				if time.Since(began) > eventually.Limit {
					return
				}
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
		start := time.Now()
		for flooding, found := true, false; flooding; {
			select {
			case <-done:
				flooding = false
			case <-time.After(50 * time.Millisecond):
			}
			for _, s := range h.Nodes() {
				if honest[s.Name] != nil && time.Since(start) < flooded &&
					(s.State != fleet.NodeUp || s.Unhealthy || len(s.Findings) > 0) {
					blamed[s.Name] = true
				}
			}
			began := time.Now()
			if err := honest["n3"].s.Publish(t.Context(), &fleet.Event{
				At: time.Now().UTC(), Node: "n3", Kind: fleet.KindLink, Link: &fleet.Link{Port: "eth0", Up: true},
			}); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(began))
			if s, ok := h.view.Finding(string(Flooding) + ":" + string(evil)); !found && ok && drains(s) {
				found = true
				close(named)
			}
			if !flooding && !found {
				t.Errorf("%s floods and is not named", evil)
			}
		}
		nc.Close()
		t.Logf("flood of %s: %d messages; the slowest message of another node took %v", f.what, sent,
			slowest.Round(time.Millisecond))
	}
	maps.DeleteFunc(blamed, func(n fleet.Name, _ bool) bool { return !paced(n) })
	if len(blamed) > 0 {
		t.Errorf("called unreachable or blamed while another node flooded: %v", blamed)
	}
	for _, f := range h.View().Findings() {
		if n := fleet.Name(f.Nodes[0]); !strings.HasPrefix(f.Nodes[0], "evil") && (honest[n] == nil || paced(n)) {
			t.Errorf("a finding about another: %s", f.Text)
		}
	}
}

// TestFloodOfFew has a node send few messages that are large, may not be sent, or ask without an end: nothing of that
// is refused one by one, and it is named all the same.
func TestFloodOfFew(t *testing.T) {
	srv, err := bus.Start(bus.ServerConfig{Dir: t.TempDir(), Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	b, err := srv.Connect(bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := hubWith(t, b, 0)
	large := make([]byte, 1<<20)
	for evil, send := range map[fleet.Name]func(*nats.Conn) error{
		"unanswered": func(nc *nats.Conn) error { return nc.Publish("busbar.say.unanswered", large) },
		"forbidden":  func(nc *nats.Conn) error { return nc.Publish("busbar.part.unanswered", large) },
		"asks": func(nc *nats.Conn) error {
			_, err := nc.Request("busbar.last.asks", nil, time.Second)
			return err
		},
	} {
		nc := flooder(t, srv, evil)
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if send(nc) != nil {
						time.Sleep(time.Millisecond) // it is shut out, and dials again
					}
				}
			})
		}
		eventually.Holds(t, string(evil)+" is named", func() bool {
			f, ok := h.view.Finding(string(Flooding) + ":" + string(evil))
			return ok && drains(f)
		})
		close(stop)
		wg.Wait()
	}
}
