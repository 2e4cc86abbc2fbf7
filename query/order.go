package query

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/unit"
)

// OrderBounds are who is measured, and within which bounds.
type OrderBounds struct {
	Nodes   string        `placeholder:"HOSTLIST" help:"Who takes part: gpu[01-16]. Without it all nodes that are up."`
	MaxRate string        `name:"max-rate" placeholder:"RATE" help:"The most that a node sends, such as 10GB/s; without it there is no bound."`
	MaxTime time.Duration `name:"max-time" placeholder:"TIME" help:"The most that one part of it takes; 20s without it."`
	Busy    string        `placeholder:"RATE" help:"Traffic on the interface above which a node refuses, for a job is running there; 50MB/s without it, any for never."`
	Warm    *int          `short:"w" name:"warmup" default:"2" least:"0" help:"Runs before those that count."`
	Iters   int           `name:"iters" default:"10" least:"1" help:"Runs that count."`
}

// OrderTimes are when and how often it is measured.
type OrderTimes struct {
	Every string `placeholder:"TIME" help:"Again and again, such as 1h; at least 10s."`
	From  string `placeholder:"TIME" help:"The first time: 02:30, the next by the clock of this machine, or 2026-12-01T02:30:00Z; without it now. With --every a date that is past is where times are counted from."`
	Wait  bool   `help:"Wait until it has ended, and exit 1 when nothing was measured or a node is bad."`
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
			return o, fmt.Errorf("--busy: %w; or any, for nodes that shall never refuse", err)
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
	Size   string `default:"4M" placeholder:"SIZE" help:"Of the messages that bandwidth is measured with."`
	Small  string `default:"8" placeholder:"SIZE" help:"Of the messages that latency is measured with."`
	Rounds int    `default:"0" least:"0" help:"The most rounds of a sweep; the next sweep goes on where the last one ended. 0 is all."`
	AtOnce int    `name:"at-once" default:"0" least:"0" help:"The most pairs at once. 0 is all of a round."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderPairs) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	o, err := q.order()
	if err != nil {
		return nil, err
	}
	o.What.Measure, o.Rounds, o.AtOnce = fleet.MeasurePairs, q.Rounds, q.AtOnce
	if o.What.Large, err = unit.ParseBytes(q.Size); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if o.What.Small, err = unit.ParseBytes(q.Small); err != nil {
		return nil, fmt.Errorf("--small: %w", err)
	}
	return env.order(ctx, o, q.OrderTimes)
}

// OrderCollective orders a measurement of a collective over nodes, one rank each.
type OrderCollective struct {
	OrderBounds
	OrderTimes
	Op   string   `default:"all_reduce" help:"The collective."`
	Algo string   `default:"auto" help:"The algorithm, or auto for the engine's choice by size."`
	Size []string `default:"1M,16M" placeholder:"SIZE" help:"Sizes."`
}

// Run orders, and waits for the end where that is asked for; see OrderWatch.
func (q OrderCollective) Run(ctx context.Context, env Env) (*OrderDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	o, err := q.order()
	if err != nil {
		return nil, err
	}
	o.What.Measure = fleet.MeasureCollective
	if o.What.Op, err = coll.ParseKind(q.Op); err != nil {
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
	All bool `help:"Also those that are over."`
}

// OrdersDoc is the answer to Orders.
type OrdersDoc struct {
	Orders []fleet.OrderState `json:"orders"`
	Over   int                `json:"-"` // how many are over, whether listed or not
}

// Run asks the server.
func (q Orders) Run(ctx context.Context, env Env) (*OrdersDoc, error) {
	var got fleet.OrdersReply
	if err := env.ask(ctx, "GET", "/api/fleet/orders", nil, &got); err != nil {
		return nil, err
	}
	doc := &OrdersDoc{Orders: []fleet.OrderState{}}
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
	IDs []string `arg:"" name:"id" help:"Orders, as busbar order list shows them."`
}

// OrderCancelDoc is the answer to OrderCancel.
type OrderCancelDoc struct {
	Cancelled []fleet.OrderReply `json:"cancelled"`
}

// Run cancels one by one. Where some cannot be, the document has the others.
func (q OrderCancel) Run(ctx context.Context, env Env) (*OrderCancelDoc, error) {
	doc := &OrderCancelDoc{Cancelled: []fleet.OrderReply{}}
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
