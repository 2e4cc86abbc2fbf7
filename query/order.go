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
	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/internal/failure"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// OrderBounds are who is measured, and within which bounds.
type OrderBounds struct {
	Nodes   string        `placeholder:"HOSTLIST" help:"Participating nodes: gpu[01-16] (default: all nodes that are up)."`
	MaxRate string        `name:"max-rate" placeholder:"RATE" help:"Maximum send rate per node, such as 10GB/s (default: no limit)."`
	MaxTime time.Duration `name:"max-time" placeholder:"TIME" help:"Time limit of one part of the order (default 20s)."`
	Busy    string        `placeholder:"RATE" help:"Refuse to measure while the interface carries more traffic than this, because a job is running (default 50MB/s; any disables the check)."`
	Warm    *int          `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations (default 2)."`
	Iters   int           `name:"iters" default:"10" least:"1" help:"Measured iterations (default 10)."`
}

// OrderTimes are when and how often it is measured.
type OrderTimes struct {
	Every string `placeholder:"TIME" help:"Repeat at this interval, such as 1h; at least 10s."`
	From  string `placeholder:"TIME" help:"First start: 02:30 (next, local time) or 2026-12-01T02:30:00Z (default: now). With --every, a past date is the start of the interval."`
	Wait  bool   `help:"Wait until the order ends; exit 1 when nothing was measured or a node is unhealthy."`
}

// fill says who is measured.
func (b *OrderBounds) fill(o *fleet.Order) (err error) {
	var hosts []string
	if b.Nodes != "" {
		if hosts, err = cluster.ParseHosts(b.Nodes); err != nil {
			return fmt.Errorf("--nodes: %w", err)
		}
	}
	for _, h := range hosts {
		n, err := fleet.ParseName(h)
		if err != nil {
			return fmt.Errorf("--nodes: %w", err)
		}
		o.Nodes = append(o.Nodes, n)
	}
	if b.MaxRate != "" {
		if o.Caps.Rate, err = unit.ParseRate(b.MaxRate); err != nil {
			return fmt.Errorf("--max-rate: %w", err)
		}
	}
	if o.Caps.Always = b.Busy == "any"; b.Busy != "" && !o.Caps.Always {
		if o.Caps.Busy, err = unit.ParseRate(b.Busy); err != nil {
			return fmt.Errorf("--busy: %w; or any, to never refuse", err)
		}
	}
	o.Caps.Time = b.MaxTime
	if b.Warm != nil {
		o.What.Warm, o.What.Iters = *b.Warm, b.Iters
	}
	return nil
}

// schedule fills in when an order runs.
func (t *OrderTimes) schedule(o *fleet.Order, now time.Time) error {
	if t.Every != "" {
		span, err := unit.ParseSpan(t.Every)
		if err != nil || span > unit.Year {
			return fmt.Errorf("--every %s: expected a time such as 30min, 1h or 1d", t.Every)
		}
		o.Every = span.Duration()
	}
	if t.Every != "" && t.Wait {
		return errors.New("--wait: an order with --every does not end; busbar fleet order watch shows it")
	}
	if t.From == "" {
		return nil
	}
	if at, err := time.Parse(time.RFC3339, t.From); err == nil {
		o.From = at
		return nil
	}
	at, err := time.ParseInLocation("15:04", t.From, now.Location())
	if err != nil {
		return fmt.Errorf("--from %s: expected 02:30 or 2026-12-01T02:30:00Z", t.From)
	}
	o.From = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, now.Location())
	if o.From.Before(now) {
		o.From = o.From.AddDate(0, 0, 1)
	}
	return nil
}

// OrderPairs orders a measurement of every pair of nodes, in rounds in which nobody is in two.
type OrderPairs struct {
	OrderBounds
	OrderTimes
	Size   Size `default:"4M" placeholder:"SIZE" help:"Message size for bandwidth (default 4M)."`
	Small  Size `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8)."`
	Rounds int  `default:"0" least:"0" help:"Maximum rounds per sweep; the next sweep continues where this one ended. 0 is all (default 0)."`
	AtOnce int  `name:"at-once" default:"0" least:"0" help:"Maximum number of concurrent pairs; 0 is all of a round (default 0)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderPairs) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	return giveOrder(ctx, env, &q, &q.OrderTimes, func(o *fleet.Order) error {
		o.What.Measure, o.Rounds, o.AtOnce = fleet.MeasurePairs, q.Rounds, q.AtOnce
		return cmp.Or(q.fill(o), pairSizes(q.Size, q.Small, &o.What.Large, &o.What.Small))
	})
}

// pairSizes reads the messages for bandwidth and for latency.
func pairSizes(size, small Size, large, little *unit.Bytes) (err error) {
	if *large, err = size.bytes(); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	if *little, err = small.bytes(); err != nil {
		return fmt.Errorf("--small: %w", err)
	}
	return nil
}

// OrderCollective orders a measurement of a collective over nodes, one rank each.
type OrderCollective struct {
	OrderBounds
	OrderTimes
	Op   Op       `default:"all_reduce" help:"Collective (default all_reduce)."`
	Algo string   `default:"auto" help:"Algorithm, or auto to choose by size (default auto)."`
	Size []string `default:"1M,16M" placeholder:"SIZE" help:"Message sizes (default 1M,16M)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderCollective) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	return giveOrder(ctx, env, &q, &q.OrderTimes, func(o *fleet.Order) error {
		if q.Algo != "auto" {
			o.What.Algo = q.Algo
		}
		return cmp.Or(q.fill(o), collective(o, q.Op, q.Size))
	})
}

// collective is what is measured of a collective.
func collective(o *fleet.Order, op Op, sizes []string) (err error) {
	o.What.Measure = fleet.MeasureCollective
	if o.What.Op, err = op.kind(); err != nil {
		return err
	}
	o.What.Sizes, err = sizeList(strings.Join(sizes, ","))
	return err
}

// OrderNodes are who is measured by programs that agents start, and within which bounds.
type OrderNodes struct {
	Nodes   string        `placeholder:"HOSTLIST" help:"Participating nodes: gpu[01-16] (default: all nodes that are up and can be measured)."`
	MaxTime time.Duration `name:"max-time" default:"2m" placeholder:"TIME" help:"Time limit of one part of the order (default 2m)."`
	Busy    string        `placeholder:"RATE" help:"Refuse to measure while the interface or an RDMA port carries more traffic than this, because a job is running (default 50MB/s; any disables the check)."`
}

// fill says who is measured, and by what.
func (n *OrderNodes) fill(o *fleet.Order, by fleet.Transport, warm, iters int) error {
	o.What.By = by
	return (&OrderBounds{Nodes: n.Nodes, MaxTime: n.MaxTime, Busy: n.Busy, Warm: &warm, Iters: iters}).fill(o)
}

// OrderGPU orders a measurement of GPUs by NCCL, over the nodes that have it.
type OrderGPU struct {
	OrderNodes
	OrderTimes
	Pairs bool     `help:"Measure every pair of nodes, between one GPU of each, instead of a collective over all GPUs."`
	Op    Op       `default:"all_reduce" help:"Collective (default all_reduce)."`
	Size  []string `default:"1M,64M" placeholder:"SIZE" help:"Message sizes; the last is that of pairs (default 1M,64M)."`
	Warm  *int     `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations (default 2)."`
	Iters int      `name:"iters" default:"10" least:"1" help:"Measured iterations (default 10)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderGPU) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	return giveOrder(ctx, env, &q, &q.OrderTimes, func(o *fleet.Order) error {
		w := &o.What
		err := cmp.Or(q.fill(o, fleet.NCCL, *q.Warm, q.Iters), collective(o, q.Op, q.Size))
		if w.Op == coll.AllToAllV || w.Op == coll.Barrier {
			return fmt.Errorf("--op %s: busbar-gpu does not run it", w.Op)
		}
		if n := len(w.Sizes); q.Pairs && n > 0 {
			w.Measure, w.Small, w.Large, w.Sizes, w.Op = fleet.MeasurePairs, 8, w.Sizes[n-1], nil, 0
		}
		return err
	})
}

// OrderRDMA orders a measurement of RDMA between every pair of nodes that have it, rail by rail.
type OrderRDMA struct {
	OrderNodes
	OrderTimes
	Size   Size `default:"1M" placeholder:"SIZE" help:"Message size for bandwidth (default 1M)."`
	Small  Size `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8)."`
	Iters  int  `name:"iters" default:"1000" least:"5" most:"10000" help:"Messages per test (default 1000)."`
	Rounds int  `default:"0" least:"0" help:"Maximum rounds per sweep; the next sweep continues where this one ended. 0 is all (default 0)."`
	AtOnce int  `name:"at-once" default:"0" least:"0" help:"Maximum number of concurrent pairs; 0 is all of a round (default 0)."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderRDMA) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	return giveOrder(ctx, env, &q, &q.OrderTimes, func(o *fleet.Order) error {
		o.What.Measure, o.Rounds, o.AtOnce = fleet.MeasurePairs, q.Rounds, q.AtOnce
		return cmp.Or(q.fill(o, fleet.RDMA, 0, q.Iters), pairSizes(q.Size, q.Small, &o.What.Large, &o.What.Small))
	})
}

// giveOrder gives the server the order that a question asks for.
func giveOrder(ctx context.Context, env Env, question any, t *OrderTimes,
	fill func(*fleet.Order) error,
) (doc *OrderDoc, err error) {
	defer prepared(question, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	var o fleet.Order
	if err := cmp.Or(fill(&o), t.schedule(&o, env.now())); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	doc = &OrderDoc{OrderReply: &fleet.OrderReply{}}
	if err := env.ask(ctx, "POST", "/api/fleet/orders", o, doc.OrderReply); err != nil {
		return nil, err
	}
	if t.Wait {
		return env.watch(ctx, doc)
	}
	return doc, nil
}

// Orders asks which orders a server has.
type Orders struct {
	All bool `help:"Include finished orders."`
}

// OrdersDoc is the answer to Orders.
type OrdersDoc struct {
	Orders []fleet.OrderState `json:"orders"`
	Over   int                `json:"over"` // how many are over, whether listed or not
}

// Run asks the server.
func (q Orders) Run(ctx context.Context, env Env) (doc *OrdersDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	var got fleet.OrdersReply
	if err := env.ask(ctx, "GET", "/api/fleet/orders", nil, &got); err != nil {
		return nil, err
	}
	doc = &OrdersDoc{Orders: []fleet.OrderState{}}
	for _, o := range got.Orders {
		if o.Final() {
			doc.Over++
		}
		if q.All || !o.Final() {
			doc.Orders = append(doc.Orders, o)
		}
	}
	return doc, nil
}

// OrderCancel cancels orders; what runs is stopped.
type OrderCancel struct {
	IDs []string `arg:"" name:"id" help:"Order ids, as busbar fleet order list shows them."`
}

// OrderCancelDoc is the answer to OrderCancel.
type OrderCancelDoc struct {
	Cancelled []fleet.OrderReply `json:"cancelled"`
}

// Run cancels one by one. Where some cannot be, the document has the others.
func (q OrderCancel) Run(ctx context.Context, env Env) (doc *OrderCancelDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	doc = &OrderCancelDoc{Cancelled: []fleet.OrderReply{}}
	var failed error
	for _, id := range q.IDs {
		var got fleet.OrderReply
		if err := env.ask(ctx, "DELETE", "/api/fleet/orders/"+url.PathEscape(id), nil, &got); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
			continue
		}
		doc.Cancelled = append(doc.Cancelled, got)
	}
	return doc, failed
}

// UnnamedJob is the job of a check whose job was not named: an order without any is no check.
const UnnamedJob = "check"

// OrderCheck measures nodes briefly before a job starts on them, and says which are good. A node that looks slow is
// measured a second time, and is bad only if it is slow again.
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
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	b := OrderBounds{Nodes: q.Nodes, MaxRate: q.MaxRate, Warm: new(1), Iters: 5, MaxTime: 5 * time.Second}
	if q.Within > 0 {
		b.MaxTime = min(b.MaxTime, q.Within)
	}
	o := fleet.Order{Rounds: q.Rounds, Job: q.Job}
	o.What.Measure = fleet.MeasurePairs
	if o.What.By = fleet.Transport(q.By); q.By == "tcp" {
		o.What.By = fleet.TCP
	}
	if err := cmp.Or(b.fill(&o), pairSizes(q.Size, "8", &o.What.Large, &o.What.Small)); err != nil {
		return nil, err
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
		return judge(got, o.Nodes)
	}
	// One short measurement scatters, and who is named here may be drained.
	if again, err := env.check(within, ctx, o); err == nil && again.Verdict != nil && again.State != fleet.Cancelled {
		got = onlyTwice(got, again)
	}
	return judge(got, o.Nodes)
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
	w := &watcher{env: e, got: got}
	err := w.wait(ctx)
	if err == nil {
		return &w.got, nil
	}
	last, stop := context.WithTimeout(context.WithoutCancel(whole), 3*time.Second)
	defer stop()
	// the reason is more important
	_ = e.ask(last, "DELETE", "/api/fleet/orders/"+url.PathEscape(got.ID), nil, new(fleet.OrderReply))
	if ctx.Err() != nil && whole.Err() == nil {
		err = context.Cause(ctx)
	}
	return nil, failure.Cannot(err)
}

// measuredSlow tells that a node is bad for what was measured, not because it did not take part.
func measuredSlow(got *fleet.OrderReply) bool {
	return got.Verdict != nil && slices.ContainsFunc(got.Verdict.Unhealthy, func(b fleet.Out) bool {
		return !slices.ContainsFunc(got.Out, func(o fleet.Out) bool { return o.Node == b.Node && !o.Lost })
	})
}

// onlyTwice is the second of two verdicts, where only who was bad in both is bad.
func onlyTwice(first, second *fleet.OrderReply) *fleet.OrderReply {
	v := *second.Verdict
	v.Unhealthy = nil
	for _, b := range second.Verdict.Unhealthy {
		if slices.ContainsFunc(first.Verdict.Unhealthy, func(o fleet.Out) bool { return o.Node == b.Node }) {
			v.Unhealthy = append(v.Unhealthy, b)
			continue
		}
		v.Healthy = append(v.Healthy, b.Node)
		v.Notes = append(v.Notes, fmt.Sprintf("%s was slow in one of two measurements: %s", b.Node, b.Why))
	}
	got := *second
	got.Verdict = &v
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
		v.Unhealthy = []fleet.Out{{Node: name, Why: fleet.NeverJoined}}
		return judge(&fleet.OrderReply{Verdict: v}, []fleet.Name{name})
	}
	switch n := got.Nodes[0]; {
	case n.State != fleet.NodeUp:
		v.Unhealthy = []fleet.Out{{Node: name, Why: string(n.State)}}
	case n.Unhealthy:
		v.Unhealthy = []fleet.Out{{Node: name, Why: strings.Join(n.Findings, ", ")}}
	default:
		v.Healthy = []fleet.Name{name}
	}
	return judge(&fleet.OrderReply{Verdict: v}, []fleet.Name{name})
}

// judge is what a verdict says of the nodes of a job, or that it says nothing. Where none of them ever joined, they
// have no agents or other names: that is no node's fault.
func judge(got *fleet.OrderReply, asked []fleet.Name) (*OrderCheckDoc, error) {
	v := got.Verdict
	if v == nil || got.State == fleet.Cancelled {
		return nil, failure.Cannot(fmt.Errorf("order %s was %s %s", got.ID, got.State, got.Why))
	}
	if len(v.Unmeasured) > 0 && len(v.Healthy)+len(v.Unhealthy) == 0 {
		return nil,
			failure.Cannot(fmt.Errorf("order %s: nothing can be said of %s; %s", got.ID, cluster.FormatSlurmHosts(v.Unmeasured),
				cmp.Or(got.Why, strings.Join(v.Notes, "; "), "busbar fleet order watch "+got.ID+" says more")))
	}
	var names []fleet.Name
	strangers := 0
	for _, b := range v.Unhealthy {
		names = append(names, b.Node)
		if b.Why == fleet.NeverJoined {
			strangers++
		}
	}
	if strangers == len(asked) {
		return nil, failure.Cannot(fmt.Errorf("%s %s: busbar agent joins a node to the fleet, busbar fleet nodes lists the "+
			"names of those that did", cluster.FormatSlurmHosts(names), fleet.NeverJoined))
	}
	return &OrderCheckDoc{
		Bad: orEmpty(v.Unhealthy), Good: orEmpty(v.Healthy), Hostlist: cluster.FormatSlurmHosts(names),
		Notes: orEmpty(v.Notes),
		Order: got.ID, By: v.By,
	}, nil
}

// OrderWatch waits until an order ends; of one that repeats, until its running or next sweep ends. A server that is
// started again in between is waited for. Env.Watch is told how it goes.
type OrderWatch struct {
	ID string `arg:"" name:"id" help:"Order id."`
}

// OrderDoc is an order, and what it measured where its end was waited for.
type OrderDoc struct {
	*fleet.OrderReply
	// What was measured: the rows of a collective, or median and worst of pairs.
	Results result.Sweeps `json:"records,omitempty"`
	Rate    *fleet.Spread `json:"rate_GBps,omitempty"`
	Latency *fleet.Spread `json:"latency_s,omitempty"`
	Waited  bool          `json:"waited,omitempty"` // until its end
}

// Wrong reports that nothing was measured, or that a node is bad.
func (d *OrderDoc) Wrong() bool {
	return d.Waited && (d.State == fleet.Failed || d.Measured == 0 || d.Verdict != nil && len(d.Verdict.Unhealthy) > 0)
}

// OrderProgress is how an order goes that is waited for.
type OrderProgress struct {
	fleet.OrderState
	// First is set the first time; Round when the order's state changed, when a round of its parts has ended, and after
	// half a minute without either; Over when it has ended.
	First, Round, Over bool
	// Gone is why the server does not answer. It is asked again Until then; Back is set when it answers again.
	Gone  error
	Until time.Time
	Back  bool
}

// Run waits. With an error the document is the order as it was last known, where the order goes on; else it is nil.
func (q OrderWatch) Run(ctx context.Context, env Env) (doc *OrderDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	doc = &OrderDoc{OrderReply: &fleet.OrderReply{}}
	if err := env.ask(ctx, "GET", "/api/fleet/orders/"+url.PathEscape(q.ID), nil, doc.OrderReply); err != nil {
		return nil, err
	}
	return env.watch(ctx, doc)
}

// watch waits for the end of an order and asks what it measured.
func (e *Env) watch(ctx context.Context, doc *OrderDoc) (*OrderDoc, error) {
	w := &watcher{env: e, got: *doc.OrderReply}
	err := w.wait(ctx)
	doc.OrderReply = &w.got
	if err != nil {
		return doc, err
	}
	w.report(OrderProgress{Over: true})
	if err := e.figures(ctx, doc); err != nil {
		return nil, err
	}
	doc.Waited = true
	return doc, nil
}

// watcher waits for an order.
type watcher struct {
	env *Env
	got fleet.OrderReply // as it was last received

	told  time.Time // when somebody who reads lines was last told
	state string    // and what of: the state and the sweep
	ended int       // and how many parts were over
	until time.Time // a server that does not answer is waited for; zero where it does
}

const (
	watchTurn = 300 * time.Millisecond // between two questions
	watchLine = 30 * time.Second       // who watches is told at least so often
)

// report tells who watches.
func (w *watcher) report(p OrderProgress) {
	if p.First || p.Round || p.Back || p.Gone != nil {
		w.told = w.env.now()
	}
	if p.OrderState = w.got.OrderState; w.env.Watch != nil {
		w.env.Watch(p)
	}
}

// wait comes back when the order or its sweep is over.
func (w *watcher) wait(ctx context.Context) error {
	began := w.got.Sweep
	if w.got.State == fleet.Running {
		began--
	}
	for !w.got.Final() && (w.got.Sweep <= began || w.got.State != fleet.Waiting) {
		w.show()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchTurn):
		}
		if err := w.ask(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ask asks how the order is. A server that does not answer is waited for as long as the order may take:
// the order is in what the server has stored, and goes on when it is back.
func (w *watcher) ask(ctx context.Context) error {
	var now fleet.OrderReply
	err := w.env.ask(ctx, "GET", "/api/fleet/orders/"+url.PathEscape(w.got.ID), nil, &now)
	switch {
	case err == nil:
		if !w.until.IsZero() {
			w.report(OrderProgress{Back: true})
		}
		w.got, w.until = now, time.Time{}
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, fleet.ErrGone) && !errors.Is(err, fleet.ErrReading):
		return err
	case w.until.IsZero():
		w.until = w.env.now().Add(w.got.MostTime(w.env.now()))
		w.report(OrderProgress{Gone: err, Until: w.until})
	case w.env.now().After(w.until):
		return err
	}
	return nil
}

// show tells how far the order is.
func (w *watcher) show() {
	state, ended := fmt.Sprint(w.got.State, w.got.Sweep), w.got.Measured+w.got.Failed
	p := OrderProgress{First: w.told.IsZero()}
	p.Round = p.First || state != w.state || ended-w.ended >= w.got.PerRound() ||
		w.env.now().Sub(w.told) > watchLine
	if p.Round {
		w.state, w.ended = state, ended
	}
	w.report(p)
}

// figures asks for what an order measured. What checks measure is not kept.
func (e *Env) figures(ctx context.Context, d *OrderDoc) (err error) {
	switch {
	case d.Measured == 0 || d.Job != "":
	case d.What.Measure == fleet.MeasureCollective:
		var kept fleet.CollectivesReply
		err = e.ask(ctx, "GET", "/api/fleet/collectives", nil, &kept)
		for _, c := range kept.Collectives {
			if c.Order == d.ID && c.Sweep == d.Sweep {
				d.Results = c.Results
			}
		}
	default:
		if d.Rate, err = e.spread(ctx, fleet.FigureRate, d.ID); err == nil {
			d.Latency, err = e.spread(ctx, fleet.FigureLatency, d.ID)
		}
	}
	return err
}

// spread is of what the order's last sweep measured, and not of what is known from before; nil where that is
// nothing.
func (e *Env) spread(ctx context.Context, what fleet.Figure, order string) (*fleet.Spread, error) {
	q := url.Values{"figure": {string(what)}, "order": {order}}
	var heat fleet.Heat
	if err := e.ask(ctx, "GET", "/api/fleet/pairs?"+q.Encode(), nil, &heat); err != nil {
		return nil, err
	}
	s := heat.Spread(what != fleet.FigureLatency)
	if s != nil && what == fleet.FigureLatency { // which the server has in µs
		s.Median, s.Worst = s.Median/1e6, s.Worst/1e6
	}
	return s, nil
}
