package gpu

import (
	"cmp"
	"slices"

	"busbar.dev/internal/stats"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Results are what settings gave.
type Results struct {
	Sweeps  result.Sweeps
	Order   []Setting // those that gave something
	Wrong   int64     // elements
	Untimed int       // rows without a time

	times map[Setting]map[unit.Bytes][]float64 // µs out of place, of every run
}

// Add takes what one run of a setting gave.
func (r *Results) Add(s Setting, list result.Sweeps) {
	r.Sweeps = append(r.Sweeps, list...)
	for _, row := range list.Rows() {
		if row.Wrong != nil {
			r.Wrong += *row.Wrong
		}
		if row.InPlace || row.Wrong != nil && *row.Wrong > 0 {
			continue
		}
		if r.times == nil {
			r.times = map[Setting]map[unit.Bytes][]float64{}
		}
		if r.times[s] == nil {
			r.times[s] = map[unit.Bytes][]float64{}
			r.Order = append(r.Order, s)
		}
		r.times[s][row.Size] = append(r.times[s][row.Size], row.Time.Mean)
	}
}

// Best is the best setting of a size.
type Best struct {
	Size       unit.Bytes
	Auto, Time float64 // µs, of NCCL's own choice and of the best
	Setting    Setting
}

// Lost is how much longer NCCL's own choice takes, as a share.
func (b Best) Lost() float64 {
	if b.Time <= 0 || b.Auto <= 0 {
		return 0
	}
	return b.Auto/b.Time - 1
}

// Best finds the fastest setting of every size, by the median of its runs.
func (r *Results) Best() []Best {
	var list []Best
	at := map[unit.Bytes]int{}
	for _, s := range r.Order {
		for size, runs := range r.times[s] {
			t := stats.Nearest(runs, 0.5)
			i, ok := at[size]
			if !ok {
				i = len(list)
				at[size] = i
				list = append(list, Best{Size: size, Time: t, Setting: s})
			}
			b := &list[i]
			if s.Auto() {
				b.Auto = t
			}
			if t < b.Time {
				b.Time, b.Setting = t, s
			}
		}
	}
	slices.SortFunc(list, func(a, b Best) int { return cmp.Compare(a.Size, b.Size) })
	return list
}
