package truth

import (
	"fmt"
	"strings"

	"busbar/cluster"
	"busbar/nccl"
	"busbar/predict"
)

// On is the group as a case on a cluster that somebody described: what was measured
// there, and not a machine made from the group's own words. The release is the
// group's where it names one.
func (g *Group) On(c *cluster.Cluster, release nccl.Version) (*Case, error) {
	pts, err := g.Points()
	if err != nil {
		return nil, err
	}
	layout, err := nccl.Block(c, g.Nodes, g.PerNode)
	if err != nil {
		return nil, err
	}
	text, _, _ := strings.Cut(g.NCCL, " ")
	if v, err := nccl.ParseVersion(text); err == nil && v.Compare(nccl.Oldest) >= 0 && v.Compare(nccl.Newest) <= 0 {
		release = v
	}
	p, err := predict.New(c, layout, release, g.env(), nil)
	if err != nil {
		return nil, err
	}
	return newCase(g, pts, p, nil)
}

// Pick is the case with some of its points.
func (c *Case) Pick(keep func(i int) bool) *Case {
	d := *c
	d.Points, d.Settings, d.Ops = nil, nil, nil
	for i := range c.Points {
		if keep(i) {
			d.Points, d.Settings, d.Ops = append(d.Points, c.Points[i]), append(d.Settings, c.Settings[i]), append(d.Ops, c.Ops[i])
		}
	}
	return &d
}

// Sweep is a group from a table that somebody measured: sizes in bytes, times in µs.
func Sweep(id, op, dtype string, nodes, per int, sizes, micros []float64) (*Group, error) {
	if len(sizes) != len(micros) {
		return nil, fmt.Errorf("%d sizes and %d times", len(sizes), len(micros))
	}
	g := &Group{ID: id, Collective: op, Dtype: dtype, Nodes: nodes, PerNode: per, Ranks: nodes * per, Sizes: sizes, Grade: "A"}
	for i := range micros {
		g.Time = append(g.Time, &micros[i])
	}
	return g, nil
}
