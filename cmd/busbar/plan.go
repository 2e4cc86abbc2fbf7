package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"busbar/pipeline"
	"busbar/plan"
	"busbar/step"
	"busbar/workload"
)

type planCmd struct {
	common
	emitFlags
	Cluster   string   `short:"c" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads."`
	Layout    string   `short:"l" placeholder:"NODESxGPUS" help:"Who takes part. None: all GPUs, or --gpus."`
	GPUs      int      `name:"gpus" placeholder:"N" help:"How many GPUs, on whole nodes; a preset without a number gets as many nodes as that takes."`
	Model     string   `short:"m" placeholder:"MODEL" help:"A name (busbar models), a config.json of Hugging Face, or a size: params=20B,layers=48."`
	Global    int64    `name:"global-batch" placeholder:"N" help:"Sequences of a step. Without it: about four million tokens."`
	Seq       int64    `placeholder:"N" help:"Tokens of a sequence; the model's own without it."`
	Precision string   `enum:"fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"bf16" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16."`
	Framework string   `enum:"eager,compiled,fused" default:"fused" help:"eager, compiled, or fused as Megatron-LM's kernels."`
	Parallel  string   `placeholder:"tp=8,…" help:"What is fixed: dp, tp, pp, cp, ep, vpp, zero, shard, sp, as for step."`
	Micro     int64    `name:"micro-batch" placeholder:"N" help:"A fixed micro-batch."`
	Recompute string   `enum:",none,selective,full" default:"" placeholder:"MODE" help:"A fixed mode of recomputation: none, selective, full."`
	Schedule  []string `placeholder:"NAME,…" help:"Schedules of the pipeline that the framework has: gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v. Without it: 1f1b and interleaved, which all have."`
	Top       int      `default:"10" help:"How many plans to show; they differ in degrees or in what replicas divide."`
	Reserve   float64  `default:"0.05" help:"The share of a GPU's memory to leave free."`
	Set       []string `placeholder:"KEY=VALUE" sep:"none" help:"Also plan for another cluster, side by side: network.gbps=400 (every NIC and cable), nics_per_node=4; several of one cluster with a comma. Repeatable."`
	NCCL      string   `name:"nccl" placeholder:"VERSION" help:"The release of NCCL; the newest known without it."`
	GPU       string   `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it."`
	NIC       string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 4x200Gb/s."`
}

// Help ends with examples.
func (planCmd) Help() string {
	return "Searches the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees, what replicas divide (ZeRO, FSDP) and among how many, micro-batches, " +
		"the pipeline's schedule, recomputation, sequence parallelism and the order of ranks. Every setting is bounded from below, and priced as by busbar step where it could be among the best, " +
		"so that nothing in the space is better than what is shown. Ctrl-C gives the best so far, and how much better the rest could be.\n\n" +
		"Examples:\n" +
		"  busbar plan -c dgx-a100 --gpus 64 -m gpt3-13b --global-batch 512\n" +
		"  busbar plan -c dgx-h100:8 -m llama3-70b --global-batch 512 --parallel zero=1 --schedule 1f1b,interleaved,zero-bubble\n" +
		"  busbar plan -c dgx-h100:8 -m llama2-70b --global-batch 512 --set network.gbps=200 --set nics_per_node=4 --top 3 --json\n" +
		"  busbar plan -c cluster.yaml -m llama2-7b --global-batch 512 --emit run1 --hosts gpu[01-08]"
}

// usualTokens is what a step takes when nobody says: of the order of GPT-3's 3.2 million (Brown
// et al. 2020, table 2.1) and Llama 3's 4 to 16 million (Grattafiori et al. 2024, section 3.4.1).
const usualTokens = 4 << 20

// planned is the answer for one cluster.
type planned struct {
	name   string // what was set; "" for the cluster as it is
	query  *plan.Query
	order  *rankOrder // of hosts that were given
	answer *plan.Answer
	took   time.Duration
	rows   []pricedStep // as busbar step has them
	holds  string       // whether the order depends on the network's figures
}

// Run plans on the cluster, and on what --set makes of it.
func (c *planCmd) Run(e *env) error {
	if c.Top < 1 || c.Top > 1000 {
		return fmt.Errorf("--top %d; expected 1 to 1000", c.Top)
	}
	if !(c.Reserve >= 0 && c.Reserve < 1) {
		return fmt.Errorf("--reserve %g; expected a share from 0 to below 1", c.Reserve)
	}
	if err := c.emitFlags.check(); err != nil {
		return err
	}
	a, err := c.ask(e)
	if err != nil {
		return err
	}
	clusters, err := c.variants(a)
	if err != nil {
		return err
	}
	var list []*planned
	for _, v := range clusters {
		p, err := c.plan(e, a, v)
		if p != nil {
			list = append(list, p)
		}
		if err != nil && (p == nil || e.ctx.Err() == nil) {
			return err
		}
	}
	var out *emittedDoc
	if c.Emit != "" {
		if out, err = c.emit(e, list[0]); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		doc := planDocument(list)
		doc.Emitted = out
		err = writeIndented(e.stdout, doc)
	default:
		if err = printPlans(e.stdout, list); err == nil && out != nil {
			out.print(e.stdout)
		}
	}
	return errors.Join(err, e.ctx.Err())
}

// plan searches on one cluster.
func (c *planCmd) plan(e *env, a *asked, v planVariant) (*planned, error) {
	layout, name, order, err := c.seated(v.cluster, a.shapes[0])
	if err != nil {
		return nil, err
	}
	model, err := gpuOf(v.cluster, layout)
	if err != nil {
		return nil, err
	}
	g, err := step.NewGPU(model, step.Default())
	if err != nil {
		return nil, err
	}
	node := 1
	for node < len(layout) && layout[node].Host == layout[0].Host {
		node++
	}
	space, err := c.space(a, len(layout), node)
	if err != nil {
		return nil, err
	}
	q := &plan.Query{Space: space, Cluster: v.cluster, Layout: layout, Version: a.version, GPU: g, Top: c.Top, Reserve: c.Reserve, Watch: e.searching(c.common)}
	at := time.Now()
	answer, err := plan.Search(e.ctx, q)
	if err == nil && order != nil {
		answer, err = c.arrange(e, q, order, answer)
		layout = q.Layout
	}
	took := time.Since(at)
	e.searched(c.common)
	if errors.Is(err, plan.ErrNone) && answer.Considered == 0 {
		return nil, fmt.Errorf("no setting is possible: %d GPUs, a global batch of %d, %s with %d layers and %d heads, and fixed are %q; degrees must divide them", len(layout), space.Base.GlobalBatch, a.model.Name, a.model.Dims.Layers, a.model.Dims.Heads, c.Parallel)
	}
	if errors.Is(err, plan.ErrNone) {
		return nil, fmt.Errorf("%s on %d GPUs of %.1f GB: none of the %d settings that were tried fits; more GPUs, fewer settings fixed, or a smaller model would help", space.Base.Model.Name, len(layout), float64(model.Memory)/1e9, answer.Considered)
	}
	if err != nil {
		return nil, err
	}
	p := &planned{name: v.name, query: q, order: order, answer: answer, took: took}
	f := step.NewFabric(v.cluster, layout, workload.Split{}, a.version)
	for i := range answer.Plans {
		j := &answer.Plans[i].Job
		own := f.With(j.Split)
		tasks := step.Prepare(j, own)
		row := pricedStep{layout: name, job: j, gpu: model, fabric: own, tasks: tasks, chip: g, Result: answer.Plans[i].Result}
		if i == 0 {
			if row.changes, err = tasks.Changes(g, row.Result, true); err != nil {
				return nil, err
			}
		}
		p.rows = append(p.rows, row)
	}
	p.holds, err = holding(q, answer.Plans)
	return p, err
}

// space is what may vary: all that makes sense but what the flags fix.
func (c *planCmd) space(a *asked, ranks, node int) (*plan.Space, error) {
	base := workload.Job{Model: a.model, Seq: c.Seq, GlobalBatch: c.Global, Precision: workload.Precision(c.Precision), Framework: workload.Framework(c.Framework)}
	if base.Seq == 0 {
		base.Seq = a.model.Seq
	}
	if base.GlobalBatch == 0 {
		base.GlobalBatch = max(1, usualTokens/base.Seq)
		base.GlobalBatch = (base.GlobalBatch + int64(ranks) - 1) / int64(ranks) * int64(ranks)
	}
	s := plan.NewSpace(base, ranks, node)
	s.Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
	if len(c.Schedule) > 0 {
		s.Schedule = nil
		for _, w := range c.Schedule {
			x := pipeline.Schedule(strings.TrimSpace(w))
			if !knownSchedule(x) {
				return nil, fmt.Errorf("--schedule %q; expected some of gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v", w)
			}
			s.Schedule = append(s.Schedule, x)
		}
	}
	if c.Micro > 0 {
		s.Micro = []int64{c.Micro}
	}
	if c.Recompute != "" {
		s.Recompute = []workload.Recompute{workload.Recompute(c.Recompute)}
	}
	return s, c.fix(s)
}

// fix takes the degrees that --parallel names.
func (c *planCmd) fix(s *plan.Space) error {
	split, err := workload.ParseSplit(c.Parallel)
	if err != nil {
		return err
	}
	for _, part := range strings.Split(c.Parallel, ",") {
		key, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		switch key {
		case "dp":
			s.DP = []int{split.DP}
		case "tp":
			s.TP = []int{split.TP}
		case "pp":
			s.PP = []int{split.PP}
		case "cp":
			s.CP = []int{split.CP}
		case "ep":
			s.EP = []int{split.EP}
		case "vpp":
			s.Chunks = []int{split.Chunks}
		case "zero":
			s.ZeRO = []int{split.ZeRO}
		case "shard":
			s.Shard = []int{split.Shard}
		case "sp":
			s.SeqParallel = []bool{split.SeqParallel}
		}
	}
	return nil
}
