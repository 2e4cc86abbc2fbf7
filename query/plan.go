package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Plan asks for the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees, what
// replicas divide and among how many, micro-batches, the pipeline's schedule, recomputation, the order of ranks, buckets,
// compression and what the host keeps; and for the files that start it.
//
// When the context ends, Run returns the best plans so far and how much better the rest could be, beside the context's error.
type Plan struct {
	// Emit makes the launch files: Run only makes their texts (PlanDoc.Emitted), and Write of those writes them into the folder.
	Emit string `page:"-" placeholder:"DIR" help:"Write launch files for a plan into DIR: NCCL settings, Slurm, torchrun, MPI, Kubernetes, Megatron-LM, DeepSpeed, and plan.json for busbar exec."`
	// Files are the kinds of launch files beside those that start a plan without a scheduler: launch.Kinds, or all.
	Files    []string `page:"-" placeholder:"KIND,…" help:"With --emit: kinds of files beside torchrun's, the framework's and nccl.env: slurm, kubernetes, mpi, elastic, tuner, profiler, all or none (default: all; none where the cluster is one machine by itself)."`
	Pick     int      `page:"-" default:"1" least:"1" placeholder:"N" help:"With --emit: number of the plan to write (default 1)."`
	Hosts    string   `placeholder:"HOSTLIST" help:"Hosts, as a hostlist: gpu[01-08]. If the cluster names them, plan for these in the fastest rank order; otherwise they are the real names in rank order."`
	Keep     bool     `name:"keep-order" help:"With --hosts: keep the order of the list."`
	Detected string   `page:"-" names:"file" placeholder:"FILE" help:"With --emit: topology as a node detects it (NCCL_TOPO_DUMP_FILE, lstopo XML, a copy of /sys). If it differs from the cluster file, a topology file for NCCL is written."`

	Cluster   string             `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads."`
	Layout    Layout             `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node (default: all GPUs, or --gpus)."`
	GPUs      int                `name:"gpus" least:"1" placeholder:"N" help:"Number of GPUs, on whole nodes; a preset without a node count gets as many nodes as needed."`
	Model     string             `short:"m" names:"model" placeholder:"MODEL" help:"Model: a name (see busbar models), a Hugging Face config.json or its folder, or dimensions: params=20B,layers=48."`
	Global    int64              `name:"global-batch" least:"1" most:"1099511627776" placeholder:"N" help:"Global batch in sequences (default: about 65,536 tokens per GPU, 4 million in all at most)."`
	Seq       int64              `least:"1" most:"16777216" placeholder:"N" help:"Sequence length in tokens (default: the model's)."`
	Precision workload.Precision `placeholder:"KIND" help:"Precision: bf16, fp16, fp32, tf32, amp-bf16 or amp-fp16 (float32 weights, cast for matrix products), fp8 (delayed scaling), fp8-tensorwise (current scaling), fp8-blockwise, mxfp8 or nvfp4 (default: the framework's, or bf16)."`
	Framework string             `placeholder:"NAME[@RELEASE]" help:"Framework: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), maxtext, colossalai, megatron-deepspeed, llm-foundry, internevo, unsloth, paddle, mlperf or deeplearningexamples, optionally with a release or year: megatron@0.12. What it cannot run is refused. (default: the simplest of ddp, fsdp, torchtitan whose plan is within 10% of the best of megatron; else the first of megatron, torchtitan, fsdp, deepspeed, ddp that has the model, runs what is fixed and has a plan that fits; with --lora hf, else nemo)"`
	Kernels   workload.Kernels   `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"Kernels between matrix products: eager, compiled (torch.compile), or fused as in Megatron-LM (default: the framework's)."`
	FineTuning
	Parallel  Parallel            `placeholder:"tp=8,…" help:"Parallel degrees to keep fixed: dp, tp, pp, cp, ep, vpp, zero, shard, sp, as for step."`
	Micro     int64               `name:"micro-batch" least:"1" most:"16777216" placeholder:"N" help:"Use this micro-batch size only."`
	Recompute workload.Recompute  `enum:",none,selective,full,per-op" default:"" placeholder:"MODE" help:"Use this recomputation mode only: none, selective, full or per-op (torchtitan's selective)."`
	Schedule  []pipeline.Schedule `placeholder:"NAME,…" help:"Pipeline schedules: gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v (default: 1f1b and interleaved where the framework has them)."`
	Bucket    []string            `placeholder:"SIZE,…" help:"Gradient bucket sizes to try (default: 25, 50, 100, 200 and 400 MiB)."`
	Context   []workload.Context  `placeholder:"NAME,…" help:"Context-parallel exchange: ring, gather, ulysses (default: try all)."`
	Offload   []workload.Offload  `placeholder:"WHAT,…" help:"Offload to host memory: none, optimizer, parameters (default: try all)."`
	Compress  []workload.Wire     `placeholder:"WIRE,…" help:"Gradient compression to try: none, fp16, bf16, int8 (default: none, and bf16 where gradients are wider)."`
	Top       int                 `default:"10" least:"1" most:"1000" help:"Number of plans to show; they differ in parallel degrees or ZeRO stage (default 10)."`
	Reserve   *float64            `default:"0.05" help:"Share of GPU memory to leave free (default 0.05)."`
	Host      string              `name:"host-memory" placeholder:"SIZE" help:"Host memory per node for offload: 2TB (default: as the cluster states, or 1TB)."`
	MaxNodes  int                 `name:"max-nodes" least:"1" placeholder:"N" help:"Also try fewer nodes, from one to N (default: all nodes; any number with --objective cost or energy)."`
	MaxStep   string              `name:"max-step" placeholder:"TIME" help:"Upper limit of the step time: 30s."`
	Avoid     string              `placeholder:"HOSTLIST" help:"Hosts to exclude: gpu[03,17]."`
	Tuner     bool                `help:"Plan for NCCL with busbar's tuner plugin (written by --emit): collectives use the algorithm and protocol predicted fastest instead of NCCL's choice."`
	Objective string              `enum:"time,cost,energy" default:"time" help:"What to minimise: step time, cost per token or energy per token. Cost and energy also try fewer nodes (default time)."`
	Prices
	Set  []string `placeholder:"KEY=VALUE" sep:"none" help:"Also plan for a changed cluster: network.gbps=400 (every NIC and cable), nics_per_node=4; commas combine changes. Repeatable."`
	NCCL string   `name:"nccl" placeholder:"VERSION" help:"NCCL release (default: the newest known)."`
	GPU  string   `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it."`
	NIC  string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`

	// Folder is what the emitted files call the folder that they will be in; Emit where it is empty. A job that starts
	// elsewhere needs its whole path.
	Folder string `kong:"-"`
	// Made is the command that the emitted files name as theirs; the one that asks the same where it is empty.
	Made string `kong:"-"`
}

// planning is a plan as it was asked for.
type planning struct {
	*Plan
	env       *Env
	model     *workload.Model
	framework *workload.Framework   // none where kernels alone are asked for
	chosen    string                // why that framework, where nobody named it
	next      []*workload.Framework // those to take in turn where nothing fits by that one and nobody named it
	kernels   workload.Kernels
	version   nccl.Version
	shape     shape
	cluster   *cluster.Cluster
	reserve   float64
	unfit     []string // names of frameworks that were taken before, by which nothing fits
}

// Run searches on the cluster, and on what Set makes of it.
func (q Plan) Run(ctx context.Context, env Env) (doc *PlanDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if names, err := cluster.ParseHosts(q.Hosts); err == nil && q.Hosts != "" {
		env.loaded = func(cl *cluster.Cluster) {
			env.loaded = nil
			env.noteFindings(hostFindings(cl), names)
		}
	}
	p, err := q.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	variants, err := p.variants()
	if err != nil {
		return nil, err
	}
	var list []*planned
	for _, v := range variants {
		x, err := p.plan(ctx, v)
		if x != nil {
			list = append(list, x)
		}
		if err != nil && (x == nil || ctx.Err() == nil) {
			return nil, err
		}
	}
	d := list[0].document()
	env.note(d.Plans[0].Row.mfuNote()...)
	for _, x := range list[1:] {
		d.Variants = append(d.Variants, *x.document())
	}
	if q.Emit != "" {
		if d.Emitted, err = list[0].emit(ctx, list[0]); err != nil {
			return nil, err
		}
	}
	return d, ctx.Err()
}

// check refuses fields that contradict each other.
func (q *Plan) check() error {
	reserve := *q.Reserve
	if q.Precision != "" {
		p, err := workload.ParsePrecision(string(q.Precision))
		if err != nil {
			return fmt.Errorf("--%w", err)
		}
		q.Precision = p
	}
	switch {
	case !(reserve >= 0 && reserve < 1):
		return fmt.Errorf("--reserve %g; expected a share from 0 to below 1", reserve)
	case q.Emit != "" && q.Packed > 0:
		return errors.New("--emit with --packed: the data of the files that are written have no bounds between documents, so that tokens would attend to other documents; leave --emit out")
	case q.Emit != "" && q.Method != "":
		return fmt.Errorf("--emit with --method %s: the files that are written have no loss of pairs of answers and no reference model (TRL's DPOTrainer has both); leave --emit out", q.Method)
	case q.Emit != "" && q.MTP > 0:
		return fmt.Errorf("--emit with --mtp %d: the models of the files that are written have no layers for further tokens (Megatron-LM's flag for them is --mtp-num-layers %d); leave --emit out", q.MTP, q.MTP)
	case q.Emit != "" && q.LoRA != "" && q.Framework != "" && !strings.HasPrefix(q.Framework, "hf"):
		return errors.New("--emit with --lora: files of adapters are written for Hugging Face's Trainer (with PEFT); expected --framework hf, or leave --emit out")
	case q.Keep && q.Hosts == "":
		return errors.New("--keep-order: the order of which hosts? expected --hosts too")
	case q.Emit == "" && (q.Pick != 1 || q.Detected != "" || len(q.Files) > 0):
		return errors.New("--files, --pick, --detected and --force are for --emit DIR")
	case q.GPUs > 0 && q.Layout != "":
		return fmt.Errorf("--gpus %d and -l %s; expected one of them", q.GPUs, q.Layout)
	}
	return nil
}

// read reads what the fields name.
func (q *Plan) read(ctx context.Context, env *Env) (*planning, error) {
	p := &planning{Plan: q, env: env, reserve: *q.Reserve}
	place := placement{cluster: q.Cluster, layout: string(q.Layout), gpu: q.GPU, nic: q.NIC}
	var err error
	if q.GPUs > 0 && q.Cluster != "" {
		if place.layout, err = q.wholeNodes(ctx, env); err != nil {
			return nil, err
		}
	}
	if err := requireJob(q.Cluster, q.Model); err != nil {
		return nil, err
	}
	if p.model, err = LoadModel(*env, q.Model); err != nil {
		return nil, err
	}
	if err := q.FineTuning.checkModel(p.model, q.Seq); err != nil {
		return nil, err
	}
	if p.framework, p.kernels, err = readFramework(env, q.Framework, string(q.Kernels)); err != nil {
		return nil, err
	}
	if q.Framework == "" {
		p.chooseFramework()
	}
	if p.framework != nil {
		if err := p.framework.RefusesModel(p.model); err != nil {
			return nil, err
		}
		if lora, err := workload.ParseLoRA(q.LoRA); q.LoRA != "" && err == nil {
			if err := p.framework.RefusesLoRA(lora); err != nil {
				return nil, err
			}
		}
	} else if p.kernels == "" {
		p.kernels = workload.Fused
	}
	if p.version, err = env.parseNCCL(q.NCCL); err != nil {
		return nil, err
	}
	if err := checkTuner(q.Tuner, p.version); err != nil {
		return nil, err
	}
	shapes, err := place.shapes()
	if err != nil {
		return nil, err
	}
	p.shape = shapes[0]
	p.cluster, err = place.load(ctx, env, shapes)
	return p, err
}

// wholeNodes is the layout of so many GPUs on whole nodes.
func (q *Plan) wholeNodes(ctx context.Context, env *Env) (string, error) {
	cl, err := env.load(ctx, []string{q.Cluster})
	if err != nil {
		return "", err
	}
	each := 0
	if len(cl.Hosts) > 0 {
		each = cl.TypeOf(0).Count(cluster.GPU)
	}
	switch {
	case each == 0:
		return "", fmt.Errorf("%s has no GPUs in its first node", q.Cluster)
	case q.GPUs < each:
		return "1x" + strconv.Itoa(q.GPUs), nil
	case q.GPUs%each != 0:
		return "", fmt.Errorf("--gpus %d: nodes of %s have %d each; expected whole nodes, or -l NODESxGPUS", q.GPUs, q.Cluster, each)
	}
	return fmt.Sprintf("%dx%d", q.GPUs/each, each), nil
}
