package main

import (
	"cmp"
	"fmt"
	"strings"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/nccl"
	"busbar/predict"
	"busbar/step"
	"busbar/workload"
)

type stepCmd struct {
	common
	Cluster   string `short:"c" required:"" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes)."`
	Layout    string `short:"l" placeholder:"NODESxGPUS" help:"Who takes part: 2x4 is two nodes with four GPUs each. None: all GPUs."`
	Model     string `short:"m" required:"" placeholder:"MODEL" help:"A name (busbar models), or dimensions: layers=48,hidden=6144."`
	Parallel  string `placeholder:"dp=8,tp=4,…" help:"How the model is spread: dp replicas, tp ranks that share layers, pp stages, vpp chunks a rank, cp ranks that share sequences, zero 0 to 3, shard ranks that divide parameters, sp=1 sequence parallelism. Replicas fill what is left."`
	Global    int64  `name:"global-batch" placeholder:"N" help:"Sequences of a step. Without it: one micro-batch a replica, and four a stage in a pipeline."`
	Micro     int64  `name:"micro-batch" default:"1" help:"Sequences that a replica computes at once."`
	Seq       int64  `placeholder:"N" help:"Tokens of a sequence; the model's own without it."`
	Precision string `enum:"fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"bf16" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16 (float32 weights, cast for products)."`
	Recompute string `enum:"none,selective,full" default:"none" help:"Activations that are computed again in the backward pass: none, selective (the core of attention), full."`
	Framework string `enum:"eager,compiled,fused" default:"fused" help:"How well operations between products are put together: eager, compiled, or fused as Megatron-LM's are."`
	Unfused   bool   `help:"Attention writes its scores to memory, as frameworks before 2022 did."`
	Sync      bool   `help:"Gradients travel after the backward pass, not beside it."`
	NCCL      string `name:"nccl" placeholder:"VERSION" help:"The release of NCCL; the newest known without it."`
	Compare   string `placeholder:"L1,L2,…" help:"Layouts side by side: 1x4,2x2,4x1."`
	GPU       string `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it: a100-80."`
	NIC       string `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 4x200Gb/s."`
}

// Help ends with examples.
func (stepCmd) Help() string {
	return "Predicts how long one training step takes and where the time goes: computing, waiting for the network, the pipeline's bubble, the optimizer; how much memory each GPU needs; and what limits it. " +
		"docs/steps.md says what the model is and how far off it is on published runs.\n\n" +
		"Examples:\n" +
		"  busbar step -c dgx-h100:2 -m llama2-7b --parallel zero=3 --micro-batch 2\n" +
		"  busbar step -c dgx-a100:48 -m gpt3-175b --parallel tp=8,pp=12 --global-batch 1536 --recompute full\n" +
		"  busbar step -c baskerville -m gpt2-large --compare 1x4,2x2,4x1 --micro-batch 8 --json"
}

// pricedStep is a priced layout.
type pricedStep struct {
	layout string
	job    *workload.Job
	gpu    hardware.GPUModel
	*step.Result
}

// Run prices the step on every layout.
func (c *stepCmd) Run(e *env) error {
	model, err := workload.Parse(c.Model)
	if err != nil {
		return err
	}
	split, err := workload.ParseSplit(c.Parallel)
	if err != nil {
		return fmt.Errorf("--parallel: %w", err)
	}
	version := nccl.Newest
	if c.NCCL != "" {
		if version, err = nccl.ParseVersion(c.NCCL); err != nil {
			return fmt.Errorf("--nccl: %w", err)
		}
	}
	ask := &predictCmd{common: c.common, Cluster: c.Cluster, Layout: c.Layout, Compare: c.Compare, GPU: c.GPU, NIC: c.NIC}
	shapes, err := ask.shapes()
	if err != nil {
		return err
	}
	cl, err := ask.load(e, shapes)
	if err != nil {
		return err
	}
	if err := ask.assume(e, cl, shapes); err != nil {
		return err
	}
	done := e.later(c.common, "pricing the step")
	defer done()
	var rows []pricedStep
	for _, s := range shapes {
		r, err := c.price(cl, s, model, split, version)
		if err != nil {
			return err
		}
		rows = append(rows, *r)
	}
	done()
	if c.JSON {
		return writeIndented(e.stdout, stepDocument(cl.Name, rows))
	}
	return printSteps(e.stdout, cl.Name, rows)
}

// price prices one layout.
func (c *stepCmd) price(cl *cluster.Cluster, s shape, m *workload.Model, split workload.Split, v nccl.Version) (*pricedStep, error) {
	layout, name, err := predict.Everything(cl)
	if s.nodes > 0 {
		name = s.text
		layout, err = nccl.Block(cl, s.nodes, s.gpus)
	}
	if err != nil {
		return nil, err
	}
	if split, err = split.On(len(layout)); err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	j := &workload.Job{
		Model: m, Split: split, Seq: cmp.Or(c.Seq, m.Seq), MicroBatch: c.Micro, GlobalBatch: c.Global,
		Precision: workload.Precision(c.Precision), Recompute: workload.Recompute(c.Recompute), Framework: workload.Framework(c.Framework), Unfused: c.Unfused, Sync: c.Sync,
	}
	if j.GlobalBatch == 0 {
		each := int64(1)
		if split.PP > 1 {
			each = 4 * int64(split.PP)
		}
		j.GlobalBatch = j.MicroBatch * int64(split.DP) * each
	}
	if err := j.Check(); err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	gpu, err := gpuOf(cl, layout)
	if err != nil {
		return nil, err
	}
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		return nil, err
	}
	r, err := step.Step(j, g, step.NewFabric(cl, layout, split, v))
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	return &pricedStep{layout: name, job: j, gpu: gpu, Result: r}, nil
}

// gpuOf is the GPU of the catalogue that a layout's ranks run on.
func gpuOf(cl *cluster.Cluster, l nccl.Layout) (hardware.GPUModel, error) {
	name := strings.TrimSpace(cl.TypeOf(l[0].Host).Devices[l[0].GPU].Model.Value)
	if name == "" {
		return hardware.GPUModel{}, fmt.Errorf("%s does not say which GPUs it has; name them with --gpu", cl.Name)
	}
	m, ok := hardware.GPUByName(name)
	if !ok {
		return m, fmt.Errorf("GPU %q is not in the catalogue (busbar hardware lists it); name its like with --gpu", name)
	}
	return m, nil
}
