package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"busbar.dev/fleet"
)

// Measurer does a part and returns what came out of it, as far as this node tells it; nil where
// it has nothing to tell. It tells how far it is.
type Measurer func(ctx context.Context, p *fleet.Part, at func(done, of int, text string)) (*fleet.Measured, error)

// glance is how long the node's traffic is watched before a part.
const glance = 200 * time.Millisecond

// remembered is how many parts that ended are remembered, so that a question that comes again
// gets the same answer.
const remembered = 64

// worker does parts, one at a time.
type worker struct {
	a *agent

	mu      sync.Mutex
	part    *fleet.Part
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when the part has ended
	ended   []string      // parts that were done
	stopped []string      // parts that must not begin any more
	closed  bool
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = remember(w.stopped, id)
	if w.part == nil || w.part.ID != id {
		return fleet.Answer{Why: "not under way"}
	}
	w.cancel(errStopped)
	return fleet.Answer{Why: "stopped"}
}

func remember(list []string, id string) []string {
	if slices.Contains(list, id) {
		return list
	}
	if len(list) == remembered {
		list = list[1:]
	}
	return append(list, id)
}

// judge begins a part, or says why not.
func (w *worker) judge(p *fleet.Part) fleet.Answer {
	if a, known := w.known(p); known {
		return a
	}
	if err := w.fits(p); err != nil {
		var place *placeError
		return fleet.Answer{Why: err.Error(), Meet: errors.As(err, &place)}
	}
	if limit := p.Caps.Busy; !p.Caps.Always {
		limit = cmp.Or(limit, fleet.DefaultBusy)
		if rate := w.a.ports.now(glance); rate > limit {
			return fleet.Answer{
				Busy: true, Why: fmt.Sprintf("the interface carries %v; above %v a job is assumed to run (--busy)", rate, limit),
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.part != nil || w.closed {
		return fleet.Answer{Busy: true, Why: "another measurement is running"}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	w.part, w.cancel, w.done = p, cancel, make(chan struct{})
	go w.run(ctx, p, w.done)
	return fleet.Answer{Begins: true}
}

// known answers what needs no thought: it is under way, was done, or must not begin.
func (w *worker) known(p *fleet.Part) (fleet.Answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return fleet.Answer{Why: "the node ends"}, true
	case slices.Contains(w.stopped, p.ID):
		return fleet.Answer{Why: "stopped before it started"}, true
	case w.part != nil && w.part.ID == p.ID || slices.Contains(w.ended, p.ID):
		return fleet.Answer{Begins: true}, true
	case w.part != nil:
		return fleet.Answer{Busy: true, Why: "part " + w.part.ID + " is running"}, true
	}
	return fleet.Answer{}, false
}

// fits refuses what this node should not do.
func (w *worker) fits(p *fleet.Part) error {
	if p.Ranks[p.Rank] != w.a.Name {
		return fmt.Errorf("rank %d is node %s, and this is %s", p.Rank, p.Ranks[p.Rank], w.a.Name)
	}
	if err := checkMeet(p.Meet); err != nil {
		return err
	}
	if p.Rank == 0 && p.Meet != w.a.Meet {
		w.a.introduce()
		return fmt.Errorf("the group's rendezvous is %s, and this node listens at %s", p.Meet, w.a.Meet)
	}
	for r, host := range p.Hosts { // a name may stand for something else when it is resolved again
		meet := net.JoinHostPort(host, "1")
		switch r {
		case 0:
			meet = p.Meet
		case p.Rank:
			meet = w.a.Meet
		}
		at, err := reachableAddress(meet, w.a.Meet, resolve)
		if err != nil && r == 0 && p.Rank > 0 {
			return err
		}
		p.Hosts[r], _, _ = net.SplitHostPort(at) // nobody connects where no other node can be
		if r == 0 && p.Rank > 0 {
			p.Meet = at
		}
	}
	if by := p.What.By; by != fleet.TCP {
		if why := w.a.lacks(by); why != "" {
			w.a.introduce()
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

// run does a part and says what came of it.
func (w *worker) run(ctx context.Context, p *fleet.Part, done chan struct{}) {
	defer close(done)
	began := time.Now()
	w.a.event("part", true, "%s begins: %s of %d nodes as rank %d", p.ID, p.What.Measure, len(p.Ranks), p.Rank)
	bound, cancel := context.WithTimeoutCause(ctx, p.Caps.Bound(),
		fmt.Errorf("it took longer than its limit of %v", p.Caps.Bound()))
	measure := w.a.Measure
	if measure == nil {
		measure = w.a.Child.Measure
	}
	m, err := measure(bound, p, func(done, of int, text string) {
		// in passing
		_ = w.a.bus.Progress(&fleet.Progress{Node: w.a.Name, Order: p.Order, Part: p.ID, Done: done, Of: of, Text: text})
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
	w.part, w.cancel, w.ended = nil, nil, remember(w.ended, p.ID)
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
	done := w.done
	if w.part != nil {
		w.cancel(errors.New("the node ends"))
	}
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
