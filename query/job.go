package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	Compare   Layout            `placeholder:"L1,L2,…" help:"Compare layouts: 1x4,2x2,4x1."`
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
		Sync: q.Sync, Schedule: pipeline.Schedule(q.Schedule), Context: workload.Context(q.Context),
		Offload:  workload.Offload(q.Offload),
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
func (t *training) jobOn(cl *cluster.Cluster, layout nccl.Layout,
	name string,
) (_ *workload.Job, model hardware.GPUModel, err error) {
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

// checkShard refuses a group of replicas to shard over that has nothing to shard, or more ranks than hold the same
// parameters.
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

// words are the fields as flags of a command.
func (q *FineTuning) words() string {
	text := ""
	if q.LoRA != "" {
		text += " --lora " + shellWord(q.LoRA)
	}
	if q.Packed > 0 {
		text += fmt.Sprintf(" --packed %d", q.Packed)
	}
	if q.Method != "" {
		text += " --method " + q.Method
	}
	if q.MTP > 0 {
		text += fmt.Sprintf(" --mtp %d", q.MTP)
	}
	return text
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

// readFramework is the framework of a word, none where none is named, and the kernels, none where they are left to it.
// The kinds of kernels are taken as a framework too, as they were before frameworks had names: then any framework will
// do.
func readFramework(env *Env, framework, kernels string) (*workload.Framework, workload.Kernels, error) {
	switch workload.Kernels(framework) {
	case "":
		return nil, workload.Kernels(kernels), nil
	case workload.Eager, workload.Compiled, workload.Fused:
		if kernels != "" && kernels != framework {
			return nil, "", fmt.Errorf("--framework %s and --kernels %s; expected one of them", framework, kernels)
		}
		return nil, workload.Kernels(framework), nil
	}
	f, err := workload.ParseFramework(framework)
	if err != nil {
		return nil, "", fmt.Errorf("--%w", err)
	}
	if f.Newer != "" {
		env.note(fmt.Sprintf("--framework %s: %s is newer than what is known of %s; %s is taken", framework, f.Newer, f.Name,
			f.Release))
	}
	if name, _, _ := strings.Cut(f.ID, "@"); !strings.Contains(strings.ToLower(framework), name) &&
		!configured(frameworkName(framework)) {
		env.note(fmt.Sprintf("--framework %.60s is taken as %s", framework, name))
	}
	return f, workload.Kernels(kernels), nil
}

// readPrecision is that of a word, or the framework's own.
func readPrecision(word string, f *workload.Framework) workload.Precision {
	switch {
	case word != "":
		return workload.Precision(word)
	case f != nil:
		return f.DefaultPrecision()
	}
	return workload.BF16
}

// adopt gives a job the framework's style on GPUs of a compute capability, and what it divides among ranks where the
// words of --parallel do not say.
func adopt(f *workload.Framework, j *workload.Job, parallel string, sm int) {
	if f == nil {
		return
	}
	f.Adopt(j, sm)
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

// frameworkName is a framework's word without its release.
func frameworkName(word string) string {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(word)), "@")
	return name
}

// configured reports names of launchers that run DDP with eager kernels unless they are told otherwise.
func configured(name string) bool { return name == "lightning" || name == "accelerate" }

// takenAs says where the name of a framework is taken for sharding that its programs do only where they are configured
// so; nil where it is not.
func takenAs(word string, f *workload.Framework, parallel string, lora bool) []string {
	if f == nil || strings.Contains(parallel, "zero") {
		return nil
	}
	switch name := frameworkName(word); {
	case f.Name == "hf" && !lora && f.DefaultZeRO(workload.Split{DP: 2}) == 3:
		return []string{fmt.Sprintf("--framework %s is taken with FSDP (zero=3); unless it is configured so it runs DDP: "+
			"--parallel zero=0", word)}
	case configured(name):
		return []string{fmt.Sprintf("--framework %s is taken as %s with %s kernels; unless it is configured so it runs DDP "+
			"with eager kernels: --framework ddp", word, f.Title, f.Kernels)}
	}
	return nil
}

// LoadModel is the model of a word: a name (busbar models lists them), dimensions (params=20B,layers=48), a config.json
// of Hugging Face, or the folder that it is in. A name is taken before a folder that is called the same; ./NAME is the
// folder. What is neither may be a name as Hugging Face has it (meta-llama/Llama-3.1-8B).
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
		return nil, fmt.Errorf("model %q: no such folder, and not a name that is known; expected a name (busbar models "+
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
