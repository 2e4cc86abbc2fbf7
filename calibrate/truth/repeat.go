package truth

import (
	"cmp"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Repeat is a point that was measured more than once.
type Repeat struct {
	ID          string // of the first sweep that has it
	Size        unit.Bytes
	Least, Most unit.Time
}

// Ratio is how far the measurements are apart.
func (r *Repeat) Ratio() float64 { return float64(r.Most) / float64(r.Least) }

// what is everything that a prediction of a point on one cluster depends on.
type what struct {
	kind       coll.Kind
	bytes      unit.Bytes
	dtype      coll.Dtype
	nodes, per int
	setting    predict.Setting
}

// Repeats are the points of cases on one cluster that were measured more than once:
// the same collective and size on the same ranks, done the same way. They come by
// size.
func Repeats(cases []*Case) []Repeat {
	by := map[what]*Repeat{}
	times := map[what]int{}
	for _, c := range cases {
		for i, op := range c.Ops {
			k := what{op.Kind, op.Bytes, op.Type, c.Sweep.Nodes, c.Sweep.PerNode, c.Settings[i]}
			r, t := by[k], c.Times[i]
			if r == nil {
				r = &Repeat{c.Sweep.ID, op.Bytes, t, t}
				by[k] = r
			}
			r.Least, r.Most = min(r.Least, t), max(r.Most, t)
			times[k]++
		}
	}
	var list []Repeat
	for k, r := range by {
		if times[k] > 1 {
			list = append(list, *r)
		}
	}
	slices.SortFunc(list, func(a, b Repeat) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Least, b.Least),
			cmp.Compare(a.Most, b.Most))
	})
	return list
}

// TooFar is the ratio of two measurements of one point beyond which they
// contradict each other: no fit can be right about both.
const TooFar = 2

// Contradictions are the repeated points whose measurements contradict each other.
func Contradictions(cases []*Case) []Repeat {
	return slices.DeleteFunc(Repeats(cases), func(r Repeat) bool { return r.Ratio() <= TooFar })
}
