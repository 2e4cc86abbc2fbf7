package calibrate

import (
	"fmt"
	"io"
	"math"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
)

// Margin is the error bar of a class of hardware and size.
type Margin struct {
	Class    string
	Size     string
	Factor   float64
	Points   int
	Machines int
}

// share of errors that are to be inside a margin, and the narrowest margin.
const (
	inside   = 0.9
	narrow   = 1.05
	fewBelow = 20 // points: fewer say too little about their tail
)

// Margins are the error bars that cross-validated rows call for: the factor that
// holds nine of ten errors of a class and size. Where a class has few points, or
// comes from one machine, the factor is no smaller than that of all machines of its
// family (one node, several by RDMA, several by TCP) together.
func Margins(rows []truth.Row) []Margin {
	by := map[string][]float64{}
	family := map[string][]float64{}
	who := map[string]map[string]bool{}
	for i := range rows {
		r := &rows[i]
		k := truth.ByClass(r)
		e := math.Abs(math.Log(r.Ratio()))
		by[k] = append(by[k], e)
		family[familyOf(k)] = append(family[familyOf(k)], e)
		if who[k] == nil {
			who[k] = map[string]bool{}
		}
		who[k][r.Case.Machine()] = true
	}
	var list []Margin
	for _, p := range truth.Split(rows, truth.ByClass) {
		q := stats.Quantile(by[p.Name], inside)
		if p.Machines < 2 || p.Points < fewBelow {
			q = max(q, stats.Quantile(family[familyOf(p.Name)], inside))
		}
		i := strings.LastIndexByte(p.Name, '/')
		list = append(list, Margin{p.Name[:i], p.Name[i+1:], max(narrow, math.Ceil(math.Exp(q)*100)/100), p.Points, len(who[p.Name])})
	}
	return list
}

// familyOf is one node, several by RDMA, or several by a kind of TCP, with the size.
func familyOf(class string) string {
	i := strings.LastIndexByte(class, '/')
	switch {
	case !strings.HasPrefix(class, "multi-node"):
		return "single" + class[i:]
	case strings.Contains(class, "tcp"):
		return "tcp" + class[i:]
	}
	return "rdma" + class[i:]
}

// WriteMargins writes the table that package predict has. A class without points of
// a size gets the widest margin of its class.
func WriteMargins(w io.Writer, list []Margin) error {
	table := map[string]*[3]Margin{}
	var classes []string
	for _, m := range list {
		if table[m.Class] == nil {
			table[m.Class] = &[3]Margin{}
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
		widest := 0.0
		for _, m := range row {
			widest = max(widest, m.Factor)
		}
		var cells, notes []string
		for _, m := range row {
			f := m.Factor
			if f == 0 {
				f = widest
			}
			cells = append(cells, fmt.Sprintf("%.2f", f))
			notes = append(notes, fmt.Sprintf("%d of %d", m.Points, m.Machines))
		}
		fmt.Fprintf(&b, "\t%q: {%s}, // points and machines: %s\n", c, strings.Join(cells, ", "), strings.Join(notes, ", "))
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}
