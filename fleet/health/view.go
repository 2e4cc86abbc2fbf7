package health

import (
	"math"
	"time"

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

// Pair is what is kept of a pair in one direction, oldest first.
func (h *History) Pair(from, to string, over Way) []Point {
	if over.By != "" {
		if h = h.others[over.By]; h == nil {
			return nil
		}
	}
	i, ok := h.find(from, to, over.Rail)
	if !ok {
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
