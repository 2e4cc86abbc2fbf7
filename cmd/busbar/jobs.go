package main

import (
	"fmt"
	"time"

	"busbar.dev/query"
	"busbar.dev/report"
)

// jobsCmd shows the rates of running jobs.
type jobsCmd struct {
	common
	query.Jobs
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
		err = show(e, c.common, doc, report.Jobs)
		if err != nil || !c.Watch {
			return wrong(doc, err)
		}
		select {
		case <-e.ctx.Done():
			return e.ctx.Err()
		case <-time.After(c.Every):
		}
	}
}
