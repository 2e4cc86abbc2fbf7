package query

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
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

func (b *OrderBounds) order() (o fleet.Order, err error) {
	if b.Nodes != "" {
		hosts, err := cluster.ParseHosts(b.Nodes)
		if err != nil {
			return o, fmt.Errorf("--nodes: %w", err)
		}
		for _, h := range hosts {
			n, err := fleet.ParseName(h)
			if err != nil {
				return o, fmt.Errorf("--nodes: %w", err)
			}
			o.Nodes = append(o.Nodes, n)
		}
	}
	if b.MaxRate != "" {
		if o.Caps.Rate, err = unit.ParseRate(b.MaxRate); err != nil {
			return o, fmt.Errorf("--max-rate: %w", err)
		}
	}
	switch b.Busy {
	case "":
	case "any":
		o.Caps.Always = true
	default:
		if o.Caps.Busy, err = unit.ParseRate(b.Busy); err != nil {
			return o, fmt.Errorf("--busy: %w; or any, to never refuse", err)
		}
	}
	o.Caps.Time = b.MaxTime
	o.What.Warm, o.What.Iters = *b.Warm, b.Iters
	return o, nil
}

// schedule fills in when an order runs.
func (t *OrderTimes) schedule(o *fleet.Order, now time.Time) error {
	if t.Every != "" {
		span, err := unit.ParseSpan(t.Every)
		if err != nil || span > unit.Year {
			return fmt.Errorf("--every %s: expected a time such as 30min, 1h or 1d", t.Every)
		}
		o.Every = time.Duration(span.Seconds() * float64(time.Second))
	}
	if t.Every != "" && t.Wait {
		return errors.New("--wait: an order with --every does not end; busbar order watch shows it")
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
func (q OrderPairs) Run(ctx context.Context, env Env) (doc *OrderDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	o, err := q.order()
	if err != nil {
		return nil, err
	}
	o.What.Measure, o.Rounds, o.AtOnce = fleet.MeasurePairs, q.Rounds, q.AtOnce
	if o.What.Large, err = q.Size.bytes(); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if o.What.Small, err = q.Small.bytes(); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	return env.order(ctx, o, q.OrderTimes)
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
func (q OrderCollective) Run(ctx context.Context, env Env) (doc *OrderDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	o, err := q.order()
	if err != nil {
		return nil, err
	}
	o.What.Measure = fleet.MeasureCollective
	if o.What.Op, err = q.Op.kind(); err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	if q.Algo != "auto" {
		o.What.Algo = q.Algo
	}
	for _, s := range q.Size {
		b, err := unit.ParseBytes(s)
		if err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
		o.What.Sizes = append(o.What.Sizes, b)
	}
	return env.order(ctx, o, q.OrderTimes)
}

// order gives an order to the server.
func (e *Env) order(ctx context.Context, o fleet.Order, t OrderTimes) (*OrderDoc, error) {
	if err := t.schedule(&o, e.now()); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	doc := &OrderDoc{OrderReply: &fleet.OrderReply{}}
	if err := e.ask(ctx, "POST", "/api/fleet/orders", o, doc.OrderReply); err != nil {
		return nil, err
	}
	if t.Wait {
		return e.watch(ctx, doc)
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
	Over   int                `json:"-"` // how many are over, whether listed or not
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
	IDs []string `arg:"" name:"id" help:"Order ids, as busbar order list shows them."`
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
