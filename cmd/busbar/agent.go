package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
	"busbar.dev/query"
)

type agentCmd struct {
	common
	settings
	agent.Options
}

// Run is the node until a signal ends it.
func (c *agentCmd) Run(e *env) error {
	if err := c.Identify(e.ctx, func(text string) { c.note(e, text) }); err != nil {
		return err
	}
	cfg, err := c.Config()
	if err != nil {
		return err
	}
	if c.Creds == "" {
		c.note(e, fmt.Sprintf("no --creds; busbar serve refuses that: busbar serve token node %s on its machine makes them",
			cfg.Name))
	}
	cfg.Version, cfg.On, cfg.Map = buildVersion(), c.printer(e), e.ownMap
	cfg.Health = func(ctx context.Context) []finding.Finding {
		return gpuPrograms().Health(string(cfg.Name), "").Read(ctx).Findings
	}
	node := &measure.FleetNode{With: gpuPrograms(), Bind: cfg.Bind, Perftest: c.Perftest}
	cfg.Means = map[fleet.Transport]func(context.Context) error{fleet.RDMA: node.LacksRDMA, fleet.NCCL: node.LacksNCCL}
	cfg.Measure = agent.ThisProgram(cfg.Bind, c.Perftest).Measure
	debug.SetGCPercent(50) // it lives long and does little: memory counts more than a collection
	err = agent.Run(e.ctx, cfg)
	if errors.As(err, new(*bus.ConflictError)) ||
		errors.As(err, new(*os.PathError)) || errors.Is(err, bus.ErrInUse) {
		return failure.Cannot(err)
	}
	return err
}

// measurePart does a part where an agent started this program for it, and else returns.
func measurePart() {
	if a := os.Args; len(a) == 4 && a[1] == agent.PartArgument {
		node := &measure.FleetNode{With: gpuPrograms(), Bind: a[2], Perftest: a[3]}
		agent.RunPart(a[2], buildVersion(), map[fleet.Transport]agent.Measurer{fleet.RDMA: node.RDMA, fleet.NCCL: node.NCCL})
	}
}

// ownMap is this machine as busbar map --json prints it.
func (e *env) ownMap() (json.RawMessage, error) {
	doc, err := query.Map{}.Run(e.ctx, e.query(common{Quiet: true}))
	if err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// printer prints what happens: lines of JSON on standard output, or words on standard error.
func (c *agentCmd) printer(e *env) func(agent.Event) {
	var mu sync.Mutex
	return func(v agent.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case c.JSON:
			if data, err := json.Marshal(v); err == nil {
				fmt.Fprintf(e.stdout, "%s\n", data)
			}
		case !c.Quiet:
			fmt.Fprintf(e.stderr, "%s %s: %s\n", v.At.Format(time.TimeOnly), v.What, v.Text)
		}
	}
}
