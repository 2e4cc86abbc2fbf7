package plan

import (
	"context"
	"errors"
	"math"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Query is what is asked for.
type Query struct {
	// Spaces are what to search, one for every number of ranks, which are the first of the layout.
	Spaces  []*Space
	Cluster *cluster.Cluster
	Layout  nccl.Layout
	Version nccl.Version
	GPU     *step.GPU
	// Top is how many plans are wanted; they differ in their degrees or in what replicas
	// divide.
	Top int
	// Objective is what plans should have little of; none is the time of a step.
	Objective Objective
	// Reserve is the share of a GPU's memory that plans leave free.
	Reserve float64
	// MaxStep is the longest that a step may take; 0 is any time.
	MaxStep unit.Span
	// HostMemory is how much of a node's own memory plans may take; 0 is any amount.
	HostMemory unit.Bytes
	// Tuned prices collectives as under a tuner plugin that knows the job.
	Tuned bool
	// Env are settings of NCCL.
	Env map[string]string
	// Each bounds every setting by itself and cuts no groups, which takes longer and finds the same.
	Each bool
	// Watch, where there is one, is called now and then with how far the search is.
	Watch func(Progress)

	known     *fabrics
	uncounted bool // every family is taken to have one setting
}

// Progress is how far a search is.
type Progress struct {
	Considered int64 // settings of the space
	Done       int64 // of those, looked at one by one
	Priced     int64
	Best       unit.Span // 0 before the first
}

// Plan is one way to run the job.
type Plan struct {
	Job    workload.Job
	Result *step.Result
	Value  float64 // of the objective
}

// Answer is what a search found.
type Answer struct {
	// Considered is the settings of the space, the sum of the other three: Priced were priced in full, Bounded were looked
	// at one by one and are not better by their bound or memory, Cut are the rest, in groups that are not better. Where
	// the search ended early, Bounded and Cut also hold what it did not come to.
	Considered, Bounded, Cut, Priced int64
	Plans                            []Plan
	// Bound is the least value of the objective that what was not priced could have; with nothing
	// left out below the best plan it is that plan's.
	Bound float64
	// Whole says that the search came to its end.
	Whole bool
	// Failed is the settings or groups of them that could not be priced, and Err why the first of
	// them could not.
	Failed int64
	Err    error
	// Leanest is the setting that needs least memory of those that do not fit.
	Leanest *Lean
	// Late is the shortest step of those that take longer than MaxStep, at least; 0 where there
	// are none.
	Late unit.Span
}

// Lean is a setting and what a GPU needs for it.
type Lean struct {
	Job    workload.Job
	Memory workload.Memory
}

// ErrNone says that nothing fits.
var ErrNone = errors.New("no setting fits into GPU memory")

// Search finds the best plans. When the context ends, the best so far are returned with the
// bound on what was not seen.
func Search(ctx context.Context, q *Query) (*Answer, error) {
	s := newSearch(q)
	s.countSpaces(ctx)
	s.expand(ctx)
	a := &Answer{
		Considered: s.considered, Bounded: s.opened - s.priced, Cut: s.considered - s.opened, Priced: s.priced,
		Plans: s.best.list(), Whole: ctx.Err() == nil, Failed: s.failed, Err: s.err,
	}
	switch {
	case len(a.Plans) == 0 && s.err != nil:
		return a, s.err
	case len(a.Plans) == 0 && a.Whole:
		a.Leanest, a.Late = s.leanest, s.late
		return a, ErrNone
	case len(a.Plans) == 0:
		return a, ctx.Err()
	}
	a.Bound = a.Plans[0].Value
	if !a.Whole {
		a.Bound = min(a.Bound, s.left())
	}
	return a, nil
}

// search is the work on a query. Its nodes are processed in batches, each by all processors; what they
// find is put together in their order, so that the same query has the same answer and counts
// on every machine.
type search struct {
	q       *Query
	room    unit.Volume // of a GPU's memory
	bounds  *step.Bounds
	fabrics []*step.Fabric          // by space
	counts  []map[familyKey]int64   // by space and tally, how many settings families have
	leasts  []map[familyKey]float64 // by space and work, the values of families' bounds without traffic
	waiting frontier
	best    shortlist

	considered, opened, priced int64

	leanest *Lean
	late    unit.Span
	failed  int64
	err     error
}

func newSearch(q *Query) *search {
	s := &search{q: q, room: q.Room(), best: shortlist{top: q.Top, by: map[slot]entry{}}}
	s.counts, s.leasts = make([]map[familyKey]int64, len(q.Spaces)), make([]map[familyKey]float64, len(q.Spaces))
	s.bounds = step.NewBounds(q.Spaces[0].Base.Model, q.GPU)
	for _, x := range q.Spaces {
		s.fabrics = append(s.fabrics, q.fabric(x.Ranks))
	}
	return s
}

// Room is what plans may take of a GPU's memory.
func (q *Query) Room() unit.Volume {
	return step.Room(q.GPU.Model.Memory, q.Reserve)
}

// countSpaces counts the settings of every space, and bounds it: by the least time of a GPU that any way to
// divide layers and sequences needs for a sequence.
func (s *search) countSpaces(ctx context.Context) {
	for i, x := range s.q.Spaces {
		if ctx.Err() != nil {
			return
		}
		s.counts[i] = map[familyKey]int64{}
		s.leasts[i] = map[familyKey]float64{}
		settings, least := int64(0), math.Inf(1)
		for _, d := range x.splits() {
			x.families(d, func(j *workload.Job) {
				n := s.count(i, j)
				settings += n
				key := workOf(j)
				if _, seen := s.leasts[i][key]; n > 0 && !seen {
					b := s.bounds.Family(j).Least()
					s.leasts[i][key] = s.value(i, b)
					least = min(least, s.leasts[i][key])
					s.delay(b.Step)
				}
			})
		}
		if s.considered += settings; settings > 0 {
			s.waiting.push(&node{space: i, value: least, index: s.waiting.next()})
		}
	}
}

// openSpace makes the families of a space.
func (s *search) openSpace(i int) found {
	x := s.q.Spaces[i]
	var f found
	for _, d := range x.splits() {
		x.families(d, func(j *workload.Job) {
			if n := s.count(i, j); n > 0 {
				t := &family{familyKey: familyKeyOf(j), space: i, settings: n}
				if s.q.Each {
					t.Family = s.bounds.Family(j)
					f.addFound(s.openFamily(t))
					return
				}
				f.more = append(f.more, &node{family: t, space: i, value: s.leasts[i][workOf(j)]})
			}
		})
	}
	return f
}

// tallyOf is what the number of a family's settings depends on.
func tallyOf(j *workload.Job) familyKey {
	k := familyKeyOf(j)
	k.sequence, k.recompute = false, ""
	return k
}

// count is how many settings a family has.
func (s *search) count(space int, j *workload.Job) int64 {
	if s.q.uncounted {
		return 1
	}
	key := tallyOf(j)
	n, ok := s.counts[space][key]
	if !ok {
		x := s.q.Spaces[space]
		x.branches(j, func(j *workload.Job) bool { n += int64(len(x.buckets(j))); return true })
		s.counts[space][key] = n
	}
	return n
}

// workOf is what the least time of a GPU for a sequence depends on; of pipelines that there is one, without ZeRO 3.
func workOf(j *workload.Job) familyKey {
	k := familyKeyOf(j)
	k.dp, k.pp, k.order, k.context = 0, min(k.pp, 2), "", ""
	return k
}

// value is the objective of a bound; what takes too long is worth nothing.
func (s *search) value(space int, b step.Bound) float64 {
	if s.q.MaxStep > 0 && b.Step > s.q.MaxStep {
		return math.Inf(1)
	}
	return s.q.Objective.costOf(s.q.Spaces[space].Ranks, b.Step)
}

// delay remembers the shortest of what takes too long.
func (s *search) delay(step unit.Span) {
	if s.q.MaxStep > 0 && step > s.q.MaxStep && (s.late == 0 || step < s.late) {
		s.late = step
	}
}

// left is the least value of what is not priced.
func (s *search) left() float64 {
	at := s.waiting.first()
	if at < 0 {
		return math.Inf(1)
	}
	return s.waiting.queues[at][0].value
}
