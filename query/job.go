package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Job is a training job and where it runs, as Step, Envelope, Need and Scale ask about it.
type Job struct {
	Cluster   string             `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes)."`
	Layout    Layout             `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node: 2x4 is two nodes with four GPUs each (default: all GPUs)."`
	Model     string             `short:"m" names:"model" placeholder:"MODEL" help:"Model: a name (see busbar models), a Hugging Face config.json or its folder, or dimensions: params=20B,layers=48,hidden=6144."`
	Parallel  Parallel           `placeholder:"dp=8,tp=4,…" help:"Parallel degrees: dp (data), tp (tensor), pp (pipeline), vpp (virtual stages per rank), cp (context), ep (expert), etp (tensor ranks of experts), zero (0 to 3), shard (ranks that shard parameters: a number, or node), sp=1 (sequence parallelism). dp fills what is left."`
	Global    int64              `name:"global-batch" least:"1" most:"1099511627776" placeholder:"N" help:"Global batch in sequences (default: one micro-batch per replica; in a pipeline four per stage)."`
	Micro     int64              `name:"micro-batch" least:"1" most:"16777216" placeholder:"N" help:"Micro-batch in sequences (default: about 2,048 tokens, at least one sequence)."`
	Seq       int64              `least:"1" most:"16777216" placeholder:"N" help:"Sequence length in tokens (default: the model's; 1024 for dimensions; for a config.json that of the same model in busbar models, or at most 4096)."`
	Precision workload.Precision `placeholder:"KIND" help:"Precision: bf16, fp16, fp32, tf32, amp-bf16 or amp-fp16 (float32 weights, cast for matrix products), fp8 (delayed scaling), fp8-tensorwise (current scaling), fp8-blockwise, mxfp8 or nvfp4 (default: the framework's, or bf16)."`
	Recompute workload.Recompute `enum:"none,selective,full,per-op,light" default:"none" help:"Activation recomputation: none, selective (core attention), full, per-op (all but attention and every second matrix product, as torchtitan), light (norms and activation functions) (default none)."`
	FineTuning
	Graphs    bool              `help:"Launch kernels as CUDA graphs."`
	Framework string            `placeholder:"NAME[@RELEASE]" help:"Framework: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), maxtext, colossalai, megatron-deepspeed, llm-foundry, internevo, unsloth, paddle, mlperf or deeplearningexamples, optionally with a release or year: megatron@0.12. What it cannot run is refused."`
	Kernels   workload.Kernels  `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"Kernels between matrix products: eager, compiled (torch.compile), or fused as in Megatron-LM (default: the framework's; without one eager for data parallelism only, else fused)."`
	Unfused   bool              `help:"Attention without a fused kernel: scores are written to memory, as before FlashAttention."`
	Padded    bool              `help:"With --kernels eager: pad the vocabulary to a multiple of 64, as compilers and Megatron-LM do."`
	Sync      bool              `help:"Reduce gradients after the backward pass, without overlap."`
	Schedule  pipeline.Schedule `enum:",gpipe,1f1b,interleaved,zero-bubble,zb-h2,zb-v" default:"" placeholder:"NAME" help:"Pipeline schedule: gpipe, 1f1b, interleaved (with vpp), zero-bubble (ZB-H1), zb-h2 (no bubble, twice the memory), zb-v (default: 1f1b, or interleaved with vpp)."`
	Order     workload.Order    `enum:",tp-cp-dp-pp,tp-cp-pp-dp" default:"" placeholder:"ORDER" help:"Rank order, nearest first: tp-cp-dp-pp (Megatron-LM's; default), or tp-cp-pp-dp, which keeps pipeline stages close and replicas apart."`
	Bucket    Size              `placeholder:"SIZE" help:"Gradient bucket size (default: 25MiB, as PyTorch's DDP)."`
	Context   workload.Context  `enum:",ring,gather,ulysses" default:"" placeholder:"NAME" help:"Context-parallel exchange: ring (overlapped with attention; default), gather (all-gather before attention, as Llama 3), ulysses (all-to-all over heads)."`
	Offload   workload.Offload  `enum:"none,optimizer,parameters" default:"none" help:"Offload to host memory: none, optimizer (state and update, as ZeRO-Offload), parameters (these too, with zero=3) (default none)."`
	Compress  workload.Wire     `enum:"none,fp16,bf16,int8" default:"none" help:"Gradient compression by PyTorch DDP hooks: none, fp16, bf16, int8 (all-gathered, not reduced: bytes grow with the number of replicas) (default none)."`
	NCCL      string            `name:"nccl" placeholder:"VERSION" help:"NCCL release (default: the newest known)."`
	Compare   Layouts           `placeholder:"L1,L2,…" help:"Compare layouts: 1x4,2x2,4x1."`
	GPU       string            `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it: a100-80."`
	NIC       string            `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`

	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: network.gbps=400 (every NIC and cable), nics_per_node=4. Repeatable."`

	ChannelsFirst bool `help:"Pictures in memory channel by channel, PyTorch's default, which tensor cores need transposed (default: channels last)."`
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
	tuner     bool              // collectives run as under busbar's tuner plugin
	pairs     int64             // sequences of a unit of the batch
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
	if err := q.FineTuning.checkModel(model, q.Seq); err != nil {
		return nil, err
	}
	t := &training{pairs: q.FineTuning.pairs(), job: workload.Job{
		Model: model, Seq: q.Seq, MicroBatch: q.Micro, GlobalBatch: q.Global,
		Recompute: workload.Recompute(q.Recompute), Unfused: q.Unfused, Padded: q.Padded,
		Sync: q.Sync, Schedule: pipeline.Schedule(q.Schedule), Context: workload.Context(q.Context), Offload: workload.Offload(q.Offload),
		Compress: workload.Wire(q.Compress), Graphs: q.Graphs, ChannelsFirst: q.ChannelsFirst,
	}}
	if t.framework, t.job.Kernels, err = readFramework(env, q.Framework, string(q.Kernels)); err != nil {
		return nil, err
	}
	env.note(takenAs(q.Framework, t.framework, string(q.Parallel), q.LoRA != "")...)
	t.parallel, t.job.Precision = string(q.Parallel), readPrecision("", t.framework)
	if q.Precision != "" {
		if t.job.Precision, err = workload.ParsePrecision(string(q.Precision)); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	if err := q.FineTuning.apply(&t.job); err != nil {
		return nil, err
	}
	if t.job.Split, err = q.Parallel.split(); err != nil {
		return nil, fmt.Errorf("--parallel: %w", err)
	}
	t.job.Split.Order = workload.Order(q.Order)
	if q.Bucket != "" {
		if t.job.Bucket, err = parseBucket(string(q.Bucket)); err != nil {
			return nil, err
		}
	}
	if t.version, err = env.parseNCCL(q.NCCL); err != nil {
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
	if err != nil || size < 1 || !strings.ContainsAny(text, "BKMGTkmgt") {
		return 0, fmt.Errorf("--bucket %q; expected a size with its unit, such as 25MiB", text)
	}
	return size, nil
}

// placement is who takes part.
func (q *Job) placement() *placement {
	return &placement{cluster: q.Cluster, layout: string(q.Layout), compare: string(q.Compare), gpu: q.GPU, nic: q.NIC}
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
	nodes  int
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
	return t.priceOn(cl, layout, name)
}

// priceOn prices ranks of a cluster; name is what messages call them.
func (t *training) priceOn(cl *cluster.Cluster, layout nccl.Layout, name string) (*pricedStep, error) {
	j, model, err := t.jobOn(cl, layout, name)
	if err != nil {
		return nil, err
	}
	g, err := gpuOn(cl, model)
	if err != nil {
		return nil, err
	}
	f := step.NewFabric(cl, layout, j.Split, t.version)
	f.Env = t.env
	if t.tuner {
		f = f.Tuned()
	}
	p := step.Prepare(j, f)
	r, err := p.Price(g)
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	return &pricedStep{Result: r, layout: name, nodes: hostsOf(layout), job: j, model: model, gpu: g, tasks: p}, nil
}

// jobOn is the job on ranks of a cluster, with what nobody said, and the GPU that it runs on.
func (t *training) jobOn(cl *cluster.Cluster, layout nccl.Layout, name string) (_ *workload.Job, model hardware.GPUModel, err error) {
	j := t.job
	if j.Split, err = j.Split.Within(ranksOfFirst(layout)); err == nil {
		j.Split, err = j.Split.On(len(layout))
	}
	if err != nil {
		return nil, model, failure.In("parallel", fmt.Errorf("layout %s: %w", name, err))
	}
	if model, err = step.GPUOf(cl, layout); err != nil {
		return nil, model, err
	}
	adopt(t.framework, &j, t.parallel, model.SM)
	j.Complete()
	if err := j.Check(); err != nil {
		return nil, model, fmt.Errorf("layout %s: %w", name, err)
	}
	if err := t.checkShard(j.Split); err != nil {
		return nil, model, err
	}
	if t.framework != nil {
		if err := t.framework.Refuses(&j); err != nil {
			return nil, model, fmt.Errorf("layout %s: %w", name, err)
		}
	}
	return &j, model, nil
}

// checkShard refuses a group of replicas to shard over that has nothing to shard, or more ranks than hold the same parameters.
func (t *training) checkShard(s workload.Split) error {
	asked, same := t.job.Split.Shard, s.DP*max(s.CP, 1)
	switch {
	case asked != 0 && s.ZeRO == 0:
		return errors.New("--parallel: shard without zero, which says what is sharded; expected zero=1 to zero=3 too")
	case asked > same:
		return fmt.Errorf("--parallel shard=%d: %d ranks hold the same parameters; expected at most as many", asked, same)
	}
	return nil
}

// limit is what the step is bounded by.
func (p *pricedStep) limit() step.Limit { return p.Limit(p.job, p.model.Memory) }

// fits reports whether the GPUs have the memory.
func (p *pricedStep) fits() bool { return p.Memory.Total() <= unit.Volume(p.model.Memory) }

// memoryShortfall says that the job does not fit the GPUs' memory, and what would; "" where it does.
func (p *pricedStep) memoryShortfall() string {
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

// gpuOn is a GPU of a cluster, by the figures that its calibration has.
func gpuOn(c *cluster.Cluster, m hardware.GPUModel) (*step.GPU, error) {
	f, err := step.Calibrated(c)
	if err != nil {
		return nil, err
	}
	return step.NewGPU(m, f)
}
