package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"busbar.dev/fleet"
)

// Measurer does a part and returns what came out of it, as far as this node tells it; nil where
// it has nothing to tell. It tells how far it is.
type Measurer func(ctx context.Context, p *fleet.Part, at func(done, of int, text string)) (*fleet.Measured, error)

// glance is how long the node's traffic is watched before a part.
const glance = 200 * time.Millisecond

// remembered is how many parts that ended are remembered, so that a question that comes again
// gets the same answer, and one that was stopped before it began does not.
const remembered = 64

// worker does parts, one at a time.
type worker struct {
	a *agent

	mu      sync.Mutex
	part    *fleet.Part
	cancel  context.CancelCauseFunc
	tasks   sync.WaitGroup
	answers []answered // to parts that ended, or must not begin any more
	closed  bool
}

type answered struct {
	id     string
	answer fleet.Answer
}

var errStopped = errors.New("stopped")

// running is the part under way.
func (w *worker) running() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.part == nil {
		return ""
	}
	return w.part.ID
}

// asked answers a question from the server.
func (w *worker) asked(p *fleet.Part) fleet.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Stop {
		return w.stop(p.ID)
	}
	a := w.judge(p)
	if !a.Begins && a.Why != "" {
		w.a.event("part", false, "%s: %s", p.ID, a.Why)
	}
	return a
}

func (w *worker) stop(id string) fleet.Answer {
	if w.part == nil || w.part.ID != id {
		w.remember(id, fleet.Answer{Why: "stopped before it started"})
		return fleet.Answer{Why: "not under way"}
	}
	w.cancel(errStopped)
	return fleet.Answer{Why: "stopped"}
}

func (w *worker) remember(id string, a fleet.Answer) {
	w.answers = append(w.answers[max(0, len(w.answers)+1-remembered):], answered{id, a})
}

// judge begins a part, or says why not.
func (w *worker) judge(p *fleet.Part) fleet.Answer {
	for _, x := range w.answers {
		if x.id == p.ID {
			return x.answer
		}
	}
	switch {
	case w.closed:
		return fleet.Answer{Why: "the node ends"}
	case w.part != nil && w.part.ID == p.ID:
		return fleet.Answer{Begins: true}
	case w.part != nil:
		return fleet.Answer{Busy: true, Why: "part " + w.part.ID + " is running"}
	}
	if err := w.fits(p); err != nil {
		return fleet.Answer{Why: err.Error(), Meet: errors.As(err, new(*placeError))}
	}
	if limit := cmp.Or(p.Caps.Busy, fleet.DefaultBusy); !p.Caps.Always {
		if rate := w.a.ports.now(glance); rate > limit {
			return fleet.Answer{
				Busy: true, Why: fmt.Sprintf("the interface carries %v; above %v a job is assumed to run (--busy)", rate, limit),
			}
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	w.part, w.cancel = p, cancel
	w.tasks.Go(func() { w.run(ctx, p) })
	return fleet.Answer{Begins: true}
}

// fits refuses what this node should not do.
func (w *worker) fits(p *fleet.Part) error {
	if p.Ranks[p.Rank] != w.a.Name {
		return fmt.Errorf("rank %d is node %s, and this is %s", p.Rank, p.Ranks[p.Rank], w.a.Name)
	}
	if err := w.places(p); err != nil {
		return err
	}
	if by := p.What.By; by != fleet.TCP {
		if why := w.a.joined.Load().Lacks(by); why != "" {
			return errors.New(why)
		}
	}
	need, err := memoryOf(p)
	if err != nil {
		return err
	}
	if need > w.a.MaxMemory {
		return fmt.Errorf("the measurement needs %v of memory; this node allows %v (--max-memory)", need, w.a.MaxMemory)
	}
	return nil
}

// places refuses addresses that are none of other nodes, and leaves out where nobody is to connect.
func (w *worker) places(p *fleet.Part) error {
	own, err := place(w.a.Meet)
	if err != nil {
		return err
	}
	meet, err := place(p.Meet)
	if err == nil && p.Rank > 0 {
		err = reachable(meet.Addr(), own.Addr())
	}
	if err != nil {
		return err
	}
	if p.Rank == 0 && meet != own {
		return fmt.Errorf("the group's rendezvous is %s, and this node listens at %s", p.Meet, w.a.Meet)
	}
	for r, host := range p.Hosts {
		ip, err := netip.ParseAddr(host)
		if ip = ip.Unmap(); err != nil || reachable(ip, own.Addr()) != nil {
			p.Hosts[r] = ""
		} else {
			p.Hosts[r] = ip.String()
		}
	}
	p.Meet, p.Hosts[0], p.Hosts[p.Rank] = meet.String(), meet.Addr().String(), own.Addr().String()
	return nil
}

// progressEvery is how often a node tells at most how far it is: who says more than a node has to say is shut out.
const progressEvery = 200 * time.Millisecond

// run does a part and says what came of it.
func (w *worker) run(ctx context.Context, p *fleet.Part) {
	began := time.Now()
	w.a.event("part", true, "%s begins: %s of %d nodes as rank %d", p.ID, p.What.Measure, len(p.Ranks), p.Rank)
	bound, cancel := context.WithTimeoutCause(ctx, p.Caps.Bound(),
		fmt.Errorf("it took longer than its limit of %v", p.Caps.Bound()))
	often := rate.Sometimes{Interval: progressEvery}
	m, err := w.a.Measure(bound, p, func(done, of int, text string) {
		often.Do(func() { // in passing
			_ = w.a.bus.Progress(&fleet.Progress{Node: w.a.Name, Order: p.Order, Part: p.ID, Done: done, Of: of, Text: text})
		})
	})
	if cause := context.Cause(bound); cause != nil && (err != nil || m != nil && m.Failed != "") {
		err = cause
	}
	cancel()
	if err != nil {
		m = failed(p, err)
	}
	if m != nil {
		m.Order, m.Part, m.Sweep, m.Round, m.Took = p.Order, p.ID, p.Sweep, p.Round, time.Since(began)
		w.a.emit(&fleet.Event{Kind: fleet.KindMeasured, Measured: m})
	}
	w.mu.Lock()
	w.part = nil
	w.remember(p.ID, fleet.Answer{Begins: true})
	w.mu.Unlock()
	if m != nil && m.Failed != "" {
		w.a.event("measured", false, "%s: %s", p.ID, m.Failed)
	} else {
		w.a.event("measured", true, "%s: done in %v", p.ID, time.Since(began).Round(time.Millisecond))
	}
}

// end stops what is under way and waits for it.
func (w *worker) end() {
	w.mu.Lock()
	w.closed = true
	if w.part != nil {
		w.cancel(errors.New("the node ends"))
	}
	w.mu.Unlock()
	w.tasks.Wait()
}

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
