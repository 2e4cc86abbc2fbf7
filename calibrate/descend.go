package calibrate

import (
	"cmp"
	"math"

	"busbar.dev/sim"
)

// descend searches with long, middle and short first steps and keeps the best: a
// search along one figure at a time ends in one of many hollows.
func (s *search) descend() {
	from, losses := s.f, append([]float64(nil), s.loss...)
	best, least, kept := s.f, s.total(), losses
	for n, first := range []float64{0.4, 0.2, 0.1} {
		if n > 0 && s.Quick || n < 2 && s.Near {
			continue
		}
		s.f, s.loss = from, append([]float64(nil), losses...)
		s.sweep(first)
		if t := s.total(); t < least {
			best, least, kept = s.f, t, s.loss
		}
	}
	s.f, s.loss = best, kept
}

// sweep moves one figure after the other while the loss falls.
func (s *search) sweep(first float64) {
	rounds := cmp.Or(s.Rounds, 40)
	var step [nFigures]float64
	for i := range step {
		step[i] = first
	}
	for range rounds {
		before := s.total()
		longest := 0.0
		for i := range s.f {
			if !s.Free[i] {
				continue
			}
			if s.move(i, step[i]) {
				step[i] = min(step[i]*1.4, 1)
			} else {
				step[i] *= 0.5
			}
			longest = max(longest, step[i])
		}
		if longest < 0.003 || before-s.total() < 1e-5*before && longest < 0.02 {
			return
		}
	}
}

func (s *search) total() float64 {
	sum := 0.0
	for _, l := range s.loss {
		sum += l
	}
	for i := range s.f {
		if s.Free[i] {
			sum += s.pulled(i)
		}
	}
	return sum
}

// move tries a step up and a step down.
func (s *search) move(i int, step float64) bool {
	_, lo, hi := sim.FigureRange(i)
	old := s.f[i]
	was := s.pulled(i)
	for _, k := range s.touch[i] {
		was += s.loss[k]
	}
	for _, dir := range []float64{1, -1} {
		v := min(max(max(old, hi/1e4)*math.Exp(dir*step), lo), hi)
		if v == old {
			continue
		}
		s.f[i] = v
		if s.try(i, was) {
			return true
		}
	}
	s.f[i] = old
	return false
}

// try keeps the present value of figure i where the loss is below was.
func (s *search) try(i int, was float64) bool {
	now := s.pulled(i)
	fresh := make([]float64, len(s.touch[i]))
	for n, k := range s.touch[i] {
		l, err := s.caseLoss(s.Cases[k])
		if err != nil {
			return false
		}
		fresh[n] = l
		if now += l; now >= was {
			return false
		}
	}
	if now >= was-1e-9 {
		return false
	}
	for n, k := range s.touch[i] {
		s.loss[k] = fresh[n]
	}
	return true
}
