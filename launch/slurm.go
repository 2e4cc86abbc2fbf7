package launch

import (
	"strings"

	"busbar.dev/cluster"
)

// nodeShare is what of a node a job takes: processors of a task, and memory in GiB.
type nodeShare struct{ Cores, Memory int64 }

// Share is the GPUs' part of processors and memory; nil where the job takes all GPUs, and with them the node.
func (w *writer) Share() *nodeShare {
	t := &w.Plan.Types[w.Hosts[0].Type]
	all := int64(len(t.GPUs))
	if int64(w.Each) >= all {
		return nil
	}
	s := &nodeShare{8, 64} // where they are not known
	if cores := t.cores(); cores > 0 {
		s.Cores = max(1, int64(cores)/all)
	}
	if t.Memory > 0 {
		s.Memory = int64(t.Memory) >> 30 * 9 / 10 / all // the system keeps some
	}
	s.Memory *= int64(w.Each)
	return s
}

// SlurmHosts are the hosts as Slurm writes them.
func (w *writer) SlurmHosts() string { return cluster.FormatSlurmHosts(w.hostNames()) }

func (w *writer) hostNames() (list []string) {
	for _, h := range w.Hosts {
		list = append(list, h.Name)
	}
	return list
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
