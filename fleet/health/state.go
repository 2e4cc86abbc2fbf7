package health

import (
	"iter"
	"math"

	"busbar.dev/internal/stats"
)

// window is how many of the last sweeps tell the present; a pair that was not measured in
// them says nothing.
const window = 12

// cell is a pair as it is now.
type cell struct {
	series int32
	n      int8 // samples that tell
	lost   bool // most of them failed
	// x is the logarithm of the part that it has of what it should: the middle of the last
	// three samples, the better of two.
	x float32
}

// scatter is how cells of a class differ.
type scatter struct {
	scale  float64 // the spread of healthy cells above their level
	spread float64 // the spread of most cells around it
	noise  float64 // the spread of healthy single samples
}

// widest is the wider of what cells and single samples show.
func (s scatter) widest() float64 { return max(s.noise, s.spread) }

// state is all pairs as they are now.
type state struct {
	*table
	cells   []cell
	scatter []scatter // by class
	// What pairs that nothing is wrong with showed lately, of every so many: in all sweeps and in each.
	every   int
	stray   outliers
	strayIn map[*sweep]outliers
}

// lostLog stands for a failed measurement: 5 % of the rate.
var lostLog = math.Log(0.05)

// residual is how far a sample is below what its class should show.
func (s *state) residual(r *series, p point) (v float64, ok bool) {
	if p.rate == lost {
		return lostLog, true
	}
	v, ok = p.log()
	v -= float64(s.sweeps.at(p.sweep).expect[r.class])
	return v, ok && v == v
}

// residuals are those of a pair's newest samples, the oldest of them first.
func (s *state) residuals(r *series, most int) iter.Seq2[*sweep, float64] {
	return func(yield func(*sweep, float64) bool) {
		for _, p := range r.samples[max(0, len(r.samples)-most):] {
			if v, ok := s.residual(r, p); ok && !yield(s.sweeps.at(p.sweep), v) {
				return
			}
		}
	}
}

// state is the table as it is now.
func (t *table) state() *state {
	s := &state{table: t, scatter: make([]scatter, t.classes()), cells: make([]cell, 0, len(t.series))}
	t.expect()
	every := 1 + len(t.series)/100_000 // spreads need not all of a million
	steps, ups, sizes := make([][]float32, t.classes()), make([][]float32, t.classes()), make([][]float32, t.classes())
	for i := range t.series {
		r := &t.series[i]
		if r.class == unjudged {
			continue
		}
		c, step, ok := s.cell(r)
		if !ok {
			continue
		}
		c.series = int32(i)
		s.cells = append(s.cells, c)
		if i%every != 0 {
			continue
		}
		if c.n > 1 && step < 1 {
			steps[r.class] = append(steps[r.class], float32(step))
		}
		sizes[r.class] = append(sizes[r.class], max(c.x, -c.x))
		if c.x > 0 {
			ups[r.class] = append(ups[r.class], c.x)
		}
	}
	for i := range s.scatter {
		c := &s.scatter[i]
		c.noise = max(quietest, normalMedian/math.Sqrt2*middle(steps[i]))
		// A level that was met badly makes the spread of what is above it wide; the
		// noise between sweeps does not know of levels.
		c.scale = max(quietest, min(normalMedian*middle(ups[i]), max(3*c.noise, 0.1)))
		c.noise = max(c.noise, c.scale)
		// 30 % of a normal distribution lie within 0.385 deviations. More than half of
		// the cells may be slow.
		c.spread = max(quietest, float64(stats.Nearest(sizes[i], 0.3))/0.385)
	}
	return s
}

const (
	quietest     = 0.02   // the least deviation taken for true, as in package pairs
	normalMedian = 1.4826 // times the median distance is the deviation of a normal distribution
)

// cell reads a pair's last samples, newest first; step is how far the last two are apart.
func (s *state) cell(r *series) (c cell, step float64, ok bool) {
	var last [3]float64
	failed := 0
	for k := len(r.samples) - 1; k >= 0 && c.n < 3; k-- {
		p := r.samples[k]
		if int(s.sweeps.at(p.sweep).order) < len(s.sweeps.order)-window {
			break
		}
		if v, known := s.residual(r, p); known {
			last[c.n] = v
			c.n++
			if p.rate == lost {
				failed++
			}
		}
	}
	step = math.Abs(last[0] - last[1])
	c.x, c.lost = float32(stats.Nearest(last[:c.n], 0.5)), failed > int(c.n)/2
	return c, step, c.n > 0
}

// middle is the median of a list, of two the upper; it may reorder the list.
func middle(list []float32) float64 { return float64(stats.Nearest(list, 0.5)) }

// outliers are how many samples there are, and how many of them are far below.
type outliers struct{ all, far int }

// share is that of outliers, not below 3 %: few samples do not show the rare ones.
func (o outliers) share() float64 { return min(max(0.03, float64(o.far)/float64(max(o.all, 1))), 0.5) }

// add counts a sample.
func (o outliers) add(far bool) outliers {
	o.all++
	if far {
		o.far++
	}
	return o
}

// isOutlier tells whether a sample of a pair is far below.
func (s *state) isOutlier(r *series, v float64) bool {
	return v < -max(0.15, 4*s.scatter[r.class].noise)
}

// outlierProbability is how likely a sample of a sweep is a stray; own are those of the cause that is
// asked about, which do not testify for themselves.
func (s *state) outlierProbability(w *sweep, own int) float64 {
	in := s.strayIn[w]
	in.far -= own / s.every
	return max(s.stray.share(), in.share())
}

// countOutliers looks at the last samples of pairs that nothing is wrong with. Enough of them are looked at, not all.
func (s *state) countOutliers(healthy []int32) {
	s.every, s.strayIn = 1+len(healthy)/5000, map[*sweep]outliers{}
	for i := 0; i < len(healthy); i += s.every {
		r := &s.series[healthy[i]]
		for w, v := range s.residuals(r, window) {
			far := s.isOutlier(r, v)
			s.stray, s.strayIn[w] = s.stray.add(far), s.strayIn[w].add(far)
		}
	}
}
