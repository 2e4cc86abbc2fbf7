package truth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/result"
)

// machineOf is the machine that a sweep was measured on, as far as one can tell:
// the first word of its id (who published it), the GPU, and the cloud's name of
// the machine. Points of one machine are not independent of each other; scores
// are averaged over machines, and cross-validation leaves whole ones out.
func machineOf(s *result.Sweep) string {
	who, _, _ := strings.Cut(s.ID, "-")
	gpu := gpuName(s.GPU())
	if m, ok := hardware.GPUByName(gpu); ok {
		gpu = m.Name
	}
	name := who + "/" + strings.ToLower(strings.ReplaceAll(gpu, " ", "-"))
	if m := offer(s.GPU()); m != nil {
		_, rest, _ := strings.Cut(s.GPU(), "(")
		word, _, _ := strings.Cut(rest, ")")
		name += "/" + strings.ToLower(strings.TrimSpace(word))
	}
	return name
}

// machine is what a sweep says about its machine, never nil.
func machine(s *result.Sweep) *result.Machine {
	if s.Machine == nil {
		return &result.Machine{}
	}
	return s.Machine
}

// offer is the cloud's machine that the GPU's text names in brackets, nil where it
// names none that is known.
func offer(gpu string) *cluster.NodeType {
	_, rest, _ := strings.Cut(gpu, "(")
	name, _, _ := strings.Cut(rest, ")")
	if strings.TrimSpace(name) == "" {
		return nil
	}
	t, err := hardware.Node(strings.TrimSpace(name))
	if err != nil {
		return nil
	}
	return t
}
