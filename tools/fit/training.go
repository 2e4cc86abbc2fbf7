package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/lazyre"
	"busbar.dev/result"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// training is one measured training run as published.
type training struct {
	ID      string `json:"id"`
	Source  string `json:"source"`
	Cluster string `json:"cluster"`
	Class   string `json:"hw_class"`
	Grade   string `json:"grade"`
	Model   struct {
		Name    string  `json:"name"`
		Params  float64 `json:"params"`
		Layers  int64   `json:"layers"`
		Hidden  int64   `json:"hidden"`
		FFN     int64   `json:"ffn"`
		Heads   int64   `json:"heads"`
		KVHeads int64   `json:"kv_heads"`
		Seq     int64   `json:"seq"`
		Vocab   int64   `json:"vocab"`
		Experts int64   `json:"experts"`
		TopK    int64   `json:"top_k"`
		// What mixtures, hybrids and adapters have beside.
		HeadDim   int64   `json:"head_dim"`
		Shared    int64   `json:"shared_experts"`
		SharedFFN int64   `json:"shared_expert_ffn"`
		ExpertFFN int64   `json:"expert_ffn"`
		Dense     int64   `json:"dense_layers"`
		Latent    int64   `json:"moe_latent"`
		Attention string  `json:"attention"`
		Scans     int64   `json:"mamba_layers"`
		Attending int64   `json:"attn_layers"`
		Mixtures  int64   `json:"moe_layers"`
		MLPs      int64   `json:"mlp_layers"`
		LoRA      bool    `json:"lora"`
		LoRARank  int64   `json:"lora_rank"`
		Active    float64 `json:"params_active"`
	} `json:"model"`
	Hardware struct {
		GPU      string   `json:"gpu"`
		GPUs     int      `json:"gpus"`
		Nodes    int      `json:"nodes"`
		PerNode  int      `json:"gpus_per_node"`
		Intra    string   `json:"intra"`
		NICs     *float64 `json:"nics_per_node"`
		Gbps     *float64 `json:"nic_gbps"`
		NodeGbps *float64 `json:"node_gbps"`
		Fabric   string   `json:"fabric"`
		Printed  string   `json:"networking_as_printed"`
	} `json:"hardware"`
	Parallel struct {
		DP          int    `json:"dp"`
		TP          int    `json:"tp"`
		PP          int    `json:"pp"`
		VPP         int    `json:"vpp"`
		CP          int    `json:"cp"`
		EP          int    `json:"ep"`
		ZeRO        *int   `json:"zero"`
		SeqParallel *bool  `json:"sequence_parallel"`
		MicroBatch  int64  `json:"micro_batch"`
		GlobalBatch int64  `json:"global_batch"`
		Recompute   string `json:"recompute"`
		Precision   string `json:"precision"`
		Family      string `json:"precision_family"`
		ShardSize   int    `json:"fsdp_size"`
		// ZeROGroup is how many ranks divide the state, or words that say all of them.
		ZeROGroup any `json:"zero_group"`
		// FSDP is how many ranks divide the parameters, or PyTorch's word for how; 0 is none.
		FSDP    any    `json:"fsdp"`
		Sharded *bool  `json:"sharded_optimizer"`
		Reshard *bool  `json:"reshard_after_forward"`
		Compile *bool  `json:"compile"`
		Task    string `json:"task"`
		Graphs  *bool  `json:"cuda_graphs"`
		Graph   string `json:"cuda_graph"` // what graphs hold, in words
		Config  string `json:"config"`     // name of the settings' file, which says some of them
		Accum   int64  `json:"grad_accum"`
		ETP     int    `json:"etp"`
		Offload string `json:"offload"`
		// Dispatcher is how tokens go to experts, in words: DeepEP, alltoall with overlap.
		Dispatcher string `json:"dispatcher"`
	} `json:"parallel"`
	Measured struct {
		Step   float64 `json:"step_time_s"`
		Tokens float64 `json:"tokens_per_s"`
		PerGPU float64 `json:"tokens_per_s_per_gpu"`
		Days   float64 `json:"days_for_300B_tokens"`
		TFLOPS float64 `json:"tflops_per_gpu"`
		Kind   string  `json:"tflops_kind"`
	} `json:"measured"`
	Derived struct {
		Step   float64 `json:"step_time_s"`
		Tokens float64 `json:"tokens_per_s"`
	} `json:"derived"`
	Notes string `json:"notes"`
	// Framework is what ran it: a name such as Megatron-Bridge, or eager, compiled or fused.
	Framework string `json:"framework"`
	Version   string `json:"framework_version"`
	Year      int    `json:"year"`

	Assumed []string `json:"-"`
}

// readTraining reads a line; false when it is not about training.
func readTraining(line []byte) (*training, bool) {
	var t training
	if json.Unmarshal(line, &t) != nil || t.ID == "" || t.Hardware.GPU == "" || t.Model.Name == "" {
		return nil, false
	}
	t.complete()
	return &t, true
}

// complete fills what follows from what a source states: GPUs of nodes, nodes of GPUs, batches of their parts.
func (t *training) complete() {
	h, p := &t.Hardware, &t.Parallel
	if h.PerNode <= 0 {
		m, _ := gpuOf(h.GPU)
		h.PerNode = cmp.Or(m.PerNode, serverGPUs)
		if h.Nodes > 0 && h.GPUs >= h.Nodes {
			h.PerNode = h.GPUs / h.Nodes
		}
		h.PerNode = min(h.PerNode, max(h.GPUs, 1))
	}
	if h.Nodes <= 0 {
		h.Nodes = max(1, (h.GPUs+h.PerNode-1)/h.PerNode)
	}
	if h.GPUs <= 0 {
		h.GPUs = h.Nodes * h.PerNode
	}
	each := max(p.TP, 1) * max(p.PP, 1) * max(p.CP, 1)
	if h.GPUs > maxGPUs || each > h.GPUs || each < 1 || h.GPUs%each != 0 || p.MicroBatch > workload.MaxMicroBatch ||
		p.Accum > workload.MaxMicroBatch {
		return // which is said where it is read
	}
	dp := int64(h.GPUs / each)
	switch {
	case p.GlobalBatch == 0 && p.MicroBatch > 0:
		accum := p.Accum
		if accum == 0 {
			if accum = 1; p.PP > 1 {
				accum = 4 * int64(p.PP)
			}
			t.Assumed = append(t.Assumed, fmt.Sprintf("a global batch of %d", p.MicroBatch*dp*accum))
		}
		p.GlobalBatch = p.MicroBatch * dp * accum
	case p.MicroBatch == 0 && p.Accum > 0 && p.GlobalBatch > 0 && p.GlobalBatch%(dp*p.Accum) == 0:
		p.MicroBatch = p.GlobalBatch / dp / p.Accum
	}
}

// serverGPUs is what a server has where nobody says, and maxGPUs the most that a run is taken to have.
const (
	serverGPUs = 8
	maxGPUs    = 1 << 20
)

// Seconds is the measured time of a step, given or following from a throughput; 0 when
// neither is there.
func (t *training) Seconds() float64 {
	m := &t.Measured
	batch := float64(t.Parallel.GlobalBatch)
	tokens := batch * float64(t.Model.Seq)
	switch {
	case m.Step > 0:
		return m.Step
	case t.Derived.Step > 0:
		return t.Derived.Step
	case m.Tokens > 0:
		return tokens / m.Tokens
	case t.Derived.Tokens > 0:
		return tokens / t.Derived.Tokens
	case m.PerGPU > 0:
		return tokens / m.PerGPU / float64(t.Hardware.GPUs)
	case m.Days > 0:
		return tokens / (300e9 / (m.Days * 86400))
	case m.TFLOPS > 0:
		return t.flops() / (m.TFLOPS * 1e12 * float64(t.Hardware.GPUs))
	}
	return 0
}

// flops is the count that published rates of Megatron's are made of (Narayanan et al. 2021,
// appendix): 96BslH²(1 + s/6H + V/16lH) with recomputation, three quarters without.
func (t *training) flops() float64 {
	h, l, s, v := float64(t.Model.Hidden), float64(t.Model.Layers), float64(t.Model.Seq), float64(t.Model.Vocab)
	f := 96 * float64(t.Parallel.GlobalBatch) * s * l * h * h * (1 + s/(6*h) + v/(16*l*h))
	if strings.HasPrefix(t.Measured.Kind, "model") {
		f *= 0.75
	}
	return f
}

// Job is the run as a job; what the source leaves open is assumed and noted.
func (t *training) Job() (*workload.Job, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	m = m.Predicting(t.further())
	p := &t.Parallel
	s := workload.Split{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, ETP: p.ETP, Chunks: p.VPP}
	if each := max(s.TP, 1) * max(s.PP, 1) * max(s.CP, 1); s.DP*each != t.Hardware.GPUs && t.Hardware.GPUs%each == 0 {
		if s.DP = t.Hardware.GPUs / each; p.DP > 0 {
			t.Assumed = append(t.Assumed, fmt.Sprintf("dp=%d, which the GPUs give; the source prints %d", s.DP, p.DP))
		}
	}
	if s.Chunks > 1 && s.PP <= 1 {
		t.Assumed, s.Chunks = append(t.Assumed, fmt.Sprintf("no chunks: vpp=%d without a pipeline", s.Chunks)), 1
	}
	j := &workload.Job{
		Model: m, Seq: cmp.Or(t.Model.Seq, m.Seq), MicroBatch: p.MicroBatch, GlobalBatch: p.GlobalBatch,
		Recompute: workload.None, Kernels: workload.Fused,
	}
	if j.Precision, err = t.precision(); err != nil {
		return nil, err
	}
	if err := t.style(j, &s); err != nil {
		return nil, err
	}
	if err := t.explicit(j, &s); err != nil {
		return nil, err
	}
	if j.Split, err = s.On(t.Hardware.GPUs); err != nil {
		return nil, err
	}
	t.fit(j, t.batches(j, &s))
	return j, j.Check()
}

// precision is the stated one; where its words are unknown, that of the family that the source puts it in.
func (t *training) precision() (workload.Precision, error) {
	words := t.Parallel.Precision
	if t.adapters() { // frozen weights of fewer bits are computed with in 16
		words = strings.Trim(fewBits.ReplaceAllString(words, " "), " -_+/,()")
	}
	p, err := workload.ParsePrecision(cmp.Or(words, t.Parallel.Family, "bf16"))
	if err == nil || t.Parallel.Family == "" {
		return p, err
	}
	if q, other := workload.ParsePrecision(t.Parallel.Family); other == nil {
		t.Assumed = append(t.Assumed, fmt.Sprintf("precision %s for %.40q", q, t.Parallel.Precision))
		return q, nil
	}
	return p, err
}

// explicit is what the source states itself, which wins over what is usual.
func (t *training) explicit(j *workload.Job, s *workload.Split) error {
	p := &t.Parallel
	if err := t.recomputation(j); err != nil {
		return err
	}
	if p.Graphs != nil {
		j.Graphs = *p.Graphs
	} else if strings.Contains(p.Config, "_cg") { // as MLPerf's settings are named
		j.Graphs = true
	} else if p.Graph == "full step" {
		j.Graphs, j.Recipe.Graphs = true, workload.GraphWhole
	}
	words := strings.ToLower(p.Dispatcher)
	for _, d := range []workload.Dispatcher{
		workload.AllGather, workload.AllToAll, workload.DeepEP, workload.HybridEP,
	} {
		if strings.HasPrefix(words, string(d)) {
			j.Dispatcher = d
			j.Recipe.Dispatcher, j.Recipe.Overlap = d, strings.Contains(words, "overlap")
		}
	}
	if dropped.MatchString(t.Notes) {
		j.Capacity = true
	}
	if m := hostLayers.FindStringSubmatch(p.Offload); m != nil {
		if err := j.Choose("host.layers=" + m[1]); err != nil {
			return err
		}
	}
	if p.ZeRO != nil {
		s.ZeRO = *p.ZeRO
	} else if p.Sharded != nil && *p.Sharded && s.ZeRO == 0 {
		s.ZeRO = 1
	}
	switch f := p.FSDP.(type) {
	case float64:
		if f > 1 && f <= float64(t.Hardware.GPUs) {
			s.ZeRO, s.Shard = 3, int(f)
		}
	case string:
		s.ZeRO = 3
		switch f = strings.ToUpper(f); {
		case strings.Contains(f, "HYBRID"), strings.Contains(f, "HSDP"):
			s.Shard = max(1, t.Hardware.PerNode)
		case strings.Contains(f, "GRAD_OP"):
			s.ZeRO = 2
		}
	}
	if p.ShardSize > 0 {
		s.Shard = p.ShardSize
	}
	if p.Reshard != nil && !*p.Reshard && s.ZeRO == 3 { // gathered once a step
		s.ZeRO = 2
	}
	if strings.Contains(t.Framework, "Automodel") { // as its benchmarks have it (examples/llm_benchmark)
		if j.Model.Dims.Experts > 0 && s.EP == 0 {
			s.EP = min(t.Hardware.GPUs/max(1, s.PP), 64)
			t.Assumed = append(t.Assumed, fmt.Sprintf("ep=%d", s.EP))
		} else if p.Recompute == "" && j.Model.Params() > 25e9 {
			j.Recompute, t.Assumed = workload.Full, append(t.Assumed, "recompute full")
		}
	}
	if n, ok := p.ZeROGroup.(float64); ok && n >= 1 && n <= float64(t.Hardware.GPUs) {
		s.Shard = int(n)
	}
	if p.SeqParallel != nil {
		s.SeqParallel = *p.SeqParallel && s.TP > 1
	}
	if p.Compile != nil && j.Kernels != workload.Fused {
		if j.Kernels = workload.Eager; *p.Compile {
			j.Kernels = workload.Compiled
		}
	}
	if t.adapters() {
		j.LoRA.Rank = t.Model.LoRARank
		if j.LoRA.Rank == 0 {
			j.LoRA.Rank = 16
			t.Assumed = append(t.Assumed, "adapters of rank 16")
		}
		// MLPerf's adapters are those of attention (its rules of llama2_70b_lora), as are those of Megatron-Bridge's
		// benchmarks, which pack SQuAD's short documents (perf_recipes/llama: target_modules; recipes/common.py).
		j.LoRA.Attention = strings.Contains(t.Framework+t.Cluster, "MLPerf")
		if strings.Contains(t.Framework, "Megatron-Bridge") {
			j.LoRA.Attention, j.Packed = true, min(squad, j.Seq)
		}
		if w := fewBits.FindString(t.Model.Name + " " + p.Precision + " " + p.Task); strings.Contains(w, "8") {
			j.LoRA.Bits = 8
		} else if w != "" {
			j.LoRA.Bits = 4
		}
	}
	return nil
}

// squad is about how many tokens a question of SQuAD has with its text and answer.
const squad = 256

// fewBits are the words for frozen weights of fewer bits.
var fewBits = lazyre.New(`(?i)\bq-?lora\b|\bnf4\b|\b[48]-?bit\b|\bint[48]\b|\bbnb\b|\bbitsandbytes\b`)

// adapters reports that weights are frozen.
func (t *training) adapters() bool {
	return t.Model.LoRA || t.Model.LoRARank > 0 ||
		strings.Contains(strings.ToLower(t.Model.Name+" "+t.Parallel.Task+" "+t.Parallel.Precision), "lora")
}

// dropped are the words for experts that take a fixed number of tokens.
var dropped = lazyre.New(`(?i)\btoken[- ]?drop|drop[- ]and[- ]pad|capacity factor`)

var (
	someLayers = lazyre.New(`(\d+) of (\d+) layers`)
	hostLayers = lazyre.New(`activations of (\d+) layers`)
	opWords    = lazyre.New(`\bop\b|per[- ]op|\bsac\b`)
)

// recomputation reads the words of a source.
func (t *training) recomputation(j *workload.Job) error {
	words := strings.ToLower(strings.TrimSpace(t.Parallel.Recompute))
	if words == "" && strings.Contains(t.Notes, "recompute selected modules") {
		words = "mla_up_proj"
	}
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(words, w) })
	}
	switch {
	case words == "": // as is usual
	case strings.HasPrefix(words, "none"), words == "no", words == "false", words == "off", words == "0",
		has("no recompute", "without", "disabled"):
		j.Recompute = workload.None
	case strings.HasPrefix(words, "full"), strings.HasPrefix(words, "all"), has("every layer", "uniform", "whole"),
		strings.HasPrefix(words, "block"), words == "true", words == "yes", words == "on":
		j.Recompute = workload.Full
	case opWords.MatchString(words):
		j.Recompute = workload.PerOp
	case has("moe_act", "layernorm", "mla_up_proj", "norm", "activation function"):
		j.Recompute = workload.Light
	case strings.HasPrefix(words, "selective"), has("core_attn", "attention", "partial", "mlp", "moe"):
		j.Recompute = workload.Selective
	case has("checkpoint", "layers", "recompute", "remat", "ac"):
		j.Recompute = workload.Full
	default:
		return fmt.Errorf("recompute %.40q is unknown; expected none, selective, per-op, light or full", words)
	}
	if m := someLayers.FindStringSubmatch(words); m != nil {
		some, _ := strconv.ParseFloat(m[1], 64)
		all, _ := strconv.ParseFloat(m[2], 64)
		if some > 0 && some < all {
			j.Recomputed = some / all
		}
	}
	return nil
}

// fit takes what makes a run fit where the source says nothing of it. Replicas that train small adapters hold frozen
// weights whole where these fit, and those that cannot hold all weights divide them. Those who need more place take, as
// far as it is needed: smaller micro-batches, what Megatron's recipes do, one after the other, all of the layers again.
func (t *training) fit(j *workload.Job, assumed bool) {
	m, ok := gpuOf(t.Hardware.GPU)
	if !ok || j.Check() != nil {
		return
	}
	g, err := step.NewGPU(m, step.Default())
	if err != nil {
		return
	}
	over := func(j workload.Job) bool { return j.Check() == nil && step.Fits(g.Memory(&j), m.Memory) < 0.6 } // it ran
	whole := *j
	whole.Split.ZeRO = 0
	switch {
	case t.statesSharding() || j.Split.DP == 1:
	case j.LoRA.Frozen() && j.Split.ZeRO == 3 && !over(whole):
		j.Split.ZeRO, t.Assumed = 0, append(t.Assumed, "frozen weights whole on every GPU")
	case j.Split.ZeRO == 0 && j.Split.PP == 1 && over(*j):
		j.Split.ZeRO, t.Assumed = 3, append(t.Assumed, "zero=3: whole weights do not fit")
	}
	for assumed && j.MicroBatch > 1 && over(*j) {
		j.MicroBatch /= 2
	}
	if assumed {
		t.Assumed = append(t.Assumed, fmt.Sprintf("micro-batches of %d", j.MicroBatch))
	}
	for _, r := range t.remedies(j) {
		if !over(*j) {
			return
		}
		other := *j
		if r.change(&other); other.Check() == nil {
			*j, t.Assumed = other, append(t.Assumed, r.name+": without that it does not fit")
		}
	}
}

// remedy is what makes a run fit.
type remedy struct {
	name   string
	change func(*workload.Job)
}

// remedies are those that the source says nothing against, the cheapest first: recipes of Megatron-Bridge recompute
// modules, keep moments of DeepSeek-V3 in 16 bits and, with full sharding on GB200 and GB300, activations of 20 to 40
// layers of 80 in the host's memory (scripts/performance/configs); those of NeMo Automodel keep moments so, too.
func (t *training) remedies(j *workload.Job) (list []remedy) {
	p := &t.Parallel
	core := j.Kernels == workload.Fused && !j.Precision.Amp()
	full := remedy{"recompute full", func(j *workload.Job) { j.Recompute, j.HostLayers = workload.Full, 0 }}
	switch {
	case strings.Contains(t.Notes, "some blocks checkpointed"):
		return []remedy{full}
	case p.Recompute != "" || j.Recompute != workload.None:
		return nil
	case core:
		list = append(list, remedy{"recompute light", func(j *workload.Job) { j.Recompute = workload.Light }})
	}
	if core && j.Split.ZeRO < 3 && !j.LoRA.Frozen() || strings.Contains(t.Framework, "Automodel") {
		list = append(list, remedy{"optimizer=adam-bf16", func(j *workload.Job) { j.Optimizer = workload.AdamNarrow }})
	}
	if core && j.Split.ZeRO == 3 && strings.HasPrefix(t.Hardware.GPU, "GB") && p.Offload == "" {
		half := int(j.Model.Dims.Layers / 2)
		list = append(list, remedy{fmt.Sprintf("host.layers=%d", half), func(j *workload.Job) { j.HostLayers = half }})
	}
	if !core || !j.LoRA.Frozen() {
		list = append(list, full)
	}
	return list
}

// batches assumes a micro-batch where the source has none, and takes one of each replica where it does not state the
// global batch.
func (t *training) batches(j *workload.Job, s *workload.Split) (assumed bool) {
	if j.MicroBatch > 0 {
		return false
	}
	j.MicroBatch = 1
	for b := int64(8); b > 1; b /= 2 {
		if j.GlobalBatch%(b*int64(s.DP)) == 0 && (s.PP <= 1 || j.GlobalBatch/(b*int64(s.DP)) >= int64(4*s.PP)) &&
			s.TP*s.PP < 64 {
			j.MicroBatch = b
			break
		}
	}
	return true
}

var rdma = lazyre.New(`(?i)roce|infiniband|\bib\b|ndr|hdr|efa|slingshot|tcpx`)

// Place is the cluster of the run.
func (t *training) Place() (*truth.Place, error) {
	h := &t.Hardware
	m := &result.Machine{GPU: h.GPU, Joined: h.Intra, NICs: h.NICs, Gbps: h.Gbps, Fabric: h.Fabric}
	nodes, per := max(h.Nodes, 1), h.PerNode
	if h.GPUs < nodes*per {
		per = max(1, h.GPUs/nodes)
	}
	if m.NICs == nil && nodes > 1 {
		n := float64(max(per, 1))
		rate := 400.0
		g, _ := gpuOf(h.GPU)
		switch {
		case h.NodeGbps != nil:
			rate = *h.NodeGbps / n
		case g.SM == 103: // ConnectX-8 of NVIDIA's B300 and GB300 systems
			rate = 800
		case g.Links == 0: // cards
			n, rate = 2, 200
		case g.Vendor == "nvidia" && g.SM < 80:
			rate = 100
		case g.Vendor == "nvidia" && g.SM < 90:
			rate = 200
		}
		m.NICs, m.Gbps = &n, &rate
		t.Assumed = append(t.Assumed, fmt.Sprintf("%g NICs of %g Gb/s a node", n, rate))
	}
	if m.Gbps == nil && m.NICs != nil && h.NodeGbps != nil && *m.NICs >= 1 {
		rate := *h.NodeGbps / *m.NICs
		m.Gbps = &rate
	}
	if rdma.MatchString(h.Printed) { // others may be the network for logging in
		m.Fabric = cmp.Or(m.Fabric, h.Printed)
	}
	m.Fabric = cmp.Or(m.Fabric, "InfiniBand")
	return truth.Describe(m, nodes, per, 0)
}

// further is how many tokens beyond the next one a run learns to predict: what Megatron-Bridge's recipes have where
// nothing else is said (recipes/deepseek, recipes/nemotronh).
func (t *training) further() int64 {
	name := strings.ToLower(t.Model.Name)
	switch {
	case !strings.Contains(t.Framework, "Megatron-Bridge") || withoutMTP.MatchString(t.Notes):
		return 0
	case strings.Contains(name, "deepseek-v3"):
		return 1
	case strings.Contains(name, "nemotron-3 super"):
		return 2
	}
	return 0
}

var withoutMTP = lazyre.New(`MTP off|w/o MTP`)

// model is the network: the dimensions that the source states, what it does not state from the catalogue by its name,
// and the family that its name and its number of parameters say.
func (t *training) model() (*workload.Model, error) {
	name := strings.ToLower(t.Model.Name)
	known := t.known()
	if known != nil && known.Replicated() {
		m := *known
		m.Seq = cmp.Or(t.Model.Seq, m.Seq)
		return &m, nil
	}
	if pictures.MatchString(name) {
		return nil,
			fmt.Errorf("%s: it is no language model of layers that are priced, and not among the others that are (busbar list "+
				"models lists them)", t.Model.Name)
	}
	if t.Model.Layers == 0 || t.Model.Hidden == 0 {
		if known == nil {
			return t.guessed()
		}
		t.Assumed = append(t.Assumed, "the dimensions of "+known.Title)
		m := *known
		m.Seq = t.Model.Seq
		return &m, nil
	}
	if strings.Contains(t.Source, "DeepLearningExamples") && strings.Contains(name, "bert") && t.Model.Seq == 512 {
		return nil, fmt.Errorf("%s: sequences run without their padding, and how long they are is not stated", t.Model.Name)
	}
	d := t.dims(known)
	if err := d.Check(); err != nil {
		return nil, err
	}
	if known != nil && d.Experts > 0 && sameShape(d, known.Dims) { // whose biases and sinks tables do not state
		m := *known
		m.Seq = d.Context
		return &m, nil
	}
	return &workload.Model{Name: t.Model.Name, Dims: d, Seq: d.Context, Blocks: t.blocks(name, d)}, nil
}

// sameShape reports whether dimensions differ in the sequence alone.
func sameShape(a, b workload.Dims) bool {
	a.Context, a.HeadDim = b.Context, cmp.Or(a.HeadDim, b.HeadDim)
	return a == b
}

// pictures are names of what is no language model, or has layers of its own.
var pictures = lazyre.New(
	`resnet|transformer.?xl|diffusion|sdxl|\bflux|u-?net|retinanet|ssd\b|dlrm|r-?gat|\bgnn|rnn-?t|\bwan[ -]?2|\bdit\b|mask ?r-?cnn|\bvit\b|efficientnet`)

// known is the model of the catalogue that the run's name is of; nil where there is none, or it is of another size.
func (t *training) known() *workload.Model {
	m := like(t.Model.Name)
	if m != nil && t.Model.Params > 0 && math.Abs(math.Log(float64(m.Params())/t.Model.Params)) > 0.3 {
		return nil
	}
	return m
}

// guessed is a model of which only the number of parameters is known: a dense decoder in the proportions of GPT-3.
func (t *training) guessed() (*workload.Model, error) {
	x := &t.Model
	if x.Params <= 0 || x.Experts > 0 || x.Active > 0 || x.Scans > 0 {
		return nil, fmt.Errorf("%s: the source does not state its layers and width, and the catalogue has no such model "+
			"(busbar list models lists it)", x.Name)
	}
	word := fmt.Sprintf("params=%.0f", x.Params)
	for _, f := range []struct {
		name string
		n    int64
	}{{"layers", x.Layers}, {"hidden", x.Hidden}, {"vocab", x.Vocab}, {"context", x.Seq}} {
		if f.n > 0 {
			word += fmt.Sprintf(",%s=%d", f.name, f.n)
		}
	}
	m, err := workload.Parse(word)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.Name, err)
	}
	t.Assumed = append(t.Assumed,
		fmt.Sprintf("%d layers of %d units, from the number of parameters", m.Dims.Layers, m.Dims.Hidden))
	return m, nil
}

// dims are the dimensions.
func (t *training) dims(known *workload.Model) workload.Dims {
	x := &t.Model
	d := workload.Dims{
		Layers: x.Layers, Hidden: x.Hidden, Heads: x.Heads, KVHeads: x.KVHeads, FFN: x.FFN, Vocab: x.Vocab, Context: x.Seq,
		HeadDim: x.HeadDim,
		Experts: x.Experts, TopK: x.TopK, Shared: x.Shared, ExpertFFN: x.ExpertFFN, Dense: x.Dense,
	}
	if known != nil && known.Dims.Layers == d.Layers && known.Dims.Hidden == d.Hidden {
		k := known.Dims
		d.Heads, d.KVHeads, d.HeadDim = cmp.Or(d.Heads, k.Heads), cmp.Or(d.KVHeads, k.KVHeads), cmp.Or(d.HeadDim, k.HeadDim)
		d.FFN, d.Vocab = cmp.Or(d.FFN, k.FFN), cmp.Or(d.Vocab, k.Vocab)
		d.Experts, d.TopK, d.ExpertFFN = cmp.Or(d.Experts, k.Experts), cmp.Or(d.TopK, k.TopK),
			cmp.Or(d.ExpertFFN, k.ExpertFFN)
		if x.Experts == 0 && k.Experts > 0 {
			d.Shared, d.Dense = k.Shared, k.Dense
		}
	}
	if d.Heads == 0 {
		d.Heads = max(1, d.Hidden/128)
		t.Assumed = append(t.Assumed, fmt.Sprintf("%d heads of 128", d.Heads))
	}
	d.Vocab = cmp.Or(d.Vocab, 51200)
	d.KVHeads = cmp.Or(d.KVHeads, d.Heads)
	if d.HeadDim == 0 && d.Hidden%d.Heads != 0 {
		d.HeadDim = 128
	}
	if d.FFN == 0 && d.Experts == 0 {
		d.FFN = 4 * d.Hidden
	}
	d.FFN = cmp.Or(d.FFN, max(d.ExpertFFN, 1))
	return d
}

// latent says that attention is latent, whose widths have been DeepSeek-V3's wherever a source stated them.
func (t *training) latent() bool {
	words := strings.ToLower(t.Model.Attention)
	return strings.Contains(words, "mla") || strings.Contains(words, "latent")
}

// blocks are those of the family.
func (t *training) blocks(name string, d workload.Dims) []workload.Block {
	x := &t.Model
	if t.latent() && d.Experts > 0 {
		return workload.Blocks("deepseek every=1 from=1 router_correction q_lora_rank=1536 kv_lora_rank=512 "+
			"qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128", d)
	}
	if x.Scans > 0 {
		if x.Scans+x.Attending+x.MLPs+x.Mixtures == d.Layers {
			design := fmt.Sprintf("hybrid scan_layers=%d attention_layers=%d mlp_layers=%d expert_layers=%d latent=%d "+
				"shared_ffn=%d", x.Scans, x.Attending, x.MLPs, x.Mixtures, x.Latent, x.SharedFFN) + scanSizes(t.known())
			if !strings.Contains(name, "nemotron") {
				design += " gated"
			}
			return workload.Blocks(design, d)
		}
		t.Assumed = append(t.Assumed, "all layers attend: their kinds do not add up to the layers")
	}
	var design string
	switch {
	case strings.Contains(name, "bert"):
		return workload.Blocks("bert types=2 next", d)
	case d.Experts > 0:
		design = fmt.Sprintf("decoder gated shared_ffn=%d", cmp.Or(x.SharedFFN, d.Shared*d.ExpertFFN))
	case strings.Contains(name, "nemotron"):
		design = "llama norm_bias"
	case t.gatedByCount(name, d):
		design = "llama gated"
	default:
		design = "gpt2"
	}
	return workload.Blocks(design, d)
}

// scanSizes are the sizes of scans of a model of the catalogue that has some.
func scanSizes(known *workload.Model) string {
	if known == nil {
		return ""
	}
	for i := range known.Blocks {
		for _, p := range known.Blocks[i].Parts {
			if p.Kind == workload.Scan {
				return fmt.Sprintf(" ssm_heads=%d ssm_dim=%d state=%d groups=%d", p.Heads, p.HeadDim, p.State, p.KVHeads)
			}
		}
	}
	return ""
}

// gatedFamilies have gated MLPs, rotary positions and norms that scale.
var gatedFamilies = []string{
	"llama", "internlm", "qwen", "mistral", "mixtral", "gemma", "deepseek", "gpt-oss", "phi-3", "phi3", "phi-4", "glm",
	"olmo", "granite", "smollm", "yi-", "baichuan", "minicpm", "falcon3",
}

// gatedByCount says whether the MLP is gated: by the family's name, else by which of the two the number of parameters
// is nearer to.
func (t *training) gatedByCount(name string, d workload.Dims) bool {
	for _, f := range gatedFamilies {
		if strings.Contains(name, f) {
			return true
		}
	}
	if t.Model.Params <= 0 || strings.Contains(name, "gpt") || t.Model.FFN == 0 {
		return false
	}
	far := func(blocks []workload.Block) float64 {
		m := workload.Model{Blocks: blocks}
		return math.Abs(math.Log(float64(m.Params()) / t.Model.Params))
	}
	return far(workload.Blocks("llama gated", d)) < far(workload.Blocks("gpt2", d))
}
