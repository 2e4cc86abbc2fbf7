package predict

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
)

// Caveat tells where NCCL's choice depends on which of a node's GPUs a job gets: a
// layout says how many take part and the first are taken, while others may have
// another way to the network. "" where there is nothing to tell.
func (p *Predictor) Caveat(q Query) string {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	if len(p.Plan.Nodes) < 2 || len(q.Sizes) == 0 {
		return ""
	}
	var used []int
	for _, r := range p.Layout {
		if p.Cluster.TypeOf(r.Host) != t {
			return ""
		}
		if r.Host == p.Layout[0].Host {
			used = append(used, r.GPU)
		}
	}
	gpus := t.Of(cluster.GPU)
	class := classes(t)
	last := gpus[len(gpus)-len(used):]
	near, far := class(used), class(last)
	if len(used) == len(gpus) || near == far || near == "" || far == "" {
		return ""
	}
	differs := p.elsewhere(q, used, last)
	if differs == "" {
		return ""
	}
	var names []string
	for _, d := range used {
		names = append(names, t.Devices[d].Name)
	}
	return fmt.Sprintf("assumes the first GPUs of each node (%s; %s to the NIC); on the last ones (%s) %s: check which "+
		"GPUs the job gets", strings.Join(names, ", "), near, far, differs)
}

// classes tells by which class of path GPUs of a type reach their NICs.
func classes(t *cluster.NodeType) func(gpus []int) string {
	near := t.Nearest()
	return func(gpus []int) string {
		var list []string
		for _, n := range near {
			if slices.Contains(gpus, n.GPU) && len(n.NICs) > 0 && !slices.Contains(list, n.Class.String()) {
				list = append(list, n.Class.String())
			}
		}
		return strings.Join(list, " and ")
	}
}

// elsewhere is what NCCL would take on the last GPUs of the nodes, at the greatest
// size, where it differs.
func (p *Predictor) elsewhere(q Query, used, last []int) string {
	op := coll.Op{Kind: q.Kind, Type: q.Type, Root: q.Root, Bytes: slices.Max(q.Sizes)}
	l := slices.Clone(p.Layout)
	for i := range l {
		l[i] = nccl.Rank{Host: l[i].Host, GPU: last[slices.Index(used, l[i].GPU)]}
	}
	other, err := New(p.Cluster, l, p.Plan.Version, p.Plan.Env, p.Figures)
	if err != nil {
		return ""
	}
	x, y := newForced(p), newForced(other)
	here, err := x.now(op)
	if err != nil {
		return ""
	}
	there, err := y.now(op)
	if err != nil || there.Algo == here.Algo && there.setting.Proto == here.setting.Proto {
		return ""
	}
	return fmt.Sprintf("%s chooses %s instead of %s at %v", p.Library(), algoAndProto(there), algoAndProto(here), op.Bytes)
}
