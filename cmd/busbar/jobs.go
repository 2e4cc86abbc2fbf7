package main

import (
	"errors"
	"fmt"
	"time"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// jobsCmd shows the rates of running jobs.
type jobsCmd struct {
	common
	query.Jobs
}

// Help ends with examples.
func (jobsCmd) Help() string {
	return "Reads what busbar's profiler plugin for NCCL (busbar exec --profile, NCCL 2.24 to 2.30) or NCCL's Inspector " +
		"recorded of every operation, and shows per communicator, operation and size: calls, time, bus bandwidth, and what " +
		"is expected of them by predict. " +
		"The time of a collective is split into transfer and waiting for the rank that came last, without synchronized " +
		"clocks: that rank's own call is the shortest.\n\n" +
		"Exit code 1: a rank is late by more than 3% of the time, or a transfer takes longer than the error bar allows.\n\n" +
		"Examples:\n" +
		"  busbar jobs\n" +
		"  busbar jobs -c dgx-h100:2 --watch\n" +
		"  busbar jobs docs/examples/jobs -c dgx-h100:2\n" +
		"  busbar jobs /dev/shm --since 10s --json"
}

// Run reads and reports, with --watch until it is interrupted.
func (c *jobsCmd) Run(e *env) error {
	q := e.query(c.common)
	for {
		doc, err := c.Jobs.Run(e.ctx, q)
		if err != nil {
			return err
		}
		if c.Watch {
			fmt.Fprintln(e.stdout, time.Now().Format(time.TimeOnly))
		}
		err = e.show(ask.Named("jobs"), doc, c.common)
		if err != nil || !c.Watch {
			return wrong(doc, err)
		}
		select {
		case <-e.ctx.Done():
			return errors.Join(e.ctx.Err())
		case <-time.After(c.Every):
		}
	}
}
