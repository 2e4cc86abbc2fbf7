package pairs

import (
	"slices"

	"busbar.dev/internal/stats"
)

// GBps, BothGBps and Micros are the figures of a pair's direction as tables print them: its bandwidth in GB/s, that
// with the other direction at the same time, and its latency in microseconds.
func GBps(m Measure) float64     { return m.Rate.GBps() }
func BothGBps(m Measure) float64 { return m.Both.GBps() }
func Micros(m Measure) float64   { return m.Latency.Micros() }

// Extremes are the least, the median and the greatest of a figure; zeros where nothing was measured.
func (t *Table) Extremes(of func(Measure) float64) (low, mid, high float64) {
	list := make([]float64, 0, len(t.Cells))
	for _, m := range t.Cells {
		list = append(list, of(m))
	}
	if len(list) == 0 {
		return 0, 0, 0
	}
	return slices.Min(list), stats.Median(list), slices.Max(list)
}

// Partners is with how many others a rank was measured, at least, of those that were measured at all.
func (t *Table) Partners() int {
	with := map[int]int{}
	for _, m := range t.Cells {
		with[m.From]++
	}
	least := 0
	for _, n := range with {
		if least == 0 || n < least {
			least = n
		}
	}
	return least
}
