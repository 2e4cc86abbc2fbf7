package launch

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/workload"
)

// framework is the release of a framework that the plan is for, or the reason why its files are not written.
func (w *writer) framework(name string) (*workload.Framework, string) {
	if reason := w.jobless(); reason != "" {
		return nil, reason
	}
	f := w.p.job.Framework
	if f == nil { // any: its newest release, where that runs the plan
		var err error
		if f, err = workload.ParseFramework(name); err != nil {
			return nil, err.Error()
		}
		j := *w.p.job
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
	if err := f.Refuses(w.p.job); err != nil {
		return nil, err.Error()
	}
	return f, ""
}

// jobless is the reason why a plan tells a framework nothing: plan.json may hold places alone.
func (w *writer) jobless() string {
	j, s := &w.p.Job, w.p.Job.Parallel
	if w.p.job == nil || s.DP < 1 || s.TP < 1 || s.PP < 1 || s.CP < 1 || j.MicroBatch < 1 || j.GlobalBatch < 1 {
		return "the plan has no job, only places"
	}
	return ""
}

const scriptRule = "# ---------------------------------------------------------------------------------------------\n"

// scriptHead begins a program that every rank runs, up to the block of what the user decides.
func (w *writer) scriptHead(name string, f *workload.Framework) string {
	return "#!/bin/sh\n" + w.header(fmt.Sprintf("One rank of %s. Start all of them: sbatch job.sbatch ./%[2]s, or "+
		"./torchrun.sh ./%[2]s on every node; on one node ./%[2]s alone.", f.Title, name)) +
		`set -eu
PLAN=${BUSBAR_PLAN:-$(cd "$(dirname "$0")" && pwd)}
if [ -z "${RANK:-}" ] && [ -z "${BUSBAR_RANK:-}" ]; then exec "$PLAN/torchrun.sh" "$0" "$@"; fi
# ---- To set: every line may also be given in the environment. ----------------------------------
`
}

// trainingBlock is what of a training the user decides, with where to begin.
func (w *writer) trainingBlock() string {
	m := w.p.job.Model
	// The learning rates of Llama 3 by size (Grattafiori et al. 2024, table 3), with those of GPT-3 below (Brown et al.
	// 2020, table 2.1).
	rate := "8e-5"
	for _, x := range []struct {
		most int64
		rate string
	}{{500e6, "6e-4"}, {10e9, "3e-4"}, {100e9, "1.5e-4"}} {
		if m.Active() <= x.most {
			rate = x.rate
			break
		}
	}
	if w.p.job.LoRA.Frozen() {
		rate = "2e-4" // that of QLoRA up to 13B (Dettmers et al. 2023, table 9)
	}
	return fmt.Sprintf(`SAVE=${SAVE:-checkpoints/%s}   # where checkpoints go, on storage that all nodes see
STEPS=${STEPS:-1000}                      # how many steps, of %d tokens each
LR=${LR:-%s}                           # the highest learning rate; a beginning, by the model's size
MIN_LR=${MIN_LR:-%s}
WARMUP=${WARMUP:-100}                     # steps until the highest learning rate
SAVE_EVERY=${SAVE_EVERY:-%d}             # steps, of about half an hour; busbar goodput says which interval costs least
`, jobName(m.Name), w.p.job.GlobalBatch*w.p.job.Seq, rate, tenth(rate), w.saveEvery())
}

// saveEvery is how many steps take half an hour, as a first interval of checkpoints.
func (w *writer) saveEvery() int64 {
	step := float64(w.p.Job.Step)
	if !(step > 0) {
		return 500
	}
	return max(1, min(5000, int64(1800/step)))
}

// tenth is a learning rate's tenth.
func tenth(rate string) string {
	at := strings.IndexByte(rate, 'e')
	var n int
	fmt.Sscanf(rate[at+1:], "-%d", &n)
	return fmt.Sprintf("%se-%d", rate[:at], n+1)
}

// blackwell is the compute capability from which Megatron-Core has no wish for CUDA_DEVICE_MAX_CONNECTIONS.
const blackwell = 100

// scriptEnv is the environment that a framework asserts on, or that its documents ask for.
func (w *writer) scriptEnv(f *workload.Framework) string {
	var b strings.Builder
	s := w.p.job.Split
	b.WriteString("export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True}  # less memory " +
		"is lost between steps\n")
	if w.p.job.Offloads() { // the host's part of the optimizer; torchrun would leave it one core
		t := &w.p.Types[w.hosts[0].Type]
		fmt.Fprintf(&b, "export OMP_NUM_THREADS=${CORES:-%d}  # the host updates what is offloaded to it\n",
			max(1, t.cores()/max(1, len(t.GPUs)), 4))
	}
	if f.Name != "megatron" && f.Name != "nemo" {
		return b.String()
	}
	b.WriteString("export NCCL_GRAPH_REGISTER=0 TORCH_NCCL_AVOID_RECORD_STREAMS=1\n")
	switch {
	case s.ZeRO > 1:
		b.WriteString("unset CUDA_DEVICE_MAX_CONNECTIONS  # Megatron-FSDP refuses 1\n")
	case (s.TP > 1 || s.CP > 1) && w.p.sm < blackwell:
		b.WriteString("export CUDA_DEVICE_MAX_CONNECTIONS=1  # required with tp or cp before Blackwell: kernels start in " +
			"the order in which they are queued\n")
	}
	return b.String()
}

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
