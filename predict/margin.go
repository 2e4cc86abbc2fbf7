package predict

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"busbar.dev/coll"
	"busbar.dev/internal/csvtable"
	"busbar.dev/unit"
)

// sizes are the size classes in the order of the table.
var sizes = [3]string{"small", "middle", "large"}

// Sizes are the size classes, from small to large.
func Sizes() [3]string { return sizes }

// LargestMeasured is the greatest number of ranks of a public measurement: 96 DGX-2 nodes (docs/accuracy.md).
const LargestMeasured = 1536

// Grade is how good an error bar is.
type Grade string

// Grades.
const (
	Seen     Grade = "seen"     // three publishers or more have measured calls of the class and size
	OfFamily Grade = "family"   // fewer have; classes like it were measured
	Guess    Grade = "guess"    // nobody has measured anything like it
	OfSite   Grade = "measured" // this cluster was measured
)

// wellSeen is how many publishers make a bar one that was seen.
const wellSeen = 3

// Bar is an error bar: nine of ten measurements are expected between time/Factor and time×Factor. It is the model's
// error on machines of the same class that it had not seen when its figures were fitted.
type Bar struct {
	Factor     float64
	Publishers int // that have measured such calls
	Grade      Grade
}

// barRow is a row of bars.csv.
type barRow struct {
	Bar        string  `csv:"bar"` // a class or family, and a size
	Factor     float64 `csv:"factor"`
	Points     int     `csv:"points"`
	Machines   int     `csv:"machines"`
	Publishers int     `csv:"publishers"`
}

//go:embed bars.csv
var barTable string

var bars = sync.OnceValue(func() map[string]Bar {
	table := map[string]Bar{}
	for _, b := range csvtable.Must[barRow]("predict/bars.csv", barTable) {
		table[b.Bar] = Bar{Factor: b.Factor, Publishers: b.Publishers, Grade: OfFamily}
	}
	return table
})

// Bar is the error bar of a call. A class without measurements gets the widest there is, and so do more ranks than
// anybody has published.
func (p *Predictor) Bar(op coll.Op) Bar {
	class := p.class()
	if p.Plan.NRanks > LargestMeasured {
		class = ""
	}
	b := barOf(class, op.Bytes)
	if f := p.calibratedMargin(b.Factor, op); f != b.Factor {
		b.Factor, b.Grade = f, OfSite
	}
	return b
}

// Margin is the factor of the error bar of a call.
func (p *Predictor) Margin(op coll.Op) float64 { return p.Bar(op).Factor }

// class is Class, worked out once.
func (p *Predictor) class() string {
	if p.className == "" {
		p.className = p.Class()
	}
	return p.className
}

// barOf is the bar of a class at a size: that of its family where nobody has measured it, and the widest where nobody
// has measured that either.
func barOf(class string, size unit.Bytes) Bar {
	at := SizeClass(size)
	for _, name := range []string{class, Family(class)} {
		if b, ok := bars()[name+"/"+at]; ok && class != "" {
			if name == class && b.Publishers >= wellSeen {
				b.Grade = Seen
			}
			return b
		}
	}
	widest := Bar{Factor: 1, Grade: Guess}
	for key, b := range bars() {
		if strings.HasSuffix(key, "/"+at) {
			widest.Factor = max(widest.Factor, b.Factor)
		}
	}
	return widest
}

// Measured tells whether measurements stand behind the bars of a class.
func Measured(class string) bool {
	return slices.ContainsFunc(sizes[:], func(size string) bool {
		_, ok := bars()[class+"/"+size]
		return ok
	})
}
