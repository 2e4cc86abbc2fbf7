package health

import (
	"slices"
	"time"

	"busbar.dev/unit"
)

// Unhealthy are the nodes that should be drained.
func (h *History) Unhealthy(now time.Time) []string { return Drain(h.Findings(now)) }

// nodeNames are the names of the nodes, sorted, without those forgotten.
func (h *History) nodeNames() []string {
	list := []string{}
	for i, n := range h.nodes.list {
		if !h.node[i].gone {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// Sweep is one round of measuring.
type Sweep struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"` // of its first sample
}

// Sweeps are those kept, oldest first.
func (h *History) Sweeps() []Sweep {
	var list []Sweep
	t := h.over("")
	t.settle()
	for _, w := range t.sweeps.order {
		list = append(list, Sweep{w.id, stamp(w.at)})
	}
	return list
}

// Size is how much is kept.
type Size struct {
	Nodes   int        `json:"nodes"`
	Pairs   int        `json:"pairs"` // by direction and rail
	Sweeps  int        `json:"sweeps"`
	Samples int        `json:"samples"`
	Memory  unit.Bytes `json:"memory_bytes"` // of pairs and their samples, about
}

// Size counts what is kept.
func (h *History) Size() Size {
	t := h.over("")
	s := Size{Nodes: len(h.node), Pairs: len(t.series), Sweeps: len(t.sweeps.list)}
	for i := range t.series {
		s.Samples += len(t.series[i].samples)
		s.Memory += unit.Bytes(8 * cap(t.series[i].samples))
	}
	// A series is 56 bytes, its entry in the index some 30.
	s.Memory += unit.Bytes(86 * len(t.series))
	return s
}
