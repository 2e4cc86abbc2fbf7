package predict

import (
	_ "embed"
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
	Bar        string  `csv:"bar"` // a class or family, and whether messages are large
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
	name := p.BarName(op)
	if p.Plan.NRanks > LargestMeasured {
		name = barName("", op.Bytes)
	}
	b := barOf(name)
	if f := p.calibratedMargin(b.Factor, op); f != b.Factor {
		b.Factor, b.Grade = f, OfSite
	}
	return b
}

// Margin is the factor of the error bar of a call.
func (p *Predictor) Margin(op coll.Op) float64 { return p.Bar(op).Factor }

// oneThread is the class of calls that are not large and that one thread makes for several GPUs of a node: what they
// take is mostly the host's, whatever joins the GPUs.
const oneThread = "one-thread"

// BarName is the row of bars.csv that a call has its error bar from, or would have.
func (p *Predictor) BarName(op coll.Op) string {
	if p.Serial > 1 && len(p.Plan.Nodes) == 1 && SizeClass(op.Bytes) != "large" {
		return barName(oneThread, op.Bytes)
	}
	return barName(p.class(), op.Bytes)
}

// barName is a class with large or below: what messages below wait for is the same from the smallest on, and few
// publish all sizes of them.
func barName(class string, size unit.Bytes) string {
	if SizeClass(size) == "large" {
		return class + "/large"
	}
	return class + "/below"
}

// FamilyBar is the row of the family that a row belongs to.
func FamilyBar(name string) string {
	i := strings.LastIndexByte(name, '/')
	return Family(name[:i]) + name[i:]
}

// class is Class, worked out once.
func (p *Predictor) class() string {
	if p.className == "" {
		p.className = p.Class()
	}
	return p.className
}

// barOf is the bar of a name: that of its family where nobody has measured it, and the widest where nobody has measured
// that either.
func barOf(name string) Bar {
	if b, ok := bars()[name]; ok {
		if b.Publishers >= wellSeen {
			b.Grade = Seen
		}
		return b
	}
	if b, ok := bars()[FamilyBar(name)]; ok {
		return b
	}
	widest := Bar{Factor: 1, Grade: Guess}
	for _, b := range bars() {
		widest.Factor = max(widest.Factor, b.Factor)
	}
	return widest
}

// Measured tells whether measurements stand behind the bars of a class.
func Measured(class string) bool {
	_, below := bars()[class+"/below"]
	_, large := bars()[class+"/large"]
	return below || large
}
