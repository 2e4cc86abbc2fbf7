// Package fair shares the capacity of links among flows, max-min fairly: nobody
// can have more without somebody who has no more than he losing some.
//
// Everything is in flat arrays that a Solver keeps between calls, for a simulator
// asks at every event.
package fair

import "math"

// Flow is who uses what: the links Links[From:To] of the Solver, and the most it
// could use by itself.
type Flow struct {
	From, To int32
	Cap      float64 // its own limit; +Inf for none
}

// Solver shares capacities. The zero value is ready.
type Solver struct {
	Links   []int32   // of all flows, one after the other
	Weights []float64 // of all Links: what a unit of the flow costs there; nil is 1 for all

	left   []float64
	weight []float64
	at     [][]int32
	used   []int32
	mark   []bool
}

// Rates fills rate with the share of every flow. caps are the capacities of the
// links; a flow without links gets its own cap. Filling is progressive: the level
// of all unfrozen flows rises until a link is full or a flow has its cap (Bertsekas
// and Gallager, Data Networks, 1992, section 6.5).
func (s *Solver) Rates(caps []float64, flows []Flow, rate []float64) {
	s.prepare(caps, flows)
	frozen := 0
	for i := range flows {
		rate[i] = -1
	}
	level := 0.0
	for frozen < len(flows) {
		next := math.Inf(1)
		for _, l := range s.used {
			if s.weight[l] > 1e-12 {
				next = min(next, s.left[l]/s.weight[l])
			}
		}
		for i := range flows {
			if rate[i] < 0 {
				next = min(next, flows[i].Cap-level)
			}
		}
		if math.IsInf(next, 1) {
			for i := range flows {
				if rate[i] < 0 {
					rate[i] = next
				}
			}
			break
		}
		next = max(next, 0)
		level += next
		for _, l := range s.used {
			s.left[l] -= next * s.weight[l]
		}
		frozen += s.freeze(caps, flows, rate, level)
	}
	for _, l := range s.used {
		s.mark[l] = false
	}
}

func (s *Solver) prepare(caps []float64, flows []Flow) {
	if len(s.left) < len(caps) {
		s.left, s.weight, s.mark = make([]float64, len(caps)), make([]float64, len(caps)), make([]bool, len(caps))
		s.at = make([][]int32, len(caps))
	}
	s.used = s.used[:0]
	for i, f := range flows {
		for k := f.From; k < f.To; k++ {
			l := s.Links[k]
			if !s.mark[l] {
				s.mark[l] = true
				s.used = append(s.used, l)
				s.left[l], s.weight[l], s.at[l] = caps[l], 0, s.at[l][:0]
			}
			s.weight[l] += s.cost(k)
			s.at[l] = append(s.at[l], int32(i))
		}
	}
}

func (s *Solver) cost(k int32) float64 {
	if s.Weights == nil {
		return 1
	}
	return s.Weights[k]
}

// freeze fixes the flows that have reached their cap or a full link, and returns
// how many there were.
func (s *Solver) freeze(caps []float64, flows []Flow, rate []float64, level float64) int {
	n := 0
	fix := func(i int32) {
		if rate[i] >= 0 {
			return
		}
		rate[i] = level
		n++
		for k := flows[i].From; k < flows[i].To; k++ {
			s.weight[s.Links[k]] -= s.cost(k)
		}
	}
	for i := range flows {
		if rate[i] < 0 && flows[i].Cap <= level*(1+1e-12) {
			fix(int32(i))
		}
	}
	for _, l := range s.used {
		if s.left[l] <= caps[l]*1e-9 {
			for _, i := range s.at[l] {
				fix(i)
			}
		}
	}
	return n
}
