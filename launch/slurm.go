package launch

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
)

func (w *writer) slurmHosts() (string, string) {
	if w.p.Placeholders {
		return "", "the hosts are not known; Slurm's own order is taken"
	}
	// The file is for SLURM_HOSTFILE, which has no comments: one line a task, in their order.
	var b strings.Builder
	for _, h := range w.hosts {
		b.WriteString(strings.Repeat(h.Name+"\n", len(h.GPUs)))
	}
	return b.String(), ""
}

func (w *writer) sbatch() (string, string) {
	if !w.even {
		return "", uneven + "; start the ranks yourself with srun, SLURM_HOSTFILE=slurm.hosts and --distribution=arbitrary"
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	b.WriteString(w.header("Slurm batch job: sbatch job.sbatch PROGRAM ARGUMENTS…"))
	fmt.Fprintf(&b, "#SBATCH --job-name=%s\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n#SBATCH "+
		"--gpus-per-node=%d\n", jobName(w.p.Job.Model), len(w.hosts), w.each, w.each)
	b.WriteString(w.share())
	b.WriteString("#SBATCH --time=24:00:00\n#SBATCH --signal=TERM@120\n#SBATCH --requeue\n")
	if !w.p.Placeholders {
		var names []string
		for _, h := range w.hosts {
			names = append(names, h.Name)
		}
		fmt.Fprintf(&b, "#SBATCH --nodelist=%s\n", cluster.FormatSlurmHosts(names))
	}
	fmt.Fprintf(&b, `set -euo pipefail
PLAN=${BUSBAR_PLAN:-%s}
# ---- To set: every line may also be given in the environment. ----------------------------------
CONTAINER=${CONTAINER:-}   # an image: FILE.sqsh or REGISTRY#IMAGE by pyxis and enroot, FILE.sif by apptainer; (default: the nodes' own software)
MOUNTS=${MOUNTS:-$PLAN}    # folders that the container sees, with commas between them
LAUNCH=${LAUNCH:-srun}     # srun starts every rank; torchrun starts one of its agents on every node
# ---------------------------------------------------------------------------------------------
if [ $# -eq 0 ]; then echo "no program; expected sbatch job.sbatch PROGRAM ARGUMENTS" >&2; exit 2; fi
options=() inside=()
case $CONTAINER in
"") ;;
*.sif) inside=(apptainer exec --nv --bind "$MOUNTS" "$CONTAINER") ;;
*) options=(--container-image="$CONTAINER" --container-mounts="$(command -v busbar):/usr/local/bin/busbar,$(printf '%%s' "$MOUNTS" | sed 's/[^,][^,]*/&:&/g')") ;;
esac

`, quote(w.dir))
	if len(w.hosts) > 1 {
		fmt.Fprintf(&b, "# Nothing trains before the hosts have shown that they reach each other and add up right.\nsrun "+
			"--ntasks-per-node=1 --ntasks=%d --cpu-bind=none %s\n\n", len(w.hosts), preflightWords)
	}
	fmt.Fprintf(&b, `if [ "$LAUNCH" = torchrun ]; then
  # Slurm's nodes are numbered in its own order.
  export MASTER_ADDR=${MASTER_ADDR:-$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)} BUSBAR_PLAN=$PLAN
  exec srun --ntasks=%[1]d --ntasks-per-node=1 --cpu-bind=none --gpu-bind=none "${options[@]}" sh -c 'NODE_RANK=$SLURM_PROCID exec "$0" "$@"' "$PLAN/torchrun.sh" "${inside[@]}" "$@"
fi
`, len(w.hosts))
	distribution := "block"
	if !w.p.Placeholders {
		distribution = "arbitrary"
		b.WriteString("# The order of tasks is the file's, whatever order Slurm has its nodes in.\nexport " +
			"SLURM_HOSTFILE=$PLAN/slurm.hosts\n")
	}
	fmt.Fprintf(&b, `# Slurm binds nothing: every task sees all GPUs and cores of its node, and busbar exec binds it to
# those near its own GPU.
status=0
srun --ntasks=%d --distribution=%s --cpu-bind=none --gpu-bind=none "${options[@]}" busbar exec --plan "$PLAN" -- "${inside[@]}" "$@" || status=$?
# Ranks get SIGTERM two minutes before the time is over. A program that saves then and exits with 75, as the train.py of busbar plan does, goes on in another turn.
if [ $status -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $status
`, w.p.ranks(w.hosts), distribution)
	return b.String(), ""
}

// share is what of a node the job takes: all of it where it takes all GPUs, else the GPUs' part of processors and
// memory.
func (w *writer) share() string {
	t := &w.p.Types[w.hosts[0].Type]
	if all := len(t.GPUs); w.each < all {
		text := ""
		if cores := t.cores(); cores > 0 {
			text += fmt.Sprintf("#SBATCH --cpus-per-task=%d\n", max(1, cores/all))
		} else {
			text += "#SBATCH --cpus-per-task=8\n"
		}
		memory := int64(64) // GiB, where the node's is not known
		if t.Memory > 0 {
			memory = int64(t.Memory) >> 30 * 9 / 10 / int64(all) // the system keeps some
		}
		return text + fmt.Sprintf("#SBATCH --mem=%dG\n", memory*int64(w.each))
	}
	return "#SBATCH --exclusive\n#SBATCH --mem=0\n"
}

// cores is how many processors are near its GPUs; 0 where that is not known.
func (t *Type) cores() int {
	seen := map[int]bool{}
	for i := range t.GPUs {
		list, err := ParseCores(t.GPUs[i].Cores)
		if err != nil {
			return 0
		}
		for _, c := range list {
			seen[c] = true
		}
	}
	return len(seen)
}

// jobName is a model's name as schedulers take it: lower case, digits and dashes.
func jobName(model string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, model)
	name = strings.Trim(name, "-")
	if len(name) > 40 {
		name = strings.Trim(name[:40], "-")
	}
	if name == "" || name[0] <= '9' {
		name = "train-" + name
	}
	return strings.Trim(name, "-")
}
