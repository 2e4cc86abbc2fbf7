package health

import (
	"math"
	"slices"
	"time"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Change is a moment from which on a direction of a pair was faster or slower than before.
type Change struct {
	Time   time.Time `json:"at"` // of the first sample after it
	Before unit.Rate `json:"before_GBps"`
	After  unit.Rate `json:"after_GBps"`
}

const (
	// leastStretch is the fewest samples that are a level; fewer are a disturbance.
	leastStretch = 3
	// leastChange is the smallest step of a logarithm that is told.
	leastChange = 0.05
	// leastNoise is the smallest scatter that is believed in.
	leastNoise = 0.01
)

// Changes are the moments at which the rate of a history changed and stayed so for three samples
// or more. Samples that were measured otherwise than the last one are left out: another message size
// is no change of the pair. It is a description of one pair for people who look at it; what is wrong with a fleet
// is for Findings, which know the pair's peers.
//
// The levels are those of least squares with a penalty per change, found by binary segmentation, over logarithms of
// which single strays are taken out by the middle of three. The penalty is that of Bayes' information criterion for a
// level and its place.
func Changes(list []Point) []Change {
	list = alike(list)
	if len(list) < 2*leastStretch {
		return nil
	}
	logs := make([]float64, len(list))
	for i, p := range list {
		logs[i] = math.Log(float64(p.Rate))
	}
	smooth := slices.Clone(logs)
	for i := 1; i < len(logs)-1; i++ {
		smooth[i] = median3(logs[i-1], logs[i], logs[i+1])
	}
	sigma := max(stepScatter(logs), leastNoise)
	starts := append(split(nil, smooth, 0, 3*sigma*sigma*math.Log(float64(len(logs)))), len(logs))
	var out []Change
	before := medianOf(logs[:starts[1]])
	for k := 1; k < len(starts)-1; k++ {
		after := medianOf(logs[starts[k]:starts[k+1]])
		if math.Abs(after-before) < max(leastChange, 2*sigma) {
			continue // as it was, within its scatter
		}
		out = append(out, Change{list[starts[k]].Time, unit.Rate(math.Exp(before)), unit.Rate(math.Exp(after))})
		before = after
	}
	return out
}

// alike are the samples with a rate that were measured as the last one was.
func alike(list []Point) (out []Point) {
	for _, p := range list {
		if p.Rate > 0 && !p.Failed && p.Setup == list[len(list)-1].Setup {
			out = append(out, p)
		}
	}
	return out
}

// stepScatter is the spread of values about their level, from their differences, which a few steps do
// not change.
func stepScatter(v []float64) float64 {
	diffs := make([]float64, len(v)-1)
	for i := range diffs {
		diffs[i] = math.Abs(v[i+1] - v[i])
	}
	return normalMedian / math.Sqrt2 * medianOf(diffs)
}

// medianOf is the median of a list, which it leaves as it is.
func medianOf(v []float64) float64 { return stats.Nearest(slices.Clone(v), 0.5) }

// split appends where stretches begin, by least squares: at the place that gains most, where that is more than the
// penalty, and again in both parts.
func split(starts []int, v []float64, from int, penalty float64) []int {
	all, left := sums{}, sums{}
	for _, x := range v {
		all.add(x)
	}
	at, best := 0, penalty
	for i, x := range v {
		right := sums{all.n - left.n, all.sum - left.sum}
		gain := left.fit() + right.fit() - all.fit()
		if i >= leastStretch && i <= len(v)-leastStretch && gain > best {
			at, best = i, gain
		}
		left.add(x)
	}
	if at == 0 {
		return append(starts, from)
	}
	return split(split(starts, v[:at], from, penalty), v[at:], from+at, penalty)
}

// sums are those of a stretch.
type sums struct{ n, sum float64 }

func (s *sums) add(x float64) { s.n, s.sum = s.n+1, s.sum+x }

// fit is how much a level of its own takes from the squares of a stretch.
func (s *sums) fit() float64 { return s.sum * s.sum / max(s.n, 1) }
