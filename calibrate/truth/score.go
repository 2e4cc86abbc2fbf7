package truth

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Score is how good predictions of points are; errors are |predicted − measured| / measured.
type Score struct {
	Points  int     `json:"points"`
	Median  float64 `json:"median_ape"`
	P90     float64 `json:"p90_ape"`
	Worst   float64 `json:"worst_ape"`
	Bias    float64 `json:"median_ratio"` // of predicted over measured
	Covered float64 `json:"coverage"`     // share of points that were measured inside the error bar
	Bar     float64 `json:"median_bar"`   // as a factor

	MachineMean `json:"machine_mean,omitzero"`
}

// leastOfMachine is how many points a machine must have for its own error to say something.
const leastOfMachine = 5

// MachineMean is the error of single machines with five points or more, averaged over machines: a source with many
// points counts once.
type MachineMean struct {
	Machines       int     `json:"count"`
	MachineMedian  float64 `json:"median_ape"`
	MachineP90     float64 `json:"p90_ape"`
	MachineCovered float64 `json:"coverage"`
}

// Graded is one prediction beside what was measured.
type Graded struct {
	Machine    string
	APE, Ratio float64 // |predicted − measured| / measured, and predicted / measured
	Bar        float64
}

// inside tells whether the measured time is inside the error bar.
func (g *Graded) inside() bool {
	return g.Bar > 0 && math.Abs(math.Log(g.Ratio)) <= math.Log(g.Bar)*(1+1e-9)
}

// Rate scores rows.
func Rate(rows []Row) Score {
	list := make([]Graded, len(rows))
	for i := range rows {
		r := &rows[i]
		list[i] = Graded{r.Case.Machine(), r.APE, r.Ratio(), r.Margin}
	}
	return RateAll(list)
}

// RateAll scores predictions.
func RateAll(list []Graded) Score {
	s := Score{Points: len(list)}
	if len(list) == 0 {
		return s
	}
	var all, ratio, bars []float64
	by := map[string][]float64{}
	held := map[string]int{}
	inside := 0
	for _, g := range list {
		all, ratio = append(all, g.APE), append(ratio, g.Ratio)
		by[g.Machine] = append(by[g.Machine], g.APE)
		bars = append(bars, g.Bar)
		if g.inside() {
			inside++
			held[g.Machine]++
		}
	}
	s.Median, s.P90, s.Worst = stats.Median(all), stats.Quantile(all, 0.9), stats.Quantile(all, 1)
	s.Bias, s.Bar = stats.Median(ratio), stats.Median(bars)
	s.Covered = float64(inside) / float64(len(list))
	maps.DeleteFunc(by, func(_ string, list []float64) bool { return len(list) < leastOfMachine })
	s.Machines = len(by)
	for _, k := range sorted(by) {
		s.MachineMedian += stats.Median(by[k]) / float64(len(by))
		s.MachineP90 += stats.Quantile(by[k], 0.9) / float64(len(by))
		s.MachineCovered += float64(held[k]) / float64(len(by[k])) / float64(len(by))
	}
	return s
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// Ratio is predicted over measured.
func (r *Row) Ratio() float64 { return float64(r.Predicted) / float64(r.Measured()) }

// TooFast reports a point that no machine of the description can have measured: predicted over measured is beyond the
// error bar by more than in-switch reduction (twice) and what data gets of a link's rate (half as much again) could
// explain.
func TooFast(ratio, margin float64) bool { return margin > 0 && ratio > 3*margin }

// Size is the point's message.
func (r *Row) Size() unit.Bytes { return r.Case.Ops[r.Index].Bytes }

// Published is the size class of the measured figures' own description: small up
// to 256 KiB, large from 64 MiB.
func Published(size unit.Bytes) string {
	switch {
	case size <= 256*unit.KiB:
		return "small"
	case size >= 64*unit.MiB:
		return "large"
	}
	return "middle"
}

// Part is the score of some of the rows.
type Part struct {
	Name string `json:"class"`
	Score
}

// Split scores rows by a name of each; rows whose name is "" belong to no part.
// Parts come in the order of their names, sizes from small to large.
func Split(rows []Row, name func(*Row) string) []Part {
	by := map[string][]Row{}
	for i := range rows {
		if k := name(&rows[i]); k != "" {
			by[k] = append(by[k], rows[i])
		}
	}
	parts := make([]Part, 0, len(by))
	for _, k := range sorted(by) {
		parts = append(parts, Part{k, Rate(by[k])})
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(key(a.Name), key(b.Name)) })
	return parts
}

// key puts small before middle before large.
func key(name string) string {
	for i, size := range []string{"small", "middle", "large"} {
		if n := len(name) - len(size); n >= 0 && name[n:] == size {
			return name[:n] + string(rune('0'+i))
		}
	}
	return name
}

// ByClass names rows by busbar's own classes of hardware and size.
func ByClass(r *Row) string {
	return r.Case.class + "/" + predict.SizeClass(r.Size())
}

// ByHardware names rows by the class that their source gives them.
func ByHardware(r *Row) string { return r.Case.Sweep.Class + "/" + Published(r.Size()) }

// ByMachine names rows by the machine they were measured on.
func ByMachine(r *Row) string { return r.Case.Machine() }

// ByMiB tells rows from 1 MiB on from those below.
func ByMiB(r *Row) string {
	if r.Size() >= unit.MiB {
		return "from 1 MiB"
	}
	return "below 1 MiB"
}
