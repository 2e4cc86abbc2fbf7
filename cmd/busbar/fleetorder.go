package main

import (
	"context"
	"errors"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/fleet/client"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/report"
)

// orderCmd is about measurements of a fleet.
type orderCmd struct {
	Pairs      orderingCmd[query.OrderPairs]      `cmd:"" help:"Measure every pair of nodes, in rounds of disjoint pairs."`
	Collective orderingCmd[query.OrderCollective] `cmd:"" help:"Measure a collective across nodes."`
	GPU        orderingCmd[query.OrderGPU]        `cmd:"" name:"gpu" help:"Measure GPUs of nodes by NCCL: a collective over all of them, or every pair of nodes."`
	RDMA       orderingCmd[query.OrderRDMA]       `cmd:"" name:"rdma" help:"Measure RDMA between every pair of nodes with perftest, rail by rail."`
	Check      orderCheckCmd                      `cmd:"" help:"Measure nodes briefly before a job and print the unhealthy ones, for a scheduler's prolog."`
	List       orderListCmd                       `cmd:"" help:"List orders."`
	Watch      orderingCmd[query.OrderWatch]      `cmd:"" help:"Watch an order until it ends."`
	Cancel     orderCancelCmd                     `cmd:"" help:"Cancel orders, running ones too."`
}

// orderingCmd gives or watches an order.
type orderingCmd[Q ordering] struct {
	common
	settings
	client.Options
	Order Q `embed:""`
}

// Run orders or watches.
func (c *orderingCmd[Q]) Run(e *env) error { return e.order(c.common, c.Options, c.Order) }

// ordering is a question that gives or watches an order.
type ordering interface {
	Run(ctx context.Context, env query.Env) (*query.OrderDoc, error)
}

// order asks it and prints what became of the order.
func (e *env) order(o common, server client.Options, ask ordering) error {
	q := e.fleet(o, server)
	var clear func()
	q.Watch, clear = e.watch(o)
	doc, err := ask.Run(e.ctx, q)
	clear()
	if err != nil {
		if doc != nil && (e.ctx.Err() != nil || errors.Is(err, fleet.ErrGone)) {
			o.say(e, "%s: it goes on; busbar fleet order watch %[1]s shows it, busbar fleet order cancel %[1]s ends it", doc.ID)
		}
		return err
	}
	if o.JSON || doc.Waited {
		err = show(e, o, doc, report.Order)
	} else {
		if time.Until(doc.Next) > time.Second {
			o.say(e, "%s: %s", doc.ID, report.OrderProgress(query.OrderProgress{OrderState: doc.OrderState}, time.Now()))
		}
		err = line(e, doc.ID)
	}
	return wrong(doc, err)
}

// watch shows how an order goes: on a terminal in a line that changes, else in lines that stay, one a round.
func (e *env) watch(o common) (show func(query.OrderProgress), clear func()) {
	terminal := isTerminal(e.stderr)
	shown := func() {}
	return func(p query.OrderProgress) {
		// Whoever interrupts it is told what becomes of the order.
		e.lasting.Store(!p.Over)
		if p.Over {
			return
		}
		text := report.OrderProgress(p, time.Now())
		passing := p.Gone == nil && !p.Back
		if p.First || !passing || p.Round && !terminal {
			shown()
			shown = func() {}
			o.say(e, "%s: %s", p.ID, texttab.Clean(text))
		}
		if passing && terminal {
			shown()
			shown = e.progress(o, text)
		}
	}, func() { shown() }
}

type orderCheckCmd struct {
	common
	settings
	client.Options
	query.OrderCheck
}

// Run measures and judges.
func (c *orderCheckCmd) Run(e *env) error {
	d, err := c.OrderCheck.Run(e.ctx, e.fleet(c.common, c.Options))
	if err != nil {
		return err
	}
	return wrong(d, e.hostlist(c.common, d, d.Hostlist, func() {
		for _, b := range d.Bad {
			c.say(e, "%s: %s", b.Node, b.Why)
		}
		if len(d.Bad) == 0 { // standard output is for those that are not
			by := "by their state"
			if d.By != "" {
				by = "measured by " + d.By
			}
			c.say(e, "healthy: %s, %s", words.Plural(len(d.Good), "node"), by)
		}
	}))
}

type orderListCmd struct {
	common
	settings
	client.Options
	query.Orders
}

// Run lists.
func (c *orderListCmd) Run(e *env) error {
	return shown(e, c.common, report.Orders)(c.Orders.Run(e.ctx, e.fleet(c.common, c.Options)))
}

type orderCancelCmd struct {
	common
	settings
	client.Options
	query.OrderCancel
}

// Run cancels.
func (c *orderCancelCmd) Run(e *env) error {
	doc, err := c.OrderCancel.Run(e.ctx, e.fleet(c.common, c.Options))
	if c.JSON {
		return errors.Join(report.JSON(e.stdout, doc), err)
	}
	for _, o := range doc.Cancelled {
		c.say(e, "%s is %s", o.ID, o.State)
	}
	return err
}
