package bus

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"

	"github.com/nats-io/nats.go"
)

// TestAnswersGoNowhereElse has a node ask with answers that are to go where it may not speak: to
// the store's interface, to others' logs, to other nodes, to the lease.
func TestAnswersGoNowhereElse(t *testing.T) {
	s, b := open(t, ServerConfig{Dir: t.TempDir()})
	creds, _, err := s.keys.Issue("a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, keys: s.keys, urls: []string{s.URL()}}
	nc, err := p.dial(creds)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	other, err := s.Node("b")
	if err != nil {
		t.Fatal(err)
	}
	victim, err := Connect(other)
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	if err := victim.Serve(
		func(*fleet.Part) fleet.Answer { t.Error("b was asked"); return fleet.Answer{} }); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = b.Transient(t.Context(), Transient{Beat: func(beat *fleet.Beat) { t.Errorf("a beat of %s", beat.Node) }})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	if err := victim.Publisher().Publish(ctx, left("b")); err != nil {
		t.Fatal(err)
	}
	// What a says reads as news of b, as a beat of b and as a part for b.
	forged, err := json.Marshal(map[string]any{
		"seq": 9, "at": time.Now(), "node": "b", "kind": fleet.KindLeft,
		"id": "x", "order": "y", "stop": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []string{
		publishTo + "a", lastTo + "a", directGet + fleet.LogOf("a"), fleet.LogOf("a"), fleet.BeatOf("a"),
	} {
		for _, reply := range []string{
			"$JS.API.STREAM.DELETE.BUSBAR", "$JS.API.STREAM.PURGE.BUSBAR", "$JS.API.STREAM.MSG.DELETE.KV_BUSBAR",
			fleet.HubLog, fleet.LogOf("b"), fleet.BeatOf("b"), fleet.PartOf("b"), publishTo + "b", "$KV.BUSBAR.hub",
			"_INBOX.node.b.x", "_INBOX.node.a", "_INBOX.node.ab.x", "",
		} {
			for _, data := range [][]byte{nil, forged} {
				m := nats.NewMsg(ask)
				m.Reply, m.Data = reply, data
				if err := nc.PublishMsg(m); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// An answer to this one comes after all of the above were taken.
	if err := nc.FlushTimeout(eventually.Limit); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request(lastTo+"a", nil, eventually.Limit); err != nil {
		t.Fatal(err)
	}
	if err := victim.Publisher().Publish(ctx, left("b")); err != nil {
		t.Fatal(err)
	}
	if last, err := b.Last(ctx); err != nil || last != 2 {
		t.Errorf("%d messages, %v; two were said", last, err)
	}
	list, bad := stored(t, b)
	for _, n := range list {
		if n.Node != "b" || n.Seq > 2 {
			t.Errorf("%+v", n)
		}
	}
	if bad != 0 {
		t.Errorf("%d are no events", bad)
	}
}

// TestRelayBounds has a node say more than it may; others are not held up.
func TestRelayBounds(t *testing.T) {
	var m nodes
	now := time.Now()
	n := 0
	for m.keeps("a", 1<<20, now) {
		n++
	}
	if n != 63 {
		t.Errorf("%d MiB at once", n)
	}
	if !m.keeps("b", 1<<20, now) {
		t.Error("b is held up by a")
	}
	if m.keeps("a", 1<<20, now.Add(time.Second/10)) || !m.keeps("a", 1<<20, now.Add(17*time.Second)) {
		t.Error("a does not get its share")
	}
}

// TestForeignHeaders has a node send headers of its own, and 60 KB of them: none reaches the store, they count against
// what the node may store, and the node is named.
func TestForeignHeaders(t *testing.T) {
	floods := make(chan Flood, 100)
	s, b := open(t, ServerConfig{Dir: t.TempDir()})
	creds, _, err := s.keys.Issue("a", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := (&place{t: t, keys: s.keys, urls: []string{s.URL()}}).dial(creds)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	go func() { _ = b.Transient(t.Context(), Transient{Flood: func(f Flood) { floods <- f }}) }()
	data, err := fleet.Encode(&fleet.Event{Seq: 1, At: time.Now(), Node: "a", Kind: fleet.KindLeft})
	if err != nil {
		t.Fatal(err)
	}
	send := func(change func(nats.Header)) (*nats.Msg, error) {
		m := nats.NewMsg(publishTo + "a")
		m.Data = data
		change(m.Header)
		return nc.RequestMsg(m, eventually.Limit)
	}
	if _, err := send(func(h nats.Header) {
		h.Set("Nats-Rollup", "all")
		h.Set("X", strings.Repeat("x", 60<<10))
		h.Set(headID, "a.1")
	}); err != nil {
		t.Fatal(err)
	}
	st, err := b.js.Stream(t.Context(), fleet.Stream)
	if err != nil {
		t.Fatal(err)
	}
	if state := st.CachedInfo().State; state.Msgs != 1 || state.Bytes > 1<<10 {
		t.Errorf("%d messages of %d bytes are stored; want 1 of at most 1 KiB", state.Msgs, state.Bytes)
	}
	named := false
	for i := 0; i < 5000 && !named; i++ {
		answer, err := send(func(h nats.Header) { h.Set(headID, strings.Repeat("x", 60<<10)) })
		if err == nil && answer.Header.Get("Status") == "" {
			t.Fatalf("an identity of 60 KB is answered %s", answer.Data)
		}
		if err != nil { // the server has cut it
			named = (<-floods).Node == "a"
			break
		}
		select {
		case f := <-floods:
			named = f.Node == "a"
		default:
		}
	}
	if !named {
		t.Error("the node that sends headers of 60 KB is not named")
	}
	if st, err = b.js.Stream(t.Context(), fleet.Stream); err != nil || st.CachedInfo().State.Msgs != 1 {
		t.Errorf("more than one message is stored, %v", err)
	}
}

// TestTransientIsShort has a node beat with more than any has to say, under its own name and another's.
func TestTransientIsShort(t *testing.T) {
	of := func(b *fleet.Beat) fleet.Name { return b.Node }
	for size, taken := range map[int]bool{10: true, maxTransient / 2: true, maxTransient: false, 1 << 19: false} {
		m := nats.NewMsg(fleet.BeatOf("a"))
		m.Data, _ = json.Marshal(fleet.Beat{Node: "a", Part: strings.Repeat("x", size)})
		if got := passing(&Bus{}, "a", m, of); (got != nil) != taken {
			t.Errorf("a beat of %d bytes: taken %v", len(m.Data), got != nil)
		}
		if passing(&Bus{}, "b", m, of) != nil {
			t.Error("a beat of a is taken from b")
		}
	}
}
