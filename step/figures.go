package step

import (
	_ "embed"

	"busbar.dev/hardware"
	"busbar.dev/internal/csvtable"
	"busbar.dev/sim"
)

// Figures are what the time of a GPU's work depends on beyond its data sheet. They are few,
// each with a physical meaning; docs/steps.md says what they were fitted on.
type Figures [nFigures]float64

// figure is one of the figures, of no generation yet, in the order of the rows of figures.csv.
type figure int

const (
	// Every generation has its own of these.
	ceiling figure = iota
	scoreRate
	scoreBack
	memShare
	perGen // how many these are
)

// cdna are AMD's, which have one set of figures.
const cdna = sim.Blackwell + 1

// gens are the generations of GPUs.
const gens = int(cdna) + 1

// genOf is the generation of a GPU.
func genOf(m hardware.GPUModel) sim.Gen {
	if m.Vendor == "amd" {
		return cdna
	}
	return sim.GenOf(m.SM)
}

const (
	// All generations share these.
	prologue = perGen + figure(iota)
	gap
	eagerStart
	fusedStart
	fp8Share
	fp4Share
	scanRate
	tpHidden
	slowdown
	stepHost
	spread
	loose
	looseScore
	eagerBetween
	eagerPieces
	kinds
)

// nFigures is the number of figures, of all generations.
const nFigures = int(kinds) + (gens-1)*int(perGen)

// Figure is what is known of one of the figures.
type Figure struct {
	Name    string  `csv:"name"` // hopper.ceiling, gap
	Unit    string  `csv:"unit,optional"`
	Least   float64 `csv:"least"` // of its physical range
	Most    float64 `csv:"most"`
	Doubt   float64 `csv:"doubt"` // how far off the guess may be, as a logarithm
	Guess   float64 `csv:"guess"` // where a fit begins
	Meaning string  `csv:"meaning"`
}

//go:embed figures.csv
var figuresTable string

// FigureTable is what is known of all figures, in their order.
var FigureTable = csvtable.Once[Figure]("step/figures.csv", figuresTable)

// common is a figure that all generations share.
func (f *Figures) common(k figure) float64 { return f[(gens-1)*int(perGen)+int(k)] }

// gen is a generation's figure.
func (f *Figures) gen(g sim.Gen, k figure) float64 { return f[int(g)*int(perGen)+int(k)] }

// Touches says whether a figure is one of a GPU's generation, or of all.
func Touches(i int, m hardware.GPUModel) bool {
	of := i / int(perGen)
	return of >= gens || of == int(genOf(m))
}

// Default are the figures in use.
func Default() *Figures {
	f := &Figures{}
	for i := range f {
		f[i] = fitted[FigureTable()[i].Name]
	}
	return f
}
