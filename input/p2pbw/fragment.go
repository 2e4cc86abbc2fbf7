package p2pbw

import (
	"fmt"
	"slices"

	"busbar/cluster"
	"busbar/unit"
)

// maxRate is beyond any copy between two devices; a greater figure is a
// misprint or not a rate.
const maxRate = 1e6 // GB/s

// Fragment turns each run into a node.
func (r *Result) Fragment(source string) *cluster.Fragment {
	f := &cluster.Fragment{Format: Format, Source: source}
	f.Warnings = append(f.Warnings, r.Warnings...)
	for i := range r.Runs {
		if run := &r.Runs[i]; len(run.Devices) > 0 || len(run.Matrices) > 0 {
			b := builder{run: run, frag: f, gpu: map[int]int{}, pair: map[[2]int]int{}}
			f.AddNode("", b.build())
		}
	}
	return f
}

// builder makes the node of one run.
type builder struct {
	run  *Run
	frag *cluster.Fragment
	t    cluster.NodeType
	gpu  map[int]int    // CUDA ordinal to device
	pair map[[2]int]int // ordinals to pair
}

func (b *builder) build() *cluster.NodeType {
	b.devices()
	b.access()
	for _, m := range b.run.byPreference() {
		b.matrix(m)
	}
	slices.SortStableFunc(b.t.Pairs, func(x, y cluster.Pair) int {
		if x.A != y.A {
			return x.A - y.A
		}
		return x.B - y.B
	})
	return &b.t
}

// devices adds the listed devices, then those only a matrix names.
func (b *builder) devices() {
	seen := map[cluster.PCI]bool{}
	var ids []int
	for _, d := range b.run.Devices {
		ids = append(ids, d.Index)
	}
	for i := range b.run.Matrices {
		ids = append(ids, b.run.Matrices[i].Cols...)
	}
	slices.Sort(ids)
	byIndex := map[int]*Device{}
	for i := range b.run.Devices {
		byIndex[b.run.Devices[i].Index] = &b.run.Devices[i]
	}
	for _, id := range slices.Compact(ids) {
		dev := cluster.Device{Kind: cluster.GPU, Index: id, Parent: -1, GPU: &cluster.GPUInfo{Vendor: "nvidia"}}
		if d := byIndex[id]; d != nil {
			if d.Model != "" {
				dev.Model = cluster.FromRead(d.Model, Format)
			}
			if seen[d.PCI] && d.PCI != "" {
				b.frag.Warnf(d.Line, fmt.Sprintf("gpu%d", id), "PCI address %s belongs to another device already; left out", d.PCI)
			} else {
				dev.PCI = d.PCI
				seen[d.PCI] = true
			}
		}
		b.gpu[id] = b.t.Add(dev)
	}
}

// at returns the pair from one device to another.
func (b *builder) at(from, to int) *cluster.Pair {
	key := [2]int{from, to}
	i, ok := b.pair[key]
	if !ok {
		i = len(b.t.Pairs)
		b.pair[key] = i
		b.t.Pairs = append(b.t.Pairs, cluster.Pair{A: b.gpu[from], B: b.gpu[to]})
	}
	return &b.t.Pairs[i]
}

// known reports whether two numbers are two devices of the run.
func (b *builder) known(from, to int) bool {
	_, a := b.gpu[from]
	_, c := b.gpu[to]
	return a && c && from != to
}

func (b *builder) access() {
	for _, a := range b.run.Access {
		if b.known(a.From, a.To) {
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
			if b.known(from, to) {
				b.setP2P(0, from, to, group[from] == group[to])
			}
		}
	}
}

func (b *builder) setP2P(line, from, to int, can bool) {
	p := b.at(from, to)
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
			if !b.known(from, to) {
				continue // the diagonal
			}
			if m.What == Connectivity {
				b.setP2P(row.Line, row.Device, m.Cols[i], v != 0)
				continue
			}
			if !(v > 0 && v <= maxRate) { // also when it is not a number
				if bad++; line == 0 {
					line = row.Line
				}
				continue
			}
			b.figure(b.at(from, to), m, v, source)
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
