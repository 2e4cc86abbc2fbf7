package p2pbw

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// Fragment turns each run into a node.
func (r *Result) Fragment(source string) *cluster.Fragment {
	f := &cluster.Fragment{Format: Format, Source: source}
	f.Warnings = append(f.Warnings, r.Warnings...)
	for i := range r.Runs {
		if run := &r.Runs[i]; len(run.Devices) > 0 || len(run.Matrices) > 0 {
			b := builder{run: run, frag: f, node: pairtable.NewNode(f)}
			b.build()
		}
	}
	return f
}

// builder makes the node of one run.
type builder struct {
	run  *Run
	frag *cluster.Fragment
	node *pairtable.Node // its numbers are CUDA's ordinals
}

func (b *builder) build() {
	b.devices()
	b.access()
	for _, m := range b.run.byPreference() {
		b.matrix(m)
	}
	b.node.Close("")
}

// devices adds those that are listed and those that only a matrix names.
func (b *builder) devices() {
	list := map[int]Device{}
	for i := range b.run.Matrices {
		for _, id := range b.run.Matrices[i].Cols {
			list[id] = Device{}
		}
	}
	for _, d := range b.run.Devices {
		list[d.Index] = d
	}
	for _, id := range slices.Sorted(maps.Keys(list)) {
		d := list[id]
		b.node.Add(id, d.Model, d.PCI, d.Line)
	}
}

func (b *builder) access() {
	for _, a := range b.run.Access {
		if b.node.Two(a.From, a.To) {
			b.setP2P(0, a.From, a.To, a.Can)
		}
	}
	group := map[int]int{}
	for i, ids := range b.run.Cliques {
		for _, id := range ids {
			group[id] = i + 1
		}
	}
	if len(group) == 0 {
		return
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
		b.frag.Warnf(line, fmt.Sprintf("gpu%d-gpu%d", from, to), "the list of peers and the connectivity matrix disagree; kept %s", p.P2P)
		return
	}
	p.P2P = cluster.Bool(can)
}

// byPreference orders the matrices so that the first to give a figure is the
// one to keep: with peer access before without, writes before reads, the GPU's
// clock before the CPU's.
func (r *Run) byPreference() []*Matrix {
	ms := make([]*Matrix, len(r.Matrices))
	for i := range r.Matrices {
		ms[i] = &r.Matrices[i]
	}
	rank := func(m *Matrix) int {
		n := 0
		if !m.P2P {
			n += 4
		}
		if m.Method == "Reads" {
			n += 2
		}
		if m.By == "CPU" {
			n++
		}
		return n
	}
	slices.SortStableFunc(ms, func(x, y *Matrix) int { return rank(x) - rank(y) })
	return ms
}

// old reports whether the run is of a sample from before titles named a method:
// its copies went from the column's device to the row's.
func (r *Run) old() bool {
	for i := range r.Matrices {
		if m := &r.Matrices[i]; m.P2P && !m.Both && m.What == Bandwidth && m.Method == "" {
			return true
		}
	}
	return false
}

// matrix adds the figures of one matrix where no better one gave them.
func (b *builder) matrix(m *Matrix) {
	flip := m.Method == "Reads" || m.Method == "" && b.run.old()
	source := Format + ": " + m.Title
	bad, line := 0, 0
	for _, row := range m.Rows {
		for i, v := range row.Values {
			from, to := row.Device, m.Cols[i]
			if flip {
				from, to = to, from
			}
			if !b.node.Two(from, to) {
				continue // the diagonal
			}
			if m.What == Connectivity {
				b.setP2P(row.Line, row.Device, m.Cols[i], v != 0)
				continue
			}
			if !(v > 0 && v <= pairtable.MaxRate) { // also when it is not a number
				if bad++; line == 0 {
					line = row.Line
				}
				continue
			}
			b.figure(b.node.Pair(from, to), m, v, source)
		}
	}
	if bad > 0 {
		b.frag.Warnf(line, "", "%d figures of %q are zero, negative or no number; left out", bad, m.Title)
	}
}

func (b *builder) figure(p *cluster.Pair, m *Matrix, v float64, source string) {
	switch {
	case m.What == Latency:
		if !p.Latency.Known() {
			p.Latency = cluster.FromMeasured(unit.Micros(v), source)
		}
	case m.Both:
		if !p.Both.Known() {
			p.Both = cluster.FromMeasured(unit.Rate(v)*unit.GBps, source)
		}
	default:
		if !p.Rate.Known() {
			p.Rate = cluster.FromMeasured(unit.Rate(v)*unit.GBps, source)
		}
	}
}
