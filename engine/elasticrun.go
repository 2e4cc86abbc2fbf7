package engine

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// commitOp is how members tell each other that they have finished, and whether newcomers wait:
// nobody has its result before all have contributed.
var commitOp = coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: 8, Reduce: coll.Max}

// operate runs an operation until it counts. A context that ends makes this rank leave the job.
func (e *Elastic) operate(ctx context.Context, w Work, ask func(View) (Work, error)) (*result.Run, View, error) {
	e.turn.Lock()
	defer e.turn.Unlock()
	if ctx.Err() != nil { // the others wait for this operation
		return nil, View{}, e.members.leave(context.Cause(ctx))
	}
	e.members.mu.Lock()
	old := e.told
	e.members.mu.Unlock()
	defer func() { // all that comes back tells of it
		e.members.mu.Lock()
		defer e.members.mu.Unlock()
		if old.Epoch > e.told.Epoch {
			e.told = old
		}
	}()
	for again := false; ; again = true {
		g, v, seq, err := e.members.begin(ctx)
		if err != nil {
			return nil, v, err
		}
		if again {
			e.restore(old, w)
		}
		if ask != nil {
			w, err = ask(v)
		} else if v.Epoch != old.Epoch { // before it began, or because it was interrupted
			w, err = w.moved(old, v)
		}
		old = v
		if err != nil {
			e.members.end()
			return nil, v, err // nothing has begun here
		}
		e.keep(v, w)
		run, err := e.try(ctx, g, w, seq)
		e.members.end()
		switch {
		case err == nil:
			return run, v, nil
		case ctx.Err() != nil:
			return nil, v, e.members.leave(err)
		case !g.ending.broken.Load():
			return nil, v, err // what was asked for cannot be done; the job is as it was
		}
		counts, err := e.members.outcome(ctx, v.Epoch, seq, err)
		if err != nil {
			return nil, v, err
		}
		if counts {
			return run, v, nil
		}
	}
}

// Forget gives back what the engine holds for work that will not come again.
func (e *Elastic) Forget(w Work) {
	e.turn.Lock()
	defer e.turn.Unlock()
	if c := e.prepared(w); c != nil {
		c.g.Forget(c)
	}
}

// Traffic is what this rank sends in one run of work that was done in the present epoch; see
// Call.Traffic.
func (e *Elastic) Traffic(w Work) (payload, wire unit.Bytes) {
	if c := e.prepared(w); c != nil {
		return c.Traffic()
	}
	return 0, 0
}

// Plan is by which schedule, and in which form on the wire, work was done in the present epoch;
// nil where it was not.
func (e *Elastic) Plan(w Work) (*schedule.Schedule, Wire) {
	if c := e.prepared(w); c != nil {
		return c.Schedule(), c.Wire()
	}
	return nil, Uncompressed
}

// prepared is the call for some work, nil where there is none.
func (e *Elastic) prepared(w Work) *Call {
	e.members.mu.Lock()
	g := e.members.group
	e.members.mu.Unlock()
	return g.lookup(keyOf(w.Schedule, w.Op, w.Options))
}

// begin waits for a group, and keeps it as it is until end.
func (m *membership) begin(ctx context.Context) (g *Group, v View, seq uint64, err error) {
	if wait := m.until(ctx, func() bool {
		if m.err == nil && m.steady && !m.planned {
			g, v, seq, m.busy = m.group, m.seen, m.committed+1, true
			return true
		}
		err = m.err
		return err != nil
	}); wait != nil {
		return nil, v, 0, m.leave(wait)
	}
	return g, v, seq, err
}

func (m *membership) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
	m.wake()
}

// try runs the operation on one group. A run without an error counts; one with an error may
// count as well, if this member had finished and others know that all have.
func (e *Elastic) try(ctx context.Context, g *Group, w Work, seq uint64) (*result.Run, error) {
	run, err := g.runWith(ctx, w.Schedule, w.Op, w.Options, w.Buffers)
	if err != nil {
		return nil, err
	}
	m := e.members
	m.mu.Lock()
	m.done = seq
	m.mu.Unlock()
	e.vote[0] = 0
	if g.rank == 0 && m.joinQueue.waiting.Load() > 0 {
		e.vote[0] = 1
	}
	b := Bytes(e.vote)
	if _, err := g.Run(ctx, nil, commitOp, Buffers{Send: b, Recv: b}); err != nil {
		return run, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.committed, m.waiting, m.idle = seq, e.vote[0] > 0, 0
	return run, nil
}

// outcome waits until the members that are left have agreed, and says whether an operation that
// failed here counts nevertheless.
func (m *membership) outcome(ctx context.Context, epoch uint32, seq uint64, failed error) (counts bool, err error) {
	if wait := m.until(ctx, func() bool {
		counts, err = m.committed >= seq, m.err
		return err != nil || m.steady && m.base.Epoch > epoch
	}); wait != nil {
		return false, m.leave(wait)
	}
	if err != nil {
		return false, fmt.Errorf("%w (after: %w)", err, failed)
	}
	return counts, nil
}

// keep copies the contribution of an operation that overwrites it. The memory for that is made
// once, for the greatest.
func (e *Elastic) keep(v View, w Work) {
	b := w.contribution(v)
	if !overlap(b, w.Buffers.Recv) {
		e.kept = e.kept[:0]
		return
	}
	if cap(e.kept) < len(b) {
		e.kept = aligned(int64(len(b)))
	}
	e.kept = e.kept[:len(b)]
	copy(e.kept, b)
}

// restore puts back what keep has kept.
func (e *Elastic) restore(v View, w Work) {
	if len(e.kept) > 0 {
		copy(w.contribution(v), e.kept)
	}
}

// contribution is what an operation reads.
func (w *Work) contribution(v View) []byte {
	n := int64(w.Op.Send(v.Size, v.Rank))
	return w.Buffers.Send[:min(n, int64(len(w.Buffers.Send)))]
}

// moved is the work as it is for other members.
func (w Work) moved(from, to View) (Work, error) {
	if w.Schedule != nil && from.Size != to.Size {
		return w, &ChangedError{to, fmt.Sprintf("%s by a schedule for %d members was interrupted", w.Op.Kind, from.Size)}
	}
	if w.Op.Kind.Blocked() || w.Op.Sizes != nil || w.Op.Kind == coll.Hypercube {
		return w, &ChangedError{to, fmt.Sprintf("%s on %d members was interrupted", w.Op.Kind, from.Size)}
	}
	if !w.Op.Kind.Rooted() {
		return w, nil
	}
	root := from.Members[w.Op.Root]
	for r, x := range to.Members {
		if x.id == root.id {
			w.Op.Root = r
			return w, nil
		}
	}
	return w, &ChangedError{to, fmt.Sprintf("%s was interrupted by the loss of its root, rank %d", w.Op.Kind, root.Rank)}
}
