package main

import (
	"errors"
	"fmt"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/fleet"
	"busbar.dev/unit"
)

// orderCmd is about measurements of a fleet.
type orderCmd struct {
	Pairs      orderPairsCmd      `cmd:"" help:"Measure every pair of nodes, in rounds in which nobody is in two."`
	Collective orderCollectiveCmd `cmd:"" help:"Measure a collective over nodes."`
	Check      orderCheckCmd      `cmd:"" help:"Measure nodes briefly before a job and say which are good: for a scheduler's prolog."`
	List       orderListCmd       `cmd:"" help:"List orders."`
	Watch      orderWatchCmd      `cmd:"" help:"Watch an order until it ends."`
	Cancel     orderCancelCmd     `cmd:"" help:"Cancel orders; what runs is stopped."`
}

// whomFlags are who is measured, and within which bounds.
type whomFlags struct {
	Nodes   string        `placeholder:"HOSTLIST" help:"Who takes part: gpu[01-16]. Without it all nodes that are up."`
	MaxRate string        `name:"max-rate" placeholder:"RATE" help:"The most that a node sends, such as 10GB/s; without it there is no bound."`
	MaxTime time.Duration `name:"max-time" placeholder:"TIME" help:"The most that one part of it takes; 20s without it."`
	Busy    string        `placeholder:"RATE" help:"Traffic on the interface above which a node refuses, for a job is running there; 50MB/s without it, any for never."`
	Warm    int           `short:"w" name:"warmup" default:"2" least:"0" help:"Runs before those that count."`
	Iters   int           `name:"iters" default:"10" least:"1" help:"Runs that count."`
}

// whenFlags are how often.
type whenFlags struct {
	Every string `placeholder:"TIME" help:"Again and again, such as 1h; at least 10s."`
	From  string `placeholder:"TIME" help:"The first time: 02:30, the next by the clock of this machine, or 2026-12-01T02:30:00Z; without it now. With --every a date that is past is where times are counted from."`
	Wait  bool   `help:"Wait until it has ended, and exit 1 when nothing was measured or a node is bad."`
}

func (f *whomFlags) order() (o fleet.Order, err error) {
	if f.Nodes != "" {
		hosts, err := cluster.ParseHosts(f.Nodes)
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
	if f.MaxRate != "" {
		if o.Caps.Rate, err = unit.ParseRate(f.MaxRate); err != nil {
			return o, fmt.Errorf("--max-rate: %w", err)
		}
	}
	switch f.Busy {
	case "":
	case "any":
		o.Caps.Always = true
	default:
		if o.Caps.Busy, err = unit.ParseRate(f.Busy); err != nil {
			return o, fmt.Errorf("--busy: %w; or any, for nodes that shall never refuse", err)
		}
	}
	o.Caps.Time = f.MaxTime
	o.What.Warm, o.What.Iters = f.Warm, f.Iters
	return o, nil
}

// when fills the schedule.
func (f *whenFlags) when(o *fleet.Order, now time.Time) error {
	if f.Every != "" {
		span, err := unit.ParseSpan(f.Every)
		if err != nil || span > unit.Year {
			return fmt.Errorf("--every %s: expected a time such as 30min, 1h or 1d", f.Every)
		}
		o.Every = time.Duration(span.Seconds() * float64(time.Second))
	}
	if f.Every != "" && f.Wait {
		return errors.New("--wait: an order with --every does not end; busbar order watch shows it")
	}
	if f.From == "" {
		return nil
	}
	if at, err := time.Parse(time.RFC3339, f.From); err == nil {
		o.From = at
		return nil
	}
	at, err := time.ParseInLocation("15:04", f.From, now.Location())
	if err != nil {
		return fmt.Errorf("--from %s: expected 02:30 or 2026-12-01T02:30:00Z", f.From)
	}
	o.From = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, now.Location())
	if o.From.Before(now) {
		o.From = o.From.AddDate(0, 0, 1)
	}
	return nil
}

type orderPairsCmd struct {
	common
	clientFlags
	whomFlags
	whenFlags
	Size   string `default:"4M" placeholder:"SIZE" help:"Of the messages that bandwidth is measured with."`
	Small  string `default:"8" placeholder:"SIZE" help:"Of the messages that latency is measured with."`
	Rounds int    `default:"0" least:"0" help:"The most rounds of a sweep; the next sweep goes on where the last one ended. 0 is all."`
	AtOnce int    `name:"at-once" default:"0" least:"0" help:"The most pairs at once. 0 is all of a round."`
}

// Help ends with examples.
func (orderPairsCmd) Help() string {
	return "Every pair is a group of its own: a node that dies spoils its pair. Nodes that are silent, have left or refuse are left out and named; busy ones are asked again later in the sweep. " +
		"What sweeps show over time is what busbar serve finds faults from: order one every hour.\n\n" +
		"Examples:\n" +
		"  busbar order pairs --wait\n" +
		"  busbar order pairs --every 1h --from 00:30 --max-rate 5GB/s\n" +
		"  busbar order pairs --nodes gpu[001-512] --rounds 16 --every 10min"
}

// Run orders.
func (c *orderPairsCmd) Run(e *env) error {
	o, err := c.order()
	if err != nil {
		return err
	}
	o.What.Measure, o.Rounds, o.AtOnce = fleet.MeasurePairs, c.Rounds, c.AtOnce
	if o.What.Large, err = unit.ParseBytes(c.Size); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	if o.What.Small, err = unit.ParseBytes(c.Small); err != nil {
		return fmt.Errorf("--small: %w", err)
	}
	if err := c.when(&o, time.Now()); err != nil {
		return err
	}
	return give(e, c.common, &c.clientFlags, o, c.Wait)
}

type orderCollectiveCmd struct {
	common
	clientFlags
	whomFlags
	whenFlags
	Op   string   `default:"all_reduce" help:"The collective."`
	Algo string   `default:"auto" help:"The algorithm, or auto for the engine's choice by size."`
	Size []string `default:"1M,16M" placeholder:"SIZE" help:"Sizes."`
}

// Help ends with examples.
func (orderCollectiveCmd) Help() string {
	return "One group over all nodes, one rank each. Rows are kept and shown by the page; a node that does not come fails it.\n\nExamples:\n" +
		"  busbar order collective --wait\n" +
		"  busbar order collective --nodes gpu[01-08] --op all_gather --size 1M,64M --every 1d --from 03:00"
}

// Run orders.
func (c *orderCollectiveCmd) Run(e *env) error {
	o, err := c.order()
	if err != nil {
		return err
	}
	o.What.Measure = fleet.MeasureCollective
	if o.What.Op, err = coll.ParseKind(c.Op); err != nil {
		return fmt.Errorf("--op: %w", err)
	}
	if c.Algo != "auto" {
		o.What.Algo = c.Algo
	}
	for _, s := range c.Size {
		b, err := unit.ParseBytes(s)
		if err != nil {
			return fmt.Errorf("--size: %w", err)
		}
		o.What.Sizes = append(o.What.Sizes, b)
	}
	if err := c.when(&o, time.Now()); err != nil {
		return err
	}
	return give(e, c.common, &c.clientFlags, o, c.Wait)
}

// give sends an order, and waits for its end where that is asked for.
func give(e *env, o common, f *clientFlags, order fleet.Order, wait bool) error {
	if err := order.Check(); err != nil {
		return err
	}
	cl, err := f.client()
	if err != nil {
		return err
	}
	var got fleet.OrderReply
	if err := cl.call(e.ctx, "POST", "/api/fleet/orders", order, &got); err != nil {
		return err
	}
	if wait {
		return watch(e, o, cl, &got)
	}
	if o.JSON {
		return writeIndented(e.stdout, got)
	}
	if time.Until(got.Next) > time.Second && !o.Quiet {
		fmt.Fprintf(e.stderr, "%s: %s\n", got.ID, howFar(&got.OrderState, time.Now()))
	}
	_, err = fmt.Fprintln(e.stdout, got.ID)
	return err
}
