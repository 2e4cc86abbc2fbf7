package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

func TestOneServer(t *testing.T) { suite(t, 1) }

func TestThreeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers take half a minute; the same suite runs on one")
	}
	suite(t, 3)
}

// suite is what every bus must do, whoever runs its servers.
func suite(t *testing.T, servers int) {
	p := newPlace(t, servers)
	hub := p.hub()
	if info, err := hub.info(p.ctx()); err != nil || info.Config.Replicas != servers {
		t.Fatalf("%+v on %d servers, %v", info, servers, err)
	}
	t.Run("said and read", func(t *testing.T) { testPublished(t, p, hub) })
	t.Run("asked", func(t *testing.T) { testAsked(t, p, hub) })
	t.Run("two of one name", func(t *testing.T) { testConflict(t, p) })
	t.Run("a replica that lags", func(t *testing.T) { testLagging(t, p) })
	t.Run("permissions", func(t *testing.T) { testPermissions(t, p) })
	t.Run("one leads", func(t *testing.T) { testLead(t, p, hub) })
	t.Run("servers die", func(t *testing.T) { testDeath(t, p, hub) })
}

// testLagging: a replica that has not heard the last news shows an older one. What the next
// shows is the speaker's own, and nobody else's.
func testLagging(t *testing.T, p *place) {
	s := p.node("lag").Publisher()
	first := uint64(0)
	for range 3 {
		if err := s.Publish(p.ctx(), left("lag")); err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = s.at
		}
	}
	s.at = first // as if learned after a lost answer
	if err := s.Publish(p.ctx(), left("lag")); err != nil || s.last != 4 {
		t.Fatalf("number %d, %v", s.last, err)
	}
}

func testPublished(t *testing.T, p *place, hub *Bus) {
	node := p.node("n1.rack")
	s := node.Publisher()
	for range 5 {
		if err := s.Publish(p.ctx(), left("n1.rack")); err != nil {
			t.Fatal(err)
		}
	}
	if err := hub.Publisher().Publish(p.ctx(),
		&fleet.Event{At: time.Now(), Kind: fleet.KindFinding, Finding: &finding.Finding{ID: "f"}}); err != nil {
		t.Fatal(err)
	}
	// An agent that begins anew goes on where the first one ended, and finds what it said.
	node.Close()
	all := list{"x.1", "x.2"}
	second := p.node("n1.rack")
	if err := second.Publisher().PublishAll(p.ctx(), &all); err != nil || len(all) != 0 {
		t.Fatalf("%v wait, %v", all, err)
	}
	second.Close()
	all = list{"x.1", "x.2", "x.3"}
	third := p.node("n1.rack").Publisher()
	if err := third.PublishAll(p.ctx(), &all); err != nil || len(all) != 0 || third.last != 8 {
		t.Fatalf("%v wait, number %d, %v", all, third.last, err)
	}

	ctx, cancel := context.WithCancel(p.ctx())
	defer cancel()
	var got []uint64
	caught := uint64(0)
	err := hub.Follow(ctx, Following{
		Each: func(e Entry) {
			if e.Publisher == "n1.rack" && e.Event != nil {
				got = append(got, e.Event.Seq)
			}
		},
		CaughtUp: func(seq uint64) { caught = seq; cancel() },
	})
	if !errors.Is(err, context.Canceled) || fmt.Sprint(got) != "[1 2 3 4 5 6 7 8]" || caught != 9 {
		t.Errorf("read %v up to %d, %v", got, caught, err)
	}
	if err := hub.Follow(p.ctx(), Following{From: 1000, Each: nil}); !errors.Is(err, errAnotherStore) {
		t.Errorf("following from behind the end: %v", err)
	}
}

// list is a backlog.
type list []string

func (l *list) Next() (string, *fleet.Event, error) {
	if len(*l) == 0 {
		return "", nil, nil
	}
	return (*l)[0], left("n1.rack"), nil
}

func (l *list) Stored(id string, _ uint64) bool {
	i := slices.Index(*l, id)
	*l = (*l)[i+1:]
	return i >= 0
}

func testAsked(t *testing.T, p *place, hub *Bus) {
	part := &fleet.Part{ID: "p", Stop: true}
	if _, err := hub.Ask(p.ctx(), "n2", part); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("nobody is there: %v", err)
	}
	node := p.node("n2")
	if err := node.Serve(func(p *fleet.Part) fleet.Answer { return fleet.Answer{Why: "got " + p.ID} }); err != nil {
		t.Fatal(err)
	}
	if _, err := node.nc.RTT(); err != nil { // the subscription is there after this
		t.Fatal(err)
	}
	for deadline := time.Now().Add(eventually.Limit); ; { // another server of a cluster hears of it a little later
		a, err := hub.Ask(p.ctx(), "n2", part)
		if err == nil && a.Why == "got p" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("answer %v, %v", a, err)
		}
	}
	beats := make(chan *fleet.Beat, 100)
	listening, stop := context.WithCancel(p.ctx())
	defer stop()
	go func() { _ = hub.Transient(listening, Transient{Beat: func(b *fleet.Beat) { beats <- b }}) }()
	for got := false; !got; {
		if err := node.Beat(&fleet.Beat{Node: "other"}); err != nil {
			t.Fatal(err)
		}
		if err := node.Beat(&fleet.Beat{Node: "n2", At: time.Now(), Waiting: 3}); err != nil {
			t.Fatal(err)
		}
		select {
		case b := <-beats:
			if b.Node != "n2" || b.Waiting != 3 {
				t.Errorf("%+v", b)
			}
			got = true
		case <-time.After(200 * time.Millisecond):
		case <-p.ctx().Done():
			t.Fatal("no beat arrives")
		}
	}
}

// testConflict: a second agent is refused while the first answers, and told which that is; one that was replaced while
// it did not answer is refused when it comes back.
func testConflict(t *testing.T, p *place) {
	first := p.node("twin")
	a := first.Publisher()
	for range 3 {
		if err := a.Publish(p.ctx(), left("twin")); err != nil {
			t.Fatal(err)
		}
	}
	var conflict *ConflictError
	second := p.node("twin")
	if err := second.Publisher().Publish(p.ctx(), left("twin")); !errors.As(err, &conflict) ||
		!strings.Contains(conflict.Other, "running for") {
		t.Fatalf("a second agent publishes: %v", err)
	}
	<-second.Held().Done()
	if err := a.Publish(p.ctx(), left("twin")); err != nil || a.last != 4 {
		t.Fatalf("the first goes on with %d, %v", a.last, err)
	}
	first.nc.Close() // as when its machine stops: nobody hears of its end
	third := p.node("twin").Publisher()
	if err := third.Publish(p.ctx(), left("twin")); err != nil || third.last != 5 {
		t.Fatalf("one that follows a dead agent goes on with %d, %v", third.last, err)
	}
	back := p.node("twin")
	back.agent = first.agent
	if err := back.answerHere(); err != nil {
		t.Fatal(err)
	}
	if err := back.Publisher().Publish(p.ctx(), left("twin")); !errors.As(err, &conflict) {
		t.Errorf("the one that was replaced publishes: %v", err)
	}
}

func testLead(t *testing.T, p *place, hub *Bus) {
	// leads takes part until stop, and says when it leads.
	leads := func(b *Bus) (begun, over chan struct{}, stop func()) {
		begun, over = make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(p.ctx())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := b.Lead(ctx, func(ctx context.Context) { close(begun); <-ctx.Done(); close(over) }); err != nil {
				t.Error(err)
			}
		})
		return begun, over, func() { cancel(); wg.Wait() }
	}
	first, over, stop := leads(hub)
	<-first
	second, _, end := leads(p.hub())
	defer end()
	select {
	case <-second:
		t.Fatal("a second one leads while the first does")
	case <-time.After(time.Second):
	}
	stop()
	<-over
	<-second
}

// leader is the server through which everything is stored.
func (p *place) leader(hub *Bus) int {
	s, err := hub.js.Stream(p.ctx(), fleet.Stream)
	if err == nil && s.CachedInfo().Cluster != nil {
		for i := range p.procs {
			if s.CachedInfo().Cluster.Leader == fmt.Sprintf("s%d", i) {
				return i
			}
		}
	}
	return 0
}

// testDeath kills servers in turn while many speak. Everything acknowledged must be there once,
// numbered without gaps, and a reader must see the same.
func testDeath(t *testing.T, p *place, hub *Bus) {
	const publishers = 20
	times := 3
	if len(p.procs) > 1 {
		times = 1 // a new leader takes its time
	}
	ctx := t.Context() // without a limit: a new leader takes its time, and a reader looks for it at its own pace
	seen := map[fleet.Name][]uint64{}
	var mu sync.Mutex
	reader, stopReading := context.WithCancel(ctx)
	defer stopReading()
	var reading sync.WaitGroup
	reading.Go(func() {
		err := hub.Follow(reader, Following{Each: func(e Entry) {
			mu.Lock()
			defer mu.Unlock()
			if e.Event != nil {
				seen[e.Publisher] = append(seen[e.Publisher], e.Event.Seq)
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the reader: %v", err)
		}
	})
	var published [publishers]uint64
	var total atomic.Int64
	var over atomic.Bool
	var publishing sync.WaitGroup
	for i := range publishers {
		name := fleet.Name(fmt.Sprintf("s%02d", i))
		s := p.node(name).Publisher()
		publishing.Go(func() {
			for pace := time.Tick(2 * time.Millisecond); !over.Load(); <-pace {
				n := left(name)
				if err := s.Publish(ctx, n); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				published[i] = n.Seq
				total.Add(1)
			}
		})
	}
	goOn := func() {
		t.Helper()
		before := total.Load()
		eventually.Holds(t, "200 more are acknowledged", func() bool { return total.Load() >= before+200 || t.Failed() })
	}
	for range times {
		goOn()
		dies := p.leader(hub)
		p.kill(dies)
		time.Sleep(500 * time.Millisecond) // a process that is down for a while, as others see it
		p.launch(dies)
	}
	goOn()
	over.Store(true)
	publishing.Wait()
	eventually.Holds(t, "the reader has read all", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for i := range publishers {
			if uint64(len(seen[fleet.Name(fmt.Sprintf("s%02d", i))])) < published[i] {
				return t.Failed()
			}
		}
		return true
	})
	stopReading()
	reading.Wait()
	kept := map[fleet.Name][]uint64{}
	list, _ := stored(t, hub)
	for _, n := range list {
		kept[n.Node] = append(kept[n.Node], n.Seq)
	}
	for i := range publishers {
		name := fleet.Name(fmt.Sprintf("s%02d", i))
		for what, list := range map[string][]uint64{"stored": kept[name], "read": seen[name]} {
			if uint64(len(list)) != published[i] {
				t.Errorf("%s: %d acknowledged, %d %s", name, published[i], len(list), what)
			}
			for k, n := range list {
				if n != uint64(k+1) {
					t.Errorf("%s: place %d has number %d %s", name, k+1, n, what)
					break
				}
			}
		}
	}
	t.Logf("%d acknowledged by %d speakers over %d deaths", total.Load(), publishers, times)
}
