package query

import (
	"context"
	"errors"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Job is a training job and where it runs, as Step, Envelope, Need and Scale ask about it.
type Job struct {
	Cluster   string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes)."`
	Layout    string `short:"l" placeholder:"NODESxGPUS" help:"Who takes part: 2x4 is two nodes with four GPUs each. None: all GPUs."`
	Model     string `short:"m" names:"model" placeholder:"MODEL" help:"A name (busbar models), a config.json of Hugging Face, or a size: params=20B,layers=48,hidden=6144, or a part of it."`
	Parallel  string `placeholder:"dp=8,tp=4,…" help:"How the model is spread: dp replicas, tp ranks that share layers, pp stages, vpp chunks a rank, cp ranks that share sequences, ep ranks that share experts, zero 0 to 3, shard ranks that divide parameters (a number, or node), sp=1 sequence parallelism. Replicas fill what is left."`
	Global    int64  `name:"global-batch" least:"1" most:"1099511627776" placeholder:"N" help:"Sequences of a step. Without it: one micro-batch a replica, and four a stage in a pipeline."`
	Micro     int64  `name:"micro-batch" least:"1" most:"16777216" placeholder:"N" help:"Sequences that a replica computes at once. Without it: about 2,048 tokens of them, and at least one."`
	Seq       int64  `least:"1" most:"16777216" placeholder:"N" help:"Tokens of a sequence; the model's own without it; 1024 for a size, 8192 at most of a config.json."`
	Precision string `enum:",fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"" placeholder:"KIND" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16 (float32 weights, cast for products). (default: the framework's own, bf16 without one)"`
	Recompute string `enum:"none,selective,full" default:"none" help:"Activations that are computed again in the backward pass: none, selective (the core of attention), full."`
	Framework string `placeholder:"NAME[@RELEASE]" help:"What runs it: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), with a release or year where it is not the newest: megatron@0.12. What it does not run is refused. eager, compiled and fused are taken for --kernels, whatever the framework."`
	Kernels   string `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"How well operations between products are put together: eager, compiled, or fused as Megatron-LM's are. (default: the framework's; without one eager where there are only replicas, fused with any other split)"`
	Unfused   bool   `help:"Attention writes its scores to memory, as frameworks before 2022 did."`
	Padded    bool   `help:"With --kernels eager: the vocabulary is padded to a multiple of 64, as compilers and Megatron-LM do by themselves."`
	Sync      bool   `help:"Gradients travel after the backward pass, not beside it."`
	Schedule  string `enum:",gpipe,1f1b,interleaved,zero-bubble,zb-h2,zb-v" default:"" placeholder:"NAME" help:"The pipeline's: gpipe, 1f1b, interleaved (with vpp), zero-bubble (ZB-H1), zb-h2 (no bubble, twice the memory), zb-v. Without it: 1f1b, interleaved with vpp."`
	Order     string `enum:",tp-cp-dp-pp,tp-cp-pp-dp" default:"" placeholder:"ORDER" help:"Which ranks sit beside each other, nearest first: tp-cp-dp-pp (Megatron-LM's; without it), or tp-cp-pp-dp, with the stages of a pipeline near and its replicas apart."`
	Bucket    string `placeholder:"SIZE" help:"Gradients that travel at once: 25MiB, PyTorch's, without it."`
	Context   string `enum:",ring,gather,ulysses" default:"" placeholder:"NAME" help:"How cp ranks exchange: ring (keys and values go round beside attention; without it), gather (all of them before it, as Llama 3), ulysses (sequences for heads by all-to-all)."`
	Offload   string `enum:"none,optimizer,parameters" default:"none" help:"What the host's memory keeps, over PCIe: none, optimizer (its state and the update, as ZeRO-Offload), parameters (these too, with zero=3)."`
	Compress  string `enum:"none,fp16,bf16,int8" default:"none" help:"How gradients travel among replicas, by hooks of PyTorch's DDP: none, fp16, bf16, int8 (gathered, not summed, by NCCL: bytes grow with replicas)."`
	NCCL      string `name:"nccl" placeholder:"VERSION" help:"The release of NCCL; the newest known without it."`
	Compare   string `placeholder:"L1,L2,…" help:"Layouts side by side: 1x4,2x2,4x1."`
	GPU       string `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it: a100-80."`
	NIC       string `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 4x200Gb/s."`

	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Another cluster than that: network.gbps=400 (every NIC and cable), nics_per_node=4. Repeatable."`
}

// training is a job as it was asked for, and the cluster it runs on.
type training struct {
	job       workload.Job // without the split of a layout
	framework *workload.Framework
	parallel  string // as it was asked for
	version   nccl.Version
	shapes    []shape
	cluster   *cluster.Cluster
	env       map[string]string // settings of NCCL
}

// requireJob refuses a question without a cluster or a model.
func requireJob(cluster, model string) error {
	switch {
	case cluster == "":
		return errors.New("no cluster; expected -c CLUSTER, such as -c dgx-h100:4 (busbar presets lists them)")
	case model == "":
		return errors.New("no model; expected -m MODEL, such as -m llama2-7b (busbar models lists them)")
	}
	return nil
}

// read reads what the fields name.
func (q *Job) read(ctx context.Context, env *Env) (*training, error) {
	if err := requireJob(q.Cluster, q.Model); err != nil {
		return nil, err
	}
	model, err := LoadModel(*env, q.Model)
	if err != nil {
		return nil, err
	}
	t := &training{job: workload.Job{
		Model: model, Seq: q.Seq, MicroBatch: q.Micro, GlobalBatch: q.Global,
		Recompute: workload.Recompute(q.Recompute), Unfused: q.Unfused, Padded: q.Padded,
		Sync: q.Sync, Schedule: pipeline.Schedule(q.Schedule), Context: workload.Context(q.Context), Offload: workload.Offload(q.Offload),
		Compress: workload.Wire(q.Compress),
	}}
	if t.framework, t.job.Kernels, err = readFramework(q.Framework, q.Kernels); err != nil {
		return nil, err
	}
	t.parallel, t.job.Precision = q.Parallel, readPrecision(q.Precision, t.framework)
	if t.job.Split, err = workload.ParseSplit(q.Parallel); err != nil {
		return nil, fmt.Errorf("--parallel: %w", err)
	}
	t.job.Split.Order = workload.Order(q.Order)
	if q.Bucket != "" {
		if t.job.Bucket, err = parseBucket(q.Bucket); err != nil {
			return nil, err
		}
	}
	if t.version, err = parseNCCL(q.NCCL); err != nil {
		return nil, err
	}
	if t.shapes, err = q.placement().shapes(); err != nil {
		return nil, err
	}
	t.cluster, err = q.load(ctx, env, t.shapes)
	return t, err
}

func parseBucket(text string) (unit.Bytes, error) {
	size, err := unit.ParseBytes(text)
	if err != nil || size < 1 {
		return 0, fmt.Errorf("--bucket %q; expected a size, such as 25MiB", text)
	}
	return size, nil
}

// placement is who takes part.
func (q *Job) placement() *placement {
	return &placement{cluster: q.Cluster, layout: q.Layout, compare: q.Compare, gpu: q.GPU, nic: q.NIC}
}

// load reads the cluster with as many nodes as the layouts ask for.
func (q *Job) load(ctx context.Context, env *Env, shapes []shape) (*cluster.Cluster, error) {
	cl, err := q.placement().load(ctx, env, shapes)
	if err != nil {
		return nil, err
	}
	for _, text := range q.Set {
		if cl, err = step.Vary(cl, text); err != nil {
			return nil, fmt.Errorf("--set %s: %w", text, err)
		}
	}
	return cl, nil
}

// pricedStep is a step on a layout with what priced it.
type pricedStep struct {
	*step.Result
	layout string
	job    *workload.Job
	model  hardware.GPUModel
	gpu    *step.GPU
	tasks  *step.Prepared
}

// price prices a layout of a cluster.
func (t *training) price(cl *cluster.Cluster, s shape) (*pricedStep, error) {
	layout, name, err := s.ranks(cl)
	if err != nil {
		return nil, err
	}
	j := t.job
	if j.Split, err = j.Split.Within(ranksOfFirst(layout)); err == nil {
		j.Split, err = j.Split.On(len(layout))
	}
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	model, err := step.GPUOf(cl, layout)
	if err != nil {
		return nil, err
	}
	adopt(t.framework, &j, t.parallel, model.SM)
	j.Complete()
	if err := j.Check(); err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	if t.framework != nil {
		if err := t.framework.Refuses(&j); err != nil {
			return nil, fmt.Errorf("layout %s: %w", name, err)
		}
	}
	g, err := step.NewGPU(model, step.Default())
	if err != nil {
		return nil, err
	}
	f := step.NewFabric(cl, layout, j.Split, t.version)
	f.Env = t.env
	p := step.Prepare(&j, f)
	r, err := p.Price(g)
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	return &pricedStep{Result: r, layout: name, job: &j, model: model, gpu: g, tasks: p}, nil
}

// limit is what the step is bounded by.
func (p *pricedStep) limit() step.Limit { return p.Limit(p.job, p.model.Memory) }

// fits reports whether the GPUs have the memory.
func (p *pricedStep) fits() bool { return p.Memory.Total() <= unit.Volume(p.model.Memory) }

// misfit says that the job does not fit the GPUs' memory, and what would; "" where it does.
func (p *pricedStep) misfit() string {
	if l := p.limit(); l.Kind == "memory" {
		return l.Text
	}
	return ""
}

// ranksOfFirst is how many ranks the first host of a layout has.
func ranksOfFirst(l nccl.Layout) int {
	n := 0
	for _, r := range l {
		if r.Host == l[0].Host {
			n++
		}
	}
	return n
}
