package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"busbar/cluster"
	"busbar/fleet"
	"busbar/fleet/hub"
	"busbar/internal/texttab"
	"busbar/unit"
)

type orderListCmd struct {
	common
	clientFlags
	All bool `help:"Also those that are over."`
}

// Help ends with an example.
func (orderListCmd) Help() string { return "Example:\n  busbar order list --all" }

// Run lists.
func (c *orderListCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	var got struct {
		Orders []hub.OrderState `json:"orders"`
	}
	if err := cl.call(e.ctx, "GET", "/api/fleet/orders", nil, &got); err != nil {
		return err
	}
	list := []hub.OrderState{}
	for _, o := range got.Orders {
		if c.All || !o.Final() {
			list = append(list, o)
		}
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"orders": list})
	}
	t := texttab.Table{Columns: []texttab.Column{{Head: "order"}, {Head: "what"}, {Head: "state"}, {Head: "sweep", Align: texttab.Right}, {Head: "parts", Align: texttab.Right}, {Head: "every"}, {Head: "next"}, {Head: "by"}}}
	for _, o := range list {
		every, next := "-", "-"
		if o.Every > 0 {
			every = o.Every.String()
		}
		if !o.Next.IsZero() {
			next = o.Next.Local().Format(time.DateTime)
		}
		t.Row(o.ID, string(o.What.Measure), string(o.State), fmt.Sprint(o.Sweep), fmt.Sprintf("%d of %d", o.Good, o.Parts), every, next, texttab.Clean(o.By))
	}
	return t.Write(e.stdout)
}

type orderCancelCmd struct {
	common
	clientFlags
	IDs []string `arg:"" name:"id" help:"Orders, as busbar order list shows them."`
}

// Help ends with an example.
func (orderCancelCmd) Help() string { return "Example:\n  busbar order cancel 4f2a9c0d1e3b" }

// Run cancels.
func (c *orderCancelCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	done := []hub.OrderReply{}
	var failed error
	for _, id := range c.IDs {
		var got hub.OrderReply
		if err := cl.call(e.ctx, "DELETE", "/api/fleet/orders/"+url.PathEscape(id), nil, &got); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
			continue
		}
		done = append(done, got)
	}
	if c.JSON {
		return errors.Join(writeIndented(e.stdout, map[string]any{"cancelled": done}), failed)
	}
	if !c.Quiet {
		for _, o := range done {
			fmt.Fprintf(e.stderr, "%s is %s\n", o.ID, o.State)
		}
	}
	return failed
}

type orderWatchCmd struct {
	common
	clientFlags
	ID string `arg:"" name:"id" help:"The order."`
}

// Help ends with an example.
func (orderWatchCmd) Help() string {
	return "Shows how far an order is until it ends; of one that repeats, until its running or next sweep ends. Exit code 1 when nothing was measured or a node is bad.\n\nExample:\n  busbar order watch 4f2a9c0d1e3b"
}

// Run watches.
func (c *orderWatchCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	return watch(e, c.common, cl, c.ID)
}

// watch shows an order until it, or its sweep, has ended.
func watch(e *env, o common, cl *client, id string) error {
	clear := func() {}
	defer func() { clear() }()
	began := -1
	for {
		var got hub.OrderReply
		if err := cl.call(e.ctx, "GET", "/api/fleet/orders/"+url.PathEscape(id), nil, &got); err != nil {
			return err
		}
		if began < 0 {
			began = got.Sweep
			if got.State == fleet.Running {
				began--
			}
		}
		if got.Final() || got.Sweep > began && got.State == fleet.Waiting {
			clear()
			return outcome(e, o, &got)
		}
		clear()
		clear = e.progress(o, fmt.Sprintf("%s, sweep %d: %d of %d parts, %d failed", got.State, got.Sweep, got.Good, got.Parts, got.Bad))
		select {
		case <-e.ctx.Done():
			return context.Cause(e.ctx)
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// outcome prints how an order went.
func outcome(e *env, o common, got *hub.OrderReply) error {
	wrong := got.State == fleet.Failed || got.Good == 0 || got.Verdict != nil && len(got.Verdict.Bad) > 0
	var err error
	if o.JSON {
		err = writeIndented(e.stdout, got)
	} else {
		err = printOutcome(e.stdout, got)
	}
	if err == nil && wrong {
		return errWrong
	}
	return err
}

func printOutcome(w io.Writer, got *hub.OrderReply) error {
	fmt.Fprintf(w, "%s: %s, %d of %d parts measured, %d failed", got.ID, got.State, got.Good, got.Parts, got.Bad)
	if took := got.Since.Sub(got.Ran); took > 0 && !got.Ran.IsZero() {
		fmt.Fprintf(w, ", in %v", took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(w)
	if got.Why != "" {
		fmt.Fprintln(w, texttab.Clean(got.Why))
	}
	if v := got.Verdict; v != nil {
		if len(v.Good) > 0 {
			fmt.Fprintf(w, "good: %s\n", formatNames(v.Good))
		}
		for _, b := range v.Bad {
			fmt.Fprintf(w, "bad: %s: %s\n", b.Node, texttab.Clean(b.Why))
		}
		for _, n := range v.Notes {
			fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
		}
	}
	return nil
}

func formatNames(list []fleet.Name) string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = string(n)
	}
	return cluster.FormatSlurmHosts(names)
}

type orderCheckCmd struct {
	common
	clientFlags
	Nodes   string        `required:"" placeholder:"HOSTLIST" help:"The nodes of the job, such as $SLURM_JOB_NODELIST."`
	Job     string        `placeholder:"ID" default:"check" help:"The job, for those who look at orders."`
	Rounds  int           `default:"3" least:"1" help:"With how many others each node is measured."`
	Size    string        `default:"1M" placeholder:"SIZE" help:"Of the messages that bandwidth is measured with."`
	MaxRate string        `name:"max-rate" placeholder:"RATE" help:"The most that a node sends."`
	Within  time.Duration `default:"30s" help:"How long it may take; then it is cancelled, and the exit code is 3."`
}

// Help ends with an example.
func (orderCheckCmd) Help() string {
	return "Exit code 0: all nodes are good; 1: the bad ones are on standard output as a hostlist, with reasons on standard error; 3: it could not be said in time. " +
		"It goes before other orders, and each part takes a few seconds at most.\n\n" +
		"Example:\n  busbar order check --nodes \"$SLURM_JOB_NODELIST\" --job \"$SLURM_JOB_ID\" --server https://head:7641 --token-file /etc/busbar/token"
}

// Run measures and judges.
func (c *orderCheckCmd) Run(e *env) error {
	f := whomFlags{Nodes: c.Nodes, MaxRate: c.MaxRate, Warm: 1, Iters: 5, MaxTime: min(5*time.Second, max(c.Within, time.Millisecond))}
	o, err := f.order()
	if err != nil {
		return err
	}
	o.What.Measure, o.What.Small, o.Rounds, o.Job = fleet.MeasurePairs, 8, c.Rounds, c.Job
	if o.What.Large, err = unit.ParseBytes(c.Size); err != nil {
		return fmt.Errorf("--size: %w", err)
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	if len(o.Nodes) == 1 {
		return c.alone(e, cl, o.Nodes[0])
	}
	if err := o.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(e.ctx, c.Within, fmt.Errorf("it could not be said within %v", c.Within))
	defer cancel()
	var got hub.OrderReply
	if err := cl.call(ctx, "POST", "/api/fleet/orders", o, &got); err != nil {
		return err
	}
	for !got.Final() {
		path := fmt.Sprintf("/api/fleet/orders/%s?wait=20", url.PathEscape(got.ID))
		if err := cl.call(ctx, "GET", path, nil, &got); err != nil {
			last, stop := context.WithTimeout(context.WithoutCancel(e.ctx), 3*time.Second)
			defer stop()
			_ = cl.call(last, "DELETE", "/api/fleet/orders/"+url.PathEscape(got.ID), nil, new(hub.OrderReply)) // the reason is more important
			if ctx.Err() != nil && e.ctx.Err() == nil {
				err = context.Cause(ctx)
			}
			return cannotError{err}
		}
	}
	return c.judge(e, &got)
}

// alone judges a single node, which has nobody to be measured with, by what is known of it.
func (c *orderCheckCmd) alone(e *env, cl *client, name fleet.Name) error {
	var got hub.NodesReply
	ctx, cancel := context.WithTimeout(e.ctx, c.Within)
	defer cancel()
	if err := cl.call(ctx, "GET", "/api/fleet/nodes?brief=1&nodes="+url.QueryEscape(string(name)), nil, &got); err != nil {
		return err
	}
	if len(got.Nodes) != 1 {
		return fmt.Errorf("node %s never joined; busbar nodes lists those that did", name)
	}
	n, v := got.Nodes[0], &hub.Verdict{Notes: []string{"one node: judged by what is known of it, and not measured"}}
	switch {
	case n.State != hub.Up:
		v.Bad = []fleet.Out{{Node: name, Why: string(n.State)}}
	case n.Bad:
		v.Bad = []fleet.Out{{Node: name, Why: strings.Join(n.Findings, ", ")}}
	default:
		v.Good = []fleet.Name{name}
	}
	return c.judge(e, &hub.OrderReply{Verdict: v})
}

// judge prints who is bad.
func (c *orderCheckCmd) judge(e *env, got *hub.OrderReply) error {
	v := got.Verdict
	if v == nil || got.State == fleet.Cancelled {
		return cannotError{fmt.Errorf("order %s was %s %s", got.ID, got.State, got.Why)}
	}
	var names []fleet.Name
	for _, b := range v.Bad {
		names = append(names, b.Node)
		if !c.Quiet && !c.JSON {
			fmt.Fprintf(e.stderr, "%s: %s\n", b.Node, b.Why)
		}
	}
	var err error
	switch {
	case c.JSON:
		err = writeIndented(e.stdout, map[string]any{"order": got.ID, "good": orEmpty(v.Good), "bad": orEmpty(v.Bad), "notes": orEmpty(v.Notes), "hostlist": formatNames(names)})
	case len(names) > 0:
		_, err = fmt.Fprintln(e.stdout, formatNames(names))
	}
	if err == nil && len(names) > 0 {
		return errWrong
	}
	return err
}
