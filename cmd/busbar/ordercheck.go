package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// unnamedJob stands for a job whose name was not given: an order without any is no check.
const unnamedJob = "check"

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
	return "Exit code 0: all nodes are good; 1: the bad ones are on standard output as a hostlist, with reasons on standard error; 2: it was asked in a wrong way, and nobody was checked; 3: it could not be said in time. " +
		"A node that never joined is bad, and the others are measured. " +
		"It goes before other orders, and each part takes a few seconds at most. Who looks slow is measured a second time, and is bad only if it is slow again.\n\n" +
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
	got, err := c.measure(ctx, e.ctx, cl, o)
	if err != nil {
		return err
	}
	if !measuredSlow(got) {
		return c.judge(e, got)
	}
	// One short measurement scatters, and who is named here may be drained.
	if again, err := c.measure(ctx, e.ctx, cl, o); err == nil && again.Verdict != nil && again.State != fleet.Cancelled {
		got = onlyTwice(got, again)
	}
	return c.judge(e, got)
}

// measure orders once and waits for the verdict.
func (c *orderCheckCmd) measure(ctx, whole context.Context, cl *client, o fleet.Order) (*fleet.OrderReply, error) {
	var got fleet.OrderReply
	if err := cl.call(ctx, "POST", "/api/fleet/orders", o, &got); err != nil {
		return nil, err
	}
	for !got.Final() {
		path := fmt.Sprintf("/api/fleet/orders/%s?wait=20", url.PathEscape(got.ID))
		err := cl.call(ctx, "GET", path, nil, &got)
		if errors.As(err, new(goneError)) && ctx.Err() == nil { // it is started again, and the order goes on then
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		if err != nil {
			last, stop := context.WithTimeout(context.WithoutCancel(whole), 3*time.Second)
			defer stop()
			_ = cl.call(last, "DELETE", "/api/fleet/orders/"+url.PathEscape(got.ID), nil, new(fleet.OrderReply)) // the reason is more important
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
	return got.Verdict != nil && slices.ContainsFunc(got.Verdict.Bad, func(b fleet.Out) bool {
		return !slices.ContainsFunc(got.Out, func(o fleet.Out) bool { return o.Node == b.Node })
	})
}

// onlyTwice is the second of two verdicts, where only who was bad in both is bad.
func onlyTwice(first, second *fleet.OrderReply) *fleet.OrderReply {
	v := &fleet.Verdict{Good: slices.Clone(second.Verdict.Good), Bad: []fleet.Out{}, Unmeasured: slices.Clone(second.Verdict.Unmeasured), Notes: slices.Clone(second.Verdict.Notes)}
	for _, b := range second.Verdict.Bad {
		if slices.ContainsFunc(first.Verdict.Bad, func(o fleet.Out) bool { return o.Node == b.Node }) {
			v.Bad = append(v.Bad, b)
			continue
		}
		v.Good = append(v.Good, b.Node)
		v.Notes = append(v.Notes, fmt.Sprintf("%s was slow in one of two measurements: %s", b.Node, b.Why))
	}
	got := *second
	got.Verdict = v
	return &got
}

// alone judges a single node, which has nobody to be measured with, by what is known of it.
func (c *orderCheckCmd) alone(e *env, cl *client, name fleet.Name) error {
	var got fleet.NodesReply
	ctx, cancel := context.WithTimeout(e.ctx, c.Within)
	defer cancel()
	if err := cl.call(ctx, "GET", "/api/fleet/nodes?brief=1&nodes="+url.QueryEscape(string(name)), nil, &got); err != nil {
		return err
	}
	v := &fleet.Verdict{Notes: []string{"one node: judged by what is known of it, and not measured"}}
	if len(got.Nodes) != 1 {
		v.Bad = []fleet.Out{{Node: name, Why: "never joined"}}
		return c.judge(e, &fleet.OrderReply{Verdict: v})
	}
	switch n := got.Nodes[0]; {
	case n.State != fleet.NodeUp:
		v.Bad = []fleet.Out{{Node: name, Why: string(n.State)}}
	case n.Bad:
		v.Bad = []fleet.Out{{Node: name, Why: strings.Join(n.Findings, ", ")}}
	default:
		v.Good = []fleet.Name{name}
	}
	return c.judge(e, &fleet.OrderReply{Verdict: v})
}

// judge prints who is bad.
func (c *orderCheckCmd) judge(e *env, got *fleet.OrderReply) error {
	v := got.Verdict
	if v == nil || got.State == fleet.Cancelled {
		return failure.Cannot(fmt.Errorf("order %s was %s %s", got.ID, got.State, got.Why))
	}
	if len(v.Unmeasured) > 0 && len(v.Good)+len(v.Bad) == 0 {
		return failure.Cannot(fmt.Errorf("order %s: %s could not be measured, so that nothing can be said of them; %s", got.ID, formatNames(v.Unmeasured), cmp.Or(got.Why, "busbar order watch "+got.ID+" says more")))
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
