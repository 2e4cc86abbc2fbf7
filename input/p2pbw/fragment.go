package p2pbw

import (
	"cmp"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// addNode adds the node of a run, with the devices that are listed and those that only a matrix names.
func (r *run) addNode(f *cluster.Fragment) {
	tables := make([]*pairtable.Matrix, len(r.matrices))
	for i, m := range r.matrices {
		tables[i] = &m.Matrix
		m.Warns.AddTo(f, "")
	}
	node := pairtable.NewNode(f, r.devices, tables) // its numbers are CUDA's ordinals
	for _, a := range r.access {
		if node.Two(a.from, a.to) {
			node.Pair(a.from, a.to).P2P = cluster.Bool(a.can)
		}
	}
	// A sample from before titles named a method copied from the column's device to the row's.
	old := slices.ContainsFunc(r.matrices,
		func(m *matrix) bool { return m.p2p && !m.both && !m.latency && m.method == "" })
	// The first figure of a pair is kept: with peer access before without, writes before reads.
	slices.SortStableFunc(r.matrices, func(x, y *matrix) int { return cmp.Compare(x.rank(), y.rank()) })
	for _, m := range r.matrices {
		node.AddFigures(&m.Matrix, m.method == "Reads" || m.method == "" && old, m.figure)
	}
	node.Close("")
}

func (t *title) rank() int {
	switch {
	case !t.p2p:
		return 2
	case t.method == "Reads":
		return 1
	}
	return 0
}

func (m *matrix) figure(p *cluster.Pair, v float64) {
	source := format + ": " + m.Title
	rate := cluster.FromMeasured(unit.Rate(v)*unit.GBps, source)
	switch {
	case m.latency:
		if !p.Latency.Known() {
			p.Latency = cluster.FromMeasured(unit.Micros(v), source)
		}
	case m.both:
		if !p.Both.Known() {
			p.Both = rate
		}
	default:
		if !p.Rate.Known() {
			p.Rate = rate
		}
	}
}
