package health

import (
	"math"

	"busbar.dev/internal/stats"
)

// window is how many of the last sweeps tell the present; a pair that was not measured in
// them says nothing.
const window = 12

// cell is a pair as it is now.
type cell struct {
	series int32
	class  int32
	n      int8 // samples that tell
	lost   bool // most of them failed
	// x is the logarithm of the part that it has of what it should: the middle of the last
	// three samples, the better of two.
	x float32
}

// state is one figure of all pairs as they are now.
type state struct {
	h      *History
	fig    figure
	shifts map[uint32][]float32
	cells  []cell
	scale  []float64 // the spread of healthy cells above their level, by class
	spread []float64 // the spread of most cells around it, by class
	noise  []float64 // the spread of healthy single samples, by class
	stray  float64   // the share of single samples that are far below
	// far and all count such samples and all, by sweep, of every so many pairs.
	far, all map[uint32]int
	every    int
	// singles are the figures of those samples, upsets those of nodes in single sweeps; sorted.
	singles, upsets []float32
}

// lostLog stands for a failed measurement: 5 % of the rate.
var lostLog = math.Log(0.05)

// residual is how far a sample is below what it should be. A pair is held against its class,
// and against its own past where that was better.
func (s *state) residual(r *series, class int32, p point) (v float64, ok bool) {
	if p.rate == lost {
		return lostLog, s.fig == rate
	}
	if v, ok = p.of(s.fig); !ok {
		return 0, false
	}
	level := s.h.sweeps.at(p.sweep).level[s.fig]
	if v -= float64(level[class]); v != v {
		return 0, false
	}
	v -= max(0, float64(r.base[s.fig]))
	if d := s.shifts[p.sweep]; d != nil {
		v += float64(d[class])
	}
	return v, true
}

// now computes the state of a figure.
func (h *History) now(f figure, order []uint32) *state {
	s := &state{h: h, fig: f, shifts: h.shifts(order, f)}
	oldest := int32(len(order) - window)
	s.cells = make([]cell, 0, len(h.series))
	every := 1 + len(h.series)/100_000 // spreads need not all of a million
	diffs := make([][]float32, h.classes())
	ups, sizes := make([][]float32, h.classes()), make([][]float32, h.classes())
	for i := range h.series {
		r := &h.series[i]
		if len(r.samples) == 0 || h.node[r.from].gone || h.node[r.to].gone {
			continue
		}
		class := int32(h.class(r.pairKey))
		if r.rebase <= 0 {
			h.rebase(r, class)
		}
		c, last, ok := s.cell(r, class, oldest)
		if !ok {
			continue
		}
		c.series = int32(i)
		s.cells = append(s.cells, c)
		if i%every != 0 {
			continue
		}
		if c.n > 1 {
			if d := last[0] - last[1]; math.Abs(d) < 1 {
				diffs[class] = append(diffs[class], float32(math.Abs(d)))
			}
		}
		sizes[class] = append(sizes[class], float32(math.Abs(float64(c.x))))
		if c.x > 0 {
			ups[class] = append(ups[class], c.x)
		}
	}
	s.scale, s.noise, s.spread = make([]float64, h.classes()), make([]float64, h.classes()), make([]float64, h.classes())
	for c := range s.scale {
		s.scale[c], s.noise[c] = quietest, quietest
		if len(diffs[c]) > 0 {
			s.noise[c] = max(quietest, 1.4826/math.Sqrt2*float64(stats.Nearest(diffs[c], 0.5)))
		}
		if len(ups[c]) > 0 {
			// A level that was met badly makes the spread of what is above it wide; the
			// noise between sweeps does not know of levels.
			s.scale[c] = max(quietest, min(1.4826*float64(stats.Nearest(ups[c], 0.5)), max(3*s.noise[c], 0.1)))
		}
		s.noise[c] = max(s.noise[c], s.scale[c])
		if len(sizes[c]) > 0 {
			// 30 % of a normal distribution lie within 0.385 deviations. More than half of
			// the cells may be slow.
			s.spread[c] = max(quietest, float64(stats.Nearest(sizes[c], 0.3))/0.385)
		}
	}
	return s
}

// quietest is the least deviation taken for true: 2 %, as in package pairs.
const quietest = 0.02

// cell reads a pair's last samples, newest first.
func (s *state) cell(r *series, class, oldest int32) (c cell, last [3]float64, ok bool) {
	c.class = class
	bad := 0
	for k := len(r.samples) - 1; k >= 0 && c.n < 3; k-- {
		p := r.samples[k]
		if !s.h.sweeps.holds(p.sweep) || s.h.sweeps.at(p.sweep).order < oldest {
			break
		}
		v, known := s.residual(r, class, p)
		if !known {
			continue
		}
		if p.rate == lost {
			bad++
		}
		last[c.n] = v
		c.n++
	}
	switch c.n {
	case 0:
		return c, last, false
	case 1:
		c.x = float32(last[0])
	case 2:
		c.x = float32(max(last[0], last[1]))
	case 3:
		c.x = float32(median3(last[0], last[1], last[2]))
	}
	c.lost = bad > int(c.n)/2
	return c, last, true
}

// rebase computes what a pair had relative to its class, the middle of its past but for the
// last few sweeps. It is done now and then only: a past does not change much.
func (h *History) rebase(r *series, class int32) {
	const recent = 4
	n := len(r.samples)
	r.rebase = int32(max(4, n/8))
	var buf [32]float32
	for f := range figures {
		r.base[f] = 0
		if n < history+recent {
			continue
		}
		list := buf[:0]
		// Of a long series, samples spread over the whole are enough.
		step := max(1, (n-recent)/len(buf))
		for k := 0; k < n-recent && len(list) < len(buf); k += step {
			p := r.samples[k]
			v, ok := p.of(f)
			if !ok || !h.sweeps.holds(p.sweep) {
				continue
			}
			level := h.sweeps.at(p.sweep).level[f]
			if v -= float64(level[class]); v == v {
				list = append(list, float32(v))
			}
		}
		if len(list) >= history {
			r.base[f] = stats.Nearest(list, 0.5)
		}
	}
}
