package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/hardware"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Plan asks for the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees,
// what replicas divide and among how many, micro-batches, the pipeline's schedule, recomputation, the order of ranks,
// buckets, compression and what the host keeps; and for the files that start it.
//
// When the context ends, Run returns the best plans so far and how much better the rest could be, beside the context's
// error.
type Plan struct {
	// Emit makes the launch files: Run only makes their texts (PlanDoc.Emitted), and Write of those writes them into the
	// folder.
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
	Model     string             `short:"m" names:"model" placeholder:"MODEL" help:"Model: a name (see busbar list models), a Hugging Face config.json or its folder, or dimensions: params=20B,layers=48."`
	Global    int64              `name:"global-batch" aliases:"batch,gbs,global-batch-size" least:"1" most:"1099511627776" placeholder:"N" help:"Global batch in sequences (default: about 65,536 tokens per GPU, at most 4 million in all or a sequence per GPU)."`
	Seq       int64              `aliases:"seq-length,seq-len" least:"1" most:"16777216" placeholder:"N" help:"Sequence length in tokens (default: the model's)."`
	Precision workload.Precision `placeholder:"KIND" help:"Precision: bf16, fp16, fp32, tf32, amp-bf16 or amp-fp16 (float32 weights, cast for matrix products), fp8 (delayed scaling), fp8-tensorwise (current scaling), fp8-blockwise, mxfp8 or nvfp4 (default: the framework's)."`
	Framework string             `placeholder:"NAME[@RELEASE]" help:"Framework: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), nanotron, llm.c, maxtext, colossalai, megatron-deepspeed, llm-foundry, internevo, unsloth, paddle, automodel, mlperf or deeplearningexamples, optionally with a release or year: megatron@0.12. What it cannot run is refused. (default: on one node ddp, or fsdp where that does not fit; on more the simplest of ddp, fsdp and megatron within 10% of the best; with --lora hf, else fsdp or nemo)"`
	Kernels   workload.Kernels   `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"Kernels between matrix products: eager, compiled (torch.compile), or fused as in Megatron-LM (default: the framework's)."`
	FineTuning
	Parallel  Parallel            `placeholder:"tp=8,…" help:"Parallel degrees to keep fixed: dp, tp, pp, cp, ep, vpp, zero, shard, sp, as for step."`
	Micro     int64               `name:"micro-batch" aliases:"mbs,micro-batch-size" least:"1" most:"16777216" placeholder:"N" help:"Use this micro-batch size only."`
	Recompute workload.Recompute  `enum:",none,selective,full,per-op,light" default:"" placeholder:"MODE" help:"Use this recomputation mode only: none, selective, full, per-op (torchtitan's selective) or light."`
	Schedule  []pipeline.Schedule `placeholder:"NAME,…" help:"Pipeline schedules: gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v (default: 1f1b and interleaved where the framework has them)."`
	Bucket    []string            `placeholder:"SIZE,…" help:"Gradient bucket sizes to try (default: 25, 50, 100, 200 and 400 MiB)."`
	Context   []workload.Context  `placeholder:"NAME,…" help:"Context-parallel exchange: ring, gather, ulysses (default: try all)."`
	Offload   []workload.Offload  `placeholder:"WHAT,…" help:"Offload to host memory: none, optimizer, parameters (default: try all)."`
	Compress  []workload.Wire     `placeholder:"WIRE,…" help:"Gradient compression to try: none, fp16, bf16, int8 (default: none)."`
	Top       int                 `default:"10" least:"1" most:"1000" help:"Number of plans to show; they differ in parallel degrees or ZeRO stage (default 10)."`
	Reserve   *float64            `default:"0.05" help:"Share of GPU memory to leave free (default 0.05)."`
	Host      string              `name:"host-memory" placeholder:"SIZE" help:"Host memory per node for offload: 2TB (default: as the cluster states, or 1TB)."`
	MaxNodes  int                 `name:"max-nodes" least:"1" placeholder:"N" help:"Also try fewer nodes, from one to N (default: all nodes; any number with --objective cost)."`
	MaxStep   string              `name:"max-step" placeholder:"TIME" help:"Upper limit of the step time: 30s."`
	Avoid     string              `placeholder:"HOSTLIST" help:"Hosts to exclude: gpu[03,17]."`
	Tuner     bool                `help:"Plan for NCCL with busbar's tuner plugin (written by --emit): collectives use the algorithm and protocol predicted fastest instead of NCCL's choice."`
	Objective string              `enum:"time,cost" default:"time" help:"What to minimise: step time, or cost per token, which also tries fewer nodes (default time)."`
	Prices
	Set  []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: nic=400G (every NIC and cable), nics=4 (per node), gdr=on or off (NICs reach GPU memory), nvlink=off, oversubscription=4:1, gpu=h200, gpu.memory=141G, power=500W; or the job, as in busbar step: optimizer, loss, dispatcher, experts.overlap, host.layers. Repeatable."`
	NCCL string   `name:"nccl" placeholder:"VERSION" help:"NCCL release (default: the newest known)."`
	GPU  string   `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it."`
	NIC  string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`

	// Folder is what the emitted files call the folder that they will be in; Emit where it is empty. A job that starts
	// elsewhere needs its whole path.
	Folder string `kong:"-"`
	// Made is the command that the emitted files name as theirs; the one that asks the same where it is empty.
	Made string `kong:"-"`
}

// Run searches on the cluster.
func (q Plan) Run(ctx context.Context, env Env) (doc *PlanDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if names, err := cluster.ParseHosts(q.Hosts); err == nil && q.Hosts != "" {
		env.loaded = func(cl *cluster.Cluster) {
			env.loaded = nil
			env.noteFindings(audit.OnHosts(cl), names)
		}
	}
	place := placement{cluster: q.Cluster, layout: string(q.Layout), gpu: q.GPU, nic: q.NIC, set: ofCluster(q.Set)}
	if q.GPUs > 0 && q.Cluster != "" {
		if place.layout, err = q.wholeNodes(ctx, &env); err != nil {
			return nil, err
		}
	}
	t, err := q.read(ctx, &env, &place)
	if err != nil {
		return nil, err
	}
	x, err := t.plan(ctx)
	if err != nil && (x == nil || ctx.Err() == nil) {
		return nil, err
	}
	read := q
	read.Tuner = q.Tuner && q.Emit == "" // whose files are written
	if err := unused(&read, x.steps...); err != nil {
		return nil, err
	}
	d := x.document()
	env.note(d.Plans[0].Row.mfuNote()...)
	first := x.steps[0]
	first.noteCalibrated(&env)
	if err := first.noteDoubts(&env, false); err != nil {
		return nil, err
	}
	if q.Emit != "" {
		if d.Emitted, err = x.emit(ctx); err != nil {
			return nil, err
		}
	}
	return d, ctx.Err()
}

// check refuses fields that contradict each other.
func (q *Plan) check() error {
	reserve := *q.Reserve
	switch {
	case !(reserve >= 0 && reserve < 1):
		return fmt.Errorf("--reserve %g; expected a share from 0 to below 1", reserve)
	case q.Emit != "" && q.Packed > 0:
		return errors.New("--emit with --packed: the data of the files that are written have no bounds between documents, " +
			"so that tokens would attend to other documents; leave --emit out")
	case q.Emit != "" && q.Method != "":
		return fmt.Errorf("--emit with --method %s: the files that are written have no loss of pairs of answers and no "+
			"reference model (TRL's DPOTrainer has both); leave --emit out", q.Method)
	case q.Emit != "" && q.MTP > 0:
		return fmt.Errorf("--emit with --mtp %d: the models of the files that are written have no layers for further "+
			"tokens (Megatron-LM's flag for them is --mtp-num-layers %d); leave --emit out", q.MTP, q.MTP)
	case q.Emit != "" && q.LoRA != "" && q.Framework != "" && !strings.HasPrefix(q.Framework, "hf"):
		return errors.New("--emit with --lora: files of adapters are written for Hugging Face's Trainer (with PEFT); " +
			"expected --framework hf, or leave --emit out")
	case q.Keep && q.Hosts == "":
		return errors.New("--keep-order: the order of which hosts? expected --hosts too")
	case q.Emit == "" && (q.Pick != 1 || q.Detected != "" || len(q.Files) > 0):
		return errors.New("--files, --pick, --detected and --force are for --emit DIR")
	case q.GPUs > 0 && q.Layout != "":
		return fmt.Errorf("--gpus %d and -l %s; expected one of them", q.GPUs, q.Layout)
	}
	return nil
}

// requireJob refuses a question without a cluster or a model.
func requireJob(cluster, model string) error {
	switch {
	case cluster == "":
		return errors.New("no cluster; expected -c CLUSTER, such as -c dgx-h100:4 (busbar list presets lists them)")
	case model == "":
		return errors.New("no model; expected -m MODEL, such as -m llama2-7b (busbar list models lists them)")
	}
	return nil
}

// read reads what the fields name, for every question with a job: the cluster with what is set of it, the model, the
// frameworks that may run it, and what is fixed.
func (q *Plan) read(ctx context.Context, env *Env, place *placement) (t *training, err error) {
	if err := requireJob(q.Cluster, q.Model); err != nil {
		return nil, err
	}
	t = &training{Plan: q, env: env, reserve: *q.Reserve}
	if t.model, err = LoadModel(*env, q.Model); err != nil {
		return nil, err
	}
	if err := q.FineTuning.checkModel(t.model, q.Seq); err != nil {
		return nil, err
	}
	t.job = workload.Job{
		Model: t.model, Seq: cmp.Or(q.Seq, t.model.Seq), MicroBatch: q.Micro, GlobalBatch: q.Global, Kernels: q.Kernels,
	}
	if q.Precision != "" {
		if t.job.Precision, err = workload.ParsePrecision(string(q.Precision)); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	for _, text := range ofJob(q.Set) {
		if err := t.job.Choose(text); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
	}
	if err := q.FineTuning.apply(&t.job); err != nil {
		return nil, err
	}
	if _, err := q.Parallel.split(); err != nil {
		return nil, fmt.Errorf("--parallel: %w", err)
	}
	if err := t.readFrameworks(); err != nil {
		return nil, err
	}
	if t.version, err = env.parseNCCL(q.NCCL); err != nil {
		return nil, err
	}
	if err := checkTuner(q.Tuner, t.version); err != nil {
		return nil, err
	}
	t.tuned = q.Tuner
	if t.shapes, err = place.shapes(); err != nil {
		return nil, err
	}
	t.cluster, err = place.load(ctx, env, t.shapes)
	return t, err
}

// wholeNodes is the layout of so many GPUs on whole nodes.
func (q *Plan) wholeNodes(ctx context.Context, env *Env) (string, error) {
	cl, err := env.load(ctx, []string{q.Cluster})
	if err != nil {
		return "", err
	}
	_, each := perHost(cl)
	switch {
	case each == 0:
		return "", fmt.Errorf("%s has no GPUs in its first node", q.Cluster)
	case q.GPUs < each:
		return "1x" + strconv.Itoa(q.GPUs), nil
	case q.GPUs%each != 0:
		return "", fmt.Errorf("--gpus %d: nodes of %s have %d each; expected whole nodes, or -l NODESxGPUS", q.GPUs,
			q.Cluster, each)
	}
	return fmt.Sprintf("%dx%d", q.GPUs/each, each), nil
}

// PlanDoc is the answer to Plan.
type PlanDoc struct {
	Cluster string `json:"cluster"`
	GPUs    int    `json:"gpus"`
	// Considered is the settings of the space, the sum of the next three: Bounded were ruled out one by one, Cut were
	// ruled out in groups, Priced were priced in full. Failed are those, or groups, among Bounded and Cut that could not
	// be priced.
	Considered int64           `json:"considered"`
	Bounded    int64           `json:"bounded"`
	Cut        int64           `json:"cut"`
	Priced     int64           `json:"priced"`
	Failed     int64           `json:"failed"`
	Complete   bool            `json:"complete"` // it came to its end
	Objective  string          `json:"objective"`
	Batch      int64           `json:"global_batch"`                // sequences of a step
	BatchRule  string          `json:"global_batch_rule,omitempty"` // where it comes from, if nobody named it
	Framework  string          `json:"framework,omitempty"`         // NAME@RELEASE that all plans run with; "" is any
	Chosen     string          `json:"framework_reason,omitempty"`  // why, where none was named
	Others     []planOther     `json:"other_frameworks,omitempty"`
	Bound      float64         `json:"bound"`                 // the least value of the objective that anything else could have
	Gap        float64         `json:"gap"`                   // how much better than the first that would be
	Holds      string          `json:"sensitivity,omitempty"` // assumed figures, on which the order may depend
	Hosts      *plan.RankOrder `json:"hosts,omitempty"`
	Plans      []PlanRow       `json:"plans"` // the best first
	Tie        *planTie        `json:"tie,omitempty"`
	Emitted    *PlanFiles      `json:"emitted,omitempty"`

	Goal    planGoal         `json:"goal"`
	Job     workload.Summary `json:"job"`                          // what all plans are of
	Spaces  int              `json:"node_counts"`                  // that were tried
	PerNode int              `json:"gpus_per_node"`                // of the largest
	GPU     string           `json:"gpu"`                          // that all ranks are priced by
	Mixed   string           `json:"mixed_gpus,omitempty"`         // what is taken where GPUs differ
	Nearby  bool             `json:"nearby,omitempty"`             // ranks follow the network and not the cluster's order of hosts
	Error   string           `json:"failed_reason,omitempty"`      // why the first that failed could not be priced
	Tuner   bool             `json:"tuner,omitempty"`              // all plans are under busbar's tuner plugin
	Memory  unit.Bytes       `json:"host_memory_bytes,omitempty"`  // of a node's own
	MemFrom string           `json:"host_memory_source,omitempty"` // who says so
	Noted
}

// PlanRow is one plan.
type PlanRow struct {
	Rank      int            `json:"rank"` // from 1
	Parallel  workload.Split `json:"parallel"`
	Micro     int64          `json:"micro_batch"`
	Recompute string         `json:"recompute"`
	Schedule  string         `json:"schedule,omitempty"`
	Context   string         `json:"context,omitempty"`
	Bucket    unit.Bytes     `json:"bucket_bytes,omitempty"`
	Offload   string         `json:"offload,omitempty"`
	Compress  string         `json:"compress,omitempty"`
	GPUs      int            `json:"gpus"`
	Value     float64        `json:"value"` // of the objective, for a step
	Step      unit.Span      `json:"step_s"`
	Low       unit.Span      `json:"low_s"` // the error bar
	High      unit.Span      `json:"high_s"`
	Tied      bool           `json:"tied,omitempty"`  // with the first
	Tight     bool           `json:"tight,omitempty"` // its memory is within the error bar of what the GPU has
	PerGPU    float64        `json:"tokens_per_s_per_gpu"`
	MFU       float64        `json:"mfu"`
	Reason    string         `json:"reason"`         // why it stands where it does, in a few words
	Why       string         `json:"why"`            // what limits the first, and what the others lose against it
	NCCL      *plan.Tuned    `json:"nccl,omitempty"` // of the first
	Command   string         `json:"command"`        // busbar step for this plan
	Row       StepRow        `json:"row"`
	Options   []string       `json:"options,omitempty"`     // that differ from the usual ones
	Million   float64        `json:"per_million,omitempty"` // of the objective, for a million tokens
	// Beyond says that it is predicted to be faster by far than every published run of its kind.
	Beyond string `json:"beyond_published,omitempty"`
}

// document is the answer for one cluster.
func (x *planned) document() *PlanDoc {
	a, q := x.answer, x.query
	d := &PlanDoc{
		Cluster: q.Cluster.Name, GPUs: q.Spaces[0].Ranks,
		Considered: a.Considered, Bounded: a.Bounded, Cut: a.Cut, Priced: a.Priced, Failed: a.Failed,
		Complete: a.Whole, Objective: x.goal.Name, Bound: a.Bound, Gap: x.gap(), Plans: []PlanRow{},
		Goal: x.goal, Job: x.steps[0].summary(), Spaces: len(q.Spaces), PerNode: q.Spaces[0].Node,
		GPU: q.GPU.Model.Title, Mixed: x.mixed, Nearby: x.nearby, Tuner: q.Tuned, Memory: q.HostMemory,
		MemFrom: x.hostMemory, Batch: q.Spaces[0].Base.GlobalBatch / x.pairs(),
	}
	if a.Err != nil {
		d.Error = a.Err.Error()
	}
	d.Holds = strings.Join(assumedRates(q.Cluster, false), "; ")
	if base := &q.Spaces[0].Base; x.Global == 0 && !base.Model.Pictures() {
		d.BatchRule = workload.DefaultBatchRule
	}
	if x.order != nil {
		d.Hosts = &x.order.doc
	}
	d.Framework, d.Chosen, d.Others = x.framework.String(), x.chosen, x.others
	for i, p := range x.steps {
		var help []step.Change
		if i == 0 {
			help = x.help
		}
		row, j := p.row(help), p.job
		d.Plans = append(d.Plans, PlanRow{
			Rank: i + 1, Parallel: j.Split, Micro: j.MicroBatch, Recompute: string(j.Recompute), Schedule: row.Schedule,
			Context: string(j.Context),
			Bucket:  j.Bucket, Offload: string(j.Offload), Compress: string(j.Compress), GPUs: j.Split.Ranks(),
			Value: a.Plans[i].Value,
			Step:  p.Step, Low: row.Low, High: row.High, PerGPU: row.PerGPU, MFU: p.MFU, Tight: x.tight(&a.Plans[i]),
			Reason: x.reason(i), Why: x.why(i), Command: x.command(p), Row: row, Options: planOptions(j),
			Million: x.goal.perMillion(&a.Plans[i]), Beyond: beyond(p, row.PerGPU, row.High),
		})
	}
	d.Plans[0].NCCL = x.tuned
	if d.Tie = x.tie(); d.Tie != nil {
		for _, rank := range d.Tie.Plans {
			d.Plans[rank-1].Tied = true
		}
	}
	return d
}

// beyond says that a plan promises more by far than the fastest published run of its kind reached; "" where it does
// not.
func beyond(p *pricedStep, tokens float64, late unit.Span) string {
	run := plan.PublishedOf(p.job, p.model.Name)
	if run == nil || tokens <= run.Tokens*plan.Beyond {
		return ""
	}
	return fmt.Sprintf("%.0f%% more than the fastest published run of its kind, %.0f tokens/s/GPU on %d GPUs (%s): "+
		"rather count on %s a step, and measure before you believe it", 100*(tokens/run.Tokens-1), run.Tokens, run.GPUs,
		cmp.Or(run.Software, run.Source), late.Short())
}

// planOptions are what a plan has beyond its degrees.
func planOptions(j *workload.Job) (list []string) {
	if j.Bucket != 0 && j.Bucket != workload.DefaultBucket && j.Bucket != j.Framework.Bucket {
		list = append(list, "buckets of "+j.Bucket.String())
	}
	if j.Context != "" {
		list = append(list, string(j.Context))
	}
	return append(list, movedOptions(j)...)
}

// movedOptions are what a job keeps on its host and how its gradients travel.
func movedOptions(j *workload.Job) (list []string) {
	if j.Offloads() {
		list = append(list, "offload "+string(j.Offload))
	}
	if j.Compresses() {
		list = append(list, "gradients as "+string(j.Compress))
	}
	return list
}

// gap is how much better than the best plan something could be that was not seen.
func (x *planned) gap() float64 {
	if x.answer.Bound <= 0 {
		return 0
	}
	return max(0, x.quick.Value/x.answer.Bound-1)
}

// why says what limits the best plan, and what the others lose against it.
func (x *planned) why(i int) string {
	switch plans := x.answer.Plans; {
	case i == 0:
		return x.steps[0].limit().Text
	case plans[i].Value < plans[0].Value:
		return x.reason(i)
	default:
		return x.query.Compare(plans[0], plans[i], x.goal.worse())
	}
}

// jobOf is a plan's job as people name it.
func (x *planned) jobOf(p *pricedStep) Job {
	j := p.job
	q := Job{
		Cluster: x.Cluster, Model: x.Model, Parallel: Parallel(j.Split.String()),
		Global: j.GlobalBatch / x.pairs(), Micro: j.MicroBatch / x.pairs(), Seq: j.Seq, Precision: j.Precision,
		Recompute: j.Recompute, Framework: x.framework.String(), NCCL: x.NCCL, GPU: x.Plan.GPU, NIC: x.NIC, Set: x.Set,
	}
	if p.layout != "all" {
		q.Layout = Layout(p.layout)
	}
	return q
}

// command is busbar step for a plan.
func (x *planned) command(p *pricedStep) string {
	j := p.job
	q := Step{Tuner: x.Tuner, Job: x.jobOf(p)}
	q.FineTuning, q.Context = x.FineTuning, j.Context
	if string(j.Kernels) != x.framework.Kernels {
		q.Kernels = j.Kernels
	}
	if j.Split.PP > 1 {
		q.Schedule = j.Schedule
		if j.Split.Order != workload.TensorDataPipeline {
			q.Order = j.Split.Order
		}
	}
	own := workload.Job{Split: j.Split}
	x.framework.Adopt(&own, p.model.Name, p.model.SM) // whose own size step takes
	if j.Bucket != 0 && j.Bucket != cmp.Or(own.Bucket, workload.DefaultBucket) && j.Split.DP*j.Split.CP > 1 {
		q.Bucket = Size(j.Bucket.Exact())
	}
	if j.Offloads() {
		q.Offload = j.Offload
	}
	if j.Compresses() {
		q.Compress = j.Compress
	}
	return asWritten(CommandLine([]string{"step"}, q))
}

// checkCommand is busbar doctor for the log of a plan's first steps, of the same job.
func (x *planned) checkCommand(p *pricedStep) string {
	q := x.jobOf(p)
	q.LoRA = x.LoRA
	return asWritten(CommandLine([]string{"doctor", "LOG"}, Step{Job: q}))
}

// asWritten is a command as people write it.
func asWritten(list []string) string {
	return strings.Replace(ShellLine(list), " --layout ", " -l ", 1)
}

// assumedRates are the layers of a fabric with rates that are only assumed, in words. Inside one node the network is
// none of them, nor is PCIe where GPUs have links of their own.
func assumedRates(c *cluster.Cluster, oneNode bool) []string {
	var list []string
	tiers, why := step.Assumed(c)
	_, linked := step.Faster(c, 1, step.Inner)
	for i, t := range tiers {
		if oneNode && (t == step.Ports || t == step.Trunks || t == step.Bus && linked) {
			continue
		}
		list = append(list, fmt.Sprintf("%s (%s)", t, why[i]))
	}
	return list
}

// planGoal is what plans should have little of, and how its values are shown.
type planGoal struct {
	Name string `json:"name"`           // time, cost
	Head string `json:"head,omitempty"` // of a column with its values for a million tokens
	Unit string `json:"unit,omitempty"` // of those values

	objective plan.Objective
	scale     float64 // from the objective of a step to what is shown
}

// goal is what plans should have little of, with so many GPUs per node.
func (q *Plan) goal(node int) (planGoal, error) {
	rent, err := q.Prices.read()
	switch {
	case err != nil:
		return planGoal{}, err
	case q.Objective == "time" && rent != nil:
		return planGoal{}, errors.New("--price is for --objective cost; the objective is time")
	case q.Objective == "time":
		return planGoal{Name: "time"}, nil
	}
	g := planGoal{
		Name: "cost", objective: plan.Cheapest, Head: "GPU h/Mtoken", scale: 1 / unit.Hour.Seconds(), Unit: "GPU hours",
	}
	if rent != nil {
		g.Head, g.Unit = rent.Currency+"/Mtoken", rent.Currency
		if g.scale *= perGPU(rent, float64(node)); g.scale == 0 {
			return planGoal{}, errors.New("--objective cost with a price of nothing; expected --price such as 2.50/gpu-hour")
		}
	}
	return g, nil
}

// perMillion is what a plan needs for a million tokens.
func (g *planGoal) perMillion(p *plan.Plan) float64 { return p.Value * g.scale / p.Result.Tokens * 1e6 }

// Better is what plans are that have less of it.
func (g *planGoal) Better() string { return g.word("faster", "cheaper") }

// worse is what plans are that have more of it.
func (g *planGoal) worse() string { return g.word("slower", "dearer") }

// word is the one that fits what plans should have little of.
func (g *planGoal) word(time, cost string) string {
	return map[string]string{"time": time, "cost": cost}[g.Name]
}

// even is the factor within which predictions of two settings of one job say next to nothing about which is faster:
// they were right in 52 of 99 measured pairs.
const even = 1.05

// arrangePlans puts first what may be believed and is easiest to run of the plans that are as good as the best: with
// room in memory, without offload; of those within 5%, with few settings. Plans are compared by how late their steps
// may end, so that none comes first because its prediction is a lucky one.
func (x *planned) arrangePlans(ctx context.Context) error {
	if err := x.withoutOffload(ctx, x.query, x.answer.Plans); err != nil {
		return err
	}
	if err := x.addRoomy(ctx); err != nil {
		return err
	}
	if err := x.addPublished(ctx); err != nil {
		return err
	}
	plans := x.answer.Plans
	least := math.Inf(1)
	for i := range plans {
		if !x.tight(&plans[i]) {
			least = min(least, x.late(&plans[i]))
		}
	}
	easy := func(p plan.Plan) []int {
		key, late := []int{0, 0, 0, 0, 0}, x.late(&p)
		for i, worse := range []bool{x.tight(&p), late > least*step.TieMargin, p.Job.Offloads(), late > least*even} {
			if worse && (i < 2 || key[1] == 0) {
				key[i] = 1
			}
		}
		if key[1]+key[3] == 0 && !x.isRun(&p) {
			key[4] = 1 + len(parallelKinds(&p.Job))
		}
		return key
	}
	slices.SortStableFunc(plans, func(a, b plan.Plan) int {
		return cmp.Or(slices.Compare(easy(a), easy(b)), cmp.Compare(x.late(&a), x.late(&b)))
	})
	return nil
}

// addPublished has the fastest published run of the job's kind among the plans, as it was run.
func (x *planned) addPublished(ctx context.Context) error {
	if x.order != nil {
		return nil
	}
	p, run, err := x.query.Published(ctx)
	if p == nil || err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	x.run, x.runSplit = run, p.Job.Split
	x.answer.Plans = append(slices.DeleteFunc(x.answer.Plans, func(o plan.Plan) bool {
		return plan.SameDegrees(&o.Job.Split, &p.Job.Split)
	}), *p)
	return nil
}

// addRoomy has the best plans with room in memory, where the best of all is tight: of the settings that share degrees a
// search keeps the fastest.
func (x *planned) addRoomy(ctx context.Context) error {
	if x.order != nil || !x.tight(&x.answer.Plans[0]) {
		return nil
	}
	q := *x.query
	q.Reserve = max(q.Reserve, step.Spare())
	roomy, err := again(ctx, &q)
	if err != nil || roomy == nil {
		return err
	}
	err = x.withoutOffload(ctx, &q, roomy)
	x.answer.Plans = append(slices.DeleteFunc(x.answer.Plans, func(p plan.Plan) bool { return !x.tight(&p) }), roomy...)
	return err
}

// again has the plans of another search; none where nothing fits, or the search was ended.
func again(ctx context.Context, q *plan.Query) ([]plan.Plan, error) {
	q.Watch = nil
	a, err := plan.Search(ctx, q)
	switch {
	case errors.Is(err, plan.ErrNone) || ctx.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return a.Plans, nil
}

// isRun reports whether a plan is the published run.
func (x *planned) isRun(p *plan.Plan) bool {
	return x.run != nil && plan.SameDegrees(&p.Job.Split, &x.runSplit)
}

// drift is how much one configuration moves between releases of its software, as a factor.
const drift = 1.05

// late is the value that a plan may have at the late end of what is expected: of a published run, what was measured.
func (x *planned) late(p *plan.Plan) float64 {
	if x.isRun(p) {
		return p.Value * p.Result.Tokens / p.Result.Step.Seconds() / (x.run.Tokens * float64(p.Result.Ranks)) * drift
	}
	return p.Value * x.query.GPU.Margin(&p.Job)
}

// reason says in a few words why a plan stands where it does.
func (x *planned) reason(i int) string {
	plans := x.answer.Plans
	p, other := &plans[i], &plans[0]
	against := []string{", memory is tight", ", less sure", ", offloads", ", more settings", ""}
	if i == 0 {
		if x.isRun(p) {
			return fmt.Sprintf("published: %.0f tokens/s/GPU measured on %d", x.run.Tokens, x.run.GPUs)
		}
		best := x.goal.word("fastest", "cheapest")
		if p.Value == x.quick.Value {
			return best
		}
		if p, other = &x.quick, p; x.tight(p) && !x.tight(other) && p.Value*step.TieMargin < other.Value {
			for i := range plans {
				if q := &plans[i]; !x.tight(q) && (x.tight(p) || q.Value < p.Value) {
					p = q
				}
			}
			if p.Value < other.Value {
				best = fmt.Sprintf("as %s as any", x.goal.word("fast", "cheap"))
			}
			if p.Value*step.TieMargin >= other.Value {
				return fmt.Sprintf("%s with memory to spare; a tight one is %.0f%% %s", best, 100*(1-x.quick.Value/other.Value),
					x.goal.Better())
			}
		}
		against = []string{", memory to spare", ", surer", ", without offload", ", fewer settings", ""}
	}
	at := slices.Index([]bool{
		x.tight(p) && !x.tight(other), x.late(p)*other.Value > x.late(other)*p.Value*even,
		p.Job.Offloads() && !other.Job.Offloads(), len(parallelKinds(&p.Job)) > len(parallelKinds(&other.Job)), true,
	}, true)
	times := p.Value / other.Value
	switch {
	case times > step.TieMargin:
		return fmt.Sprintf("%.0f%% %s", 100*(times-1), x.goal.worse())
	case i == 0 && times*step.TieMargin < 1:
		return fmt.Sprintf("%.0f%% %s than another", 100*(1/times-1), x.goal.worse()) + against[at]
	case times*step.TieMargin < 1:
		return fmt.Sprintf("%.0f%% %s", 100*(1-times), x.goal.Better()) + against[at]
	case i == 0:
		return fmt.Sprintf("as %s as any", x.goal.word("fast", "cheap")) + against[at]
	}
	return fmt.Sprintf("as %s as 1", x.goal.word("fast", "cheap")) + against[at]
}

// withoutOffload takes the best plan that keeps all on the GPU in place of one with the same degrees that does not,
// where the two cannot be told apart. What the host does depends on its memory and processors, of which least is known.
func (x *planned) withoutOffload(ctx context.Context, of *plan.Query, plans []plan.Plan) error {
	if len(x.Offload) > 0 || x.order != nil ||
		!slices.ContainsFunc(plans, func(p plan.Plan) bool { return p.Job.Offloads() }) {
		return nil
	}
	q := *of
	q.Spaces = nil
	for _, s := range of.Spaces {
		own := *s
		own.Offload = []workload.Offload{""}
		q.Spaces = append(q.Spaces, &own)
	}
	kept, err := again(ctx, &q)
	for i := range plans {
		for _, p := range kept {
			if plans[i].Job.Offloads() && plan.SameDegrees(&p.Job.Split, &plans[i].Job.Split) &&
				p.Value <= plans[i].Value*step.TieMargin {
				plans[i] = p
				break
			}
		}
	}
	return err
}

// tight says that a plan's memory is within what predictions of it are good for of all that the GPU has. What ran, on
// as many GPUs or fewer, fits.
func (x *planned) tight(p *plan.Plan) bool {
	return !(x.isRun(p) && p.Result.Ranks >= x.run.GPUs) &&
		step.Fits(p.Result.Memory, x.query.GPU.Model.Memory) < step.Sure
}

// planTie is the plans that cannot be told from the first: they differ by less than predictions of settings of one job
// do from what is measured.
type planTie struct {
	Plans  []int   `json:"plans"`  // their ranks, from 1
	Margin float64 `json:"margin"` // settings whose objectives are within this factor are not told apart
}

// tie finds the plans that cannot be told from the first; nil where the first is alone.
func (x *planned) tie() *planTie {
	t := &planTie{Margin: step.TieMargin}
	first := x.answer.Plans[0].Value
	for i := range x.answer.Plans {
		if v := x.answer.Plans[i].Value; v <= first*step.TieMargin && first <= v*step.TieMargin {
			t.Plans = append(t.Plans, i+1)
		}
	}
	if len(t.Plans) < 2 {
		return nil
	}
	return t
}

// parallelKinds are the settings of a job beyond data parallelism as its framework has it.
func parallelKinds(j *workload.Job) []string {
	var list []string
	s := &j.Split
	for _, d := range []struct {
		name string
		n    int
	}{{"tp", s.TP}, {"pp", s.PP}, {"vpp", s.Chunks}, {"cp", s.CP}, {"ep", s.EP}} {
		if d.n > 1 {
			list = append(list, fmt.Sprintf("%s=%d", d.name, d.n))
		}
	}
	usual := 1
	if !slices.Contains(j.Framework.ZeRO, 0) { // what runs without sharding has to be told to shard
		usual = max(1, j.Framework.DefaultZeRO(*s))
	}
	if s.ZeRO > usual {
		list = append(list, fmt.Sprintf("zero=%d", s.ZeRO))
	}
	if s.Shard > 0 && s.ZeRO > 0 && s.Shard < s.DP*s.CP {
		list = append(list, fmt.Sprintf("shard=%d", s.Shard))
	}
	if j.Recompute != "" && j.Recompute != workload.None {
		list = append(list, "recompute "+string(j.Recompute))
	}
	return append(list, movedOptions(j)...)
}

// spaces are what may vary, for every number of nodes that is tried, all of them first. Hosts that a scheduler gave are
// all used.
func (p *training) spaces(f *workload.Framework, q *plan.Query, given bool) ([]*plan.Space, error) {
	node := ranksOfFirst(q.Layout)
	counts := []int{len(q.Layout)}
	if given && (p.MaxNodes > 0 || p.Avoid != "") {
		return nil, errors.New("--max-nodes and --avoid are for a cluster's own hosts; name fewer with --hosts")
	}
	if !given && (p.MaxNodes > 0 || p.Objective != "time") {
		nodes := plan.EqualNodes(q.Layout)
		if nodes == 0 && p.MaxNodes > 0 {
			return nil, errors.New("--max-nodes: nodes have different numbers of GPUs; say which take part with -l NODESxGPUS")
		}
		if p.MaxNodes > 0 {
			nodes = min(nodes, p.MaxNodes)
		}
		if nodes > 0 {
			counts = nil
		}
		for _, n := range plan.NodeCounts(nodes) {
			counts = append(counts, n*node)
		}
	}
	var list []*plan.Space
	for _, ranks := range counts {
		s, err := p.space(f, ranks, counts[0], min(node, ranks), q.GPU.Model)
		if err != nil {
			return nil, err
		}
		if len(p.Offload) == 0 && !step.NewFabric(q.Cluster, q.Layout[:ranks], s.Base.Split, q.Version).Hosted() {
			s.Offload = []workload.Offload{""}
		}
		s.Leaf = plan.LeafRanks(q.Cluster, q.Layout[:ranks])
		list = append(list, s)
	}
	return list, nil
}

// space is what may vary on so many ranks, of at most most, with GPUs of a model: all that makes sense and
// the framework runs, but what the fields fix.
func (p *training) space(f *workload.Framework, ranks, most, node int, m hardware.GPUModel) (*plan.Space, error) {
	base := p.job
	base.Complete(most)
	s := plan.NewSpace(base, ranks, node)
	s.Micro = slices.DeleteFunc(s.Micro, func(n int64) bool { return n%p.pairs() != 0 })
	s.Restrict(f, m.Name, m.SM)
	if order := base.Split.Order; order != "" {
		s.Order = []workload.Order{order}
	}
	if p.Micro > 0 {
		s.Micro = []int64{p.Micro * p.pairs()}
	}
	if p.Recompute != "" {
		s.Recompute = []workload.Recompute{f.Recomputes(p.Recompute)}
	}
	if err := p.lists(s); err != nil {
		return nil, err
	}
	return s, p.fix(s)
}

// lists takes the fields that name several values.
func (q *Plan) lists(s *plan.Space) error {
	err := cmp.Or(
		choose("--schedule", q.Schedule, pipeline.Schedules(), &s.Schedule),
		choose("--context", q.Context, []workload.Context{workload.Ring, workload.Gather, workload.Ulysses}, &s.Context),
		choose("--offload", q.Offload, []workload.Offload{
			workload.OnGPU, workload.OffloadOptimizer, workload.OffloadParams,
		}, &s.Offload),
		choose("--compress", q.Compress, []workload.Wire{
			workload.Uncompressed, workload.WireFP16, workload.WireBF16, workload.WireInt8,
		}, &s.Compress))
	if len(q.Bucket) > 0 {
		s.Bucket = nil
	}
	for _, text := range q.Bucket {
		size, err := parseBucket(text)
		if err != nil {
			return err
		}
		s.Bucket = append(s.Bucket, size)
	}
	return err
}

// choose replaces a list by the words of a flag, each of which is among some.
func choose[T ~string](flag string, words, some []T, to *[]T) error {
	if len(words) > 0 {
		*to = nil
	}
	for _, w := range words {
		x := T(strings.TrimSpace(string(w)))
		if !slices.Contains(some, x) {
			return fmt.Errorf("%s %q; expected some of %s", flag, w, strings.ReplaceAll(commas(some), ",", ", "))
		}
		if !slices.Contains(*to, x) {
			*to = append(*to, x)
		}
	}
	return nil
}

// fix takes the degrees that Parallel names.
func (q *Plan) fix(s *plan.Space) error {
	split, err := q.Parallel.split()
	if err != nil {
		return fmt.Errorf("--parallel: %w", err)
	}
	for _, part := range strings.Split(string(q.Parallel), ",") {
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
		case "etp":
			s.ETP = []int{split.ETP % max(split.TP, 2)} // 0 is tp
		case "vpp":
			s.Chunks = []int{split.Chunks}
		case "zero":
			s.ZeRO = []int{split.ZeRO * min(s.Ranks-1, 1)} // one rank has all of it
		case "shard":
			s.Shard = []int{split.Shard}
		case "sp":
			s.SeqParallel = []bool{split.SeqParallel}
		}
	}
	return nil
}
