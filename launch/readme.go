package launch

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// uses say what each file is for, in the order in which they are listed, and of which kind it is; those without a kind
// start the plan without a scheduler.
var uses = []struct{ name, use, kind string }{
	{"plan.json", "what busbar exec --plan reads on every node", ""},
	{"job.sbatch", "Slurm: sbatch job.sbatch ./FRAMEWORK.sh, or PROGRAM ARGUMENTS", "slurm"},
	{"slurm.hosts", "the order of tasks, which job.sbatch gives to srun", "slurm"},
	{"torchrun.sh", "torchrun, on every node: torchrun.sh PROGRAM ARGUMENTS", ""},
	{"hostfile", "DeepSpeed (--hostfile) and Open MPI (--hostfile hostfile --map-by slot)", "mpi"},
	{"rankfile", "Open MPI 4, with every rank's processors; its first line is the command", "mpi"},
	{"job.yaml", "Kubernetes: an indexed Job, one pod per node", "kubernetes"},
	{"jobset.yaml", "Kubernetes with JobSet: a job for every leaf switch, ranks in the plan's order", "kubernetes"},
	{"elastic.sh", "elastic torchrun: nodes may be lost and come back", "elastic"},
	{"trainjob.yaml", "Kubernetes with Kubeflow Trainer", "kubernetes"},
	{"preflight.sh", "must succeed before the training starts", "mpi"},
	{"nccl.env", "NCCL settings with their reasons", ""},
	{"topo-", "NCCL_TOPO_FILE on nodes that show themselves wrongly", ""},
	{"megatron.sh", "one rank of Megatron-LM; settings of your own are at its top", ""},
	{"megatron.args", "all arguments of Megatron-LM that the model and the plan decide", ""},
	{"nemo.sh", "one rank of Megatron-Bridge; what is yours to set stands at its top", ""},
	{"bridge.py", "the recipe for Megatron-Bridge", ""},
	{"torchtitan.sh", "one rank of torchtitan; what is yours to set stands at its top", ""},
	{"torchtitan.toml", "torchtitan's configuration", ""},
	{"torchtitan_model.py", "the model's dimensions for torchtitan", ""},
	{"deepspeed.sh", "one rank under DeepSpeed; what is yours to set stands at its top", ""},
	{"fsdp.sh", "one rank under FSDP2; what is yours to set stands at its top", ""},
	{"ddp.sh", "one rank under DDP; what is yours to set stands at its top", ""},
	{"hf.sh", "one rank of the Trainer; what is yours to set stands at its top", ""},
	{"train.py", "the program of ddp.sh, fsdp.sh and deepspeed.sh", ""},
	{"model.py", "the model in plain PyTorch", ""},
	{"hooks.py", "how gradients may travel under DDP: compressed, or inside racks first", ""},
	{"train_hf.py", "the program of hf.sh", ""},
	{"hf_args.json", "the Trainer's arguments", ""},
	{"lora.json", "the adapters, as PEFT's LoraConfig", ""},
	{"model.json", "the model as Hugging Face's config.json", ""},
	{"accelerate.yaml", "accelerate's configuration, for programs of your own", ""},
	{"deepspeed.json", "DeepSpeed's configuration", ""},
	{"mesh.py", "the groups of ranks for PyTorch", ""},
	{"tuner.tab", "the table of busbar's tuner plugin for NCCL", "tuner"},
	{"busbar_tuner.c", "that plugin; its first lines say how to build it", "tuner"},
	{
		"busbar_profiler.c", "busbar's profiler plugin for NCCL, which busbar exec --profile builds and busbar jobs reads",
		"profiler",
	},
	{"nccl-table.csv", "the same table for NVIDIA's example plugin", "tuner"},
}

// Names are those of files that a plan may have and nobody else: not of programs such as train.py, which a user's
// folder may have too.
func Names() []string {
	var list []string
	for _, u := range uses {
		if !strings.HasSuffix(u.name, "-") && !strings.HasSuffix(u.name, ".py") && u.name != "model.json" {
			list = append(list, u.name)
		}
	}
	return list
}

// Kinds are those of files that a plan on one machine does without: for schedulers, for launchers of several nodes, and
// plugins for NCCL.
func Kinds() []string { return []string{"slurm", "kubernetes", "mpi", "elastic", "tuner", "profiler"} }

// Of are the files of some kinds, those that have none, and what was left out of either.
func Of(kinds []string, files []File, left []Left) ([]File, []Left) {
	other := func(name string) bool {
		for _, u := range uses {
			if u.name == name {
				return u.kind != "" && !slices.Contains(kinds, u.kind)
			}
		}
		return false
	}
	files = slices.DeleteFunc(slices.Clone(files), func(f File) bool { return other(f.Name) })
	return files, slices.DeleteFunc(slices.Clone(left), func(l Left) bool { return other(l.Name) })
}

// Readme tells of all files, and of those that were left out and why.
func (p *Plan) Readme(files []File, left []Left) (File, error) {
	hosts, err := p.Hosts()
	if err != nil {
		return File{}, err
	}
	w := &writer{Plan: p, Job: p.job, Hosts: hosts}
	var b strings.Builder
	header := strings.TrimPrefix(w.Header("Launch files of a busbar plan."), "# ")
	fmt.Fprintln(&b, strings.ReplaceAll(header, "\n# ", "\n"))
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	fmt.Fprintf(&b, "\nHosts in the order of ranks: %s\n", cluster.FormatHosts(names))
	if p.Given != "" {
		fmt.Fprintf(&b, "They were given in the order: %s\n", line(p.Given))
	}
	b.WriteString("\nEvery node needs busbar in its PATH, and this folder at the same place (else set BUSBAR_PLAN).\n")
	b.WriteString(w.asked())
	b.WriteString("\n")
	for _, u := range uses {
		for _, f := range files {
			if f.Name == u.name || strings.HasSuffix(u.name, "-") && strings.HasPrefix(f.Name, u.name) {
				fmt.Fprintf(&b, "%-15s %s\n", f.Name, u.use)
			}
		}
	}
	if len(left) > 0 {
		b.WriteString("\nNot here:\n")
	}
	for _, l := range left {
		fmt.Fprintf(&b, "%-15s %s\n", l.Name, line(l.Reason))
	}
	return File{Name: "README", Text: b.String()}, nil
}

// asked is what the program itself has to be set to; "" for a plan of places alone.
func (w *writer) asked() string {
	if w.jobless() != "" {
		return ""
	}
	j := &w.Plan.Job
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe files start and place the program. The prediction holds if the program has these settings:\n")
	fmt.Fprintf(&b, "%-15s %s\n", "parallel", j.Parallel)
	fmt.Fprintf(&b, "%-15s global batch %d sequences of %d tokens, micro-batch %d\n", "batch", j.GlobalBatch, j.Seq,
		j.MicroBatch)
	for _, s := range [][2]string{
		{"precision", j.Precision},
		{"recompute", j.Recompute},
		{"schedule", j.Schedule},
		{"context", j.Context},
		{"offload", j.Offload},
		{"gradients in", j.Compress},
	} {
		if s[1] != "" {
			fmt.Fprintf(&b, "%-15s %s\n", s[0], line(s[1]))
		}
	}
	if j.Bucket > 0 {
		fmt.Fprintf(&b, "%-15s of %d MiB\n", "buckets", j.Bucket>>20)
	}
	return b.String()
}
