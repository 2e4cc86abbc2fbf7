package calibrate

import (
	"cmp"
	"math"
	"slices"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/sim"
)

// SizeScore is the error of a range of sizes before and after.
type SizeScore struct {
	Name string `json:"class"` // small, middle, large, as predict.SizeClass
	Held
}

// Held is the error before and after a fit.
type Held struct {
	Before truth.Score `json:"before"`
	After  truth.Score `json:"after"`
}

func bySize(before, after []truth.Row) []SizeScore {
	size := func(r *truth.Row) string { return predict.SizeClass(r.Size()) }
	var list []SizeScore
	then := truth.Split(after, size)
	for i, p := range truth.Split(before, size) {
		list = append(list, SizeScore{p.Name, Held{p.Score, then[i].Score}})
	}
	return list
}

// Better tells whether there is something worth keeping: figures that moved or a curve, and a median error that fell
// on the points and did not rise on those that were left out.
func (s *Site) Better() bool {
	return (len(s.Moved) > 0 || s.Part > 0) && s.After.Median < s.Before.Median &&
		(s.HeldOut == nil || s.HeldOut.After.Median <= max(s.HeldOut.Before.Median, ofOne))
}

// clearly is how much worse figures may make points that are left out until they are dropped: half of a handful of
// points pins them down much worse than all of it.
const clearly = 2.0

// holdOut fits every other size and predicts the rest, both ways round, with figures and curve and with the curve
// alone; figures that make it clearly worse are dropped. A size that was measured twice is on one side only.
func (s *Site) holdOut(cases []*truth.Case, start *sim.Figures) error {
	turn := turns(cases)
	var before, both, alone []truth.Row
	for half := range 2 {
		var in, out []*truth.Case
		for _, c := range cases {
			for side, list := range []*[]*truth.Case{&in, &out} {
				if part := c.Pick(func(i int) bool { return (turn[placeOf(c, i)]+half+side)%2 == 0 }); len(part.Ops) > 0 {
					*list = append(*list, part)
				}
			}
		}
		if len(in) == 0 || len(out) == 0 {
			return nil
		}
		x, err := (&Site{}).fit(in, start)
		if err != nil {
			return err
		}
		for _, way := range []struct {
			f     *sim.Figures
			curve bool
			to    *[]truth.Row
		}{{start, false, &before}, {start, true, &alone}, {x, true, &both}} {
			rows, err := taught(in, out, way.f, way.curve)
			if err != nil {
				return err
			}
			*way.to = append(*way.to, rows...)
		}
	}
	s.held = both
	if lossOf(both) > clearly*lossOf(alone) {
		s.held = alone
		s.figures, s.Moved, s.Ends = *start, nil, []string{} // as they were before
		s.Dropped = "sizes that were left out are predicted worse with them than by the curve alone"
	}
	if len(s.held) > 0 {
		s.HeldOut = &Held{truth.Rate(before), truth.Rate(s.held)}
	}
	return nil
}

// taught predicts cases by figures, and by the curve that other cases leave under them.
func taught(in, out []*truth.Case, f *sim.Figures, curve bool) ([]truth.Row, error) {
	var list []cluster.Residual
	if curve {
		rows, err := truth.Rows(in, f)
		if err != nil {
			return nil, err
		}
		list, _ = keep(curves(in, logs(rows)))
	}
	return corrected(out, f, list)
}

// turns numbers the sizes of every collective on the same ranks, from small to large.
func turns(cases []*truth.Case) map[place]int {
	seen := map[place]int{}
	var list []place
	for _, c := range cases {
		for i := range c.Ops {
			if p := placeOf(c, i); seen[p] == 0 {
				seen[p] = 1
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.per, b.per),
			cmp.Compare(a.bytes, b.bytes))
	})
	for i, p := range list {
		seen[p] = i
	}
	return seen
}

// inside is the share of errors that an error bar is to hold.
const inside = 0.9

// fewHeld is the number of points below which errors on points that were left out
// say nothing about an error bar.
const fewHeld = 4

// measured is what was measured, and how well points that were left out of the fit
// are predicted there; predictions elsewhere keep the error bar of their class.
func (s *Site) measured() []cluster.MeasuredRange {
	type key struct {
		kind  coll.Kind
		class string
	}
	errs := map[key][]float64{}
	at := map[key]*cluster.MeasuredRange{}
	var order []key
	for i := range s.held {
		r := &s.held[i]
		k := key{r.Case.Ops[r.Index].Kind, r.Case.Predictor.Class()}
		if at[k] == nil {
			at[k] = &cluster.MeasuredRange{Op: k.kind.String(), Class: k.class, From: r.Size(), To: r.Size()}
			order = append(order, k)
		}
		m := at[k]
		m.From, m.To, m.Points = min(m.From, r.Size()), max(m.To, r.Size()), m.Points+1
		errs[k] = append(errs[k], math.Abs(math.Log(r.Ratio())))
	}
	noise := 0.0
	for _, r := range truth.Repeats(s.cases) {
		noise = max(noise, math.Log(r.Ratio()))
	}
	var list []cluster.MeasuredRange
	for _, k := range order {
		if m := at[k]; m.Points >= fewHeld {
			m.Error = round(math.Exp(stats.Quantile(errs[k], inside)) - 1)
			m.Noise = round(math.Exp(noise) - 1)
			list = append(list, *m)
		}
	}
	slices.SortFunc(list, func(a, b cluster.MeasuredRange) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Class, b.Class))
	})
	return list
}
