package launch

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/workload"
)

// framework is the release of a framework that the plan is for, or the reason why its files are not written.
func (w *writer) framework(name string) (*workload.Framework, string) {
	if reason := w.jobless(); reason != "" {
		return nil, reason
	}
	f := w.Job.Framework
	if f == nil { // any: its newest release, where that runs the plan
		var err error
		if f, err = workload.ParseFramework(name); err != nil {
			return nil, err.Error()
		}
		j := *w.Job
		j.Kernels = "" // what is priced is told in README
		if err := f.Refuses(&j); err != nil {
			return nil, err.Error()
		}
		if why := unsaid(f, &j); why != "" {
			return nil, why
		}
		return f, ""
	}
	if f.Name != name {
		return nil, "the plan is for " + f.Title
	}
	if err := f.Refuses(w.Job); err != nil {
		return nil, err.Error()
	}
	return f, ""
}

// jobless is the reason why a plan tells a framework nothing: plan.json may hold places alone.
func (w *writer) jobless() string {
	j, s := &w.Plan.Job, w.Plan.Job.Parallel
	if w.Job == nil || s.DP < 1 || s.TP < 1 || s.PP < 1 || s.CP < 1 || j.MicroBatch < 1 || j.GlobalBatch < 1 {
		return "the plan has no job, only places"
	}
	return ""
}

// frameworkFiles are those of frameworks.
var frameworkFiles = map[string][]string{
	"megatron":   {"megatron.args", "megatron.sh"},
	"nemo":       {"bridge.py", "nemo.sh"},
	"torchtitan": {"torchtitan.toml", "torchtitan_model.py", "torchtitan.sh"},
	"deepspeed":  {"deepspeed.json", "deepspeed.sh", "train.py", "model.py", "hooks.py"},
	"fsdp":       {"fsdp.sh", "accelerate.yaml", "train.py", "model.py", "hooks.py"},
	"ddp":        {"ddp.sh", "train.py", "model.py", "hooks.py"},
	"hf":         {"hf.sh", "train_hf.py", "hf_args.json", "model.json", "lora.json"},
}

// addFrameworks adds the files of the framework that the plan is for; of any that has them, Megatron-LM's and
// DeepSpeed's.
func (w *writer) addFrameworks() {
	given := w.Framework
	if given == nil {
		w.addFramework("megatron", frameworkFiles["megatron"][:1])
		w.addFramework("deepspeed", frameworkFiles["deepspeed"][:1])
		return
	}
	names := frameworkFiles[given.Name]
	if given.Name == "hf" && w.HFShards() == "deepspeed" {
		names = append(slices.Clone(names), "deepspeed.json")
	}
	if len(names) == 0 {
		w.put(given.Name, "", "busbar writes no files for "+given.Title)
	}
	w.addFramework(given.Name, names)
}

// addFramework adds the files of a framework; those that are named are left out with the reason where it does not run
// the plan.
func (w *writer) addFramework(name string, named []string) {
	f, reason := w.framework(name)
	if reason != "" {
		for _, file := range named {
			w.put(file, "", reason)
		}
		return
	}
	of := *w
	m := w.Job.Model
	of.Framework, of.Dims, of.Arch, of.Details = f, m.Dims, m.Architecture(), m.Detailed()
	of.Scaling = scalingOf(&of.Details)
	if w.Framework == nil {
		named = frameworkFiles[name]
	}
	for _, file := range named {
		of.addFrameworkFile(file)
	}
	w.files, w.left = of.files, of.left
}

// addFrameworkFile adds a file of the writer's framework.
func (w *writer) addFrameworkFile(name string) {
	switch name {
	case "megatron.args", "megatron.sh":
		w.add(name, w.megatronReason())
	case "bridge.py", "nemo.sh":
		w.add(name, w.bridgeReason())
	case "torchtitan_model.py":
		w.add(name, cmp.Or(w.titanReason(),
			when(w.TitanFlavor() != "", "torchtitan has "+w.Job.Model.Name+" under a name of its own")))
	case "torchtitan.toml", "torchtitan.sh":
		w.add(name, w.titanReason())
	case "accelerate.yaml":
		w.add(name, "")
	case "train.py", "model.py", "hooks.py":
		w.putScript(name, w.unknownModel())
	case "train_hf.py":
		w.putScript(name, "")
	case "hf.sh":
		w.add(name, w.hfReason())
	case "deepspeed.json":
		w.add(name, w.deepspeedReason())
	case "hf_args.json":
		w.add(name, "")
	case "model.json":
		w.putModel(name)
	case "lora.json":
		w.putAdapters(name)
	default: // of ddp, fsdp and deepspeed, which run train.py
		text, reason := "", w.unknownModel()
		if reason == "" {
			text, reason = fill("train.sh", w)
		}
		w.put(name, text, reason)
	}
}

// putScript adds a program that is the same for all plans.
func (w *writer) putScript(name, reason string) {
	text, _ := texts.ReadFile("scripts/" + name) // which is there
	w.put(name, string(text), reason)
}

// scaling is how rotary positions are stretched.
type scaling struct{ Kind, Factor, Original string }

func scalingOf(y *workload.Details) (s scaling) {
	var rest string
	s.Kind, rest, _ = strings.Cut(y.Scaling, ":")
	s.Factor, s.Original, _ = strings.Cut(rest, ":")
	return s
}

// StepTokens are those of a step.
func (w *writer) StepTokens() int64 { return w.Job.GlobalBatch * w.Job.Seq }

// Rates are the highest and the lowest learning rate to begin with: those of Llama 3 by size (Grattafiori et al. 2024,
// table 3), with those of GPT-3 below (Brown et al. 2020, table 2.1), and of adapters that of QLoRA up to 13B (Dettmers
// et al. 2023, table 9).
func (w *writer) Rates() [2]string {
	switch active := w.Job.Model.Active(); {
	case w.Job.LoRA.Frozen():
		return [2]string{"2e-4", "2e-5"}
	case active <= 500e6:
		return [2]string{"6e-4", "6e-5"}
	case active <= 10e9:
		return [2]string{"3e-4", "3e-5"}
	case active <= 100e9:
		return [2]string{"1.5e-4", "1.5e-5"}
	}
	return [2]string{"8e-5", "8e-6"}
}

// SaveEvery is how many steps take half an hour, as a first interval of checkpoints.
func (w *writer) SaveEvery() int64 {
	step := float64(w.Plan.Job.Step)
	if !(step > 0) {
		return 500
	}
	return max(1, min(5000, int64(1800/step)))
}

// HostThreads is how many threads the host's part of the optimizer has; torchrun would leave it one.
func (w *writer) HostThreads() int {
	t := &w.Plan.Types[w.Hosts[0].Type]
	return max(t.cores()/max(1, len(t.GPUs)), 4)
}

// blackwell is the compute capability from which Megatron-Core has no wish for CUDA_DEVICE_MAX_CONNECTIONS.
const blackwell = 100

// OneQueue tells that Megatron-Core asserts kernels to start in the order in which they are queued.
func (w *writer) OneQueue() bool { return (w.Split.TP > 1 || w.Split.CP > 1) && w.Plan.sm < blackwell }

// unsaid is what of a plan the files of a framework cannot say; "" where they say it all.
func unsaid(f *workload.Framework, j *workload.Job) string {
	s := j.Split
	for _, x := range []struct {
		name string
		used bool
	}{{"tp", s.TP > 1}, {"pp", s.PP > 1}, {"cp", s.CP > 1}, {"ep", s.EP > 1}} {
		if x.used && !slices.Contains(f.Planned, x.name) {
			return x.name + " is the model's code in " + f.Title + ", not its configuration"
		}
	}
	return ""
}
