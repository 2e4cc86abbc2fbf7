package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/report"
)

type planCmd struct {
	common
	query.Plan
	Force bool `help:"With --emit: overwrite an earlier plan in the folder and remove its leftover files."`
}

// Help ends with examples.
func (planCmd) Help() string {
	return "Searches the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel " +
		"degrees, what replicas divide (ZeRO, FSDP) and among how many, micro-batches, " +
		"the pipeline's schedule, recomputation, sequence parallelism, the order of ranks, gradient buckets and " +
		"compression, and what the host keeps. Settings that could be among the best are priced as by busbar step; " +
		"a lower bound rules the others out, so that nothing in the space is better than what is shown. Ctrl-C gives the " +
		"best so far, and how much better the rest could be.\n\n" +
		"Examples:\n" +
		"  busbar plan -c dgx-a100 --gpus 64 -m gpt3-13b --global-batch 512\n" +
		"  busbar plan -c dgx-h100:8 -m llama3-70b --global-batch 512 --parallel zero=1 --schedule " +
		"1f1b,interleaved,zero-bubble\n" +
		"  busbar plan -c dgx-h100:8 -m llama2-70b --global-batch 512 --set network.gbps=200 --set nics_per_node=4 --top 3 " +
		"--json\n" +
		"  busbar plan -c dgx-h100:16 -m llama2-13b --global-batch 512 --objective cost --price 2.50/gpu-hour\n" +
		"  busbar plan -c cluster.yaml -m llama2-7b --global-batch 512 --emit run1 --hosts gpu[01-08]"
}

// Run plans, writes the files and prints the plans. A search that was interrupted prints what it has.
func (c *planCmd) Run(e *env) error {
	if err := c.checkFolder(); err != nil {
		return err
	}
	c.Made = query.ShellLine(append([]string{"busbar"}, e.args...))
	e.answers.Store(true)
	doc, interrupted := c.Plan.Run(e.ctx, e.query(c.common))
	if doc == nil {
		return interrupted
	}
	if doc.Emitted != nil {
		if err := doc.Emitted.Write(c.Force); err != nil {
			return err
		}
	}
	return errors.Join(show(e, c.common, doc, report.Plan), interrupted)
}

// checkFolder says before the search what could not be written after it.
func (c *planCmd) checkFolder() error {
	if c.Emit == "" {
		if c.Force {
			return errors.New("--files, --pick, --detected and --force are for --emit DIR")
		}
		return nil
	}
	var err error
	if c.Folder, err = filepath.Abs(c.Emit); err != nil {
		return failure.Cannot(err)
	}
	list, err := os.ReadDir(c.Emit)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return failure.Cannot(fmt.Errorf("--emit: %w; expected a folder, or a name for a new one", err))
	case len(list) > 0 && !c.Force:
		return fmt.Errorf("--emit %s: the folder is not empty (%s); take another, or --force to write over files of the "+
			"same names", c.Emit, list[0].Name())
	}
	return nil
}
