package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
)

// slowFold is a bus whose entries reach the view some time after they were read, as on a machine with much to do.
type slowFold struct{ Bus }

func (s slowFold) Follow(ctx context.Context, above uint64, each func(Entry), read func(uint64)) error {
	return s.Bus.Follow(ctx, above, func(e Entry) { time.Sleep(5 * time.Millisecond); each(e) }, read)
}

func ownEvent(i int) *fleet.Event {
	return &fleet.Event{
		At: time.Now().UTC(), Kind: fleet.KindTokens, Tokens: &fleet.Tokens{Node: fleet.Name(fmt.Sprint("x", i))},
	}
}

// opened is a server in a folder with its connection and the journal of what it says itself.
func opened(t *testing.T, dir string) (b *bus.Bus, j *bus.Journal, end func()) {
	t.Helper()
	srv, err := bus.Start(bus.ServerConfig{Dir: dir, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	if j, err = bus.OpenJournal(dir, 0); err == nil {
		if b, err = srv.Connect(bus.Config{}); err == nil {
			err = b.Ensure(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { b.Close(); srv.Close(); j.Close() })
	t.Cleanup(end)
	return b, j, end
}

// TestOwnNumbersOnce: what the server has read of its own events and not folded yet is not missing in the store, and is
// not stored again.
func TestOwnNumbersOnce(t *testing.T) {
	b, j, _ := opened(t, t.TempDir())
	o := slowFold{OnBus(b, j)}
	h := New(Config{Bus: o, Mend: time.Millisecond, Warn: func(err error) { t.Error(err) }})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = h.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	eventually.Holds(t, "it leads", h.Leads)
	const events = 100
	for i := range events {
		if err := o.Publish(ctx, ownEvent(i)); err != nil {
			t.Fatal(err)
		}
	}
	eventually.Holds(t, "all is folded", func() bool { return h.view.lastOf("") == events })
	times := map[uint64]int{}
	if _, err := b.Query(ctx, bus.Range{},
		func(_ uint64, n *fleet.Event) error { times[n.Seq]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for k := uint64(1); k <= events; k++ {
		if times[k] != 1 {
			t.Errorf("number %d is stored %d times", k, times[k])
		}
	}
}

// TestOwnNumbersGoOn: an event that was stored, and lost before anybody read it, is not followed by another of its
// number, and is stored again.
func TestOwnNumbersGoOn(t *testing.T) {
	dir := t.TempDir()
	b, j, end := opened(t, dir)
	for i := range 3 {
		if err := OnBus(b, j).Publish(t.Context(), ownEvent(i)); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
		t.Fatal(err)
	}
	b, j, _ = opened(t, dir)
	o := OnBus(b, j)
	n := ownEvent(3)
	if err := o.Publish(t.Context(), n); err != nil || n.Seq != 4 {
		t.Errorf("the fourth event has number %d, %v", n.Seq, err)
	}
	if again, err := o.Resend(t.Context(), []fleet.Span{{From: 1, To: 3}}); again != 3 || err != nil {
		t.Errorf("%d are stored again, %v", again, err)
	}
	if n = ownEvent(4); o.Publish(t.Context(), n) != nil || n.Seq != 5 {
		t.Errorf("the fifth event has number %d", n.Seq)
	}
}
