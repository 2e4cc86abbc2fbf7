package plan

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"busbar/cluster"
	"busbar/nccl"
	"busbar/step"
	"busbar/workload"
)

// Query is what is asked for.
type Query struct {
	Space   *Space
	Cluster *cluster.Cluster
	Layout  nccl.Layout
	Version nccl.Version
	GPU     *step.GPU
	// Top is how many plans are wanted; they differ in their degrees or in what replicas
	// divide.
	Top int
	// Reserve is the share of a GPU's memory that plans leave free.
	Reserve float64
	// Watch, where there is one, is called now and then with how far the search is.
	Watch func(Progress)
}

// Progress is how far a search is.
type Progress struct {
	Considered, Priced, Left int64
	Best                     float64 // s; 0 before the first
}

// Plan is one way to run the job.
type Plan struct {
	Job    workload.Job
	Result *step.Result
}

// Answer is what a search found.
type Answer struct {
	// Considered is the settings that were bounded, Fit those of them that fit the memory,
	// Priced those that had to be priced in full.
	Considered, Fit, Priced int64
	Plans                   []Plan
	// Bound is the least step time that what was not priced could have; with nothing left out
	// below the best plan it is that plan's.
	Bound float64
	// Whole says that the search came to its end.
	Whole bool
}

// ErrNone says that nothing fits.
var ErrNone = errors.New("no setting of the space fits the GPUs' memory")

// candidate is a setting that fits, with the least time that it takes.
type candidate struct {
	bound float64
	job   workload.Job
}

// Search finds the best plans. When the context ends, the best so far are returned with the
// bound on what was not seen.
func Search(ctx context.Context, q *Query) (*Answer, error) {
	s := &search{q: q, room: float64(q.GPU.Model.Memory) * (1 - q.Reserve), best: map[kin]Plan{}}
	list := s.bound(ctx)
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.bound, b.bound) })
	s.fit = int64(len(list))
	err := s.price(ctx, list)
	a := &Answer{Considered: s.considered.Load(), Fit: s.fit, Priced: s.priced.Load(), Plans: s.top(), Whole: ctx.Err() == nil}
	switch {
	case err != nil:
		return a, err
	case len(a.Plans) == 0 && a.Whole:
		return a, ErrNone
	case len(a.Plans) == 0:
		return a, ctx.Err()
	}
	a.Bound = a.Plans[0].Result.Step
	if next := int(s.next.Load()); !a.Whole && next < len(list) {
		a.Bound = min(a.Bound, list[next].bound)
	}
	return a, nil
}

// kin are plans of which only the best is kept.
type kin struct {
	dp, tp, pp, cp, ep, zero int
}

func kinOf(j *workload.Job) kin {
	s := &j.Split
	return kin{s.DP, s.TP, s.PP, s.CP, s.EP, s.ZeRO}
}

type search struct {
	q    *Query
	room float64

	considered, priced, next atomic.Int64
	fit                      int64

	mu    sync.Mutex
	best  map[kin]Plan
	worst float64 // of those that are kept; none yet is 0
}

// workers run work on as many goroutines as there are processors.
func workers(work func() error) error {
	n := runtime.GOMAXPROCS(0)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = work() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// bound looks at every setting, and returns those that fit.
func (s *search) bound(ctx context.Context) []candidate {
	ways := s.q.Space.splits()
	var next atomic.Int64
	var list []candidate
	_ = workers(func() error {
		b := step.NewBounds(s.q.Space.Base.Model, s.q.GPU)
		var mine []candidate
		for {
			i := int(next.Add(1)) - 1
			if i >= len(ways) || ctx.Err() != nil {
				break
			}
			seen := int64(0)
			s.q.Space.each(ways[i], func(j *workload.Job) bool {
				seen++
				if x := b.Bound(j); x.Memory.Total() <= s.room {
					mine = append(mine, candidate{x.Seconds, *j})
				}
				return seen%4096 != 0 || ctx.Err() == nil
			})
			s.watch(s.considered.Add(seen), 0)
		}
		s.mu.Lock()
		list = append(list, mine...)
		s.mu.Unlock()
		return nil
	})
	return list
}

// price prices settings in the order of their bounds until none can be better than what is
// kept.
func (s *search) price(ctx context.Context, list []candidate) error {
	return workers(func() error {
		f := step.NewFabric(s.q.Cluster, s.q.Layout, workload.Split{}, s.q.Version)
		for ctx.Err() == nil {
			i := s.next.Add(1) - 1
			if i >= int64(len(list)) || list[i].bound >= s.limit() {
				s.next.Store(min(s.next.Load(), i)) // whose bound tells how far off the answer can be
				return nil
			}
			j := &list[i].job
			r, err := step.Prepare(j, f.With(j.Split)).Price(s.q.GPU)
			if err != nil {
				return err
			}
			s.keep(Plan{*j, r})
			if n := s.priced.Add(1); n%256 == 0 {
				s.watch(s.considered.Load(), int64(len(list))-i)
			}
		}
		return nil
	})
}

// limit is the time from which on nothing is wanted.
func (s *search) limit() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.best) < s.q.Top {
		return math.Inf(1)
	}
	return s.worst
}

// keep keeps a plan where it is among the best.
func (s *search) keep(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := kinOf(&p.Job)
	old, known := s.best[k]
	switch {
	case known && old.Result.Step <= p.Result.Step:
		return
	case !known && len(s.best) >= s.q.Top && p.Result.Step >= s.worst:
		return
	}
	s.best[k] = p
	if len(s.best) > s.q.Top {
		var last kin
		most := -1.0
		for k, x := range s.best {
			if x.Result.Step > most {
				most, last = x.Result.Step, k
			}
		}
		delete(s.best, last)
	}
	s.worst = 0
	for _, x := range s.best {
		s.worst = max(s.worst, x.Result.Step)
	}
}

// top are the plans that were kept, the best first.
func (s *search) top() []Plan {
	var list []Plan
	for _, p := range s.best {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Plan) int {
		return cmp.Or(cmp.Compare(a.Result.Step, b.Result.Step), cmp.Compare(a.Job.Split.String(), b.Job.Split.String()))
	})
	return list
}

func (s *search) watch(considered, left int64) {
	if s.q.Watch == nil {
		return
	}
	s.mu.Lock()
	best := 0.0
	for _, p := range s.best {
		if best == 0 || p.Result.Step < best {
			best = p.Result.Step
		}
	}
	s.mu.Unlock()
	s.q.Watch(Progress{considered, s.priced.Load(), left, best})
}
