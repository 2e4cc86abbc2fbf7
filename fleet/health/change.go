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
// The levels are those of least squares with a penalty per change (B. Jackson and others, An
// algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12,
// 2005), over logarithms of which single strays are taken out by the middle of three. The penalty
// is that of Bayes' information criterion for a level and its place.
func Changes(list []Point) []Change {
	var logs []float64
	var at []int
	for i, p := range list {
		if p.Rate > 0 && !p.Failed && p.Setup == list[len(list)-1].Setup {
			logs = append(logs, math.Log(float64(p.Rate)))
			at = append(at, i)
		}
	}
	if len(logs) < 2*leastStretch {
		return nil
	}
	smooth := slices.Clone(logs)
	for i := 1; i < len(logs)-1; i++ {
		smooth[i] = median3(logs[i-1], logs[i], logs[i+1])
	}
	sigma := max(scatter(logs), leastNoise)
	starts := partition(smooth, 3*sigma*sigma*math.Log(float64(len(logs))))
	var out []Change
	before := halfway(logs[:starts[1]])
	for k := 1; k < len(starts)-1; k++ {
		after := halfway(logs[starts[k]:starts[k+1]])
		if math.Abs(after-before) < max(leastChange, 2*sigma) {
			continue // as it was, within its scatter
		}
		out = append(out, Change{list[at[starts[k]]].Time, unit.Rate(math.Exp(before)), unit.Rate(math.Exp(after))})
		before = after
	}
	return out
}

// scatter is the spread of values about their level, from their differences, which a few steps do
// not change.
func scatter(v []float64) float64 {
	diffs := make([]float64, len(v)-1)
	for i := range diffs {
		diffs[i] = math.Abs(v[i+1] - v[i])
	}
	return halfway(diffs) / (0.6745 * math.Sqrt2)
}

// halfway is the median of a list, which it leaves as it is.
func halfway(v []float64) float64 { return stats.Nearest(slices.Clone(v), 0.5) }

// partition gives where the stretches of least cost begin, and the end.
func partition(v []float64, penalty float64) []int {
	n := len(v)
	sum, squares := make([]float64, n+1), make([]float64, n+1)
	for i, x := range v {
		sum[i+1], squares[i+1] = sum[i]+x, squares[i]+x*x
	}
	cost := func(i, j int) float64 {
		s := sum[j] - sum[i]
		return squares[j] - squares[i] - s*s/float64(j-i)
	}
	best, from := make([]float64, n+1), make([]int, n+1)
	for j := 1; j <= n; j++ {
		best[j] = math.Inf(1)
		for i := 0; i <= j-leastStretch; i++ {
			if i > 0 && i < leastStretch {
				continue
			}
			c := best[i] + cost(i, j)
			if i > 0 {
				c += penalty
			}
			if c < best[j] {
				best[j], from[j] = c, i
			}
		}
	}
	starts := []int{n}
	for j := n; j > 0; j = from[j] {
		starts = append(starts, from[j])
	}
	slices.Reverse(starts)
	return starts
}
