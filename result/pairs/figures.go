package pairs

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// GBps, BothGBps and Seconds are the figures of a pair's direction as documents have them: its bandwidth in GB/s, that
// with the other direction at the same time, and its latency.
func GBps(m Measure) float64     { return m.Rate.GBps() }
func BothGBps(m Measure) float64 { return m.Both.GBps() }
func Seconds(m Measure) float64  { return m.Latency.Seconds() }

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

// Grid is one figure of all pairs: rows send, columns receive, and a rank to itself is nil.
type Grid [][]*float64

// Grid is one figure of all pairs, and its median.
func (t *Table) Grid(of func(Measure) float64) (Grid, float64) {
	grid := make(Grid, len(t.Names))
	for r := range grid {
		grid[r] = make([]*float64, len(t.Names))
	}
	for _, m := range t.Cells {
		grid[m.From][m.To] = new(of(m))
	}
	_, mid, _ := t.Extremes(of)
	return grid, mid
}

// at is a figure, 0 where there is none.
func (g Grid) at(from, to int) float64 {
	if from >= len(g) || to >= len(g[from]) || g[from][to] == nil {
		return 0
	}
	return *g[from][to]
}

// FromGrids is a table of ranks by what Grid made of its rate, both and latency. Names tell which ranks share a host.
func FromGrids(names []string, rate, both, latency Grid) *Table {
	t := &Table{Names: names}
	for i, name := range names {
		t.Hosts = append(t.Hosts, strings.TrimSuffix(name, fmt.Sprintf(":%d", i)))
		for k := range names {
			if r := rate.at(i, k); i != k && r > 0 {
				t.Cells = append(t.Cells, Measure{
					From: i, To: k, Rate: unit.Rate(r * 1e9), Both: unit.Rate(both.at(i, k) * 1e9),
					Latency: unit.Seconds(latency.at(i, k)),
				})
			}
		}
	}
	return t
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
