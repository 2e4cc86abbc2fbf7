package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

// memory is a bus within this process. It outlives hubs, as a store does.
type memory struct {
	mu        sync.Mutex
	entries   []Entry
	seqs      map[fleet.Name]uint64
	grown     chan struct{}
	nodes     map[fleet.Name]*fakeNode
	beat      map[int]func(*fleet.Beat)
	next      int
	lead      chan struct{} // holds one token
	mark      bus.Mark
	published atomic.Int64
	away      atomic.Int64   // times that it is not there when its last entry is asked for
	working   sync.WaitGroup // parts that nodes measure: a bubble must not end before they have
}

func newMemory() *memory {
	m := &memory{
		seqs: map[fleet.Name]uint64{}, grown: make(chan struct{}), nodes: map[fleet.Name]*fakeNode{},
		beat: map[int]func(*fleet.Beat){}, lead: make(chan struct{}, 1),
	}
	m.lead <- struct{}{}
	return m
}

func (m *memory) keep(n *fleet.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seqs[n.Node]++
	n.Seq = m.seqs[n.Node]
	data, err := fleet.Encode(n)
	if err != nil {
		panic(err)
	}
	back, err := fleet.Decode[fleet.Event](data)
	if err != nil {
		panic(fmt.Sprintf("%v\n%s", err, data))
	}
	m.entries = append(m.entries, Entry{Seq: uint64(len(m.entries) + 1), Stored: n.At, Publisher: n.Node, Event: back})
	close(m.grown)
	m.grown = make(chan struct{})
}

func (m *memory) Publish(ctx context.Context, n *fleet.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.published.Add(1)
	m.keep(n)
	return nil
}

func (m *memory) Last(context.Context) (uint64, error) {
	if m.away.Add(-1) >= 0 {
		return 0, context.DeadlineExceeded
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.entries)), nil
}

func (m *memory) Trimmed(context.Context) (bool, error) { return false, nil }
func (m *memory) Mark() *bus.Mark                       { return &m.mark }

func (m *memory) Follow(ctx context.Context, f bus.Following) error {
	above := f.From - 1
	for first := true; ; first = false {
		m.mu.Lock()
		list, grown := m.entries[above:], m.grown
		m.mu.Unlock()
		for _, e := range list {
			if ctx.Err() != nil {
				return nil
			}
			f.Each(e)
			above++
		}
		if first {
			f.CaughtUp(above)
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *memory) Ask(ctx context.Context, node fleet.Name, p *fleet.Part) (*fleet.Answer, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	n := m.nodes[node]
	m.mu.Unlock()
	if n == nil || n.dead.Load() {
		return nil, errors.New("the node is not connected")
	}
	a := n.ask(m, p)
	return &a, nil
}

func (m *memory) Transient(ctx context.Context, l bus.Transient) error {
	m.mu.Lock()
	m.next++
	id := m.next
	m.beat[id] = l.Beat
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	delete(m.beat, id)
	m.mu.Unlock()
	return nil
}

func (m *memory) Lead(ctx context.Context, run func(context.Context)) error {
	select {
	case <-m.lead:
		run(ctx)
		<-ctx.Done()
		m.lead <- struct{}{}
	case <-ctx.Done():
	}
	return nil
}

// pulse lets all nodes that live beat.
func (m *memory) pulse() {
	m.mu.Lock()
	var receive []func(*fleet.Beat)
	for _, f := range m.beat {
		receive = append(receive, f)
	}
	var live []*fakeNode
	for _, n := range m.nodes {
		if !n.dead.Load() {
			live = append(live, n)
		}
	}
	m.mu.Unlock()
	for _, n := range live {
		for _, f := range receive {
			f(&fleet.Beat{Node: n.name, At: time.Now(), Part: n.running()})
		}
	}
}

// fakeNode does parts in no time, or in the ways that tests want.
type fakeNode struct {
	name   fleet.Name
	dead   atomic.Bool
	refuse atomic.Bool
	busy   atomic.Int64 // how often it says that it is
	slow   atomic.Int64 // percent of the usual rate; 0 is all
	hang   atomic.Bool  // begins and never ends
	lie    func(*fleet.Measured)
	reach  reached // nil: everybody meets everybody
	took   time.Duration

	mu    sync.Mutex
	part  string
	stops int
	done  int
	over  int // begun while another part ran
}

func (n *fakeNode) running() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.part
}

func (n *fakeNode) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.done
}

func (n *fakeNode) ask(m *memory, p *fleet.Part) fleet.Answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case p.Stop:
		if n.part == p.ID {
			n.part = ""
			n.stops++
		}
		return fleet.Answer{}
	case n.refuse.Load():
		return fleet.Answer{Why: "measuring is not allowed here"}
	case n.busy.Add(-1) >= 0:
		return fleet.Answer{Busy: true, Why: "a job is running"}
	case n.part != "":
		n.over++
		return fleet.Answer{Busy: true, Why: "another part"}
	}
	if n.reach != nil && p.Rank > 0 {
		if ok, why := n.reach(p.Meet, n.name); !ok && why != "" {
			return fleet.Answer{Why: why, Meet: true}
		}
	}
	n.part = p.ID
	if !n.hang.Load() {
		m.working.Go(func() { n.work(m, p) })
	}
	return fleet.Answer{Begins: true}
}

// work says what rank 0 measured; the others just end.
func (n *fakeNode) work(m *memory, p *fleet.Part) {
	time.Sleep(n.took)
	n.mu.Lock()
	mine := n.part == p.ID
	n.part = ""
	n.done++
	n.mu.Unlock()
	out := &fleet.Measured{Order: p.Order, Part: p.ID, Sweep: p.Sweep, Round: p.Round, Took: time.Millisecond}
	if p.Rank == 1 && n.reach != nil && mine {
		if ok, _ := n.reach(p.Meet, n.name); !ok {
			out.Failed, out.Peer = "cannot reach rank 0 at "+p.Meet, p.Ranks[0]
			m.keep(&fleet.Event{At: time.Now().UTC(), Node: n.name, Kind: fleet.KindMeasured, Measured: out})
			return
		}
	}
	if p.Rank != 0 || !mine || n.dead.Load() {
		return
	}
	if n.reach != nil && len(p.Ranks) == 2 {
		if ok, _ := n.reach(p.Meet, p.Ranks[1]); !ok {
			return // its partner does not come
		}
	}
	rate := 10e9
	for _, r := range p.Ranks {
		m.mu.Lock()
		other := m.nodes[r]
		m.mu.Unlock()
		if s := other.slow.Load(); s > 0 {
			rate *= float64(s) / 100
		}
		if other.refuse.Load() {
			return // it waits for a peer that never comes, until it is stopped
		}
		if other.dead.Load() || other.hang.Load() {
			out.Failed, out.Peer = "the peer does not come", r
		}
	}
	if out.Failed == "" {
		a, b := p.Ranks[0], p.Ranks[1]
		out.Pairs = []fleet.PairSample{
			{From: a, To: b, Rate: unit.Rate(rate), Latency: 10 * unit.Microsecond},
			{From: b, To: a, Rate: unit.Rate(rate), Latency: 10 * unit.Microsecond},
		}
	}
	if n.lie != nil {
		n.lie(out)
	}
	m.keep(&fleet.Event{At: time.Now().UTC(), Node: n.name, Kind: fleet.KindMeasured, Measured: out})
}

// join adds nodes n0, n1, … to the bus.
func (m *memory) join(count int) (list []*fakeNode) {
	for i := range count {
		n := &fakeNode{name: fleet.Name(fmt.Sprintf("n%d", i))}
		m.mu.Lock()
		m.nodes[n.name] = n
		m.mu.Unlock()
		m.keep(&fleet.Event{
			At: time.Now().UTC(), Node: n.name, Kind: fleet.KindJoined,
			Joined: &fleet.Joined{Version: "test", Meet: fmt.Sprintf("10.0.0.%d:7000", i)},
		})
		list = append(list, n)
	}
	return list
}

// start runs a hub on the bus and beats for its nodes; stop ends it and waits. Nothing of it leaves the process, so
// that tests run it in a bubble of testing/synctest, where waiting takes no time.
func start(t *testing.T, m *memory, change func(*Config)) (h *Hub, stop func()) {
	t.Helper()
	cfg := Config{
		Bus: m, Unreachable: 2 * time.Second, Look: 50 * time.Millisecond,
		Warn: func(err error) { t.Log("warning:", err) },
	}
	if change != nil {
		change(&cfg)
	}
	h = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.Run(ctx); err != nil {
			t.Error("the hub:", err)
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			m.pulse()
			time.Sleep(20 * time.Millisecond)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	t.Cleanup(func() { stop(); m.working.Wait() })
	<-h.Ready()
	eventually.Holds(t, "all nodes are up", func() bool {
		for _, n := range h.Nodes() {
			m.mu.Lock()
			f := m.nodes[n.Name]
			m.mu.Unlock()
			if f != nil && !f.dead.Load() && n.State != fleet.NodeUp {
				return false
			}
		}
		return true
	})
	return h, stop
}

// pairOrder is an order over all pairs.
func pairOrder() fleet.Order {
	o := fleet.Order{By: "test", Caps: fleet.Caps{Time: time.Second}}
	Fill(&o)
	return o
}

// ended waits for an order to be over.
func finish(t *testing.T, h *Hub, id string) fleet.OrderState {
	t.Helper()
	eventually.Holds(t, "the order ends", func() bool { return h.over(id) })
	s, _ := h.View().Order(id, time.Now())
	return s
}
