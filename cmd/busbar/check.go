package main

import (
	"fmt"
	"os"

	"busbar.dev/engine/ranks"
	"busbar.dev/measure"
	"busbar.dev/query"
	"busbar.dev/report"
)

type checkCmd struct {
	common
	settings
	ranks.Job
	query.Check
	JUnit string `name:"output" short:"o" placeholder:"FILE.xml" help:"Also write the verdicts to FILE as JUnit XML, one case per node."`
	Emit  string `placeholder:"KIND" help:"Print what runs the check instead, with -c and the other flags given: ansible (a playbook), slurm (a prolog and health check) or kube (a Job)."`
	As    string `placeholder:"PROGRAM" enum:",nvsentinel" default:"" help:"nvsentinel: run as a preflight check of NVSentinel: take the gang from its ConfigMap, and report each node over its socket."`
}

// Run checks as a rank, starts ranks that do, or asks hosts.
func (c *checkCmd) Run(e *env) error {
	if c.As != "" {
		return c.preflight(e)
	}
	if c.Emit != "" {
		program, err := os.Executable()
		if err != nil {
			program = "busbar"
		}
		if c.JUnit != "" {
			return fmt.Errorf("--emit %s and -o %s: expected one of them", c.Emit, c.JUnit)
		}
		text, err := query.CheckFile(e.ctx, e.measuring(c.common), c.Emit, program, c.Check)
		if err == nil {
			_, err = fmt.Fprint(e.stdout, text)
		}
		return err
	}
	with := gpuPrograms()
	if c.Hosts != "" {
		if err := e.writable(c.JUnit); err != nil {
			return err
		}
		d, err := c.Check.RunWith(e.ctx, e.measuring(c.common), with)
		if err != nil {
			return err
		}
		return c.answer(e, d, e.into(c.JUnit))
	}
	ready := func() error { return e.writable(c.JUnit) }
	_, err := c.Check.RunOn(e.ctx, e.measuring(c.common), with,
		onRanks(e, c.common, c.Job, ready, e.into(c.JUnit), c.answer))
	return fromRanks(err)
}

func (c *checkCmd) answer(e *env, d *measure.Check, keep func([]byte) error) (err error) {
	err = show(e, c.common, d, report.Check)
	if err == nil && c.JUnit != "" {
		var data []byte
		if data, err = report.CheckJUnit(d); err == nil {
			err = keep(data)
		}
	}
	return wrong(d, err)
}
