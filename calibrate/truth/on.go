package truth

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
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
	if err := g.sameGPUs(c, layout); err != nil {
		return nil, err
	}
	if v, ok := g.Release(); ok {
		release = v
	}
	p, err := predict.New(c, layout, release, g.env(), nil)
	if err != nil {
		return nil, err
	}
	return newCase(g, pts, p, nil)
}

// Release is the release of NCCL that the group names, false where it names none
// that is known.
func (g *Group) Release() (nccl.Version, bool) {
	text, _, _ := strings.Cut(g.NCCL, " ")
	v, err := nccl.ParseVersion(text)
	return v, err == nil && v.Compare(nccl.Oldest) >= 0 && v.Compare(nccl.Newest) <= 0
}

// sameGPUs refuses a group whose GPUs are not those that its ranks have on a
// cluster. Where one of the two names none, nothing contradicts.
func (g *Group) sameGPUs(c *cluster.Cluster, l nccl.Layout) error {
	if g.gpuName() == "" {
		return nil
	}
	for _, r := range l {
		d := &c.TypeOf(r.Host).Devices[r.GPU]
		if has := d.Model.Value; has != "" && chip(has) != chip(g.gpuName()) {
			return fmt.Errorf("measured on %q, and %s of the cluster has %q; expected measurements of the cluster that -c describes", g.gpuName(), c.Hosts[r.Host].Name, has)
		}
	}
	return nil
}

// chip is the catalogue's name of a GPU without the size of its memory, which no
// collective depends on; a GPU that is not there is its own text.
func chip(name string) string {
	m, ok := hardware.GPUByName(name)
	if !ok {
		return strings.ToLower(name)
	}
	if i := strings.LastIndexByte(m.Name, '-'); i > 0 && strings.Trim(m.Name[i+1:], "0123456789") == "" {
		return m.Name[:i]
	}
	return m.Name
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
