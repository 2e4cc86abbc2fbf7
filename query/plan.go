package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// Plan asks for the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees, what
// replicas divide and among how many, micro-batches, the pipeline's schedule, recomputation, the order of ranks, buckets,
// compression and what the host keeps; and for the files that start it.
//
// When the context ends, Run returns the best plans so far and how much better the rest could be, beside the context's error.
type Plan struct {
	Emit     string `page:"-" placeholder:"DIR" help:"Write the files that start a plan into DIR: NCCL's settings, Slurm, torchrun, MPI, Kubernetes, Megatron-LM, DeepSpeed, and plan.json for busbar exec."`
	Pick     int    `page:"-" default:"1" least:"1" placeholder:"N" help:"With --emit: which of the plans."`
	Hosts    string `placeholder:"HOSTLIST" help:"The hosts (gpu[01-08]). Where the cluster has them: plan for these, as a scheduler gave them, in the order of ranks that is fastest. Where its names are made up: their real names, in the order of ranks."`
	Keep     bool   `name:"keep-order" help:"With --hosts: ranks in the order of the list."`
	Detected string `page:"-" names:"file" placeholder:"FILE" help:"With --emit: what a node shows of itself (NCCL_TOPO_DUMP_FILE of one of its ranks, lstopo's XML, a copy of /sys). Where the cluster's description has devices nearer or farther, a topology file for NCCL is written."`

	Cluster   string   `short:"c" names:"cluster" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads."`
	Layout    string   `short:"l" placeholder:"NODESxGPUS" help:"Who takes part. None: all GPUs, or --gpus."`
	GPUs      int      `name:"gpus" placeholder:"N" help:"How many GPUs, on whole nodes; a preset without a number gets as many nodes as that takes."`
	Model     string   `short:"m" names:"model" placeholder:"MODEL" help:"A name (busbar models), a config.json of Hugging Face, or a size: params=20B,layers=48."`
	Global    int64    `name:"global-batch" placeholder:"N" help:"Sequences of a step. Without it: about four million tokens."`
	Seq       int64    `placeholder:"N" help:"Tokens of a sequence; the model's own without it."`
	Precision string   `enum:",fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"" placeholder:"KIND" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16. (default: the framework's own, mostly bf16)"`
	Framework string   `placeholder:"NAME[@RELEASE]" help:"What runs it: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), with a release or year where it is not the newest: megatron@0.12. What it does not run is refused. eager, compiled and fused are taken for --kernels, whatever the framework. (default: one that runs what is fixed, megatron first)"`
	Kernels   string   `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"How well operations between products are put together: eager, compiled, or fused as Megatron-LM's are. (default: the framework's)"`
	Parallel  string   `placeholder:"tp=8,…" help:"What is fixed: dp, tp, pp, cp, ep, vpp, zero, shard, sp, as for step."`
	Micro     int64    `name:"micro-batch" placeholder:"N" help:"A fixed micro-batch."`
	Recompute string   `enum:",none,selective,full" default:"" placeholder:"MODE" help:"A fixed mode of recomputation: none, selective, full."`
	Schedule  []string `placeholder:"NAME,…" help:"Schedules of the pipeline: gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v. (default: those that the framework has)"`
	Bucket    []string `placeholder:"SIZE,…" help:"Sizes of gradients that travel at once; without it 25, 50, 100, 200 and 400 MiB are tried."`
	Context   []string `placeholder:"NAME,…" help:"How cp ranks exchange: ring, gather, ulysses; all are tried without it."`
	Offload   []string `placeholder:"WHAT,…" help:"What the host's memory may keep: none, optimizer, parameters; all are tried without it."`
	Compress  []string `placeholder:"WIRE,…" help:"How gradients may travel: none, fp16, bf16, int8; none and bf16 are tried without it, the latter where gradients are wider."`
	Top       int      `default:"10" least:"1" most:"1000" help:"How many plans to show; they differ in degrees or in what replicas divide."`
	Reserve   *float64 `default:"0.05" help:"The share of a GPU's memory to leave free."`
	Host      string   `name:"host-memory" placeholder:"SIZE" help:"What a node's own memory has for offload: 2TB. Without it: what the cluster says, or 1TB."`
	MaxNodes  int      `name:"max-nodes" placeholder:"N" help:"Also try fewer nodes, from one to N. Without it: all nodes; with --objective cost or energy any number of them."`
	MaxStep   string   `name:"max-step" placeholder:"TIME" help:"The longest that a step may take: 30s."`
	Avoid     string   `placeholder:"HOSTLIST" help:"Hosts to leave out: gpu[03,17]."`
	Tuner     bool     `help:"Plan for NCCL under busbar's tuner plugin (--emit writes it): collectives run by the algorithm and protocol that is predicted fastest, not by NCCL's own choice."`
	Objective string   `enum:"time,cost,energy" default:"time" help:"What the best plan has least of: time of a step, cost or energy of its tokens. The latter two also try fewer nodes."`
	Prices
	Set  []string `placeholder:"KEY=VALUE" sep:"none" help:"Also plan for another cluster, side by side: network.gbps=400 (every NIC and cable), nics_per_node=4; several of one cluster with a comma. Repeatable."`
	NCCL string   `name:"nccl" placeholder:"VERSION" help:"The release of NCCL; the newest known without it."`
	GPU  string   `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it."`
	NIC  string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 4x200Gb/s."`

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
	framework *workload.Framework // none where kernels alone are asked for
	chosen    string              // why that framework, where nobody named it
	kernels   workload.Kernels
	version   nccl.Version
	shape     shape
	cluster   *cluster.Cluster
	reserve   float64
}

// Run searches on the cluster, and on what Set makes of it.
func (q Plan) Run(ctx context.Context, env Env) (*PlanDoc, error) {
	if err := prepare(&q); err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
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
	for _, x := range list[1:] {
		d.Variants = append(d.Variants, *x.document())
	}
	if q.Emit != "" {
		if d.Emitted, err = p.emit(ctx, list[0]); err != nil {
			return nil, err
		}
	}
	return d, ctx.Err()
}

// check refuses fields that contradict each other.
func (q *Plan) check() error {
	reserve := *q.Reserve
	switch {
	case q.MaxNodes < 0:
		return fmt.Errorf("--max-nodes %d; expected at least 1", q.MaxNodes)
	case !(reserve >= 0 && reserve < 1):
		return fmt.Errorf("--reserve %g; expected a share from 0 to below 1", reserve)
	case q.Keep && q.Hosts == "":
		return errors.New("--keep-order: the order of which hosts? expected --hosts too")
	case q.Emit == "" && (q.Pick != 1 || q.Detected != ""):
		return errors.New("--pick, --detected and --force are for --emit DIR")
	case q.Micro < 0 || q.Global < 0 || q.Seq < 0 || q.GPUs < 0:
		return fmt.Errorf("--micro-batch %d, --global-batch %d, --seq %d, --gpus %d; expected at least 1 each", q.Micro, q.Global, q.Seq, q.GPUs)
	case q.GPUs > 0 && q.Layout != "":
		return fmt.Errorf("--gpus %d and -l %s; expected one of them", q.GPUs, q.Layout)
	}
	return nil
}

// read reads what the fields name.
func (q *Plan) read(ctx context.Context, env *Env) (*planning, error) {
	p := &planning{Plan: q, env: env, reserve: *q.Reserve}
	place := placement{cluster: q.Cluster, layout: q.Layout, gpu: q.GPU, nic: q.NIC}
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
	if p.framework, p.kernels, err = readFramework(q.Framework, q.Kernels); err != nil {
		return nil, err
	}
	if q.Framework == "" {
		p.framework, p.chosen = p.chooseFramework()
	}
	if p.framework != nil {
		if err := p.framework.RefusesModel(p.model); err != nil {
			return nil, err
		}
	} else if p.kernels == "" {
		p.kernels = workload.Fused
	}
	if p.version, err = parseNCCL(q.NCCL); err != nil {
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
