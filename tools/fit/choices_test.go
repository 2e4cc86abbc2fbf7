package main

import (
	"testing"
)

// Jobs that were run in several ways are told apart from jobs that only look alike.
func TestChoices(t *testing.T) {
	row := func(batch int64, tp int, measured, predicted float64) *runRow {
		r := &runRow{training: &training{ID: "x", Cluster: "c"}, Predicted: predicted}
		r.Parallel.GlobalBatch, r.Measured.Step = batch, measured
		r.Parallel.TP = tp
		return r
	}
	for _, c := range []struct {
		name string
		rows []*runRow
		want choices
	}{
		{"none", nil, choices{}},
		{"one way", []*runRow{row(8, 1, 1, 1), row(8, 1, 2, 2)}, choices{}},
		{"two jobs", []*runRow{row(8, 1, 1, 1), row(16, 2, 2, 2)}, choices{}},
		{
			"right",
			[]*runRow{row(8, 1, 1, 3), row(8, 2, 1.5, 4)},
			choices{Jobs: 1, Pairs: 1, Right: 1, Far: 1, FarRight: 1, Within: 1},
		},
		{
			"wrong",
			[]*runRow{row(8, 1, 1, 4), row(8, 2, 1.5, 3)},
			choices{Jobs: 1, Pairs: 1, Far: 1, Lost: 0.5, Worst: 0.5},
		},
		{
			"too near to tell",
			[]*runRow{row(8, 1, 1, 4), row(8, 2, 1.04, 3)},
			choices{Jobs: 1, Within: 1, Lost: 0.04, Worst: 0.04},
		},
		{
			"three, two of them near",
			[]*runRow{row(8, 1, 1, 1), row(8, 2, 1.1, 3), row(8, 4, 1.3, 2)},
			choices{Jobs: 1, Pairs: 3, Right: 2, Far: 1, FarRight: 1, Within: 1},
		},
	} {
		got := rateChoices(c.rows)
		got.Lost, got.Worst = float64(float32(got.Lost)), float64(float32(got.Worst))
		c.want.Lost, c.want.Worst = float64(float32(c.want.Lost)), float64(float32(c.want.Worst))
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
