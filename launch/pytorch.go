package launch

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/workload"
)

// The programs that DDP, FSDP2, DeepSpeed and Hugging Face's Trainer run: they read plan.json, and are the same for all
// plans.
var (
	//go:embed scripts/model.py
	modelPy string
	//go:embed scripts/train.py
	trainPy string
	//go:embed scripts/hooks.py
	hooksPy string
	//go:embed scripts/train_hf.py
	trainHFPy string
)

// plain reports which of the frameworks that train.py runs the plan is for.
func (w *writer) plain() (*workload.Framework, string) {
	reasons := ""
	for _, name := range []string{"ddp", "fsdp", "deepspeed"} {
		f, reason := w.framework(name)
		if reason == "" {
			return f, w.unknownModel()
		}
		if reasons == "" || w.p.job != nil && w.p.job.Framework != nil && w.p.job.Framework.Name == name {
			reasons = reason
		}
	}
	return nil, reasons
}

// unknownModel is why model.py does not have a model; "" where it does.
func (w *writer) unknownModel() string {
	a := w.p.job.Model.Architecture()
	if a.Kind != workload.DecoderOnly || len(a.Odd) > 0 || a.SharedGate {
		return w.p.job.Model.Name + " is no decoder that model.py has; give train.py your own model"
	}
	return w.beyond("model.py", "llama3")
}

// beyond is why a program that is built from dimensions alone would train another model; "" where it would not.
// scalings are those of rotary positions that it has.
func (w *writer) beyond(program string, scalings ...string) string {
	m := w.p.job.Model
	y := m.Detailed()
	what := y.Beyond
	kind, rest, _ := strings.Cut(y.Scaling, ":")
	_, original, _ := strings.Cut(rest, ":")
	if n, err := strconv.ParseInt(original, 10, 64); kind == "yarn" && err == nil && w.p.job.Seq <= n {
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
	m := w.p.job.Model
	if y := m.Detailed(); m.Architecture().Gated && y.Activation != "silu" && y.Activation != "swish" {
		return fmt.Sprintf("%s has a gated MLP with %s, and %s as busbar writes it has SwiGLU alone; --framework fsdp or "+
			"hf has it", m.Name, line(y.Activation), program)
	}
	return w.beyond(program, scalings...)
}

// static is a program that goes with train.py as it is.
func (w *writer) static(text string) func() (string, string) {
	return func() (string, string) {
		if _, reason := w.plain(); reason != "" {
			return "", reason
		}
		return text, ""
	}
}

// plainScript starts a rank of train.py for a framework.
func (w *writer) plainScript(name string) func() (string, string) {
	return func() (string, string) {
		f, reason := w.framework(name)
		if reason == "" {
			reason = w.unknownModel()
		}
		if reason != "" {
			return "", reason
		}
		var b strings.Builder
		b.WriteString(w.scriptHead(name+".sh", f))
		b.WriteString("DATA=${DATA:-}                            # a file of token numbers, 32 bits each; (default: " +
			"synthetic tokens)\n")
		b.WriteString(w.trainingBlock())
		if name == "ddp" {
			hook := "none"
			if w.p.job.Compresses() {
				hook = string(w.p.job.Compress)
			}
			fmt.Fprintf(&b, "HOOK=${HOOK:-%s}                         # how gradients travel: none, fp16, bf16, powersgd "+
				"(rank 2; changes results), rack (inside racks first; the backward pass waits for it)\nRACK=${RACK:-%d}          "+
				"                   # with HOOK=rack: the ranks of a rack\n", hook, w.rackRanks())
		}
		b.WriteString(scriptRule)
		b.WriteString(w.scriptEnv(f))
		b.WriteString("export PLAN DATA SAVE STEPS LR MIN_LR WARMUP SAVE_EVERY\n")
		if name == "ddp" {
			b.WriteString("export HOOK RACK\n")
		}
		b.WriteString("exec python3 \"$PLAN/train.py\" \"$@\"\n")
		return b.String(), ""
	}
}

// rackRanks is how many ranks hang below a leaf switch where all have as many, else those of a node.
func (w *writer) rackRanks() int {
	nodes := 1
	if l := w.p.Leaves; len(l) > 1 {
		nodes = l[0]
		for _, n := range l {
			if n != nodes {
				nodes = 1
				break
			}
		}
	}
	return nodes * w.each
}

// accelerate is the configuration of Hugging Face's accelerate that shards as the plan does.
func (w *writer) accelerate() (string, string) {
	f, reason := w.framework("fsdp")
	if reason != "" {
		return "", reason
	}
	j := w.p.job
	s := j.Split
	if s.TP > 1 {
		return "", fmt.Sprintf("tp=%d: fsdp.sh says it; accelerate's configuration file has no word for it", s.TP)
	}
	precision := strings.TrimPrefix(string(j.Precision), "amp-")
	if j.Precision.Width() > 2 {
		precision = "no"
	}
	return w.header("Configuration of accelerate for programs of your own: accelerate launch --config_file "+
		"accelerate.yaml --machine_rank N --main_process_ip FIRST-NODE PROGRAM. fsdp.sh trains with "+f.Title+" alone.") +
		fmt.Sprintf(`compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_machines: %d
num_processes: %d
mixed_precision: %s
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: %v
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_cpu_ram_efficient_loading: true
  fsdp_activation_checkpointing: %v
  fsdp_offload_params: %v
`, len(w.hosts), w.p.ranks(w.hosts), precision, s.ZeRO == 3, j.Recompute == workload.Full,
			j.Offload == workload.OffloadParams), ""
}

// deepspeed is the configuration of DeepSpeed, for plans that need nothing but replicas.
func (w *writer) deepspeed() (string, string) {
	name := "deepspeed"
	if w.p.job != nil && w.p.job.Framework != nil && w.p.job.Framework.Name == "hf" && w.hfShards() == "deepspeed" {
		name = "hf"
	}
	if _, reason := w.framework(name); reason != "" {
		return "", reason
	}
	j, s := &w.p.Job, w.p.Job.Parallel
	if s.TP > 1 || s.PP > 1 || s.CP > 1 || s.EP > 1 {
		return "", "tensor, pipeline, context and expert parallelism are the model's code in DeepSpeed, not its configuration"
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
	if name == "deepspeed" { // the Trainer has its own
		// what is offloaded has an Adam of the host's
		doc.Optimizer = &optimizer{
			"AdamW", map[string]any{
				"lr": 3e-4, "betas": []float64{0.9, 0.95}, "eps": 1e-8, "weight_decay": 0.1, "torch_adam": !w.p.job.Offloads(),
			},
		}
	}
	doc.Zero.Stage, doc.Zero.Gather = s.ZeRO, s.ZeRO == 3
	if s.ZeRO == 3 && s.Shard > 0 && s.Shard < s.DP {
		doc.Zero.Hybrid = s.Shard
	} else if s.Shard > 0 && s.Shard != s.DP && s.ZeRO > 0 {
		return "", fmt.Sprintf("shard=%d with zero=%d: DeepSpeed divides among fewer than all replicas with zero=3 alone",
			s.Shard, s.ZeRO)
	}
	var reason string
	priced := workload.Job{Precision: workload.Precision(j.Precision), Split: workload.Split{ZeRO: s.ZeRO}}
	if doc.Wire, reason = j.Options.deepspeed(&doc.Zero, priced.GradWidth()); reason != "" {
		return "", reason
	}
	switch {
	case strings.HasSuffix(j.Precision, "bf16"):
		doc.BF16 = &on{true}
	case strings.HasSuffix(j.Precision, "fp16"):
		doc.FP16 = &on{true}
	case strings.HasPrefix(j.Precision, "fp8"):
		return "", "fp8 is the model's code in DeepSpeed, not its configuration"
	}
	return jsonFile(doc)
}
