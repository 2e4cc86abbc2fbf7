package pairtable

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/cluster"
)

// Node is a node in the making: GPUs under the numbers that the tool gave them, and
// what was measured between them.
type Node struct {
	frag *cluster.Fragment
	t    cluster.NodeType
	gpu  map[int]int    // the tool's number to device
	pair map[[2]int]int // the tool's numbers to pair
	pci  map[cluster.PCI]bool
}

// NewNode begins a node of a fragment.
func NewNode(f *cluster.Fragment) *Node {
	return &Node{frag: f, gpu: map[int]int{}, pair: map[[2]int]int{}, pci: map[cluster.PCI]bool{}}
}

// Device is a GPU as a tool listed it in a line; model and address are empty where it did not.
type Device struct {
	Number int
	Model  string
	PCI    cluster.PCI
	Line   int
}

// Add adds GPUs in the order of their numbers.
func (n *Node) Add(list map[int]Device) {
	for _, number := range slices.Sorted(maps.Keys(list)) {
		d := list[number]
		dev := cluster.Device{Kind: cluster.GPU, Index: number, Parent: -1, GPU: &cluster.GPUInfo{Vendor: "nvidia"}}
		if d.Model != "" {
			dev.Model = cluster.FromRead(d.Model, n.frag.Format)
		}
		if d.PCI != "" && n.pci[d.PCI] {
			n.frag.Warnf(d.Line, fmt.Sprintf("gpu%d", number), "PCI address %s belongs to another device already; left out",
				d.PCI)
		} else {
			dev.PCI = d.PCI
			n.pci[d.PCI] = true
		}
		n.gpu[number] = n.t.Add(dev)
	}
}

// Len is the number of GPUs.
func (n *Node) Len() int { return len(n.gpu) }

// Has reports whether there is a GPU of that number.
func (n *Node) Has(number int) bool {
	_, ok := n.gpu[number]
	return ok
}

// Two reports whether two numbers are two GPUs of the node.
func (n *Node) Two(from, to int) bool { return from != to && n.Has(from) && n.Has(to) }

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
// other way round. Those that are no rate are left out, with a warning; the diagonal, strangers and N/A without.
func (n *Node) AddFigures(m *Matrix, turned bool, add func(p *cluster.Pair, v float64)) {
	bad, line := 0, 0
	for _, row := range m.Rows {
		for i, v := range row.Values {
			from, to := row.Device, m.Cols[i]
			if turned {
				from, to = to, from
			}
			switch {
			case !n.Two(from, to) || v != v:
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

// Close gives the node to its fragment, with its pairs in order. host is "" where
// the tool did not name it.
func (n *Node) Close(host string) {
	slices.SortStableFunc(n.t.Pairs, func(x, y cluster.Pair) int {
		return cmp.Or(x.A-y.A, x.B-y.B)
	})
	n.frag.AddNode(host, &n.t)
}
