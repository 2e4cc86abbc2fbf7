package nvbandwidth

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// Fragment is the node the tool ran on. Where several tests measured a pair in
// one direction, the highest rate is kept: it is what the path can carry.
func (r *Result) Fragment(source string) *cluster.Fragment {
	f := &cluster.Fragment{Format: Format, Source: source}
	f.Warnings = append(f.Warnings, r.Warnings...)
	b := builder{res: r, frag: f, node: pairtable.NewNode(f)}
	b.devices()
	for i := range r.Tests {
		for j := range r.Tests[i].Matrices {
			b.matrix(&r.Tests[i], &r.Tests[i].Matrices[j])
		}
	}
	b.node.Close(r.Host)
	return f
}

// builder makes the node.
type builder struct {
	res  *Result
	frag *cluster.Fragment
	node *pairtable.Node
}

// betweenGPUs reports whether a matrix is about pairs of GPUs.
func (m *Matrix) betweenGPUs() bool { return m.Row == "GPU" && m.Col == "GPU" }

// devices adds the listed devices; a table alone in a document lists none and
// its columns stand for them.
func (b *builder) devices() {
	list := slices.Clone(b.res.Devices)
	if len(list) == 0 {
		ids := map[int]bool{}
		for _, t := range b.res.Tests {
			for i := range t.Matrices {
				if m := &t.Matrices[i]; m.Col == "GPU" {
					for _, c := range m.Cols {
						ids[c] = true
					}
				}
			}
		}
		for id := range ids {
			list = append(list, Device{Index: id})
		}
	}
	slices.SortFunc(list, func(x, y Device) int { return x.Index - y.Index })
	for _, d := range list {
		b.node.Add(d.Index, d.Model, d.PCI, d.Line)
	}
}

// matrix adds what a table says about pairs.
func (b *builder) matrix(t *Test, m *Matrix) {
	if m.Col == "GPU" {
		b.count(m)
	}
	if !m.betweenGPUs() {
		return
	}
	source := strings.TrimSpace(Format + " " + t.Name)
	bad, line := 0, m.Line
	for _, row := range m.Rows {
		for i, v := range row.Values {
			from, to := row.Index, m.Cols[i]
			if m.Arrow == "<-" {
				from, to = to, from
			}
			if !b.node.Two(from, to) || v != v {
				continue // the diagonal, a stranger, or N/A
			}
			if v <= 0 || v > pairtable.MaxRate {
				bad++
				line = row.Line
				continue
			}
			b.figure(b.node.Pair(from, to), t, m, v, source)
		}
	}
	if bad > 0 {
		b.frag.Warnf(line, "", "%d figures of %q are zero, negative or no rate; left out", bad, m.Title)
	}
}

// count warns about a table for more GPUs than were listed.
func (b *builder) count(m *Matrix) {
	for _, c := range m.Cols {
		if !b.node.Has(c) {
			b.frag.Warnf(m.Line, "", "%q has a column for GPU %d and the tool listed %d; figures for GPUs it did not list are left out", m.Title, c, b.node.Len())
			return
		}
	}
}

func (b *builder) figure(p *cluster.Pair, t *Test, m *Matrix, v float64, source string) {
	switch {
	case m.Unit == "ns":
		if !p.Latency.Known() {
			p.Latency = cluster.FromMeasured(unit.Micros(v/1e3), source)
		}
	case m.Arrow == "<->":
		// Only "Total" counts both directions; older tables under this arrow time
		// one of them and do not say which.
		if rate := unit.Rate(v) * unit.GBps; m.Part == "Total" && rate > p.Both.Value {
			p.Both = cluster.FromMeasured(rate, source)
		}
	default:
		// Under traffic the other way a rate is not the pair's own.
		if rate := unit.Rate(v) * unit.GBps; !strings.Contains(t.Name, "bidirectional") && rate > p.Rate.Value {
			p.Rate = cluster.FromMeasured(rate, source)
		}
	}
}
