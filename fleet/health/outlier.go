package health

import (
	"slices"
	"sort"

	"busbar.dev/internal/stats"
)

// slack is the part of a fault's depth from which on others looked alike.
const slack = 0.7

// below is how many of a sorted list are at most v.
func below(list []float32, v float64) int {
	return sort.Search(len(list), func(i int) bool { return float64(list[i]) > v })
}

// countOutliers finds the share of single samples, of pairs that nothing is wrong with, that are
// far below: of all sweeps, and of each. Enough of them are looked at, not all.
func (s *state) countOutliers(list []int32) {
	step := 1 + len(list)/5000
	far, all := map[uint32]int{}, map[uint32]int{}
	f, n := 0, 0 // of all sweeps together
	for i := 0; i < len(list); i += step {
		r := &s.h.series[list[i]]
		class := int32(s.h.class(r.pairKey))
		for k := max(0, len(r.samples)-window); k < len(r.samples); k++ {
			p := r.samples[k]
			if !s.h.sweeps.holds(p.sweep) {
				continue
			}
			v, ok := s.residual(r, class, p)
			if !ok {
				continue
			}
			all[p.sweep]++
			n++
			s.singles = append(s.singles, float32(v))
			if v < -max(0.15, 4*s.noise[class]) {
				far[p.sweep]++
				f++
			}
		}
	}
	s.far, s.all, s.every = far, all, step
	slices.Sort(s.singles)
	s.stray = share3(f, n)
}

// share3 is a share of strays, not below 3 %: few samples do not show the rare ones.
func share3(far, all int) float64 {
	return min(max(0.03, float64(far)/float64(max(all, 1))), 0.5)
}

// outlierProbability is how likely a sample of a sweep is a stray; own are those of the cause that is
// asked about, which do not testify for themselves.
func (s *state) outlierProbability(w uint32, own int) float64 {
	if s.every > 1 {
		own = 0
	}
	return max(s.stray, share3(s.far[w]-own, s.all[w]))
}

// countSlowSweeps gathers what nodes that nothing is wrong with showed in single sweeps, each by
// the middle of what it sent and of what it received. A few dozen nodes are enough.
func (s *state) countSlowSweeps(now *causeFinder) {
	const most = 64
	type row struct {
		node, way int32
		sweep     uint32
	}
	rows := map[row][]float32{}
	for i := range s.cells {
		r := &s.h.series[s.cells[i].series]
		if r.from >= most || r.to >= most {
			continue
		}
		if one, n := now.of(r.pairKey); n > 1 || n == 1 && !narrow(one.kind) {
			continue
		}
		for k := max(0, len(r.samples)-window); k < len(r.samples); k++ {
			p := r.samples[k]
			if !s.h.sweeps.holds(p.sweep) {
				continue
			}
			if v, ok := s.residual(r, s.cells[i].class, p); ok {
				out, in := row{r.from, 0, p.sweep}, row{r.to, 1, p.sweep}
				rows[out], rows[in] = append(rows[out], float32(v)), append(rows[in], float32(v))
			}
		}
	}
	for _, list := range rows {
		if len(list) > 2 {
			s.upsets = append(s.upsets, stats.Nearest(list, 0.5))
		}
	}
	slices.Sort(s.upsets)
}
