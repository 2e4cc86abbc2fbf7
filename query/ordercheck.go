package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/internal/failure"
)

// UnnamedJob is the job of a check whose job was not named: an order without any is no check.
const UnnamedJob = "check"

// OrderCheck measures nodes briefly before a job starts on them, and says which are good. A node that looks slow is measured
// a second time, and is bad only if it is slow again.
type OrderCheck struct {
	Nodes   string        `required:"" placeholder:"HOSTLIST" help:"Nodes of the job, such as $SLURM_JOB_NODELIST."`
	Job     string        `placeholder:"ID" default:"check" help:"Job name shown with the order (default check)."`
	Rounds  int           `default:"3" least:"1" help:"Number of partners each node is measured with (default 3)."`
	Size    Size          `default:"1M" placeholder:"SIZE" help:"Message size for bandwidth (default 1M)."`
	MaxRate string        `name:"max-rate" placeholder:"RATE" help:"Maximum send rate per node."`
	By      string        `default:"best" enum:"best,nccl,rdma,tcp" help:"What pairs are measured by: best is the best that all nodes have, of NCCL, RDMA and TCP (default best)."`
	Within  time.Duration `placeholder:"TIME" help:"Time limit; then the order is cancelled and the exit code is 3 (default 30s by TCP, 2m otherwise)."`
}

// OrderCheckDoc is the answer to OrderCheck.
type OrderCheckDoc struct {
	Bad      []fleet.Out  `json:"bad"`
	By       string       `json:"by"` // tcp, rdma or nccl: what pairs were measured by; empty where nothing was measured
	Good     []fleet.Name `json:"good"`
	Hostlist string       `json:"hostlist"` // of the bad nodes, as Slurm writes them
	Notes    []string     `json:"notes"`
	Order    string       `json:"order"` // empty where nothing was measured
}

// Wrong reports bad nodes.
func (d *OrderCheckDoc) Wrong() bool { return len(d.Bad) > 0 }

// Run measures and judges.
func (q OrderCheck) Run(ctx context.Context, env Env) (doc *OrderCheckDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	b := OrderBounds{Nodes: q.Nodes, MaxRate: q.MaxRate, Warm: new(1), Iters: 5, MaxTime: 5 * time.Second}
	if q.Within > 0 {
		b.MaxTime = min(b.MaxTime, q.Within)
	}
	o, err := b.order()
	if err != nil {
		return nil, err
	}
	o.What.Measure, o.What.Small, o.Rounds, o.Job = fleet.MeasurePairs, 8, q.Rounds, q.Job
	if o.What.By = fleet.Transport(q.By); q.By == "tcp" {
		o.What.By = fleet.TCP
	}
	if o.What.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if len(o.Nodes) == 1 {
		return q.alone(ctx, &env, o.Nodes[0])
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	most := q.Within
	if most == 0 {
		if most = checkWithin; o.What.By != fleet.TCP {
			most = checkPrograms
		}
	}
	within, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("no answer within %v", most))
	defer cancel()
	got, err := env.check(within, ctx, o)
	if err != nil {
		return nil, err
	}
	if !measuredSlow(got) {
		return judge(got)
	}
	// One short measurement scatters, and who is named here may be drained.
	if again, err := env.check(within, ctx, o); err == nil && again.Verdict != nil && again.State != fleet.Cancelled {
		got = onlyTwice(got, again)
	}
	return judge(got)
}

// How long a check may take by TCP, and where programs are started for every pair.
const (
	checkWithin   = 30 * time.Second
	checkPrograms = 2 * time.Minute
)

// check orders once and waits for the verdict, within a context that is part of a whole one.
func (e *Env) check(ctx, whole context.Context, o fleet.Order) (*fleet.OrderReply, error) {
	var got fleet.OrderReply
	if err := e.ask(ctx, "POST", "/api/fleet/orders", o, &got); err != nil {
		return nil, err
	}
	for !got.Final() {
		path := fmt.Sprintf("/api/fleet/orders/%s?wait=20", url.PathEscape(got.ID))
		err := e.ask(ctx, "GET", path, nil, &got)
		if errors.Is(err, fleet.ErrGone) && ctx.Err() == nil { // it is started again, and the order goes on then
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		if err != nil {
			last, stop := context.WithTimeout(context.WithoutCancel(whole), 3*time.Second)
			defer stop()
			_ = e.ask(last, "DELETE", "/api/fleet/orders/"+url.PathEscape(got.ID), nil, new(fleet.OrderReply)) // the reason is more important
			if ctx.Err() != nil && whole.Err() == nil {
				err = context.Cause(ctx)
			}
			return nil, failure.Cannot(err)
		}
	}
	return &got, nil
}

// measuredSlow tells that a node is bad for its figures, not because it did not take part.
func measuredSlow(got *fleet.OrderReply) bool {
	return got.Verdict != nil && slices.ContainsFunc(got.Verdict.Unhealthy, func(b fleet.Out) bool {
		return !slices.ContainsFunc(got.Out, func(o fleet.Out) bool { return o.Node == b.Node })
	})
}

// onlyTwice is the second of two verdicts, where only who was bad in both is bad.
func onlyTwice(first, second *fleet.OrderReply) *fleet.OrderReply {
	v := &fleet.Verdict{By: second.Verdict.By, Healthy: slices.Clone(second.Verdict.Healthy), Unhealthy: []fleet.Out{}, Unmeasured: slices.Clone(second.Verdict.Unmeasured), Notes: slices.Clone(second.Verdict.Notes)}
	for _, b := range second.Verdict.Unhealthy {
		if slices.ContainsFunc(first.Verdict.Unhealthy, func(o fleet.Out) bool { return o.Node == b.Node }) {
			v.Unhealthy = append(v.Unhealthy, b)
			continue
		}
		v.Healthy = append(v.Healthy, b.Node)
		v.Notes = append(v.Notes, fmt.Sprintf("%s was slow in one of two measurements: %s", b.Node, b.Why))
	}
	got := *second
	got.Verdict = v
	return &got
}

// alone judges a single node, which has nobody to be measured with, by what is known of it.
func (q *OrderCheck) alone(ctx context.Context, env *Env, name fleet.Name) (*OrderCheckDoc, error) {
	var got fleet.NodesReply
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(q.Within, checkWithin))
	defer cancel()
	if err := env.ask(ctx, "GET", "/api/fleet/nodes?brief=1&nodes="+url.QueryEscape(string(name)), nil, &got); err != nil {
		return nil, err
	}
	v := &fleet.Verdict{Notes: []string{"one node: judged by its state, not measured"}}
	if len(got.Nodes) != 1 {
		v.Unhealthy = []fleet.Out{{Node: name, Why: "never joined"}}
		return judge(&fleet.OrderReply{Verdict: v})
	}
	switch n := got.Nodes[0]; {
	case n.State != fleet.NodeUp:
		v.Unhealthy = []fleet.Out{{Node: name, Why: string(n.State)}}
	case n.Unhealthy:
		v.Unhealthy = []fleet.Out{{Node: name, Why: strings.Join(n.Findings, ", ")}}
	default:
		v.Healthy = []fleet.Name{name}
	}
	return judge(&fleet.OrderReply{Verdict: v})
}

// judge is what a verdict says of the nodes, or that it says nothing.
func judge(got *fleet.OrderReply) (*OrderCheckDoc, error) {
	v := got.Verdict
	if v == nil || got.State == fleet.Cancelled {
		return nil, failure.Cannot(fmt.Errorf("order %s was %s %s", got.ID, got.State, got.Why))
	}
	if len(v.Unmeasured) > 0 && len(v.Healthy)+len(v.Unhealthy) == 0 {
		return nil, failure.Cannot(fmt.Errorf("order %s: nothing can be said of %s; %s", got.ID, slurmHosts(v.Unmeasured), cmp.Or(got.Why, strings.Join(v.Notes, "; "), "busbar order watch "+got.ID+" says more")))
	}
	var names []fleet.Name
	for _, b := range v.Unhealthy {
		names = append(names, b.Node)
	}
	return &OrderCheckDoc{Bad: orEmpty(v.Unhealthy), Good: orEmpty(v.Healthy), Hostlist: slurmHosts(names), Notes: orEmpty(v.Notes), Order: got.ID, By: v.By}, nil
}

func slurmHosts(list []fleet.Name) string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = string(n)
	}
	return cluster.FormatSlurmHosts(names)
}
