package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
)

// margin is an error bar.
type margin struct {
	Name     string
	Factor   float64
	Points   int
	Machines int
	// Publishers is who measured the machines.
	Publishers int
}

// How error bars are made: the share of a machine's errors that one is to hold, how many machines of the family a class
// counts beside its own, and the narrowest and widest bar.
const (
	heldErrors = 0.9
	pseudo     = 1
	// Who chose the mechanisms had seen the machines: of few of them a smaller spread than this by their number is not
	// believed.
	believed = 0.4
	narrow   = 1.05
	wide     = 3.0
)

// overMachines is what errors of machines say together: how many there are, their mean and their variance.
type overMachines struct {
	machines       float64
	mean, variance float64
}

func machinesOf(list []float64) overMachines {
	mean, sd := spread(list)
	return overMachines{float64(len(list)), mean, sd * sd}
}

// shrink is what a class says with some machines of its family beside its own.
func (s overMachines) shrink(family overMachines) overMachines {
	n := s.machines + pseudo
	mean := (s.mean*s.machines + family.mean*pseudo) / n
	apart := s.mean - family.mean
	variance := (s.variance*max(0, s.machines-1) + family.variance*(pseudo-1) + apart*apart*s.machines*pseudo/n) / max(1,
		n-1)
	return overMachines{n, mean, variance}
}

// factor is the bar that a further machine keeps within, with the given chance: an upper end of the predictive
// interval over machines by Student's t.
func (s overMachines) factor() float64 {
	t := studentT(s.machines - 1)
	sd := max(math.Sqrt(s.variance), believed/s.machines)
	up := s.mean + t*sd*math.Sqrt(1+1/s.machines)
	return min(wide, max(narrow, math.Ceil(math.Exp(up)*100)/100))
}

// chance is the quantile of the normal distribution to which bars are made: of further machines a bar is to hold two of
// three whole, that is nine of ten of their points, and most of the points of the others.
const chance = 0.4307

// studentT is that percentile of Student's t by degrees of freedom (Hill 1970, to three digits from 3 on).
func studentT(df float64) float64 {
	const z = chance
	df = max(df, 1)
	return z + (z*z*z+z)/(4*df) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*df*df) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*df*df*df)
}

// margins are the error bars that cross-validated rows call for. A machine's error is what its bar must be to hold most
// of its points; the bar of a class is what a further machine of the class will keep within, by how far the errors of
// its machines and those of its family (predict.Family) are apart, which counts like a few machines more.
func margins(rows []truth.Row) []margin {
	type group struct {
		points     int
		errs       map[string][]float64 // by machine
		publishers map[string]bool
		over       overMachines
	}
	groups, family := map[string]*group{}, map[string]string{}
	for i := range rows {
		r := &rows[i]
		family[r.Bar] = predict.FamilyBar(r.Bar)
		for _, name := range slices.Compact([]string{r.Bar, family[r.Bar]}) {
			g := groups[name]
			if g == nil {
				g = &group{errs: map[string][]float64{}, publishers: map[string]bool{}}
				groups[name] = g
			}
			g.points++
			g.errs[r.Case.Machine()] = append(g.errs[r.Case.Machine()], math.Abs(math.Log(r.Ratio())))
			g.publishers[publisher(r.Case)] = true
		}
	}
	for _, g := range groups {
		var list []float64
		for _, who := range slices.Sorted(maps.Keys(g.errs)) {
			list = append(list, stats.Quantile(g.errs[who], heldErrors))
		}
		g.over = machinesOf(list)
	}
	var list []margin
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		over := g.over
		if f := groups[family[name]]; f != nil && f != g {
			over = over.shrink(f.over)
		}
		list = append(list, margin{name, over.factor(), g.points, len(g.errs), len(g.publishers)})
	}
	return list
}

// refit gives rows the bars that the others' errors call for: those of one name (a machine, a publisher) have no part
// in their own.
func refit(rows []truth.Row, of by) {
	for _, name := range names(casesOf(rows), of) {
		var others []truth.Row
		for _, r := range rows {
			if of(r.Case) != name {
				others = append(others, r)
			}
		}
		table := map[string]float64{}
		for _, m := range margins(others) {
			table[m.Name] = m.Factor
		}
		for i := range rows {
			if r := &rows[i]; of(r.Case) == name {
				r.Margin = cmp.Or(table[r.Bar], table[predict.FamilyBar(r.Bar)], wide)
			}
		}
	}
}

// casesOf are the cases of rows.
func casesOf(rows []truth.Row) []*truth.Case {
	var list []*truth.Case
	for i := range rows {
		if c := rows[i].Case; len(list) == 0 || list[len(list)-1] != c {
			list = append(list, c)
		}
	}
	return list
}

// writeBars writes the table that package predict has.
func writeBars(w io.Writer, list []margin) error {
	var b strings.Builder
	b.WriteString("# Error bars as factors by class or family, of large messages and those below, from published sweeps " +
		"of which all " +
		"of a publisher was left out:\n" +
		"# make fit FIT=\"-cross -publishers -write\" writes them. points, machines and publishers stand behind a row.\n" +
		"bar,factor,points,machines,publishers\n")
	for _, m := range list {
		fmt.Fprintf(&b, "%s,%.2f,%d,%d,%d\n", m.Name, m.Factor, m.Points, m.Machines, m.Publishers)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
