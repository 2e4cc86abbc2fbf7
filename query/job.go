package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Job is a training job and where it runs, as all questions ask about it.
type Job struct {
	Cluster   string             `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster: a preset (dgx-h100:4), a cluster file, or any file that map reads (topo.xml:8 is eight such nodes)."`
	Layout    Layout             `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node: 2x4 is two nodes with four GPUs each (default: all GPUs)."`
	Model     string             `short:"m" names:"model" placeholder:"MODEL" help:"Model: a name (see busbar list models), a Hugging Face config.json or its folder, or dimensions: params=20B,layers=48,hidden=6144."`
	Parallel  Parallel           `placeholder:"dp=8,tp=4,…" help:"Parallel degrees: dp (data), tp (tensor), pp (pipeline), vpp (virtual stages per rank), cp (context), ep (expert), etp (tensor ranks of experts), zero (0 to 3), shard (ranks that shard parameters: a number, or node), sp=1 (sequence parallelism). dp fills what is left (default: the first plan of busbar plan)."`
	Global    int64              `name:"global-batch" aliases:"batch,gbs,global-batch-size" least:"1" most:"1099511627776" placeholder:"N" help:"Global batch in sequences (default: about 65,536 tokens per GPU, at most 4 million in all or a sequence per GPU)."`
	Micro     int64              `name:"micro-batch" aliases:"mbs,micro-batch-size" least:"1" most:"16777216" placeholder:"N" help:"Micro-batch in sequences (default: about 2,048 tokens with --parallel where it fits, else as busbar plan finds)."`
	Seq       int64              `aliases:"seq-length,seq-len" least:"1" most:"16777216" placeholder:"N" help:"Sequence length in tokens (default: the model's; 1024 for dimensions; for a config.json that of the same model in busbar list models, or at most 4096)."`
	Precision workload.Precision `placeholder:"KIND" help:"Precision: bf16, fp16, fp32, tf32, amp-bf16 or amp-fp16 (float32 weights, cast for matrix products), fp8 (delayed scaling), fp8-tensorwise (current scaling), fp8-blockwise, mxfp8 or nvfp4 (default: the framework's)."`
	Recompute workload.Recompute `enum:",none,selective,full,per-op,light" default:"" placeholder:"MODE" help:"Activation recomputation: none, selective (core attention), full, per-op (all but attention and every second matrix product, as torchtitan), light (norms and activation functions) (default: none with --parallel where it fits, else as busbar plan finds)."`
	FineTuning
	Graphs    bool              `help:"Launch kernels as CUDA graphs."`
	Framework string            `placeholder:"NAME[@RELEASE]" help:"Framework: megatron, nemo (Megatron-Bridge), torchtitan, fsdp (FSDP2, accelerate), ddp, deepspeed, hf (Trainer), nanotron, llm.c, maxtext, colossalai, megatron-deepspeed, llm-foundry, internevo, unsloth, paddle, automodel, mlperf or deeplearningexamples, optionally with a release or year: megatron@0.12. What it cannot run is refused (default: on one node ddp, or fsdp where that does not fit; on more the simplest of ddp, fsdp and megatron within 10% of the best; with --lora hf)."`
	Kernels   workload.Kernels  `enum:",eager,compiled,fused" default:"" placeholder:"KIND" help:"Kernels between matrix products: eager, compiled (torch.compile), or fused as in Megatron-LM (default: the framework's)."`
	Unfused   bool              `help:"Attention without a fused kernel: scores are written to memory, as before FlashAttention."`
	Padded    bool              `help:"With --kernels eager: pad the vocabulary to a multiple of 64, as compilers and Megatron-LM do."`
	Sync      bool              `help:"Reduce gradients after the backward pass, without overlap."`
	Schedule  pipeline.Schedule `enum:",gpipe,1f1b,interleaved,zero-bubble,zb-h2,zb-v" default:"" placeholder:"NAME" help:"Pipeline schedule: gpipe, 1f1b, interleaved (with vpp), zero-bubble (ZB-H1), zb-h2 (no bubble, twice the memory), zb-v (default: 1f1b, or interleaved with vpp)."`
	Order     workload.Order    `enum:",tp-cp-dp-pp,tp-cp-pp-dp" default:"" placeholder:"ORDER" help:"Rank order, nearest first: tp-cp-dp-pp (Megatron-LM's; default), or tp-cp-pp-dp, which keeps pipeline stages close and replicas apart."`
	Bucket    Size              `placeholder:"SIZE" help:"Gradient bucket size (default: 25MiB, as PyTorch's DDP)."`
	Context   workload.Context  `enum:",ring,gather,ulysses" default:"" placeholder:"NAME" help:"Context-parallel exchange: ring (overlapped with attention; default), gather (all-gather before attention, as Llama 3), ulysses (all-to-all over heads)."`
	Offload   workload.Offload  `enum:",none,optimizer,parameters" default:"" placeholder:"WHAT" help:"Offload to host memory: none, optimizer (state and update, as ZeRO-Offload), parameters (these too, with zero=3) (default: none where it fits so)."`
	Compress  workload.Wire     `enum:",none,fp16,bf16,int8" default:"" placeholder:"WIRE" help:"Gradient compression by PyTorch DDP hooks: none, fp16, bf16, int8 (all-gathered, not reduced: bytes grow with the number of replicas) (default none)."`
	NCCL      string            `name:"nccl" placeholder:"VERSION" help:"NCCL release (default: the newest known)."`
	Compare   Layout            `placeholder:"L1,L2,…" help:"Compare layouts: 1x4,2x2,4x1."`
	GPU       string            `name:"gpu" placeholder:"MODEL" help:"GPU model when the cluster's source does not name it: a100-80."`
	NIC       string            `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the source does not state them: 10GbE (one per node), 4x200Gb/s or 4xHDR (four per node); without a count also the rate of NICs that are known."`

	Set     []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: nic=400G (every NIC and cable), nics=4 (per node), gdr=on or off (NICs reach GPU memory), nvlink=off, oversubscription=4:1, gpu=h200, gpu.memory=141G, power=500W; or the job: optimizer=adam-bf16, adam-8bit, adam-foreach or sgd, loss=in-place, chunked or whole, dispatcher=allgather, alltoall, deepep or hybridep, experts.overlap=yes or no, host.layers=20 (activations of so many layers in host memory). Repeatable."`
	Env     []string `placeholder:"KEY=VALUE" sep:"none" help:"NCCL setting, as in the job's environment. Repeatable."`
	Devices string   `placeholder:"LIST" help:"GPUs of every node that take part, by their numbers: 2,3 or 0-3 (default: the first)."`

	ChannelsFirst bool `name:"channels-first" help:"Pictures in memory channel by channel, PyTorch's default, which tensor cores need transposed (default: channels last)."`
}

// jobSite is the ranks of a cluster that a job runs on, and the NCCL that joins them.
type jobSite struct {
	cluster *cluster.Cluster
	ranks   nccl.Layout
	layout  string // what the ranks are called
	version nccl.Version
	setting map[string]string // of NCCL
	tuned   bool              // collectives run as under busbar's tuner plugin
	beside  bool              // other layouts are compared with it
}

// training is a job as it was asked for, and the cluster it runs on.
type training struct {
	*Plan
	jobSite
	env        *Env
	model      *workload.Model
	frameworks []*workload.Framework // the one that was named, or those to choose from, the simplest first
	reason     string                // why, where there is one that nobody named
	job        workload.Job          // what all forms of it share, before a framework gives it its style
	shapes     []shape
	reserve    float64
}

// read reads what the fields name, as a plan that keeps to it, with at least so many nodes where the cluster's source
// does not say how many there are.
func (q *Job) read(ctx context.Context, env *Env, nodes int) (*training, error) {
	p := &Plan{
		Cluster: q.Cluster, Layout: q.Layout, Model: q.Model, Global: q.Global, Seq: q.Seq, Precision: q.Precision,
		Framework: q.Framework, Kernels: q.Kernels, FineTuning: q.FineTuning, Parallel: q.Parallel, Micro: q.Micro,
		Recompute: q.Recompute, Schedule: listed(q.Schedule), Context: listed(q.Context), Offload: listed(q.Offload),
		Compress: listed(q.Compress), Bucket: listed(string(q.Bucket)), NCCL: q.NCCL, GPU: q.GPU, NIC: q.NIC,
		Set: ofJob(q.Set),
	}
	if err := prepare(p); err != nil {
		return nil, err
	}
	place := q.placement()
	place.least = nodes
	t, err := p.read(ctx, env, place)
	if err != nil {
		return nil, err
	}
	if t.setting, err = parseSettings(q.Env); err != nil {
		return nil, err
	}
	j := &t.job
	j.Unfused, j.Padded, j.Sync, j.Graphs, j.ChannelsFirst = q.Unfused, q.Padded, q.Sync, q.Graphs, q.ChannelsFirst
	j.Split.Order = q.Order
	return t, nil
}

// listed is a list of one value, or empty where nobody gave it.
func listed[T ~string](value T) []T {
	if value == "" {
		return nil
	}
	return []T{value}
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
	return &placement{
		cluster: q.Cluster, layout: string(q.Layout), compare: string(q.Compare), devices: q.Devices, gpu: q.GPU, nic: q.NIC,
		set: ofCluster(q.Set),
	}
}

// ofJob and ofCluster are what is set of the job, and of the cluster.
func ofJob(set []string) []string {
	return slices.DeleteFunc(slices.Clone(set), func(text string) bool { return !workload.IsChoice(text) })
}

func ofCluster(set []string) []string { return slices.DeleteFunc(slices.Clone(set), workload.IsChoice) }

// pricedStep is a step on a layout with what priced it.
type pricedStep struct {
	jobSite
	*step.Result
	nodes  int
	job    *workload.Job
	model  hardware.GPUModel
	gpu    *step.GPU
	tasks  *step.Prepared
	chosen string // why its framework, where nobody named one
}

// price prices a job that is resolved.
func (at jobSite) price(j *workload.Job) (*pricedStep, error) {
	model, _, err := step.SlowestGPU(at.cluster, at.ranks)
	if err != nil {
		return nil, err
	}
	g, err := gpuOn(at.cluster, model)
	if err != nil {
		return nil, err
	}
	f := step.NewFabric(at.cluster, at.ranks, j.Split, at.version)
	f.Env = at.setting
	if at.tuned {
		f = f.Tuned()
	}
	p := step.Prepare(j, f)
	r, err := p.Price(g)
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", at.layout, err)
	}
	return &pricedStep{jobSite: at, Result: r, nodes: hostsOf(at.ranks), job: j, model: model, gpu: g, tasks: p}, nil
}

// on prices the same step on a variant of its cluster.
func (p *pricedStep) on(cl *cluster.Cluster) (*pricedStep, error) {
	at := p.jobSite
	at.cluster = cl
	return at.price(p.job)
}

// resolve is the job on a layout with all that nobody named. Where degrees are named, the others are 1 and the rest is
// what its framework's recipes have; where none are, or that does not fit, it is the first plan. An error is a *misfit
// where nothing fits.
func (t *training) resolve(ctx context.Context, s shape) (*pricedStep, error) {
	at := t.jobSite
	var err error
	if at.ranks, at.layout, err = s.ranks(t.cluster); err != nil {
		return nil, err
	}
	if len(s.hosts) == 0 {
		at.ranks = plan.NetworkOrder(t.cluster, at.ranks)
	}
	return t.resolveOn(ctx, at)
}

func (t *training) resolveOn(ctx context.Context, at jobSite) (*pricedStep, error) {
	_, mixed, err := step.SlowestGPU(at.cluster, at.ranks)
	if err != nil {
		return nil, err
	}
	if mixed != "" {
		t.env.note(mixed)
	}
	if t.Parallel != "" {
		if p, err := t.filled(at); p != nil || err != nil {
			return p, err
		}
	}
	x, err := t.search(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	return x.step(0), nil
}

// filled is the job with the degrees that were named and what a framework's recipes have beside them; nil where that
// fits by no framework.
func (t *training) filled(at jobSite) (*pricedStep, error) {
	steps, ran := map[*workload.Framework]*pricedStep{}, false
	var refused error
	f, why, err := t.choose(hostsOf(at.ranks), func(f *workload.Framework) (float64, string, error) {
		if ran && !slices.Contains(simplest, f.Name) {
			return math.Inf(1), "was not tried", nil // a simpler one may do with other settings
		}
		j, err := t.fill(at, f)
		if err != nil {
			refused = err
			return math.Inf(1), "does not run it", nil
		}
		ran = true
		p, err := at.price(j)
		if err != nil {
			return 0, "", err
		}
		if !p.fits() {
			return math.Inf(1), "does not fit", nil
		}
		steps[f] = p
		return p.Step.Seconds() / p.gpu.Measured(j, float64(p.Exposed/p.Step)), "", nil // as predicted, as others are
	})
	switch {
	case err != nil:
		return nil, err
	case !ran:
		return nil, refused
	case f == nil:
		return nil, nil
	}
	steps[f].chosen = why
	return steps[f], nil
}

// fill is the job by a framework, with the degrees that were named.
func (t *training) fill(at jobSite, f *workload.Framework) (*workload.Job, error) {
	j, ranks := t.job, len(at.ranks)
	named, err := t.Parallel.split()
	if err == nil {
		named.Order = j.Split.Order
		j.Split, err = named.Within(ranksOfFirst(at.ranks))
	}
	if err == nil {
		j.Split, err = j.Split.On(ranks)
	}
	if err != nil {
		return nil, failure.In("parallel", fmt.Errorf("layout %s: %w", at.layout, err))
	}
	j.Recompute = f.Recomputes(cmp.Or(t.Recompute, workload.None))
	j.Schedule, j.Context = pipeline.Schedule(commas(t.Schedule)), workload.Context(commas(t.Context))
	j.Offload, j.Compress = workload.Offload(commas(t.Offload)), workload.Wire(commas(t.Compress))
	for _, text := range t.Bucket {
		if j.Bucket, err = parseBucket(text); err != nil {
			return nil, err
		}
	}
	model, _, err := step.SlowestGPU(at.cluster, at.ranks)
	if err != nil {
		return nil, err
	}
	adopt(f, &j, string(t.Parallel), model.Name, model.SM)
	j.Complete(ranks)
	err = j.Check()
	if err == nil {
		err = f.Refuses(&j)
	}
	if err != nil {
		return nil, fmt.Errorf("layout %s: %w", at.layout, err)
	}
	return &j, checkShard(named.Shard, j.Split)
}

// checkShard refuses a group of replicas to shard over that has nothing to shard, or more ranks than hold the same
// parameters.
func checkShard(asked int, s workload.Split) error {
	same := s.DP * max(s.CP, 1)
	switch {
	case asked != 0 && s.ZeRO == 0:
		return errors.New("--parallel: shard without zero, which says what is sharded; expected zero=1 to zero=3 too")
	case asked > same:
		return fmt.Errorf("--parallel shard=%d: %d ranks hold the same parameters; expected at most as many", asked, same)
	}
	return nil
}

// summary is the job as documents have it.
func (p *pricedStep) summary() workload.Summary {
	s := p.job.Summary()
	s.Reason = p.chosen
	return s
}

// limit is what the step is bounded by.
func (p *pricedStep) limit() step.Limit { return p.Limit(p.job) }

// fits reports whether the GPUs have the memory, by the rule of the search.
func (p *pricedStep) fits() bool { return p.Memory.Total() <= step.Room(p.model.Memory, step.Reserve) }

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
	g, err := step.NewGPU(m, f)
	if err == nil {
		g.Measure(c)
	}
	return g, err
}

// FineTuning is how a model is trained otherwise than by its next token alone: adapters, packed documents, pairs of
// answers, tokens further on.
type FineTuning struct {
	LoRA   string `name:"lora" placeholder:"rank=16,…" help:"LoRA adapters on frozen weights: rank=16, optionally targets=attention (default: all) and bits=4 for quantised frozen weights (QLoRA)."`
	Packed int64  `least:"1" most:"16777216" placeholder:"N" help:"Packed sequences: documents of N tokens each fill a sequence, and tokens attend to their own document only (default: one document per sequence)."`
	Method string `enum:",dpo,dpo-precomputed" default:"" placeholder:"NAME" help:"Training method: dpo (batches count pairs of answers, and a frozen reference model computes them too), dpo-precomputed (pairs, the reference computed before) (default: next-token prediction, as pretraining and SFT)."`
	MTP    int64  `name:"mtp" most:"16" placeholder:"N" help:"Multi-token prediction: N further layers that each predict one more token, with a loss of their own; DeepSeek-V3 trains with 1 (default: none)."`
}

// pairs is how many sequences a unit of the batch has.
func (q *FineTuning) pairs() int64 {
	if q.Method != "" {
		return 2
	}
	return 1
}

// apply gives a job what the fields say; its batches are of pairs before and of sequences after.
func (q *FineTuning) apply(j *workload.Job) error {
	if q.LoRA != "" {
		var err error
		if j.LoRA, err = workload.ParseLoRA(q.LoRA); err != nil {
			return fmt.Errorf("--lora: %w", err)
		}
	}
	if q.MTP < 0 {
		return fmt.Errorf("--mtp %d; expected 0 to 16", q.MTP)
	}
	j.Model = j.Model.Predicting(q.MTP)
	j.Packed, j.Reference = q.Packed, q.Method == "dpo"
	if q.Method != "" {
		j.MicroBatch = max(1, j.MicroBatch) * 2
		j.GlobalBatch *= 2
	}
	return nil
}

// checkModel refuses fields that have no meaning for a model, and sequences of pictures.
func (q *FineTuning) checkModel(m *workload.Model, seq int64) error {
	switch {
	case m.Pictures() && seq > 1:
		return fmt.Errorf("--seq %d: %s is trained on pictures, which are no sequences of tokens; leave --seq out", seq,
			m.Name)
	case m.Replicated() && q.MTP > 0:
		return fmt.Errorf("--mtp %d: %s has no layers that predict further tokens; leave --mtp out", q.MTP, m.Name)
	case m.Pictures() && q.Method != "":
		return fmt.Errorf("--method %s: %s is trained on pictures, which are no pairs of answers; leave --method out",
			q.Method, m.Name)
	}
	return nil
}

// feed is the time in which the samples of a step come, and what they wait for.
func (q *Step) feed(batch int64, nodes int) (unit.Span, string, error) {
	var data unit.Span
	text := ""
	if q.Loader > 0 {
		data = unit.Span(float64(batch) / (q.Loader * float64(nodes)))
		text = fmt.Sprintf("the data loaders of a node deliver %.4g samples/s", q.Loader)
	}
	switch {
	case q.Sample == "" && q.Read == "":
		return data, text, nil
	case q.Sample == "" || q.Read == "":
		return 0, "",
			errors.New("--sample-size and --read-rate belong together: what a sample takes, and what the storage gives")
	}
	size, err := unit.ParseBytes(q.Sample)
	if err != nil || size < 1 {
		return 0, "", fmt.Errorf("--sample-size %q; expected a size, such as 110KB", q.Sample)
	}
	rate, err := unit.ParseRate(q.Read)
	if err != nil || rate <= 0 {
		return 0, "", fmt.Errorf("--read-rate %q; expected a rate, such as 10GB/s", q.Read)
	}
	if read := unit.Span(float64(size) * float64(batch) / float64(rate)); read > data {
		data, text = read, fmt.Sprintf("the storage reads %v, %d samples of %v are a step", rate, batch, size)
	}
	return data, text, nil
}

// readFramework is the framework of a word.
func readFramework(env *Env, word string) (*workload.Framework, error) {
	switch workload.Kernels(word) {
	case workload.Eager, workload.Compiled, workload.Fused:
		return nil,
			fmt.Errorf("--framework %s: that is a kind of kernels; expected --kernels %s, with or without a framework",
				word, word)
	}
	f, err := workload.ParseFramework(word)
	if err != nil {
		return nil, fmt.Errorf("--%w", err)
	}
	if f.Newer != "" {
		env.note(fmt.Sprintf("--framework %s: %s is newer than what is known of %s; %s is taken", word, f.Newer, f.Name,
			f.Release))
	}
	switch name, _, _ := strings.Cut(f.ID, "@"); {
	case f.Other:
		env.note(fmt.Sprintf("--framework %.60s is not known: taken as %s, with an error bar of twice", word, name))
	case !strings.EqualFold(strings.Split(word, "@")[0], name):
		env.note(fmt.Sprintf("--framework %.60s is taken as %s: %s", word, name, f.Title))
	}
	return f, nil
}

// adopt gives a job the framework's style on GPUs of a compute capability, and what it divides among ranks where the
// words of --parallel do not say.
func adopt(f *workload.Framework, j *workload.Job, parallel, gpu string, sm int) {
	f.Adopt(j, gpu, sm)
	said := map[string]bool{}
	for _, part := range strings.Split(parallel, ",") {
		key, _, _ := strings.Cut(part, "=")
		said[strings.ToLower(strings.TrimSpace(key))] = true
	}
	f.Fill(&j.Split, said)
	// The Trainer shards nothing unless FSDP or DeepSpeed is configured, and recipes for adapters do not: what is frozen
	// needs no optimizer.
	if name, _, _ := strings.Cut(f.ID, "@"); name == "hf" && !said["zero"] && j.LoRA.Rank > 0 &&
		slices.Contains(f.ZeRO, 0) {
		j.Split.ZeRO = 0
	}
}

// LoadModel is the model of a word: a name (busbar list models lists them), dimensions (params=20B,layers=48), a
// config.json of Hugging Face, or the folder that it is in. A name is taken before a folder that is called the same;
// ./NAME is the folder. What is neither may be a name as Hugging Face has it (meta-llama/Llama-3.1-8B).
func LoadModel(env Env, word string) (*workload.Model, error) {
	m, err := loadModel(env, word)
	return m, env.aboutNamed("model", err)
}

func loadModel(env Env, word string) (*workload.Model, error) {
	if len(word) > maxName || strings.ContainsRune(word, 0) {
		return nil, fmt.Errorf("model %.60q: expected a name, dimensions or a file, of at most %d bytes and none of them "+
			"zero", word, maxName)
	}
	if strings.HasSuffix(strings.ToLower(word), ".json") {
		return readModel(env, word)
	}
	m, err := workload.Parse(word)
	if err == nil {
		env.note(m.Notes...)
	}
	if err == nil || strings.Contains(word, "=") || word == "" {
		return m, err
	}
	folder := strings.TrimRight(word, "/")
	switch info, statErr := fs.Stat(env.files(), folder); {
	case statErr != nil:
	case info.IsDir():
		if m, err = readModel(env, folder+"/config.json"); m != nil {
			m.Name = strings.TrimSuffix(m.Name, "/config.json")
		}
		return m, err
	default:
		return readModel(env, word)
	}
	if known := workload.FindHub(word); known != nil {
		if env.Note != nil {
			env.Note(fmt.Sprintf("model %s is taken as %s", word, known.Name))
		}
		return known, nil
	}
	if strings.ContainsRune(word, os.PathSeparator) {
		return nil, fmt.Errorf("model %q: no such folder, and not a name that is known; expected a name (busbar list models "+
			"lists them), a Hugging Face config.json (-m config.json), or the folder that it is in", word)
	}
	return nil, err
}

// readModel reads a config.json.
func readModel(env Env, name string) (*workload.Model, error) {
	// Asked before it is opened: a pipe would be waited for.
	if info, err := fs.Stat(env.files(), name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("model %q is no regular file; expected a config.json of Hugging Face", name)
	}
	f, err := env.files().Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing{fmt.Errorf("model %q: there is no such file", name)}
	case err != nil:
		return nil, failure.Cannot(fmt.Errorf("model %w", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workload.MaxConfig+1))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("model %s: %w", name, err))
	}
	if strings.IndexFunc(name, unicode.IsControl) >= 0 { // which terminals would obey
		name = strconv.QuoteToASCII(name)
	}
	m, err := workload.ReadConfig(name, data)
	if m != nil {
		env.note(m.Notes...)
		env.note(fmt.Sprintf("%s: sequences have %d tokens unless --seq says otherwise (context %d)", name, m.Seq,
			m.Dims.Context))
	}
	return m, err
}
