package nvbandwidth

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/unit"
)

// addNode adds the node the tool ran on.
func (p *parser) addNode(f *cluster.Fragment) {
	p.warns.AddTo(f, "")
	matrices := make([]*pairtable.Matrix, len(p.tables))
	for i, t := range p.tables {
		matrices[i] = &t.Matrix
		t.Warns.AddTo(f, "")
	}
	node := pairtable.NewNode(f, p.devices, matrices)
	for _, t := range p.tables {
		node.AddFigures(&t.Matrix, t.arrow == "<-", t.figure)
	}
	node.Close(p.host)
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
