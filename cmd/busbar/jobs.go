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
