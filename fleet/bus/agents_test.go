package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"

	"github.com/nats-io/nats.go"
)

// TestHungAgent: an agent that is connected and does not answer is replaced, its heartbeats no longer count, and it is
// told so when it goes on.
func TestHungAgent(t *testing.T) {
	if most := hereTries * (hereTime + herePause); most > 10*time.Second {
		t.Errorf("an agent that hangs is asked for %v; want at most 10s", most)
	}
	s, hub := open(t, ServerConfig{Dir: t.TempDir()})
	creds, _, err := s.keys.Issue("a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, keys: s.keys, urls: []string{s.URL()}}
	old, err := p.dial(creds)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	told := make(chan string, 10)
	if _, err := old.Subscribe(agentAt("a", "old"), func(m *nats.Msg) { // it hears, and does not answer
		if m.Reply == "" {
			told <- string(m.Data)
		}
	}); err != nil {
		t.Fatal(err)
	}
	event, err := fleet.Encode(&fleet.Event{Seq: 1, At: time.Now(), Node: "a", Kind: fleet.KindLeft})
	if err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg(publishTo + "a")
	m.Data = event
	m.Header.Set(headAgent, "old")
	m.Header.Set(headSeq, "1")
	if answer, err := old.RequestMsg(m, eventually.Limit); err != nil || answer.Header.Get("Status") != "" {
		t.Fatalf("%v, %v", answer, err)
	}
	beats := make(chan string, 1000)
	seconds := make(chan string, 10)
	go func() {
		_ = hub.Transient(t.Context(), Transient{
			Beat:   func(b *fleet.Beat) { beats <- b.Agent },
			Second: func(node fleet.Name, other string) { seconds <- string(node) + " " + other },
		})
	}()
	node := p.node("a")
	publisher := node.Publisher()
	if err := publisher.Publish(p.ctx(), left("a")); err != nil || publisher.last != 2 {
		t.Fatalf("the new agent goes on with %d, %v", publisher.last, err)
	}
	said, err := fleet.Encode(&fleet.Beat{Node: "a", Agent: "old"})
	if err != nil {
		t.Fatal(err)
	}
	for text := ""; text == ""; {
		if err := old.Publish(fleet.BeatOf("a"), said); err != nil {
			t.Fatal(err)
		}
		select {
		case text = <-told:
			if !strings.Contains(text, "running for") {
				t.Errorf("the old agent is told %q", text)
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
	if text := <-seconds; !strings.HasPrefix(text, "a ") {
		t.Errorf("the server is told of %q", text)
	}
	if err := node.Beat(&fleet.Beat{Node: "a"}); err != nil {
		t.Fatal(err)
	}
	if who := <-beats; who != node.agent {
		t.Errorf("a beat of %q counts", who)
	}
}

// TestMark reads what earlier versions, later versions and bad disks leave beside a store.
func TestMark(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	path := filepath.Join(t.TempDir(), "mark")
	m, err := openMark(path)
	if err != nil {
		t.Fatal(err)
	}
	m.note(7, at, 3)
	m.note(9, at, 1<<63) // no number that is counted to
	if err := m.write(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		read, last uint64
		trims      bool
		lost       int
	}{
		{9, 9, false, 0},
		{12, 12, false, 0},
		{8, 8, false, 1},
		{0, 0, true, 1},
		{0, 9, true, 0},
		{0, 9, false, 1},
		{3, 9, true, 1},
	} {
		if m, err = openMark(path); err != nil || m.own() != 3 {
			t.Fatalf("%+v, %v", m, err)
		}
		m.note(c.read, at, 0)
		_ = m.write() // before the store was compared: the mark stays
		if m, err = openMark(path); err != nil {
			t.Fatal(err)
		}
		m.compare(c.read, at, c.trims, c.last)
		if tails := m.Tails(); len(tails) != c.lost || c.lost > 0 && (tails[0].From != c.read+1 || tails[0].To != 9) {
			t.Errorf("read to %d of %d: lost %+v", c.read, c.last, tails)
		}
		if m, err = openMark(path); err != nil {
			t.Fatal(err)
		}
		m.at, m.before = marked{Format: markFormat, Last: 9, At: at, Own: 3}, marked{}
		m.changed = true
		_ = m.write()
	}
	for text, want := range map[string]string{
		`{"format":2}`: "format 2", `{"for`: "cannot be read", "": "cannot be read",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openMark(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWhoCannotPublishGetsAnError waits behind somebody whom the store does not answer, no longer than it wants to.
func TestWhoCannotPublishGetsAnError(t *testing.T) {
	s := (&Bus{}).Publisher()
	s.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Publish(ctx, &fleet.Event{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestMarkIsNotDrivenOut has more found missing than is remembered, as a node does that leaves numbers out on purpose:
// what was found long ago is not new.
func TestMarkIsNotDrivenOut(t *testing.T) {
	m, at := &Mark{}, time.Now().UTC().Truncate(time.Second)
	for i := range 2 * mostFound {
		m.Found(fmt.Sprint(i), at.Add(time.Duration(i)*time.Second))
	}
	if got := m.Found("0", at.Add(time.Hour)); !got.Equal(at) {
		t.Errorf("found at %v, and again at %v", at, got)
	}
}
