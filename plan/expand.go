package plan

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// batchSize is how many nodes are worked on before what they found is put together: more keep
// processors busier, fewer see sooner what need not be priced.
const batchSize = 64

// found is what came of a node.
type found struct {
	undone   bool // the search ended before it
	more     []*node
	opened   int64 // settings of a family that was opened
	finished *entry
	priced   int64     // settings: finished is the best bucket's of as many
	late     unit.Span // that a setting takes too long
	lean     *Lean
	err      error
}

// addFound puts another's in.
func (f *found) addFound(o found) {
	f.more = append(f.more, o.more...)
	f.opened += o.opened
	if o.lean != nil && (f.lean == nil || o.lean.Memory.Total() < f.lean.Memory.Total()) {
		f.lean = o.lean
	}
}

// expand takes the nodes with the least bounds until none can be better than what is kept.
func (s *search) expand(ctx context.Context) {
	for ctx.Err() == nil {
		batch := s.batch()
		if len(batch) == 0 {
			return
		}
		list := make([]found, len(batch))
		var next atomic.Int64
		var wg sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), len(batch)) {
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(batch) {
						return
					}
					if ctx.Err() != nil {
						list[i].undone = true
						continue
					}
					list[i] = s.visit(batch[i])
				}
			})
		}
		wg.Wait()
		for i := range list {
			s.takeNode(batch[i], &list[i])
		}
		s.watch()
	}
}

// dive is how many nodes of each stage are taken before the best ones while fewer plans are known than
// are wanted: they give something to cut by, and to show where the search is ended.
const dive = 4

// batch is the next nodes that could be among the best.
func (s *search) batch() []*node {
	var list []*node
	full := len(s.best.by) >= s.best.top
	for stage := len(s.waiting.queues) - 1; stage > 0 && !full; stage-- {
		for range min(dive, len(s.waiting.queues[stage])) {
			list = s.choose(list, s.waiting.pop(stage))
		}
	}
	for len(list) < batchSize {
		at := s.waiting.first()
		if at < 0 {
			break
		}
		n := s.waiting.pop(at)
		if full && n.value >= s.best.worst {
			s.waiting.clear() // all that follow are no better
			break
		}
		list = s.choose(list, n)
	}
	return list
}

// choose adds a node that could be among the best of its slot.
func (s *search) choose(list []*node, n *node) []*node {
	limit := math.Inf(1)
	switch {
	case n.leaf != nil:
		limit = s.best.limit(n.slot())
	case n.family != nil:
		limit = s.best.limits(n.family, s.q.Spaces[n.space])
	}
	if n.value < limit {
		list = append(list, n)
	}
	return list
}

// takeNode puts together what was found.
func (s *search) takeNode(n *node, f *found) {
	if f.err != nil {
		if s.failed++; s.err == nil {
			s.err = f.err
		}
		return
	}
	if f.undone {
		s.waiting.push(n)
		return
	}
	for _, m := range f.more {
		if m.index == 0 {
			m.index = s.waiting.next()
		}
		s.waiting.push(m)
	}
	s.opened += f.opened
	s.delay(f.late)
	if f.finished != nil {
		s.priced += f.priced
		if s.q.MaxStep <= 0 || f.finished.Result.Step <= s.q.MaxStep {
			s.best.keep(*f.finished)
		}
	}
	if l := f.lean; l != nil && (s.leanest == nil || l.Memory.Total() < s.leanest.Memory.Total()) {
		s.leanest = l
	}
}

// visit works on one node.
func (s *search) visit(n *node) found {
	switch {
	case n.family == nil:
		return s.openSpace(n.space)
	case n.begun != nil:
		return s.finish(n)
	case n.leaf != nil:
		return s.begin(n)
	case n.family.hasTraffic:
		return s.openFamily(n.family)
	}
	return s.addTraffic(n)
}

// addTraffic adds traffic to the bound of a family, where any of its settings fits.
func (s *search) addTraffic(n *node) found {
	t := n.family
	t.Family = s.bounds.Family(t.job(s.q.Spaces[t.space].Base))
	if lean, ok := s.fits(t); !ok {
		t.Family = nil
		return found{lean: lean}
	}
	if err := t.AddTraffic(s.fabrics[t.space]); err != nil {
		return found{err: err}
	}
	t.hasTraffic = true
	b := t.Least()
	n.value = max(n.value, s.value(t.space, b))
	return found{more: []*node{n}, late: b.Step}
}

// fits says whether some setting of a family may fit: with the pipeline that holds fewest
// micro-batches.
func (s *search) fits(t *family) (lean *Lean, ok bool) {
	x := s.q.Spaces[t.space]
	j := *t.Job()
	if j.Split.PP > 1 {
		j.Schedule = pipeline.Alternate
	}
	alternates := slices.Contains(x.Schedule, pipeline.Alternate)
	x.states(&j, func() bool {
		if j.Check() != nil || alternates && !x.runs(&j) {
			return true
		}
		m := t.Memory(&j)
		if lean == nil || m.Total() < lean.Memory.Total() {
			lean = &Lean{j, m}
		}
		ok = ok || s.roomFor(x, m)
		return !ok
	})
	return lean, ok
}

// roomFor says whether a GPU and its host have room.
func (s *search) roomFor(x *Space, m workload.Memory) bool {
	return m.Total() <= s.room && (s.q.HostMemory <= 0 || m.Host*unit.Volume(x.Node) <= unit.Volume(s.q.HostMemory))
}

// openFamily bounds every setting of a family.
func (s *search) openFamily(t *family) found {
	x := s.q.Spaces[t.space]
	f := found{opened: t.settings}
	least := s.value(t.space, t.Least())
	x.branches(t.Job(), func(j *workload.Job) bool {
		b := t.Bound(j)
		if !s.roomFor(x, b.Memory) {
			if f.lean == nil || b.Memory.Total() < f.lean.Memory.Total() {
				f.lean = &Lean{*j, b.Memory}
			}
			return true
		}
		if v := max(least, s.value(t.space, b)); v < s.best.limit(slotOf(&j.Split)) {
			f.more = append(f.more, &node{value: v, space: t.space, family: t, leaf: leafOf(j)})
		}
		if s.q.MaxStep > 0 && b.Step > s.q.MaxStep && (f.late == 0 || b.Step < f.late) {
			f.late = b.Step
		}
		return true
	})
	return f
}

// begin prices a setting but for the play of its pipeline.
func (s *search) begin(n *node) found {
	j := n.leaf.job(n.family)
	p, err := step.Prepare(j, s.fabrics[n.family.space].With(j.Split)).Begin(s.q.GPU,
		s.q.Spaces[n.family.space].buckets(j))
	if err != nil {
		return found{err: err}
	}
	b, err := p.Least()
	if err != nil {
		return found{err: err}
	}
	n.begun, n.value = p, max(n.value, s.value(n.family.space, b))
	return found{more: []*node{n}, late: b.Step}
}

// finish plays the pipeline.
func (s *search) finish(n *node) found {
	r, err := n.begun.Finish()
	if err != nil {
		return found{err: err}
	}
	j := n.leaf.job(n.family)
	j.Bucket = n.begun.Bucket()
	priced := int64(len(s.q.Spaces[n.family.space].buckets(j)))
	return found{late: r.Step, priced: priced, finished: &entry{Plan{*j, r, s.q.Objective.Value(r)}, n.index}}
}

// slot is that of a setting.
func (n *node) slot() slot {
	return n.family.slot(n.leaf.zero)
}

func (s *search) watch() {
	if s.q.Watch == nil {
		return
	}
	best := unit.Span(0)
	for _, e := range s.best.by {
		if best == 0 || e.Result.Step < best {
			best = e.Result.Step
		}
	}
	s.q.Watch(Progress{s.considered, s.opened, s.priced, best})
}
