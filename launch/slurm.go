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
		return "", uneven + "; start the ranks with slurm.hosts and --distribution=arbitrary by hand"
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	b.WriteString(w.header("Slurm batch job: sbatch job.sbatch PROGRAM ARGUMENTS…"))
	fmt.Fprintf(&b, "#SBATCH --job-name=%s\n#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n", jobName(w.p.Job.Model), len(w.hosts), w.each)
	b.WriteString("#SBATCH --exclusive\n")
	fmt.Fprintf(&b, "#SBATCH --gpus-per-node=%d\n", w.each)
	if !w.p.Placeholders {
		var names []string
		for _, h := range w.hosts {
			names = append(names, h.Name)
		}
		fmt.Fprintf(&b, "#SBATCH --nodelist=%s\n", cluster.FormatSlurmHosts(names))
	}
	fmt.Fprintf(&b, `set -euo pipefail
PLAN=${BUSBAR_PLAN:-%s}
if [ $# -eq 0 ]; then echo "no program; expected sbatch job.sbatch PROGRAM ARGUMENTS" >&2; exit 2; fi

`, quote(w.dir))
	if len(w.hosts) > 1 {
		fmt.Fprintf(&b, "# Nothing trains before the hosts have shown that they reach each other and add up right.\nsrun --ntasks-per-node=1 --ntasks=%d --cpu-bind=none %s\n\n", len(w.hosts), preflightWords)
	}
	distribution := "block"
	if !w.p.Placeholders {
		distribution = "arbitrary"
		b.WriteString("# The order of tasks is the file's, whatever order Slurm has its nodes in.\nexport SLURM_HOSTFILE=$PLAN/slurm.hosts\n")
	}
	fmt.Fprintf(&b, `# Slurm binds nothing: every task sees all GPUs and cores of its node, and busbar exec binds it to
# those near its own GPU.
srun --ntasks=%d --distribution=%s --cpu-bind=none --gpu-bind=none busbar exec --plan "$PLAN" -- "$@"
`, w.p.ranks(w.hosts), distribution)
	return b.String(), ""
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
