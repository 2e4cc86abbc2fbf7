package health

import (
	"math"
	"slices"
	"time"

	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// Point is a kept sample of a pair, to the nearest 0.05 %, with the time of its sweep.
type Point struct {
	Sweep   string    `json:"sweep"`
	Time    time.Time `json:"time"`
	Rate    unit.Rate `json:"rate_GBps,omitempty"`
	Latency unit.Time `json:"latency_us,omitempty"`
	Failed  bool      `json:"failed,omitempty"`
	Setup   string    `json:"setup,omitempty"` // how its sweep was measured
}

// Pair is what is kept of a pair in one direction over a rail, oldest first.
func (h *History) Pair(from, to, rail string) []Point {
	a, ok1 := h.nodes.num[from]
	b, ok2 := h.nodes.num[to]
	r, ok3 := h.rails.num[rail]
	i, ok4 := h.index[pairKey{a, b, r}]
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return nil
	}
	h.settle()
	var list []Point
	for _, p := range h.series[i].samples {
		if h.sweeps.holds(p.sweep) {
			list = append(list, h.point(p))
		}
	}
	return list
}

func (h *History) point(p point) Point {
	w := h.sweeps.at(p.sweep)
	out := Point{Sweep: w.id, Time: stamp(w.at), Failed: p.rate == lost, Setup: w.setup}
	if p.rate != 0 && p.rate != lost {
		out.Rate = unit.Rate(math.Exp(logOf(p.rate)))
	}
	if p.latency != 0 {
		out.Latency = unit.Time(math.Exp(logOf(p.latency)))
	}
	return out
}

// Sweep is one round of measuring.
type Sweep struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"` // of its first sample
}

// Sweeps are those kept, oldest first.
func (h *History) Sweeps() []Sweep {
	var list []Sweep
	for _, i := range h.settle() {
		w := h.sweeps.at(i)
		list = append(list, Sweep{w.id, stamp(w.at)})
	}
	return list
}

// Table is one sweep over one rail as package pairs has it, with the nodes in order of their
// names; nil where the sweep is not kept. It walks all pairs.
func (h *History) Table(sweep, rail string) *pairs.Table {
	id, ok := h.sweeps.byID[sweep]
	r, known := h.rails.num[rail]
	if !ok || !known {
		return nil
	}
	h.settle()
	t := &pairs.Table{Names: h.Nodes()}
	place := make([]int, len(h.node))
	for i, n := range h.nodes.list {
		place[i], _ = slices.BinarySearch(t.Names, n)
	}
	order := h.sweeps.at(id).order
	for i := range h.series {
		s := &h.series[i]
		if s.rail != r || h.node[s.from].gone || h.node[s.to].gone {
			continue
		}
		if p, ok := s.in(&h.sweeps, id, order); ok && p.rate != lost {
			v := h.point(p)
			t.Cells = append(t.Cells, pairs.Measure{From: place[s.from], To: place[s.to], Rate: v.Rate, Latency: v.Latency})
		}
	}
	slices.SortFunc(t.Cells, func(a, b pairs.Measure) int {
		return slices.Compare([]int{a.From, a.To}, []int{b.From, b.To})
	})
	return t
}

// Nodes are the names of the nodes, sorted, without those forgotten.
func (h *History) Nodes() []string {
	list := []string{}
	for i, n := range h.nodes.list {
		if !h.node[i].gone {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// Seen is when a node's last heartbeat was; zero where there was none.
func (h *History) Seen(name string) time.Time {
	i, ok := h.nodes.num[name]
	if !ok || len(h.node[i].beats.at) == 0 {
		return time.Time{}
	}
	b := &h.node[i].beats
	return stamp(b.at[len(b.at)-1])
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
	s := Size{Nodes: len(h.node), Pairs: len(h.series), Sweeps: len(h.sweeps.list)}
	for i := range h.series {
		s.Samples += len(h.series[i].samples)
		s.Memory += unit.Bytes(8 * cap(h.series[i].samples))
	}
	// A series is 56 bytes, its entry in the index some 30.
	s.Memory += unit.Bytes(86 * len(h.series))
	return s
}
