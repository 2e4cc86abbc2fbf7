package p2pbw

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// addNode adds the node of a run, with the devices that are listed and those that only a matrix names.
func (r *run) addNode(f *cluster.Fragment) {
	for i := range r.matrices {
		for _, id := range r.matrices[i].Cols {
			if _, listed := r.devices[id]; !listed {
				r.devices[id] = pairtable.Device{}
			}
		}
	}
	b := builder{frag: f, node: pairtable.NewNode(f), old: r.old()}
	b.node.Add(r.devices)
	b.access(r)
	for _, m := range r.byPreference() {
		b.matrix(m)
	}
	b.node.Close("")
}

// builder makes the node of one run.
type builder struct {
	frag *cluster.Fragment
	node *pairtable.Node // its numbers are CUDA's ordinals
	old  bool
}

func (b *builder) access(r *run) {
	for _, a := range r.access {
		if b.node.Two(a.from, a.to) {
			b.setP2P(0, a.from, a.to, a.can)
		}
	}
	group := map[int]int{}
	for i, ids := range r.cliques {
		for _, id := range ids {
			group[id] = i + 1
		}
	}
	for from := range group {
		for to := range group {
			if b.node.Two(from, to) {
				b.setP2P(0, from, to, group[from] == group[to])
			}
		}
	}
}

func (b *builder) setP2P(line, from, to int, can bool) {
	p := b.node.Pair(from, to)
	if p.P2P != cluster.Maybe && p.P2P != cluster.Bool(can) {
		b.frag.Warnf(line, fmt.Sprintf("gpu%d-gpu%d", from, to),
			"the list of peers and the connectivity matrix disagree; kept %s", p.P2P)
		return
	}
	p.P2P = cluster.Bool(can)
}

// byPreference orders the matrices so that the first to give a figure is the
// one to keep: with peer access before without, writes before reads, the GPU's
// clock before the CPU's.
func (r *run) byPreference() []*matrix {
	ms := make([]*matrix, len(r.matrices))
	for i := range r.matrices {
		ms[i] = &r.matrices[i]
	}
	rank := func(m *matrix) int {
		n := 0
		if !m.p2p {
			n += 4
		}
		if m.method == "Reads" {
			n += 2
		}
		if m.By == "CPU" {
			n++
		}
		return n
	}
	slices.SortStableFunc(ms, func(x, y *matrix) int { return rank(x) - rank(y) })
	return ms
}

// old reports whether the run is of a sample from before titles named a method:
// its copies went from the column's device to the row's.
func (r *run) old() bool {
	return slices.ContainsFunc(r.matrices,
		func(m matrix) bool { return m.p2p && !m.both && m.what == bandwidth && m.method == "" })
}

// matrix adds the figures of one matrix where no better one gave them.
func (b *builder) matrix(m *matrix) {
	if m.what != connectivity {
		b.node.AddFigures(&m.Matrix, m.method == "Reads" || m.method == "" && b.old, m.figure)
		return
	}
	for _, row := range m.Rows {
		for i, v := range row.Values {
			if b.node.Two(row.Device, m.Cols[i]) {
				b.setP2P(row.Line, row.Device, m.Cols[i], v != 0)
			}
		}
	}
}

func (m *matrix) figure(p *cluster.Pair, v float64) {
	source := format + ": " + m.Title
	rate := cluster.FromMeasured(unit.Rate(v)*unit.GBps, source)
	switch {
	case m.what == latency:
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
