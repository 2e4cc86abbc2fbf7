package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// jobFlags are what step, envelope, need and scale take: a training job and where it runs.
type jobFlags struct {
	Cluster   string `short:"c" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes)."`
	Layout    string `short:"l" placeholder:"NODESxGPUS" help:"Who takes part: 2x4 is two nodes with four GPUs each. None: all GPUs."`
	Model     string `short:"m" placeholder:"MODEL" help:"A name (busbar models), a config.json of Hugging Face, or a size: params=20B,layers=48,hidden=6144, or a part of it."`
	Parallel  string `placeholder:"dp=8,tp=4,…" help:"How the model is spread: dp replicas, tp ranks that share layers, pp stages, vpp chunks a rank, cp ranks that share sequences, ep ranks that share experts, zero 0 to 3, shard ranks that divide parameters (a number, or node), sp=1 sequence parallelism. Replicas fill what is left."`
	Global    int64  `name:"global-batch" least:"1" most:"1099511627776" placeholder:"N" help:"Sequences of a step. Without it: one micro-batch a replica, and four a stage in a pipeline."`
	Micro     int64  `name:"micro-batch" least:"1" most:"16777216" placeholder:"N" help:"Sequences that a replica computes at once. Without it: about 2,048 tokens of them, and at least one."`
	Seq       int64  `least:"1" most:"16777216" placeholder:"N" help:"Tokens of a sequence; the model's own without it; 1024 for a size, 8192 at most of a config.json."`
	Precision string `enum:"fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"bf16" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16 (float32 weights, cast for products)."`
	Recompute string `enum:"none,selective,full" default:"none" help:"Activations that are computed again in the backward pass: none, selective (the core of attention), full."`
	Framework string `enum:",eager,compiled,fused" default:"" placeholder:"NAME" help:"How well operations between products are put together: eager, compiled, or fused as Megatron-LM's are. Without it: eager where there are only replicas, which is PyTorch's DDP; fused with any other split."`
	Unfused   bool   `help:"Attention writes its scores to memory, as frameworks before 2022 did."`
	Padded    bool   `help:"With --framework eager: the vocabulary is padded to a multiple of 64, as compilers and Megatron-LM do by themselves."`
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

// asked is a job as the flags describe it, and the cluster it runs on.
type asked struct {
	model   *workload.Model
	split   workload.Split
	version nccl.Version
	shapes  []shape
	cluster *cluster.Cluster
	env     map[string]string // settings of NCCL
	bucket  unit.Bytes        // of gradients that travel at once; 0 is the default
}

// ask reads the flags and what they name.
func (c *jobFlags) ask(e *env, o common) (*asked, error) {
	switch {
	case c.Cluster == "":
		return nil, errors.New("no cluster; expected -c CLUSTER, such as -c dgx-h100:4 (busbar presets lists them)")
	case c.Model == "":
		return nil, errors.New("no model; expected -m MODEL, such as -m llama2-7b (busbar models lists them)")
	}
	a := &asked{version: nccl.Newest}
	var err error
	if a.model, err = e.modelOf(c.Model); err != nil {
		return nil, err
	}
	if a.split, err = workload.ParseSplit(c.Parallel); err != nil {
		return nil, fmt.Errorf("--parallel: %w", err)
	}
	a.split.Order = workload.Order(c.Order)
	if c.Bucket != "" {
		size, err := unit.ParseBytes(c.Bucket)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("--bucket %q; expected a size, such as 25MiB", c.Bucket)
		}
		a.bucket = size
	}
	if c.NCCL != "" {
		if a.version, err = nccl.ParseVersion(c.NCCL); err != nil {
			return nil, fmt.Errorf("--nccl: %w", err)
		}
	}
	if a.shapes, err = c.place(o).shapes(); err != nil {
		return nil, err
	}
	a.cluster, err = c.more(e, o, a.shapes)
	return a, err
}

// place is the part of the flags that predict shares.
func (c *jobFlags) place(o common) *placement {
	return &placement{common: o, Cluster: c.Cluster, Layout: c.Layout, Compare: c.Compare, GPU: c.GPU, NIC: c.NIC}
}

// more reads the cluster with as many nodes as the layouts ask for.
func (c *jobFlags) more(e *env, o common, shapes []shape) (*cluster.Cluster, error) {
	ask := c.place(o)
	cl, err := ask.load(e, shapes)
	if err != nil {
		return nil, err
	}
	if err := ask.assume(e, cl, shapes); err != nil {
		return nil, err
	}
	for _, text := range c.Set {
		for _, one := range strings.Split(text, ",") {
			if cl, err = changedCluster(cl, one); err != nil {
				return nil, fmt.Errorf("--set %s: %w", text, err)
			}
		}
	}
	return cl, nil
}

// laid is a layout's ranks, and its name.
func laid(cl *cluster.Cluster, s shape) (nccl.Layout, string, error) {
	if s.nodes > 0 {
		l, err := nccl.Block(cl, s.nodes, s.gpus)
		return l, s.text, err
	}
	return predict.Everything(cl)
}

// pricedStep is a priced layout.
type pricedStep struct {
	layout  string
	job     *workload.Job
	gpu     hardware.GPUModel
	fabric  *step.Fabric
	bars    func() ([]step.Bar, error)
	tasks   *step.Prepared
	chip    *step.GPU
	changes []step.Change // that would help, where somebody asks
	whole   *wholeDoc     // what a whole run of such steps takes, where somebody asks
	*step.Result
}

// price prices one layout on a cluster.
func (c *jobFlags) price(cl *cluster.Cluster, s shape, a *asked) (*pricedStep, error) {
	layout, name, err := laid(cl, s)
	if err != nil {
		return nil, err
	}
	split, err := a.split.Within(onFirst(layout))
	if err == nil {
		split, err = split.On(len(layout))
	}
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	j := c.job(a.model, split)
	j.Bucket = a.bucket
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
	f := step.NewFabric(cl, layout, split, a.version)
	f.Env = a.env
	p := step.Prepare(j, f)
	r, err := p.Price(g)
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", name, err)
	}
	return &pricedStep{layout: name, job: j, gpu: gpu, fabric: f, tasks: p, chip: g, Result: r, bars: func() ([]step.Bar, error) { return p.Timeline(g) }}, nil
}

// onFirst is how many ranks the first host of a layout has.
func onFirst(l nccl.Layout) int {
	n := 0
	for _, r := range l {
		if r.Host == l[0].Host {
			n++
		}
	}
	return n
}

// job is the step that the flags describe; where nobody says, a replica computes one
// micro-batch, and four a stage in a pipeline.
func (c *jobFlags) job(m *workload.Model, split workload.Split) *workload.Job {
	j := &workload.Job{
		Model: m, Split: split, Seq: cmp.Or(c.Seq, m.Seq), MicroBatch: c.Micro, GlobalBatch: c.Global,
		Precision: workload.Precision(c.Precision), Recompute: workload.Recompute(c.Recompute), Framework: cmp.Or(workload.Framework(c.Framework), usualFramework(split)), Unfused: c.Unfused, Padded: c.Padded, Sync: c.Sync,
		Schedule: pipeline.Schedule(c.Schedule), Context: workload.Context(c.Context), Offload: workload.Offload(c.Offload), Compress: workload.Wire(c.Compress),
	}
	if j.MicroBatch == 0 {
		j.MicroBatch = c.usualMicro(j.Seq, int64(split.DP))
	}
	if j.GlobalBatch == 0 {
		each := int64(1)
		if split.PP > 1 {
			each = 4 * int64(split.PP)
		}
		j.GlobalBatch = j.MicroBatch * int64(split.DP) * each
	}
	return j
}

// usualFramework is what runs such a split where nobody says: replicas alone are PyTorch's DDP
// around a model as it was written; whoever divides states, layers or sequences has a framework
// for it, and that brings kernels of its own.
func usualFramework(s workload.Split) workload.Framework {
	if s.TP > 1 || s.PP > 1 || s.CP > 1 || s.EP > 1 || s.ZeRO > 0 || s.SeqParallel {
		return workload.Fused
	}
	return workload.Eager
}

// atOnce is how many tokens a micro-batch has where nobody says: the published runs of GPT-3
// and of Megatron-LM's models compute one sequence of 2,048 at once.
const atOnce = 2048

// usualMicro is the micro-batch where nobody says; it divides what the replicas get.
func (c *jobFlags) usualMicro(seq, dp int64) int64 {
	b := max(1, atOnce/max(1, seq))
	for c.Global > 0 && b > 1 && c.Global%(b*max(1, dp)) != 0 {
		b--
	}
	return b
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
