package main

import "fmt"

type stepCmd struct {
	common
	jobFlags
	wholeFlags
	Groups bool     `help:"Also say which ranks form which groups, and where they sit."`
	Advise bool     `help:"Try other networks and settings of NCCL too, each as much work as the step itself; without it only where at most 8 GPUs take part."`
	Output []string `short:"o" placeholder:"FILE" sep:"none" help:"Also write the timeline of the step (one layout): .svg is a picture, .trace.json for Perfetto; FORMAT=FILE says svg or trace itself, and FORMAT=- writes to standard output instead of the table. Repeatable."`
}

// Help ends with examples.
func (stepCmd) Help() string {
	return "Predicts how long one training step takes and where the time goes: computing, waiting for the network, the pipeline's bubble, the optimizer; how much memory each GPU needs; and what limits it. " +
		"With --slow: what a slow node costs everybody. With --mtbf, --storage or --goodput: how much of a run's time is left after failures and checkpoints, and how often to save. With --price, --energy and --tokens: what it costs. " +
		"docs/steps.md says what the model is and how far off it is on published runs.\n\n" +
		"Examples:\n" +
		"  busbar step -c dgx-h100:2 -m llama2-7b --parallel zero=3 --micro-batch 2\n" +
		"  busbar step -c dgx-a100:48 -m gpt3-175b --parallel tp=8,pp=12 --global-batch 1536 --recompute full\n" +
		"  busbar step -c dgx-h100:2 -m llama2-13b --parallel tp=4,pp=4 --global-batch 16 -o step.svg\n" +
		"  busbar step -c dgx-h100:16 -m llama3-8b --parallel zero=1 --slow node3=20%\n" +
		"  busbar step -c dgx-h100:2048 -m llama3-405b --parallel tp=8,pp=16 --global-batch 2048 --goodput --tokens 15.6T --price 2.50/gpu-hour\n" +
		"  busbar step -c baskerville -m gpt2-large --compare 1x4,2x2,4x1 --micro-batch 8 --json"
}

// fewRanks are so few that other networks are tried unasked: that takes milliseconds.
const fewRanks = 8

// Run prices the step on every layout.
func (c *stepCmd) Run(e *env) error {
	whole, err := c.wholeFlags.read()
	if err != nil {
		return err
	}
	a, err := c.ask(e, c.common)
	if err != nil {
		return err
	}
	done := e.later(c.common, "pricing the step")
	defer done()
	var rows []pricedStep
	for _, s := range a.shapes {
		r, err := c.price(a.cluster, s, a)
		if err != nil {
			return err
		}
		if r.changes, err = r.tasks.Changes(r.chip, r.Result, c.Advise || r.Ranks <= fewRanks); err != nil {
			return fmt.Errorf("layout %s: %w", r.layout, err)
		}
		if r.whole, err = whole.of(&c.jobFlags, a, s, r); err != nil {
			return fmt.Errorf("layout %s: %w", r.layout, err)
		}
		rows = append(rows, *r)
	}
	done()
	taken := false
	for _, o := range c.Output {
		if err := drawStep(e, o, a.cluster.Name, rows); err != nil {
			return err
		}
		file, _, _ := stepPicture(o)
		taken = taken || isStdout(file)
	}
	if taken {
		return nil
	}
	if c.JSON {
		return writeIndented(e.stdout, stepDocument(a.cluster.Name, rows))
	}
	return printSteps(e.stdout, a.cluster.Name, rows, c.Groups)
}
