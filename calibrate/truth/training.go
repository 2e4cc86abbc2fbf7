package truth

import (
	"encoding/json"
	"fmt"
	"strings"

	"busbar.dev/result"
	"busbar.dev/workload"
)

// Training is one measured training run as published.
type Training struct {
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
		Mixed       string `json:"fsdp_mixed_precision"`
		ShardSize   int    `json:"fsdp_size"`
		// ZeROGroup is how many ranks divide the state, or words that say all of them.
		ZeROGroup any `json:"zero_group"`
	} `json:"parallel"`
	Measured struct {
		Step    float64 `json:"step_time_s"`
		Tokens  float64 `json:"tokens_per_s"`
		PerGPU  float64 `json:"tokens_per_s_per_gpu"`
		Samples float64 `json:"samples_per_s"`
		TFLOPS  float64 `json:"tflops_per_gpu"`
		Kind    string  `json:"tflops_kind"`
	} `json:"measured"`
	Derived struct {
		Step   float64 `json:"step_time_s"`
		Tokens float64 `json:"tokens_per_s"`
	} `json:"derived"`
	Notes string `json:"notes"`
	// Framework is eager, compiled or fused, where the source says so in our words.
	Framework string `json:"framework"`

	Assumed []string `json:"-"`
}

// readTraining reads a line; false when it is not about training.
func readTraining(line []byte) (*Training, bool) {
	var t Training
	if json.Unmarshal(line, &t) != nil || t.ID == "" || t.Hardware.GPU == "" || t.Model.Name == "" {
		return nil, false
	}
	return &t, true
}

// Seconds is the measured time of a step, given or following from a throughput; 0 when
// neither is there.
func (t *Training) Seconds() float64 {
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
	case m.Samples > 0:
		return batch / m.Samples
	case m.TFLOPS > 0:
		return t.flops() / (m.TFLOPS * 1e12 * float64(t.Hardware.GPUs))
	}
	return 0
}

// flops is the count that published rates of Megatron's are made of (Narayanan et al. 2021,
// appendix): 96BslH²(1 + s/6H + V/16lH) with recomputation, three quarters without.
func (t *Training) flops() float64 {
	h, l, s, v := float64(t.Model.Hidden), float64(t.Model.Layers), float64(t.Model.Seq), float64(t.Model.Vocab)
	f := 96 * float64(t.Parallel.GlobalBatch) * s * l * h * h * (1 + s/(6*h) + v/(16*l*h))
	if strings.HasPrefix(t.Measured.Kind, "model") {
		f *= 0.75
	}
	return f
}

// model is the network, by the family its name says.
func (t *Training) model() (*workload.Model, error) {
	name := strings.ToLower(t.Model.Name)
	if t.Model.Layers == 0 || t.Model.Hidden == 0 {
		if strings.HasPrefix(name, "resnet") {
			return nil, fmt.Errorf("%s: no transformer; its arithmetic is not modelled", t.Model.Name)
		}
		return nil, fmt.Errorf("%s: the source does not state its layers and width", t.Model.Name)
	}
	if strings.HasPrefix(name, "transformer-xl") {
		return nil, fmt.Errorf("%s: relative positions and memory of segments are not modelled", t.Model.Name)
	}
	if strings.Contains(t.Source, "DeepLearningExamples") && strings.Contains(name, "bert") && t.Model.Seq == 512 {
		return nil, fmt.Errorf("%s: sequences run without their padding, and how long they are is not stated", t.Model.Name)
	}
	d := workload.Dims{Layers: t.Model.Layers, Hidden: t.Model.Hidden, Heads: t.Model.Heads, KVHeads: t.Model.KVHeads, FFN: t.Model.FFN, Vocab: t.Model.Vocab, Context: t.Model.Seq, Experts: t.Model.Experts, TopK: t.Model.TopK}
	if d.Heads == 0 {
		d.Heads = max(1, d.Hidden/128)
		t.Assumed = append(t.Assumed, fmt.Sprintf("%d heads of 128", d.Heads))
	}
	if d.Vocab == 0 {
		d.Vocab = 51200
	}
	if d.KVHeads == 0 {
		d.KVHeads = d.Heads
	}
	if d.FFN == 0 {
		d.FFN = 4 * d.Hidden
	}
	if err := d.Check(); err != nil {
		return nil, err
	}
	m := &workload.Model{Name: t.Model.Name, Dims: d, Seq: d.Context}
	switch {
	case d.Experts > 0:
		m.Blocks = workload.Mixtral(d)
	case strings.Contains(name, "llama"), strings.Contains(name, "internlm"):
		m.Blocks = workload.Llama(d)
	case strings.Contains(name, "nemotron"):
		m.Blocks = workload.Nemotron(d)
	case strings.Contains(name, "bert"):
		m.Blocks = workload.BERT(d)
	default:
		m.Blocks = workload.GPT2(d)
	}
	return m, nil
}

// Job is the run as a job; what the source leaves open is assumed and noted.
func (t *Training) Job() (*workload.Job, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	p := &t.Parallel
	s := workload.Split{DP: p.DP, TP: p.TP, PP: p.PP, CP: p.CP, EP: p.EP, Chunks: p.VPP}
	if each := max(s.TP, 1) * max(s.PP, 1) * max(s.CP, 1); s.DP*each != t.Hardware.GPUs && t.Hardware.GPUs%each == 0 {
		if s.DP = t.Hardware.GPUs / each; p.DP > 0 {
			t.Assumed = append(t.Assumed, fmt.Sprintf("dp=%d, which the GPUs give; the source prints %d", s.DP, p.DP))
		}
	}
	j := &workload.Job{Model: m, Seq: t.Model.Seq, MicroBatch: p.MicroBatch, GlobalBatch: p.GlobalBatch, Recompute: workload.None, Kernels: workload.Fused}
	switch {
	case strings.HasPrefix(p.Recompute, "full"):
		j.Recompute = workload.Full
	case strings.HasPrefix(p.Recompute, "selective"):
		j.Recompute = workload.Selective
	}
	if p.ZeRO != nil {
		s.ZeRO = *p.ZeRO
	}
	t.style(j, &s)
	j.Precision = precisionOf(p.Precision)
	if p.ShardSize > 0 {
		s.Shard = p.ShardSize
	}
	if n, ok := p.ZeROGroup.(float64); ok && n >= 1 && n <= float64(t.Hardware.GPUs) {
		s.Shard = int(n)
	}
	if p.SeqParallel != nil {
		s.SeqParallel = *p.SeqParallel && s.TP > 1
	}
	if j.Split, err = s.On(t.Hardware.GPUs); err != nil {
		return nil, err
	}
	if j.MicroBatch == 0 {
		j.MicroBatch = 1
		for b := int64(8); b > 1; b /= 2 {
			if j.GlobalBatch%(b*int64(s.DP)) == 0 && (s.PP <= 1 || j.GlobalBatch/(b*int64(s.DP)) >= int64(4*s.PP)) && s.TP*s.PP < 64 {
				j.MicroBatch = b
				break
			}
		}
		t.Assumed = append(t.Assumed, fmt.Sprintf("micro-batches of %d", j.MicroBatch))
	}
	return j, j.Check()
}

// style is how the source's framework computes: what is usual for it and not printed.
func (t *Training) style(j *workload.Job, s *workload.Split) {
	src := strings.ToLower(t.Source + " " + t.Cluster)
	switch {
	case t.Framework != "":
		j.Kernels = workload.Kernels(t.Framework)
	case strings.Contains(src, "maxtext"), strings.Contains(src, "paxml"):
		j.Kernels = workload.Compiled
		if strings.Contains(src, "paxml") && t.Parallel.Recompute == "" {
			j.Recompute = workload.Full
			t.Assumed = append(t.Assumed, "layers are computed again, which is Paxml's default")
		}
	case strings.Contains(src, "dgxc"), strings.Contains(src, "nemo"):
		s.SeqParallel = s.TP > 1
		if t.Parallel.ZeRO == nil {
			s.ZeRO = 1
		}
	case strings.Contains(src, "llm-foundry"):
		j.Kernels, j.Early = workload.Compiled, true
	case strings.Contains(src, "interne"):
	default: // Megatron-LM, DeepSpeed and NVIDIA's examples of 2020 to 2022
		j.Unfused, j.Sync = true, true
		if strings.Contains(src, "deeplearningexamples") || strings.Contains(t.ID, "ngc-pytorch") {
			j.Sync = false
		}
		if strings.Contains(src, "deeplearningexamples") && strings.Contains(strings.ToLower(t.Model.Name), "bert") {
			j.Masked = 0.15 // Devlin et al. 2019, section 3.1
		}
	}
}

func precisionOf(s string) workload.Precision {
	switch s {
	case "fp32":
		return workload.FP32
	case "tf32", "fp32/tf32":
		return workload.TF32
	case "fp16":
		return workload.FP16
	case "amp", "fp16 (amp)":
		return workload.AMPH
	case "amp_bf16":
		return workload.AMP
	case "fp8", "amp_fp8":
		return workload.FP8
	}
	return workload.BF16
}

// Place is the cluster of the run.
func (t *Training) Place() (*Place, error) {
	h := &t.Hardware
	m := &result.Machine{GPU: h.GPU, Joined: h.Intra, NICs: h.NICs, Gbps: h.Gbps, Fabric: h.Fabric}
	nodes, per := max(h.Nodes, 1), h.PerNode
	if h.GPUs < nodes*per {
		per = max(1, h.GPUs/nodes)
	}
	if m.NICs == nil && nodes > 1 {
		n := float64(8)
		rate := 400.0
		if h.NodeGbps != nil {
			rate = *h.NodeGbps / n
		} else if strings.HasPrefix(h.GPU, "A100") {
			rate = 200
		}
		m.NICs, m.Gbps = &n, &rate
		t.Assumed = append(t.Assumed, fmt.Sprintf("8 NICs of %g Gb/s a node", rate))
	}
	if m.Fabric == "" {
		m.Fabric = "InfiniBand"
	}
	return describe(m, nodes, per)
}
