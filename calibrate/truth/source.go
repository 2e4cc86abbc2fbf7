package truth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// Machine is the cluster that a group was measured on, as far as one can tell:
// the first word of its id (who published it), the GPU, and the cloud's name of
// the machine. Points of one machine are not independent of each other; scores
// are averaged over machines, and cross-validation leaves whole ones out.
func (g *Group) Machine() string {
	who, _, _ := strings.Cut(g.ID, "-")
	gpu := g.gpuName()
	if m, ok := hardware.GPUByName(gpu); ok {
		gpu = m.Name
	}
	name := who + "/" + strings.ToLower(strings.ReplaceAll(gpu, " ", "-"))
	if m := g.offer(); m != nil {
		_, rest, _ := strings.Cut(g.GPU, "(")
		offer, _, _ := strings.Cut(rest, ")")
		name += "/" + strings.ToLower(strings.TrimSpace(offer))
	}
	return name
}

// offer is the cloud's machine that the GPU's text names in brackets, nil where it
// names none that is known.
func (g *Group) offer() *cluster.NodeType {
	_, rest, _ := strings.Cut(g.GPU, "(")
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
