package truth

import (
	"math"
	"slices"

	"busbar.dev/unit"
)

// Point is one point, measured and predicted.
type Point struct {
	ID        string     `json:"id"`
	Size      unit.Bytes `json:"size_bytes"`
	Measured  float64    `json:"measured"`
	Predicted float64    `json:"predicted"`
	Unit      string     `json:"unit"`
	APE       float64    `json:"ape"`
	Margin    float64    `json:"margin"` // measured is expected within predicted/margin and predicted×margin
	Class     string     `json:"class"`
	Machine   string     `json:"machine"`
	Algo      string     `json:"algo"`
	Proto     string     `json:"proto"`
	Channels  int        `json:"channels"`
	Limit     string     `json:"bottleneck"`
	Assumed   []string   `json:"assumed,omitempty"`
}

// Point is the row as documents have it, in µs with three digits.
func (r *Row) Point() Point {
	micros := func(t unit.Time) float64 { return math.Round(float64(t)/1e3) / 1e3 }
	x := r.Case.Settings[r.Index]
	return Point{
		r.Case.Sweep.ID, r.Size(), micros(r.Measured()), micros(r.Predicted), "us", r.APE, r.Margin, ByClass(r),
		ByMachine(r), x.Algo, x.Proto, x.Channels, r.Limit.Text, r.Case.Assumed,
	}
}

// Unused is what sources state about a measurement and a prediction cannot use.
type Unused struct {
	Field  string `json:"field"`
	Groups int    `json:"groups"`
	ID     string `json:"id"` // the first of them
}

// UnusedFields are what the sources of rows state and predictions cannot use, the most frequent first.
func UnusedFields(rows []Row) []Unused {
	var list []Unused
	at := map[string]int{}
	var last *Case
	for i := range rows {
		c := rows[i].Case
		if c == last {
			continue
		}
		last = c
		for _, field := range c.Unused {
			k, ok := at[field]
			if !ok {
				k = len(list)
				at[field] = k
				list = append(list, Unused{Field: field, ID: c.Sweep.ID})
			}
			list[k].Groups++
		}
	}
	slices.SortStableFunc(list, func(a, b Unused) int { return b.Groups - a.Groups })
	return list
}
