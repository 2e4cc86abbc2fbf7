package launch

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// uses say what each file is for, in the order in which they are listed, and of which kind it is; those without a kind
// start the plan without a scheduler.
var uses = []struct{ name, use, kind string }{
	{"plan.json", "what busbar exec --plan reads on every node", ""},
	{
		"job.sbatch", "Slurm: sbatch job.sbatch ./FRAMEWORK.sh, or PROGRAM ARGUMENTS; in turns of 24 hours, see its end",
		"slurm",
	},
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

// readme is what README is filled with.
type readme struct {
	*writer
	Used, Left []Left // files with their use, and those that are not here with the reason
}

// Readme tells of all files, and of those that were left out and why.
func (p *Plan) Readme(files []File, left []Left) (File, error) {
	hosts, err := p.Hosts()
	if err != nil {
		return File{}, err
	}
	r := readme{writer: &writer{Plan: p, Job: p.job, Hosts: hosts}, Left: left}
	for _, u := range uses {
		for _, f := range files {
			if f.Name == u.name || strings.HasSuffix(u.name, "-") && strings.HasPrefix(f.Name, u.name) {
				r.Used = append(r.Used, Left{f.Name, u.use})
			}
		}
	}
	text, _ := fill("README", r)
	return File{Name: "README", Text: shown(text)}, nil
}

// Title is the header as a text.
func (r readme) Title() string {
	return strings.ReplaceAll("\n"+r.Header("Launch files of a busbar plan."), "\n# ", "\n")[1:]
}

// HostList is the hosts in the order of ranks.
func (r readme) HostList() string { return cluster.FormatHosts(r.hostNames()) }

// HasJob tells of what the program itself has to be set to; a plan may have places alone.
func (r readme) HasJob() bool { return r.jobless() == "" }
