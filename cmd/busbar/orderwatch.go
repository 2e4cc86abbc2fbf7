package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

type orderListCmd struct {
	common
	clientFlags
	All bool `help:"Also those that are over."`
}

// Help ends with an example.
func (orderListCmd) Help() string {
	return "What an order measures, or that it is a check before a job, and of which; how far it is, how often and when next, and whose token gave it. A check that measures a second time is two orders.\n\nExample:\n  busbar order list --all"
}

// Run lists.
func (c *orderListCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	var got struct {
		Orders []fleet.OrderState `json:"orders"`
	}
	if err := cl.call(e.ctx, "GET", "/api/fleet/orders", nil, &got); err != nil {
		return err
	}
	list := []fleet.OrderState{}
	for _, o := range got.Orders {
		if c.All || !o.Final() {
			list = append(list, o)
		}
	}
	if len(list) == 0 && !c.JSON {
		text := "no order waits or runs"
		if over := len(got.Orders); over > 0 {
			text += fmt.Sprintf("; %d are over: --all", over)
		}
		_, err := fmt.Fprintln(e.stdout, text)
		return err
	}
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"orders": list})
	}
	t := texttab.Table{Columns: []texttab.Column{{Head: "order"}, {Head: "what"}, {Head: "job"}, {Head: "state"}, {Head: "sweep", Align: texttab.Right}, {Head: "parts", Align: texttab.Right}, {Head: "every"}, {Head: "next"}, {Head: "by"}}}
	for _, o := range list {
		every, next := "-", "-"
		if o.Every > 0 {
			every = spanText(o.Every)
		}
		if !o.Next.IsZero() {
			next = clockText(o.Next)
		}
		what, job := purpose(&o.Order)
		t.Row(o.ID, what, texttab.Clean(job), string(o.State), fmt.Sprint(o.Sweep), fmt.Sprintf("%d of %d", o.Good, o.Parts), every, next, texttab.Clean(o.By))
	}
	return t.Write(e.stdout)
}

// purpose is what an order is for, and the job that is about to start where it is a check.
func purpose(o *fleet.Order) (what, job string) {
	switch o.Job {
	case "":
		return string(o.What.Measure), "-"
	case unnamedJob:
		return "check", "-"
	}
	return "check", o.Job
}

// spanText is a time as --every takes it.
func spanText(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return unit.Span(d.Seconds()).String()
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
	done := []fleet.OrderReply{}
	var failed error
	for _, id := range c.IDs {
		var got fleet.OrderReply
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
	return "Shows how far an order is until it ends; of one that repeats, until its running or next sweep ends. What it shows goes to standard error: a line that changes on a terminal, else one at the start and one for each round. A server that is started again in between is waited for. Exit code 1 when nothing was measured or a node is bad.\n\nExample:\n  busbar order watch 4f2a9c0d1e3b"
}

// Run watches.
func (c *orderWatchCmd) Run(e *env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	var got fleet.OrderReply
	if err := cl.call(e.ctx, "GET", "/api/fleet/orders/"+url.PathEscape(c.ID), nil, &got); err != nil {
		return err
	}
	return watch(e, c.common, cl, &got)
}

// outcome prints how an order went and what it measured.
func outcome(e *env, o common, cl *client, got *fleet.OrderReply) error {
	wrong := got.State == fleet.Failed || got.Good == 0 || got.Verdict != nil && len(got.Verdict.Bad) > 0
	fig, err := figuresOf(e.ctx, cl, got)
	if err != nil {
		return err
	}
	if o.JSON {
		err = writeIndented(e.stdout, struct {
			*fleet.OrderReply
			*figures
		}{got, fig})
	} else if err = printOutcome(e.stdout, got); err == nil {
		err = fig.print(e.stdout)
	}
	if err == nil && wrong {
		return errWrong
	}
	return err
}

func printOutcome(w io.Writer, got *fleet.OrderReply) error {
	fmt.Fprintf(w, "%s: %s, %d of %d parts measured, %d failed", got.ID, got.State, got.Good, got.Parts, got.Bad)
	if got.Left > 0 {
		fmt.Fprintf(w, ", %d left out", got.Left)
	}
	if took := got.Since.Sub(got.Ran); took > 0 && !got.Ran.IsZero() {
		fmt.Fprintf(w, ", in %v", took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(w)
	if got.Why != "" {
		fmt.Fprintln(w, texttab.Clean(got.Why))
	}
	printReasons(w, got)
	if v := got.Verdict; v != nil {
		if len(v.Good) > 0 {
			fmt.Fprintf(w, "good: %s\n", formatNames(v.Good))
		}
		if len(v.Unmeasured) > 0 {
			fmt.Fprintf(w, "not measured: %s\n", formatNames(v.Unmeasured))
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
