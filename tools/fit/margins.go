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

// margin is the error bar of a class of hardware and size.
type margin struct {
	Class    string
	Size     string
	Factor   float64
	Points   int
	Machines int
}

// How error bars are made: the share of a machine's errors that one is to hold, how many machines of the family a class
// counts beside its own, and the narrowest and widest bar.
const (
	heldErrors = 0.8
	pseudo     = 4
	// Who chose the mechanisms had seen the machines: of few of them a smaller spread than this by the root of their
	// number is not believed.
	believed = 0.6
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
	v := max(s.variance, believed*believed/s.machines)
	up := s.mean + t*math.Sqrt(v*(1+1/s.machines))
	return min(wide, max(narrow, math.Ceil(math.Exp(up)*100)/100))
}

// studentT is the 85th percentile of Student's t by degrees of freedom (Hill 1970, to three digits from 3 on):
// publishers left out, bars by it hold 93% of a machine's points, by the 90th percentile 96%.
func studentT(df float64) float64 {
	const z = 1.0364
	df = max(df, 1)
	return z + (z*z*z+z)/(4*df) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*df*df) +
		(3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*df*df*df)
}

// margins are the error bars that cross-validated rows call for. A machine's error is what its bar must be to hold most
// of its points; the bar of a class is what a further machine of the class will keep within, by how far the errors of
// its machines and those of its family (predict.Family) are apart, which counts like a few machines more.
func margins(rows []truth.Row) []margin {
	errs := map[string]map[string][]float64{} // by class and machine
	points := map[string]int{}
	for i := range rows {
		r := &rows[i]
		k := truth.ByClass(r)
		if errs[k] == nil {
			errs[k] = map[string][]float64{}
		}
		errs[k][r.Case.Machine()] = append(errs[k][r.Case.Machine()], math.Abs(math.Log(r.Ratio())))
		points[k]++
	}
	by, family := map[string][]float64{}, map[string][]float64{}
	for _, k := range slices.Sorted(maps.Keys(errs)) {
		for _, who := range slices.Sorted(maps.Keys(errs[k])) {
			q := stats.Quantile(errs[k][who], heldErrors)
			by[k] = append(by[k], q)
			family[familyOf(k)] = append(family[familyOf(k)], q)
		}
	}
	var list []margin
	for _, k := range slices.Sorted(maps.Keys(by)) {
		i := strings.LastIndexByte(k, '/')
		f := machinesOf(by[k]).shrink(machinesOf(family[familyOf(k)])).factor()
		list = append(list, margin{k[:i], k[i+1:], f, points[k], len(by[k])})
	}
	for _, k := range slices.Sorted(maps.Keys(family)) {
		name, size, _ := strings.Cut(k, "/")
		n := 0
		for c, p := range points {
			if familyOf(c) == k {
				n += p
			}
		}
		list = append(list, margin{name, size, machinesOf(family[k]).factor(), n, len(family[k])})
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
			table[m.Class+"/"+m.Size] = m.Factor
		}
		for i := range rows {
			if r := &rows[i]; of(r.Case) == name {
				k := truth.ByClass(r)
				r.Margin = max(cmp.Or(table[k], table[familyOf(k)], wide), r.Tie)
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

// familyOf is one node, several by RDMA, or several by a kind of TCP, with the size.
func familyOf(class string) string {
	i := strings.LastIndexByte(class, '/')
	return predict.Family(class[:i]) + class[i:]
}

// writeMargins writes the table that package predict has. A class without points of
// a size has 0 there, and the margin of its family.
func writeMargins(w io.Writer, list []margin) error {
	table := map[string]*[3]margin{}
	var classes []string
	for _, m := range list {
		if table[m.Class] == nil {
			table[m.Class] = &[3]margin{}
			classes = append(classes, m.Class)
		}
		for i, s := range predict.Sizes() {
			if s == m.Size {
				table[m.Class][i] = m
			}
		}
	}
	var b strings.Builder
	b.WriteString("var margins = map[string][3]float64{\n")
	for _, c := range classes {
		row := table[c]
		var cells, notes []string
		for _, m := range row {
			cells = append(cells, fmt.Sprintf("%.2f", m.Factor))
			notes = append(notes, fmt.Sprintf("%d of %d", m.Points, m.Machines))
		}
		fmt.Fprintf(&b, "\t%q: {%s}, // points and machines: %s\n", c, strings.Join(cells, ", "), strings.Join(notes, ", "))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
