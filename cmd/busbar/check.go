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
	ranks.Job
	query.Check
	JUnit string `name:"junit" placeholder:"FILE" help:"Also write the verdicts to FILE as JUnit XML, one case per node."`
	Emit  string `placeholder:"KIND" help:"Print what runs the check instead, with -c and the other flags given: ansible (a playbook), slurm (a prolog) or kube (a Job)."`
}

// Help ends with examples.
func (checkCmd) Help() string {
	return "Checks each node (GPU clocks, throttling, memory errors, PCIe, NVLink and fabric, read by busbar-gpu), then " +
		"pairs of nodes in rounds of disjoint pairs, then an all-reduce over all nodes. " +
		"Up to 128 nodes every pair is measured. Of more nodes, each is measured with about 60 others, near and far. " +
		"With --hosts, pairs are measured by NCCL between GPUs, with busbar-gpu on every host; otherwise between the ranks " +
		"that a launcher starts, by RDMA with perftest where all hosts have it, else over TCP. The output says which. " +
		"GPUs are compared with their own limits, with GPUs of the same model, and with the predicted time of a matrix " +
		"product and a copy (of the cluster of -c). Pairs are compared with the others, and outliers are measured again. " +
		"Over TCP, lost packets and the segment size (MTU) are read from the kernel's counters. A pair that does not end " +
		"within its time limit is a finding.\n\n" +
		"Exit code 1: a node is unhealthy or unreachable, or one of its pairs is slow. The unhealthy and unreachable nodes " +
		"are printed as a hostlist.\n\n" +
		"Examples:\n" +
		"  srun -N 16 --ntasks-per-node 1 busbar check --junit check.xml\n" +
		"  busbar check --hosts gpu[01-16]\n" +
		"  busbar check -c cluster.yaml --emit ansible > check.yml && ansible-playbook -i hosts check.yml\n" +
		"  busbar check -n 2 --json"
}

// Run checks as a rank, starts ranks that do, or asks hosts.
func (c *checkCmd) Run(e *env) error {
	if c.Emit != "" {
		program, err := os.Executable()
		if err != nil {
			program = "busbar"
		}
		if c.JUnit != "" {
			return fmt.Errorf("--emit %s and --junit %s: expected one of them", c.Emit, c.JUnit)
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
		return c.answer(e, d, func(data []byte) error { return e.writeFile(c.JUnit, bytesOf(data)) })
	}
	_, err := c.Check.RunOn(e.ctx, e.measuring(c.common), with, query.Ranks[*measure.Check]{
		Job: c.Job, Process: e.process(c.common),
		Ready:  func() error { return e.writable(c.JUnit) },
		Keep:   func(data []byte) error { return e.writeFile(c.JUnit, bytesOf(data)) },
		Answer: func(d *measure.Check, keep func([]byte) error) error { return c.answer(e, d, keep) },
	})
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
