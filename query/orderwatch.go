package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/result"
)

// OrderWatch waits until an order ends; of one that repeats, until its running or next sweep ends. A server that is started
// again in between is waited for. Env.Watch is told how it goes.
type OrderWatch struct {
	ID string `arg:"" name:"id" help:"Order id."`
}

// OrderDoc is an order, and what it measured where its end was waited for.
type OrderDoc struct {
	*fleet.OrderReply
	*OrderFigures
	Waited bool `json:"waited,omitempty"` // until its end
}

// Wrong reports that nothing was measured, or that a node is bad.
func (d *OrderDoc) Wrong() bool {
	return d.Waited && (d.State == fleet.Failed || d.Measured == 0 || d.Verdict != nil && len(d.Verdict.Unhealthy) > 0)
}

// OrderFigures are what an order measured: the rows of a collective, or median and worst of pairs.
type OrderFigures struct {
	Results result.Sweeps `json:"records,omitempty"`
	Rate    *OrderSpread  `json:"rate_GBps,omitempty"`
	Latency *OrderSpread  `json:"latency_us,omitempty"`
}

// OrderSpread is the median of all directions, and the worst of them.
type OrderSpread struct {
	Median float64    `json:"median"`
	Worst  float64    `json:"worst"`
	From   fleet.Name `json:"from"`
	To     fleet.Name `json:"to"`
}

// OrderProgress is how an order goes that is waited for.
type OrderProgress struct {
	fleet.OrderState
	// First is set the first time; Round when the order's state changed, when a round of its parts has ended, and after half
	// a minute without either; Over when it has ended.
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
	if doc.OrderFigures, err = e.figures(ctx, &w.got); err != nil {
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
		w.until = w.env.now().Add(mostTime(&w.got.OrderState, w.env.now()))
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
	p.Round = p.First || state != w.state || ended-w.ended >= perRound(&w.got.OrderState) || w.env.now().Sub(w.told) > watchLine
	if p.Round {
		w.state, w.ended = state, ended
	}
	w.report(p)
}

// perRound is how many parts a round of a sweep has: half as many as there are nodes.
func perRound(o *fleet.OrderState) int {
	if r := o.Rounds; r > 0 && o.Parts%r == 0 && r < 2*(o.Parts/r)+1 {
		return max(o.Parts/r, 1)
	}
	nodes := (1 + math.Sqrt(1+8*float64(o.Parts))) / 2 // of all pairs
	return max(int(nodes)/2, 1)
}

// mostTime bounds how long an order may still take: all its rounds with all the time that they have, and a minute at least.
func mostTime(o *fleet.OrderState, now time.Time) time.Duration {
	r := perRound(o)
	turns := (o.Parts + r - 1) / r
	if o.AtOnce > 0 && o.AtOnce < r {
		turns *= (r + o.AtOnce - 1) / o.AtOnce
	}
	caps := o.Bounds()
	d := time.Duration(turns) * caps.Bound()
	if o.State == fleet.Waiting && o.Next.After(now) {
		d += o.Next.Sub(now)
	}
	return max(d, time.Minute)
}

// figures asks for what an order measured.
func (e *Env) figures(ctx context.Context, got *fleet.OrderReply) (*OrderFigures, error) {
	f := &OrderFigures{}
	switch {
	case got.Measured == 0 || got.Job != "": // what checks measure is not kept
		return f, nil
	case got.What.Measure == fleet.MeasureCollective:
		var kept fleet.CollectivesReply
		if err := e.ask(ctx, "GET", "/api/fleet/collectives", nil, &kept); err != nil {
			return nil, err
		}
		for _, c := range kept.Collectives {
			if c.Order == got.ID && c.Sweep == got.Sweep {
				f.Results = c.Results
			}
		}
		return f, nil
	}
	var err error
	if f.Rate, err = e.spread(ctx, fleet.FigureRate, got.ID); err != nil {
		return nil, err
	}
	f.Latency, err = e.spread(ctx, fleet.FigureLatency, got.ID)
	return f, err
}

// spread is of what the order's last sweep measured, and not of what is known from before; nil where that is
// nothing.
func (e *Env) spread(ctx context.Context, what fleet.Figure, order string) (*OrderSpread, error) {
	q := url.Values{"figure": {string(what)}, "order": {order}}
	var heat fleet.Heat
	if err := e.ask(ctx, "GET", "/api/fleet/pairs?"+q.Encode(), nil, &heat); err != nil {
		return nil, err
	}
	var s *OrderSpread
	for i, row := range heat.Values {
		for j, v := range row {
			if v == nil || i >= len(heat.Names) || j >= len(heat.Names) {
				continue
			}
			if worse := s == nil || (*v < s.Worst) == (what != fleet.FigureLatency) && *v != s.Worst; worse {
				s = &OrderSpread{heat.Median, *v, heat.Names[i], heat.Names[j]}
			}
		}
	}
	return s, nil
}
