package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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

// Hybrid tells that replicas divide their state in groups.
func (w *writer) Hybrid() bool { return w.Split.Shard > 0 && w.Split.Shard < w.Split.DP }

// deepspeedReason is why there is no configuration of DeepSpeed: it is for plans that need nothing but replicas.
func (w *writer) deepspeedReason() string {
	s := w.Split
	return cmp.Or(
		when(s.TP > 1 || s.PP > 1 || s.CP > 1 || s.EP > 1,
			"tensor, pipeline, context and expert parallelism are the model's code in DeepSpeed, not its configuration"),
		when(w.Plan.Job.Compress == string(workload.WireInt8), "compress int8 is a hook of PyTorch's DDP, not of DeepSpeed"))
}

// ReduceBucket is how many gradients travel at once.
func (w *writer) ReduceBucket() int64 {
	priced := workload.Job{Precision: w.Job.Precision, Split: workload.Split{ZeRO: w.Split.ZeRO}}
	return int64(cmp.Or(w.Plan.Job.Bucket, workload.DefaultBucket)) / int64(priced.GradWidth())
}
