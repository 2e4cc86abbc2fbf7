package pairtable

import (
	"cmp"
	"maps"
	"slices"

	"busbar.dev/cluster"
)

// maxRate is beyond any copy between two devices, in GB/s; a greater figure is a misprint or not a rate.
const maxRate = 1e6

// Node is a node in the making: GPUs under the numbers that the tool gave them, and
// what was measured between them.
type Node struct {
	frag *cluster.Fragment
	t    cluster.NodeType
	gpu  map[int]int    // the tool's number to device
	pair map[[2]int]int // the tool's numbers to pair
}

// NewNode begins a node of a fragment with GPUs in the order of their numbers.
func NewNode(f *cluster.Fragment, list map[int]cluster.Device) *Node {
	n := &Node{frag: f, gpu: map[int]int{}, pair: map[[2]int]int{}}
	for _, number := range slices.Sorted(maps.Keys(list)) {
		d := list[number]
		if d.PCI != "" && n.t.ByPCI(d.PCI) >= 0 {
			f.Warnf(0, "", "PCI address %s belongs to another device already; left out", d.PCI)
			d.PCI = ""
		}
		n.gpu[number] = n.t.Add(d)
	}
	return n
}

// Two reports whether two numbers are two GPUs of the node.
func (n *Node) Two(from, to int) bool {
	_, a := n.gpu[from]
	_, b := n.gpu[to]
	return a && b && from != to
}

// Pair is the pair from one GPU to another, made when it is asked for first. It is
// good until the next call.
func (n *Node) Pair(from, to int) *cluster.Pair {
	key := [2]int{from, to}
	i, ok := n.pair[key]
	if !ok {
		i = len(n.t.Pairs)
		n.pair[key] = i
		n.t.Pairs = append(n.t.Pairs, cluster.Pair{A: n.gpu[from], B: n.gpu[to]})
	}
	return &n.t.Pairs[i]
}

// AddFigures hands the figures of a matrix to add, with the pair from the row's GPU to the column's, or turned the
// other way round. Those that are no rate are left out, with a warning; the diagonal and N/A without.
func (n *Node) AddFigures(m *Matrix, turned bool, add func(p *cluster.Pair, v float64)) {
	bad, line := 0, 0
	for i, row := range m.Rows {
		if row == nil {
			continue
		}
		for j, cell := range row.Cells {
			v, ok := Figure(cell)
			from, _ := Number(m.Cols[i])
			to, _ := Number(m.Cols[j])
			if turned {
				from, to = to, from
			}
			switch {
			case !n.Two(from, to) || !ok || v != v:
			case v <= 0 || v > maxRate:
				bad++
				line = cmp.Or(line, row.Line)
			default:
				add(n.Pair(from, to), v)
			}
		}
	}
	if bad > 0 {
		n.frag.Warnf(line, "", "%d figures of %q are zero, negative or no rate; left out", bad, m.Title)
	}
}

// Close gives the node to its fragment, with its pairs in order. A host is "" where
// the tool did not name it.
func (n *Node) Close(hosts ...string) {
	slices.SortStableFunc(n.t.Pairs, func(x, y cluster.Pair) int {
		return cmp.Or(x.A-y.A, x.B-y.B)
	})
	n.frag.Types = append(n.frag.Types, &n.t)
	for _, h := range hosts {
		n.frag.Hosts = append(n.frag.Hosts, cluster.Host{Name: h, Type: len(n.frag.Types) - 1})
	}
}
