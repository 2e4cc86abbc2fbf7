package plan

import (
	"context"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// fabrics keeps what was priced on a layout from one search to the next.
type fabrics struct {
	cluster *cluster.Cluster
	layout  nccl.Layout
	all     *step.Fabric
	by      map[int]*step.Fabric // by number of ranks
}

// fabricOn is a fabric with the settings of the query.
func (q *Query) fabricOn(c *cluster.Cluster, l nccl.Layout, s workload.Split) *step.Fabric {
	f := step.NewFabric(c, l, s, q.Version)
	f.Env = q.Env
	if q.Tuned {
		f = f.Tuned()
	}
	return f
}

// fabric is that of the first ranks of the layout.
func (q *Query) fabric(ranks int) *step.Fabric {
	k := q.known
	if k == nil || k.cluster != q.Cluster || len(k.layout) != len(q.Layout) || &k.layout[0] != &q.Layout[0] {
		k = &fabrics{q.Cluster, q.Layout, q.fabricOn(q.Cluster, q.Layout, workload.Split{}), map[int]*step.Fabric{}}
		q.known = k
	}
	if k.by[ranks] == nil {
		k.by[ranks] = k.all.On(q.Layout[:ranks])
	}
	return k.by[ranks]
}

// Fabric prices a job as the search does. It is for one goroutine at a time.
func (q *Query) Fabric(j *workload.Job) *step.Fabric {
	return q.fabric(j.Split.Ranks()).With(j.Split)
}

// WithMemory is the best plan on GPUs with so many times the memory; nil where the search was ended.
func (q *Query) WithMemory(ctx context.Context, times float64) (*Plan, error) {
	own := *q
	own.Reserve = 1 - times*(1-q.Reserve)
	return own.Best(ctx)
}

// Best is the best plan alone. Settings are not counted, which takes as long as a search of few.
func (q *Query) Best(ctx context.Context) (*Plan, error) {
	q.fabric(q.Spaces[0].Ranks) // which the next search knows too
	own := *q
	own.Top, own.Watch, own.uncounted = 1, nil, true
	a, err := Search(ctx, &own)
	if err != nil || !a.Whole {
		return nil, err
	}
	return &a.Plans[0], nil
}
