// Package bench measures collectives on an engine group the way nccl-tests does: sizes one
// after the other, out of place and in place, results checked against what they must be.
//
// All ranks run the same plan; rank 0 gets the results, a sweep of one point for every size:
// result.Sweeps.Append puts those together that belong together.
//
// The package is not promised: names may change between releases.
package bench

import (
	"context"
	"fmt"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Plan is what to measure.
type Plan struct {
	Op        coll.Op // all but its size
	Sizes     []unit.Bytes
	Algo      string // "" or auto is the engine's choice by size
	Params    schedule.Params
	Transport engine.Transport
	Warm      int
	Iters     int
	Check     bool
}

// Validate reports what makes a plan impossible on n ranks, before anybody is started.
func (p *Plan) Validate(n int) error {
	switch {
	case p.Iters < 1 || p.Iters > 1<<20 || p.Warm < 0 || p.Warm > 1<<20:
		return fmt.Errorf("%d runs after %d to warm up; 1 to %d and 0 to %d are possible", p.Iters, p.Warm, 1<<20, 1<<20)
	case len(p.Sizes) == 0:
		return fmt.Errorf("no sizes")
	}
	for _, size := range p.Sizes {
		op := p.Op
		op.Bytes = size
		if err := op.Check(n); err != nil {
			return err
		}
		s, err := p.schedule(op, n)
		if err != nil {
			return err
		}
		if len(s.Switches) > 0 {
			return fmt.Errorf("%s by %s computes in switches, which only hardware has; take another algorithm", op.Kind, s.Name)
		}
	}
	return nil
}

// Memory is what the buffers of a rank of n take, at most: what it sends and receives, and what
// algorithms need between.
func (p *Plan) Memory(n int) unit.Bytes {
	var most unit.Bytes
	for _, size := range p.Sizes {
		op := p.Op
		op.Bytes = size
		var scratch unit.Bytes
		if s, err := p.schedule(op, n); err == nil && op.Kind != coll.Barrier {
			scratch = unit.Bytes(s.Temp) * (op.Block(n)/unit.Bytes(max(s.Layout.Pieces(), 1)) + unit.Bytes(op.Type.Size()))
		}
		for _, rank := range []int{op.Root, (op.Root + 1) % n} { // a root has more
			send, recv := p.buffers(op, n, rank)
			most = max(most, send+recv+scratch)
		}
	}
	return most
}

// buffers is the memory for what a rank sends and receives, in place or not.
func (p *Plan) buffers(op coll.Op, n, rank int) (send, recv unit.Bytes) {
	return max(op.Send(n, rank), op.Size(n)), max(op.Recv(n, rank), op.Size(n))
}

func (p *Plan) auto() bool { return p.Algo == "" || p.Algo == "auto" }

func (p *Plan) schedule(op coll.Op, n int) (*schedule.Schedule, error) {
	if p.auto() {
		return engine.Pick(op, n, p.Transport)
	}
	q := p.Params
	q.Ranks, q.Root = n, op.Root
	return schedule.Build(op.Kind, p.Algo, q)
}

// grouped fills in which ranks are close to each other, where nobody said it: those of a host,
// however the launcher numbered them.
func grouped(p schedule.Params, g *engine.Group) schedule.Params {
	if hosts := g.Together(); len(p.Groups) == 0 && len(hosts) > 1 {
		p.Groups = hosts
	}
	return p
}

// Run measures. Rank 0 calls each with every size as it is done.
func Run(ctx context.Context, g *engine.Group, p Plan, each func(*result.Sweep) error) error {
	if p.Transport == "" || p.Transport == engine.Auto {
		p.Transport = g.Transport()
	}
	p.Params = grouped(p.Params, g)
	m, err := newMeter(g, p)
	if err != nil {
		return err
	}
	defer m.free()
	for _, size := range p.Sizes {
		op := p.Op
		op.Bytes = size
		s, err := p.schedule(op, g.Size())
		if p.auto() {
			s, err = g.Pick(op) // which knows the hosts
		}
		if err != nil {
			return err
		}
		sweep, err := m.size(ctx, s, op)
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			if err := each(sweep); err != nil {
				return err
			}
		}
	}
	return nil
}

// meter is what one rank needs to measure.
type meter struct {
	g          *engine.Group
	p          Plan
	send, recv []byte
	barrier    *engine.Call
	gather     *engine.Call
	wrong      *engine.Call
	took       []float64 // seconds of this rank's runs
	all        []float64 // of all ranks, on rank 0
	bad        []int64
}

func newMeter(g *engine.Group, p Plan) (*meter, error) {
	m := &meter{g: g, p: p}
	n := g.Size()
	var send, recv unit.Bytes
	for _, size := range p.Sizes {
		op := p.Op
		op.Bytes = size
		s, r := p.buffers(op, n, g.Rank())
		send, recv = max(send, s), max(recv, r)
	}
	var err error
	if m.send, err = g.Alloc(int(send)); err == nil {
		m.recv, err = g.Alloc(int(recv))
	}
	if err != nil {
		m.free()
		return nil, err
	}
	m.took = make([]float64, p.Iters+p.Iters%2) // blocks are multiples of 16 bytes
	m.all = make([]float64, len(m.took)*n)
	m.bad = make([]int64, 1)
	for _, x := range []struct {
		call **engine.Call
		op   coll.Op
		b    engine.Buffers
	}{
		{&m.barrier, coll.Op{Kind: coll.Barrier}, engine.Buffers{}},
		{
			&m.gather,
			coll.Op{Kind: coll.Gather, Type: coll.Double, Bytes: unit.Bytes(8 * len(m.all))},
			engine.Buffers{Send: engine.Bytes(m.took), Recv: engine.Bytes(m.all)},
		},
		{
			&m.wrong,
			coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: 8},
			engine.Buffers{Send: engine.Bytes(m.bad), Recv: engine.Bytes(m.bad)},
		},
	} {
		s, err := engine.Pick(x.op, n, p.Transport)
		if err == nil {
			*x.call, err = g.Prepare(s, x.op)
		}
		if err == nil {
			err = (*x.call).Bind(x.b)
		}
		if err != nil {
			m.free()
			return nil, err
		}
	}
	return m, nil
}

// free gives the buffers back, and what was prepared on them.
func (m *meter) free() {
	for _, c := range []*engine.Call{m.barrier, m.gather, m.wrong} {
		if c != nil {
			m.g.Forget(c)
		}
	}
	m.g.Free(m.send)
	m.g.Free(m.recv)
	m.send, m.recv = nil, nil
}

// size measures one size.
func (m *meter) size(ctx context.Context, s *schedule.Schedule, op coll.Op) (*result.Sweep, error) {
	call, err := m.g.Prepare(s, op)
	if err != nil {
		return nil, err
	}
	defer m.g.Forget(call)
	all, err := m.total(ctx, int64(call.Traffic()))
	if err != nil {
		return nil, err
	}
	x := newSweep(op, m.g.Size(), s.Name, unit.Bytes(all))
	p := &x.Points[0]
	if p.Out, err = m.timing(ctx, call, op, false); err != nil {
		return nil, err
	}
	if op.Kind.InPlace() && op.Kind != coll.Barrier {
		p.In, err = m.timing(ctx, call, op, true)
	}
	return x, err
}

// timing measures one form, out of place or in place.
func (m *meter) timing(ctx context.Context, call *engine.Call, op coll.Op, inPlace bool) (*result.Timing, error) {
	if err := call.Bind(m.buffers(op, inPlace)); err != nil {
		return nil, err
	}
	for range m.p.Warm {
		if _, err := call.Run(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := m.barrier.Run(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	for i := range m.p.Iters {
		run, err := call.Run(ctx)
		if err != nil {
			return nil, err
		}
		m.took[i] = run.Time.Seconds()
	}
	lengthen(m.took[:m.p.Iters], time.Since(begun).Seconds())
	if _, err := m.gather.Run(ctx); err != nil {
		return nil, err
	}
	t := &result.Timing{}
	if m.g.Rank() == 0 {
		t = summary(m.all, len(m.took), m.g.Size(), m.p.Iters)
	}
	if m.p.Check {
		wrong, err := m.check(ctx, call, op, inPlace)
		if err != nil {
			return nil, err
		}
		t.Wrong = &wrong
	}
	return t, nil
}

// lengthen shares out among runs what passed between them, of which their own clocks know nothing:
// a caller pays for it, some tens of nanoseconds a run, and other programs that are measured in a
// loop show it.
func lengthen(took []float64, all float64) {
	for _, t := range took {
		all -= t
	}
	for i := range took {
		took[i] += max(all, 0) / float64(len(took))
	}
}
