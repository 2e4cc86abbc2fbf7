package bench

import (
	"context"
	"errors"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// RunElastic measures on the members of an elastic job, whoever they are. A size during which
// members were lost is measured again on those who are left; newcomers come in between sizes.
// Every member calls each with every size, and the view in which it was measured. The view that
// RunElastic returns is that of the end, which all members have reached together.
//
// Times are those of the operations themselves. After each of them the members agree that all
// have finished, so that runs do not overlap as they do in Run.
func RunElastic(ctx context.Context, e *engine.Elastic, p Plan, newcomer bool, each func(engine.View, *result.Sweep) error) (engine.View, error) {
	m := &elasticMeter{e: e, p: p, bad: make([]int64, 1), next: make([]int64, 1)}
	defer func() { // nobody reads them any more: what has returned here is done everywhere
		e.Free(m.send)
		e.Free(m.recv)
	}()
	if err := m.prepare(); err != nil {
		return e.View(), err
	}
	if newcomer {
		if err := m.meet(ctx); err != nil {
			return e.View(), err
		}
	}
	for m.next[0] < int64(len(p.Sizes)) {
		joined, err := e.Admit(ctx)
		if err == nil && len(joined) > 0 {
			if err = m.meet(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return e.View(), err
		}
		sweep, v, err := m.size(ctx)
		if errors.Is(err, errMoved) {
			continue
		}
		if err == nil {
			err = each(v, sweep)
		}
		if err != nil {
			return v, err
		}
		m.next[0]++
	}
	_, v, err := e.Run(ctx, engine.Work{Op: coll.Op{Kind: coll.Barrier}})
	return v, err
}

// errMoved is a row in which members were lost.
var errMoved = errors.New("the members have changed")

// elasticMeter is what one member needs to measure.
type elasticMeter struct {
	e          *engine.Elastic
	p          Plan
	send, recv []byte
	took, all  []float64
	bad, next  []int64

	view engine.View // of the row, once its first operation is done
	s    *schedule.Schedule
	made uint32 // the epoch that s is for
}

// prepare makes memory that is enough for any number of members.
func (m *elasticMeter) prepare() (err error) {
	var most unit.Bytes
	for _, size := range m.p.Sizes {
		most = max(most, size)
	}
	if m.send, err = m.e.Alloc(int(most)); err != nil {
		return err
	}
	m.recv, err = m.e.Alloc(int(most))
	m.took = make([]float64, m.p.Iters+m.p.Iters%2) // blocks are multiples of 16 bytes
	return err
}

// meet tells newcomers which row is next.
func (m *elasticMeter) meet(ctx context.Context) error {
	b := engine.Bytes(m.next)
	_, _, err := m.e.Run(ctx, engine.Work{Op: coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Reduce: coll.Max, Bytes: 8}, Buffers: engine.Buffers{Send: b, Recv: b}})
	return err
}

// run runs an operation of the row; all of them must be of one view.
func (m *elasticMeter) run(ctx context.Context, ask func(engine.View) (engine.Work, error)) (*result.Run, error) {
	run, v, err := m.e.RunWith(ctx, ask)
	if err != nil {
		return nil, err
	}
	if m.view.Epoch == 0 {
		m.view = v
	}
	if v.Epoch != m.view.Epoch {
		return nil, errMoved
	}
	return run, nil
}

// work is the operation that is measured, for the members there are. Where there are fewer than
// the root's number, the last one is the root.
func (m *elasticMeter) work(v engine.View, size unit.Bytes, inPlace bool) (engine.Work, error) {
	op := m.p.Op
	op.Bytes, op.Root = size, min(op.Root, v.Size-1)
	if err := op.Check(v.Size); err != nil {
		return engine.Work{}, err
	}
	if m.made != v.Epoch && !m.p.auto() {
		s, err := m.p.schedule(op, v.Size)
		if err != nil {
			return engine.Work{}, err
		}
		m.s = s
	}
	m.made = v.Epoch
	return engine.Work{Schedule: m.s, Op: op, Buffers: buffers(op, v.Size, v.Rank, m.send, m.recv, inPlace), Options: engine.Options{Wire: m.p.Wire, Force: true}}, nil
}

// size measures one size.
func (m *elasticMeter) size(ctx context.Context) (s *result.Sweep, v engine.View, err error) {
	size := m.p.Sizes[m.next[0]]
	m.view, m.s, m.made = engine.View{}, nil, 0
	var in *result.Timing
	out, algo, err := m.timing(ctx, size, false)
	if kind := m.p.Op.Kind; err == nil && kind.InPlace() && kind != coll.Barrier {
		in, _, err = m.timing(ctx, size, true)
	}
	v = m.view
	if err != nil {
		return nil, v, err
	}
	w, err := m.work(v, size, false)
	if err != nil {
		return nil, v, err
	}
	_, sent := m.e.Traffic(w)
	_, wire := m.e.Plan(w)
	all, err := m.total(ctx, int64(sent))
	m.e.Forget(w)
	s = newSweep(w.Op, v.Size, algo, wire, unit.Bytes(all))
	s.Points[0].Out, s.Points[0].In = out, in
	return s, v, err
}

// total is the sum of a number over all members.
func (m *elasticMeter) total(ctx context.Context, x int64) (int64, error) {
	m.bad[0] = x
	b := engine.Bytes(m.bad)
	_, err := m.run(ctx, func(engine.View) (engine.Work, error) {
		return engine.Work{Op: coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: 8}, Buffers: engine.Buffers{Send: b, Recv: b}}, nil
	})
	return m.bad[0], err
}

// timing measures one form, out of place or in place.
func (m *elasticMeter) timing(ctx context.Context, size unit.Bytes, inPlace bool) (t *result.Timing, algo string, err error) {
	ask := func(v engine.View) (engine.Work, error) { return m.work(v, size, inPlace) }
	for i := range m.p.Warm + m.p.Iters {
		run, err := m.run(ctx, ask)
		if err != nil {
			return nil, "", err
		}
		if i >= m.p.Warm {
			m.took[i-m.p.Warm] = run.Time.Seconds()
		}
		algo = run.Algo
	}
	if _, err := m.run(ctx, func(v engine.View) (engine.Work, error) {
		if len(m.all) != v.Size*len(m.took) {
			m.all = make([]float64, v.Size*len(m.took))
		}
		op := coll.Op{Kind: coll.AllGather, Type: coll.Double, Bytes: unit.Bytes(8 * len(m.all))}
		return engine.Work{Op: op, Buffers: engine.Buffers{Send: engine.Bytes(m.took), Recv: engine.Bytes(m.all)}}, nil
	}); err != nil {
		return nil, "", err
	}
	t = summary(m.all, len(m.took), m.view.Size, m.p.Iters)
	if m.p.Check {
		var wrong int64
		wrong, err = m.check(ctx, size, inPlace)
		t.Wrong = &wrong
	}
	return t, algo, err
}

// check runs the operation once on known data and counts wrong elements of all members.
func (m *elasticMeter) check(ctx context.Context, size unit.Bytes, inPlace bool) (int64, error) {
	var w engine.Work
	if _, err := m.run(ctx, func(v engine.View) (_ engine.Work, err error) {
		if w, err = m.work(v, size, inPlace); err == nil {
			fill(w.Op, v.Size, v.Rank, w.Buffers)
		}
		return w, err
	}); err != nil {
		return 0, err
	}
	s, wire := m.e.Plan(w)
	if s == nil { // the members have changed since; the next operation finds out
		return m.total(ctx, 0)
	}
	off, err := bound(s, wire, w.Op, m.view.Size, m.view.Rank)
	if err != nil {
		return 0, err
	}
	return m.total(ctx, count(w.Op, m.view.Size, m.view.Rank, w.Buffers, off))
}
