package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/health"
)

// Config is what a hub is made of.
type Config struct {
	Bus Bus
	// Unreachable is after how long without a beat a node is unreachable: it is asked nothing, and a finding says
	// so. 0 is 25 s, two beats and a little.
	Unreachable time.Duration
	// Look is how often the statistics are asked, besides after each sweep; 0 is 15 s.
	Look time.Duration
	// Restate is how often what holds is said anew; 0 is 6 h.
	Restate time.Duration
	// Network is what is known of the fleet beyond what its nodes send, such as a cluster file with its
	// leaves, nil for nothing. Hosts in it that never join are no nodes.
	Network *cluster.Cluster
	// Webhooks are told of findings, signed with Secret where it is not empty.
	Webhooks []string
	Secret   []byte
	// Publish tells pages what happens; nil for nobody.
	Publish func(kind string, v any)
	// Warn is told what a person should know and nothing else says; nil for nobody.
	Warn func(error)
	// Version is the server's, for its metrics.
	Version string
	// Now is the clock; nil is the machine's.
	Now func() time.Time
}

// Hub is a server of a fleet.
type Hub struct {
	cfg    Config
	view   *View
	live   *live
	leases *leases
	model  model
	jobs   jobs
	counts counts

	began   time.Time     // by the clock that nobody sets
	waits   atomic.Int64  // nanoseconds from then until nodes that have not beaten are unreachable
	target  atomic.Uint64 // the last entry of the past
	first   atomic.Uint64 // the first that there is of it
	ready   chan struct{} // closed when the stream's past is in the view
	leading atomic.Bool
	look    chan struct{} // asks for a look at the statistics

	mu      sync.Mutex // guards following
	changed chan struct{}
	parts   map[string]chan outcome
	running map[string]context.CancelCauseFunc // orders
}

// counts are what the hub did since it began, for its own metrics.
type counts struct {
	parts   [partEnded + 1]atomic.Int64 // by what became of them
	looked  atomic.Int64                // how often the statistics were looked at
	alerted atomic.Int64                // alerts that were delivered
	refused atomic.Int64                // and that nobody took
}

// outcome is what a node said about a part.
type outcome struct {
	by fleet.Name
	m  *fleet.Measured
}

// New makes a hub; it does nothing until it runs.
func New(cfg Config) *Hub {
	cfg.Unreachable = cmp.Or(cfg.Unreachable, 25*time.Second)
	cfg.Look = cmp.Or(cfg.Look, 15*time.Second)
	cfg.Restate = cmp.Or(cfg.Restate, restateEvery)
	if cfg.Publish == nil {
		cfg.Publish = func(string, any) {}
	}
	if cfg.Warn == nil {
		cfg.Warn = func(error) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	h := &Hub{
		cfg: cfg, view: newView(cfg.Network, cfg.Unreachable),
		live: &live{beats: map[fleet.Name]lastBeat{}, fresh: map[fleet.Name]bool{}}, leases: newLeases(), began: time.Now(),
		ready: make(chan struct{}), changed: make(chan struct{}), parts: map[string]chan outcome{},
		running: map[string]context.CancelCauseFunc{}, look: make(chan struct{}, 1),
	}
	h.jobs.last.Store(&JobsReply{Report: rates.Report{Jobs: []rates.Job{}}, Findings: []finding.Finding{}})
	return h
}

// steady is the time by a clock that nobody sets: a fleet does not become unreachable because a clock was put right.
func (h *Hub) steady() time.Time { return h.began.Add(time.Since(h.began)) }

// View is what the hub knows.
func (h *Hub) View() *View { return h.view }

// Ready is closed when the stream's past is in the view.
func (h *Hub) Ready() <-chan struct{} { return h.ready }

// Reading is how much of the stream's past is in the view, from 0 to 1; false once all of it is.
func (h *Hub) Reading() (share float64, reading bool) {
	select {
	case <-h.ready:
		return 1, false
	default:
	}
	first, last, now := h.first.Load(), h.target.Load(), h.view.Seq()
	if first == 0 || now < first || last <= first {
		return 0, true
	}
	return float64(now-first) / float64(last-first), true
}

// Leads tells whether this hub carries out orders.
func (h *Hub) Leads() bool { return h.leading.Load() }

// Run serves until the context ends.
func (h *Hub) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	start := func(what string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	last, err := h.lastStored(ctx)
	if err != nil {
		return fmt.Errorf("the stream: %w", err)
	}
	h.target.Store(last)
	read := make(chan struct{})
	start("following the stream", func(ctx context.Context) error {
		return h.cfg.Bus.Follow(ctx, bus.Following{From: h.view.Seq() + 1, Each: h.take, CaughtUp: func(upTo uint64) {
			h.view.readTo(upTo, h.cfg.Now())
			close(read)
		}})
	})
	start("beats", func(ctx context.Context) error {
		return h.cfg.Bus.Transient(ctx, bus.Transient{
			Beat: h.beat, Progress: h.progress, Deaf: h.messagesLost, Flood: h.Flood, Second: h.second,
		})
	})
	start("pages", h.notifyBeats)
	start("jobs", h.watchJobs)
	select { // not until the last sequence: a store may have lost what was there
	case <-read:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.target.Store(h.view.Seq())
	h.waits.Store(int64(time.Since(h.began) + h.cfg.Unreachable))
	close(h.ready)
	start("the lease of the one that leads", func(ctx context.Context) error { return h.cfg.Bus.Lead(ctx, h.lead) })
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// take folds an entry and wakes who waits for it.
func (h *Hub) take(e Entry) {
	taken := h.view.Apply(e)
	if e.Seq < h.target.Load() { // the past, of which nobody waits for single entries
		h.first.CompareAndSwap(0, e.Seq)
		return
	}
	h.mu.Lock()
	close(h.changed)
	h.changed = make(chan struct{})
	switch n := e.Event; {
	case n == nil || n.Node != e.Publisher:
	case n.Kind == fleet.KindMeasured && n.Measured != nil:
		if c := h.parts[n.Measured.Part]; c != nil {
			m := n.Measured
			if !taken {
				m = &fleet.Measured{Failed: "its content is impossible"}
			}
			select {
			case c <- outcome{n.Node, m}:
			default: // it says more than it can have to say
			}
		}
	case taken && n.Kind == fleet.KindOrder && n.Order.Final():
		if cancel := h.running[n.Order.ID]; cancel != nil {
			cancel(errOver)
		}
	}
	h.mu.Unlock()
	if taken {
		h.notify(e.Event)
	}
}

// change is closed at the next entry of the stream.
func (h *Hub) change() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// until waits for something that entries of the stream make true.
func (h *Hub) until(ctx context.Context, holds func() bool) error {
	for {
		changed := h.change()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lastStored waits for a store that is away for a moment, as following it does.
func (h *Hub) lastStored(ctx context.Context) (uint64, error) {
	for {
		last, err := h.cfg.Bus.Last(ctx)
		if err == nil || !bus.Retryable(err) {
			return last, err
		}
		if !h.sleep(ctx, 500*time.Millisecond) {
			return 0, errors.Join(err, context.Cause(ctx))
		}
	}
}

// readAll waits until all that is stored now is in the view.
func (h *Hub) readAll(ctx context.Context) error {
	last, err := h.cfg.Bus.Last(ctx)
	if err != nil {
		return err
	}
	return h.until(ctx, func() bool { return h.view.Seq() >= last })
}

// beat takes a beat; the statistics hear of it as well.
func (h *Hub) beat(b *fleet.Beat) {
	done, ill := b.Jobs, b.Health
	b.Jobs, b.Health = nil, nil // beats are kept, and shown to pages
	if h.live.beat(b) {
		h.view.history(addBeat(b.Node, h.steady()))
		if len(done) > 0 {
			h.jobs.take(b.Node, done, time.Now())
		}
		h.reported(b.Node, ill)
	}
}

// messagesLost takes note that messages in passing were lost until now: nobody is unreachable for want of those.
func (h *Hub) messagesLost() {
	h.live.deaf()
	now := h.steady()
	h.view.history(func(s *health.History) { s.MessagesLost(now) })
}

// progress tells pages how far a part is.
func (h *Hub) progress(d *fleet.Progress) {
	d.Order, d.Part, d.Text = cut(d.Order), cut(d.Part), cut(d.Text)
	h.cfg.Publish("doing", d)
}

// notify tells pages of an event as it comes, but not of the past.
func (h *Hub) notify(n *fleet.Event) {
	if _, reading := h.Reading(); reading {
		return
	}
	switch n.Kind {
	case fleet.KindMeasured:
		h.cfg.Publish("measured", map[string]any{"node": n.Node, "at": n.At, "measured": n.Measured})
	case fleet.KindOrder:
		if o, ok := h.view.Order(n.Order.ID, h.cfg.Now()); ok {
			h.cfg.Publish("order", o)
		}
	case fleet.KindFinding:
		h.cfg.Publish("finding", n.Finding)
	case fleet.KindJoined, fleet.KindLeft, fleet.KindLink:
		if s, ok := h.Node(n.Node); ok {
			h.cfg.Publish("node", s)
		}
	}
}

// notifyBeats sends the beats of a second at once: a page draws no faster. A node that was not heard for too long is
// looked at in that moment.
func (h *Hub) notifyBeats(ctx context.Context) error {
	for h.sleep(ctx, time.Second) {
		fresh, missed := h.live.takeFresh(h.cfg.Unreachable)
		if missed {
			h.lookNow()
		}
		if len(fresh) == 0 {
			continue
		}
		list := h.Nodes(fresh...)
		for i := range list {
			list[i] = brief(list[i])
		}
		h.cfg.Publish("beats", list)
	}
	return nil
}

// publish appends an event of the server, again and again until it is kept, and waits until the view has it.
func (h *Hub) publish(ctx context.Context, n *fleet.Event) error {
	n.At = h.cfg.Now().UTC()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := h.cfg.Bus.Publish(ctx, n)
		if err == nil {
			return h.until(ctx, func() bool { return h.view.lastOf("") >= n.Seq })
		}
		if ctx.Err() == nil {
			h.cfg.Warn(fmt.Errorf("the event of an %s was not stored and is sent again: %w", n.Kind, err))
		}
		if !h.sleep(ctx, wait) { // its own word may have ended it: then it is kept
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// sleep waits; false where the context ended.
func (h *Hub) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return ctx.Err() == nil
}
