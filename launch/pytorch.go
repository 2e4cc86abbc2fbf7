package launch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/workload"
)

// unknownModel is why model.py does not have a model; "" where it does.
func (w *writer) unknownModel() string {
	a := w.Arch
	if a.Kind != workload.DecoderOnly || len(a.Odd) > 0 || a.SharedGate {
		return w.Job.Model.Name + " is no decoder that model.py has; give train.py your own model"
	}
	return w.beyond("model.py", "llama3")
}

// beyond is why a program that is built from dimensions alone would train another model; "" where it would not.
// scalings are those of rotary positions that it has.
func (w *writer) beyond(program string, scalings ...string) string {
	m := w.Job.Model
	what, kind := w.Details.Beyond, w.Scaling.Kind
	if n, err := strconv.ParseInt(w.Scaling.Original, 10, 64); kind == "yarn" && err == nil && w.Job.Seq <= n {
		kind = "" // what is shorter is trained before positions are stretched
	}
	if kind != "" && !slices.Contains(scalings, kind) && what == "" {
		what = kind + " scaling of rotary positions"
	}
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s has %s, which %s does not have; --framework hf with the folder of its config.json (-m DIR) "+
		"has all of it", m.Name, what, program)
}

// beyondSwiGLU is beyond for programs whose gated MLPs have one activation.
func (w *writer) beyondSwiGLU(program string, scalings ...string) string {
	m, y := w.Job.Model, w.Details
	if w.Arch.Gated && y.Activation != "silu" && y.Activation != "swish" {
		return fmt.Sprintf("%s has a gated MLP with %s, and %s as busbar writes it has SwiGLU alone; --framework fsdp or "+
			"hf has it", m.Name, line(y.Activation), program)
	}
	return w.beyond(program, scalings...)
}

// RackRanks is how many ranks hang below a leaf switch where all have as many, else those of a node.
func (w *writer) RackRanks() int {
	nodes := 1
	if l := w.Plan.Leaves; len(l) > 1 {
		nodes = l[0]
		for _, n := range l {
			if n != nodes {
				nodes = 1
				break
			}
		}
	}
	return nodes * w.Each
}

// deepspeed is the configuration of DeepSpeed, for plans that need nothing but replicas.
func (w *writer) deepspeed() (any, string) {
	j, s := &w.Plan.Job, w.Split
	if s.TP > 1 || s.PP > 1 || s.CP > 1 || s.EP > 1 {
		return nil,
			"tensor, pipeline, context and expert parallelism are the model's code in DeepSpeed, not its configuration"
	}
	// JSON has no comments; plan.json beside it says how it came about.
	type on struct {
		Enabled bool `json:"enabled"`
	}
	type optimizer struct {
		Type   string         `json:"type"`
		Params map[string]any `json:"params"`
	}
	doc := struct {
		Train     int64         `json:"train_batch_size"`
		Micro     int64         `json:"train_micro_batch_size_per_gpu"`
		Steps     int64         `json:"gradient_accumulation_steps"`
		Clip      float64       `json:"gradient_clipping"`
		Optimizer *optimizer    `json:"optimizer,omitempty"`
		BF16      *on           `json:"bf16,omitempty"`
		FP16      *on           `json:"fp16,omitempty"`
		Wire      string        `json:"communication_data_type,omitempty"`
		Zero      deepspeedZero `json:"zero_optimization"`
	}{Train: j.GlobalBatch, Micro: j.MicroBatch, Steps: j.GlobalBatch / (j.MicroBatch * int64(s.DP)), Clip: 1}
	if w.Framework.Name == "deepspeed" { // the Trainer has its own
		// what is offloaded has an Adam of the host's
		doc.Optimizer = &optimizer{
			"AdamW", map[string]any{
				"lr": 3e-4, "betas": []float64{0.9, 0.95}, "eps": 1e-8, "weight_decay": 0.1, "torch_adam": !w.Job.Offloads(),
			},
		}
	}
	doc.Zero.Stage, doc.Zero.Gather = s.ZeRO, s.ZeRO == 3
	if s.ZeRO == 3 && s.Shard > 0 && s.Shard < s.DP {
		doc.Zero.Hybrid = s.Shard
	} else if s.Shard > 0 && s.Shard != s.DP && s.ZeRO > 0 {
		return nil, fmt.Sprintf("shard=%d with zero=%d: DeepSpeed divides among fewer than all replicas with zero=3 alone",
			s.Shard, s.ZeRO)
	}
	var reason string
	priced := workload.Job{Precision: workload.Precision(j.Precision), Split: workload.Split{ZeRO: s.ZeRO}}
	if doc.Wire, reason = j.Options.deepspeed(&doc.Zero, priced.GradWidth()); reason != "" {
		return nil, reason
	}
	switch {
	case strings.HasSuffix(j.Precision, "bf16"):
		doc.BF16 = &on{true}
	case strings.HasSuffix(j.Precision, "fp16"):
		doc.FP16 = &on{true}
	case strings.HasPrefix(j.Precision, "fp8"):
		return nil, "fp8 is the model's code in DeepSpeed, not its configuration"
	}
	return doc, ""
}
