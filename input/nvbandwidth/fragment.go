package nvbandwidth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// addNode adds the node the tool ran on. A table alone in a document lists no
// devices and its columns stand for them.
func (p *parser) addNode() {
	if len(p.devices) == 0 {
		for i := range p.tables {
			if t := &p.tables[i]; t.col == "GPU" {
				for _, c := range t.Cols {
					p.devices[c] = pairtable.Device{}
				}
			}
		}
	}
	node := pairtable.NewNode(p.Frag)
	node.Add(p.devices)
	for i := range p.tables {
		p.tables[i].addTo(node, p.Frag)
	}
	node.Close(p.host)
}

// addTo adds what a table says about pairs.
func (t *table) addTo(node *pairtable.Node, f *cluster.Fragment) {
	if t.col != "GPU" {
		return
	}
	for _, c := range t.Cols {
		if !node.Has(c) {
			f.Warnf(t.Line, "", "%q has a column for GPU %d and the tool listed %d; figures for GPUs it did not list are left "+
				"out", t.Title, c, node.Len())
			break
		}
	}
	if t.row != "GPU" {
		return
	}
	node.AddFigures(&t.Matrix, t.arrow == "<-", t.figure)
}

// figure adds a figure to a pair. Where several tests measured a pair in one
// direction, the highest rate is kept: it is what the path can carry.
func (t *table) figure(p *cluster.Pair, v float64) {
	source := strings.TrimSpace(format + " " + t.test)
	rate := unit.Rate(v) * unit.GBps
	switch {
	case t.latency:
		if !p.Latency.Known() {
			p.Latency = cluster.FromMeasured(unit.Micros(v/1e3), source)
		}
	case t.arrow == "<->":
		// Only "Total" counts both directions; older tables under this arrow time
		// one of them and do not say which.
		if t.part == "Total" && rate > p.Both.Value {
			p.Both = cluster.FromMeasured(rate, source)
		}
	default:
		// Under traffic the other way a rate is not the pair's own.
		if !strings.Contains(t.test, "bidirectional") && rate > p.Rate.Value {
			p.Rate = cluster.FromMeasured(rate, source)
		}
	}
}
