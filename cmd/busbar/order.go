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
	client.Options
	Order Q `embed:""`
}

// Help ends with examples.
func (c *orderingCmd[Q]) Help() string {
	switch any(c.Order).(type) {
	case query.OrderPairs:
		return "Every pair is measured by itself: a node that fails affects its pair only. Nodes that are unreachable, " +
			"have " +
			"left or refuse are listed as left out; busy ones are asked again later in the sweep. " +
			"busbar serve finds faults by comparing sweeps over time: order one every hour.\n\n" +
			"Examples:\n" +
			"  busbar order pairs --wait\n" +
			"  busbar order pairs --every 1h --from 00:30 --max-rate 5GB/s\n" +
			"  busbar order pairs --nodes gpu[001-512] --rounds 16 --every 10min"
	case query.OrderCollective:
		return "One group over all nodes, one rank per node. The page stores and shows the rows. If a node does not join, " +
			"the measurement fails.\n\nExamples:\n" +
			"  busbar order collective --wait\n" +
			"  busbar order collective --nodes gpu[01-08] --op all_gather --size 1M,64M --every 1d --from 03:00"
	case query.OrderGPU:
		return "Agents start busbar-gpu. NCCL runs a collective over all GPUs of all nodes, and results are verified; with " +
			"--pairs, NCCL sends between one GPU of each node of every pair. Nodes without busbar-gpu, a driver or a GPU are " +
			"listed as left out with the reason.\n\nExamples:\n" +
			"  busbar order gpu --wait\n" +
			"  busbar order gpu --pairs --nodes gpu[01-16] --every 6h"
	case query.OrderRDMA:
		return "Agents run ib_write_bw and ib_write_lat of perftest between disjoint pairs of nodes, one rail after the " +
			"other: bandwidth each way, and latency. " +
			"Nodes without perftest or an active RDMA port are listed as left out with the reason. RDMA has a history of its " +
			"own, apart from that of TCP.\n\nExamples:\n" +
			"  busbar order rdma --wait\n" +
			"  busbar order rdma --nodes gpu[001-512] --rounds 16 --every 1h"
	case query.OrderWatch:
		return "Shows the progress of an order until it ends; of a repeating one, until its running or next sweep ends. " +
			"Progress goes to standard error: one changing line on a terminal, else a line at the start and one per round. If " +
			"the server restarts meanwhile, it waits. Exit code 1: nothing was measured, or a node is unhealthy.\n\nExample:\n" +
			" " +
			" busbar order watch 4f2a9c0d1e3b"
	}
	return ""
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
			o.say(e, "%s: it goes on; busbar order watch %[1]s shows it, busbar order cancel %[1]s ends it", doc.ID)
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
	client.Options
	query.OrderCheck
}

// Help ends with an example.
func (orderCheckCmd) Help() string {
	return "Exit code 0: all nodes are healthy, which one line on standard error says; 1: the unhealthy ones are on " +
		"standard output as a hostlist, with reasons on standard error; 2: wrong usage, nothing was checked; 3: no answer " +
		"in time. " +
		"A node that never joined is unhealthy, and the others are measured. " +
		"It takes precedence over other orders, and each part takes a few seconds at most. A node that looks slow is " +
		"measured a second time, and is unhealthy only if it is slow again.\n\n" +
		"Example:\n  busbar order check --nodes \"$SLURM_JOB_NODELIST\" --job \"$SLURM_JOB_ID\" --server https://head:7641 " +
		"--token-file /etc/busbar/token"
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
	client.Options
	query.Orders
}

// Help ends with an example.
func (orderListCmd) Help() string {
	return "Lists what each order measures, or the job that it checks nodes for; its progress, interval, next start, " +
		"and the token that gave it. A check that measures a second time is two orders.\n\nExample:\n  busbar order list " +
		"--all"
}

// Run lists.
func (c *orderListCmd) Run(e *env) error {
	return shown(e, c.common, report.Orders)(c.Orders.Run(e.ctx, e.fleet(c.common, c.Options)))
}

type orderCancelCmd struct {
	common
	client.Options
	query.OrderCancel
}

// Help ends with an example.
func (orderCancelCmd) Help() string { return "Example:\n  busbar order cancel 4f2a9c0d1e3b" }

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
