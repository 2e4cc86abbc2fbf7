package truth

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/hardware"
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
		Frozen    string  `json:"frozen"`
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
		Mixed       string `json:"fsdp_mixed_precision"`
		ShardSize   int    `json:"fsdp_size"`
		// ZeROGroup is how many ranks divide the state, or words that say all of them.
		ZeROGroup any `json:"zero_group"`
		// FSDP is how many ranks divide the parameters, or PyTorch's word for how; 0 is none.
		FSDP    any    `json:"fsdp"`
		Sharded *bool  `json:"sharded_optimizer"`
		Compile *bool  `json:"compile"`
		Overlap string `json:"overlap"`
		Task    string `json:"task"`
		Graphs  *bool  `json:"cuda_graphs"`
		Config  string `json:"config"` // name of the settings' file, which says some of them
		Accum   int64  `json:"grad_accum"`
		ETP     int    `json:"etp"`
		Offload string `json:"offload"`
	} `json:"parallel"`
	Measured struct {
		Step    float64 `json:"step_time_s"`
		Tokens  float64 `json:"tokens_per_s"`
		PerGPU  float64 `json:"tokens_per_s_per_gpu"`
		Samples float64 `json:"samples_per_s"`
		Each    float64 `json:"samples_per_s_per_gpu"`
		Days    float64 `json:"days_for_300B_tokens"`
		TFLOPS  float64 `json:"tflops_per_gpu"`
		Kind    string  `json:"tflops_kind"`
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
	// Change takes something out of a run before it is priced, to see what that is worth; nil takes nothing.
	Change func(*Training, *workload.Job, *hardware.GPUModel) `json:"-"`
}

// readTraining reads a line; false when it is not about training.
func readTraining(line []byte) (*Training, bool) {
	var t Training
	if unmarshalLoose(line, &t) != nil || t.ID == "" || t.Hardware.GPU == "" || t.Model.Name == "" {
		return nil, false
	}
	t.complete()
	return &t, true
}

// complete fills what follows from what a source states: GPUs of nodes, nodes of GPUs, batches of their parts.
func (t *Training) complete() {
	h, p := &t.Hardware, &t.Parallel
	if h.PerNode <= 0 {
		if h.PerNode = serverGPUs; strings.HasPrefix(h.GPU, "GB") || strings.HasPrefix(h.GPU, "GH") {
			h.PerNode = trayGPUs
		}
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
	case m.Samples > 0 || m.Each > 0:
		return batch / cmp.Or(m.Samples, m.Each*float64(t.Hardware.GPUs))
	case m.Days > 0:
		return tokens / (300e9 / (m.Days * 86400))
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
