package query

import (
	"context"
	"fmt"

	"busbar.dev/internal/words"
	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Goodput asks how much of a run's time goes into steps that count when nodes fail, how often to save, and what
// asynchronous checkpoints, spare nodes and going on with fewer replicas would change.
type Goodput struct {
	Job
	Failures
}

// GoodputDoc is the answer to Goodput.
type GoodputDoc struct {
	Cluster string            `json:"cluster"`
	Job     workload.Summary  `json:"job"`
	GPU     string            `json:"gpu"`
	Model   string            `json:"model"`
	Layout  string            `json:"layout"`
	GPUs    int               `json:"gpus"`
	Nodes   int               `json:"nodes"`
	Replica int               `json:"nodes_per_replica"`
	Step    unit.Span         `json:"step_s"`
	Tokens  float64           `json:"tokens_per_s"` // without failures
	History *campaign.History `json:"history,omitempty"`
	Asked   campaign.Account  `json:"asked"`
	Rows    []goodputRow      `json:"rows"`
	Text    string            `json:"text"`

	Pictures bool `json:"samples,omitempty"` // rates count samples, not tokens
	Noted
}

// goodputRow is one way to go about failures.
type goodputRow struct {
	Async    bool      `json:"async_checkpoint"`
	Replaced bool      `json:"always_replaced,omitempty"` // a node that fails has another at once
	Spares   int       `json:"spares"`
	Elastic  bool      `json:"elastic"`
	Goodput  float64   `json:"goodput"`
	Tokens   float64   `json:"tokens_per_s"`
	PerGPU   float64   `json:"tokens_per_s_per_gpu"` // of all GPUs that are held, spares too
	Interval unit.Span `json:"interval_s"`
	Stopped  float64   `json:"stopped"` // share of the time
	Shrunk   float64   `json:"shrunk"`
	Best     bool      `json:"best,omitempty"` // the most for each GPU that is held
}

// Run prices the step and every way to go about failures.
func (q Goodput) Run(ctx context.Context, env Env) (doc *GoodputDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	f, err := q.Failures.read()
	if err != nil {
		return nil, err
	}
	if f.fleet {
		if f.history, err = env.fleetHistory(ctx); err != nil {
			return nil, err
		}
		if !f.repairs && f.history.Repair > 0 {
			f.repair, f.repairs = f.history.Repair, true
		}
	}
	t, err := q.Job.read(ctx, &env, 0)
	if err != nil {
		return nil, err
	}
	if len(t.shapes) != 1 {
		return nil, fmt.Errorf("--compare: goodput is of one layout; expected -l")
	}
	p, err := t.resolve(ctx, t.shapes[0])
	if err != nil {
		return nil, err
	}
	if err := unused(&q.Job, p); err != nil {
		return nil, err
	}
	if err := p.noteDoubts(&env, q.Devices != ""); err != nil {
		return nil, err
	}
	nodes := len(p.tasks.Hosts())
	d := &GoodputDoc{
		Cluster: t.cluster.Name, Job: p.summary(), GPU: p.model.Title, Model: p.job.Model.Name, Layout: p.layout,
		GPUs: p.Ranks, Nodes: nodes,
		Replica: replicaNodes(&p.job.Split, p.Ranks, nodes),
		Step:    p.Step, Tokens: p.TokensPerSecond(), History: f.history, Pictures: p.job.Model.Pictures(),
	}
	asked, err := f.goodput(p, nodes, p.Step, d.Tokens)
	if err != nil {
		return nil, err
	}
	d.Asked, d.Text = *asked, asked.Text
	return d, d.ways(f, p)
}

// ways fills in what else could be done, and the best of it.
func (d *GoodputDoc) ways(f failing, p *pricedStep) error {
	list := []goodputRow{{Replaced: true}, {Async: true, Replaced: true}}
	for n := 0; n <= max(1, d.Nodes/8); n = max(1, 2*n) {
		list = append(list, goodputRow{Async: f.async, Spares: n}, goodputRow{Async: f.async, Spares: n, Elastic: true})
	}
	best, last := -1, 1.0
	for _, r := range list {
		if r.Spares > 1 && last < 1e-3 { // more spares change nothing
			break
		}
		f := f
		f.saves = f.saves && r.Async == f.async // or it was said for the other kind
		f.async, f.pooled, f.spares, f.elastic, f.interval = r.Async, !r.Replaced, r.Spares, r.Elastic, 0
		g, err := f.goodput(p, d.Nodes, p.Step, d.Tokens)
		if err != nil {
			return err
		}
		r.Goodput, r.Tokens, r.Interval = g.Share, g.Tokens, g.Interval
		r.PerGPU = g.Tokens / float64(d.GPUs) * float64(d.Nodes) / float64(d.Nodes+r.Spares)
		if g.Pool != nil {
			r.Stopped, r.Shrunk = g.Pool.Stopped, g.Pool.Shrunk
		}
		if !r.Replaced && !r.Elastic {
			last = r.Stopped
		}
		d.Rows = append(d.Rows, r)
		if !r.Replaced && (best < 0 || r.PerGPU > d.Rows[best].PerGPU) {
			best = len(d.Rows) - 1
		}
	}
	d.Rows[best].Best = true
	return nil
}

// replicaNodes is how many nodes a replica is on: with one of them the work of the others is lost. Where several
// replicas are on a node, it is that node.
func replicaNodes(s *workload.Split, gpus, nodes int) int {
	each := max(1, gpus/max(1, nodes))
	return min(nodes, (max(1, s.TP)*max(1, s.PP)*max(1, s.CP)+each-1)/each)
}

// pool is the nodes of a job and what becomes of those that fail.
func (f *failing) pool(d *campaign.Account, p *pricedStep, nodes int, between unit.Span) campaign.Pool {
	x := campaign.Pool{
		Nodes: nodes, Spares: f.spares, Between: between, Losing: f.losing, Repair: f.repair, Elastic: f.elastic,
		Replica: replicaNodes(&p.job.Split, p.Ranks, nodes),
	}
	if !f.pooled {
		return x // nobody is away
	}
	if !f.loses {
		x.Losing = published(d, "interruptions that lose a node", campaign.Losing())
	}
	if !f.repairs {
		x.Repair = published(d, "repair", campaign.Repairing())
	}
	return x
}

// onPool is goodput with nodes that are away.
func (f *failing) onPool(d *campaign.Account, x campaign.Failures, p *pricedStep, nodes int, least unit.Span,
	rate float64,
) (*campaign.Account, error) {
	pool := f.pool(d, p, nodes, x.Between*unit.Span(nodes))
	o, err := pool.Outcome(x, least)
	if err != nil {
		return nil, err
	}
	fillAccount(d, o.Goodput, p.Ranks, rate)
	d.Pool = &campaign.Staffed{Pool: pool, Staffing: o.Staffing, PerNode: o.PerNode}
	d.Waiting, d.Fewer = o.Stopped, max(0, 1-o.Stopped-o.Rate/max(d.Share, 1e-12))
	d.Share, d.Tokens = o.Rate, o.Rate*rate
	had := fmt.Sprintf("with %s and repairs of %v the job has all its nodes %.1f%% of the time",
		words.Plural(pool.Spares, "spare"), pool.Repair, 100*o.Full)
	if o.Shrunk > 0.0005 {
		had += fmt.Sprintf(", fewer %.1f%%", 100*o.Shrunk)
	}
	if o.Stopped > 0.0005 {
		had += fmt.Sprintf(", and waits %.1f%%", 100*o.Stopped)
	}
	d.Text = fmt.Sprintf("%.1f%% of what all nodes could do is useful: %s; while it has them, %s", 100*o.Rate, had, d.Text)
	return d, nil
}
