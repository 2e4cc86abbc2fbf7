package step

import (
	"busbar.dev/hardware"
	"busbar.dev/sim"
)

// Figures are what the time of a GPU's work depends on beyond its data sheet. They are few,
// each with a physical meaning; docs/steps.md says what they were fitted on.
type Figures [nFigures]float64

// figure is one of the figures, of no generation yet; figureTable says what it is.
type figure int

const (
	// Every generation has its own of these.
	ceiling figure = iota
	scoreRate
	scoreBack
	memShare
	perGen // how many these are
)

// gens are the generations of GPUs.
const gens = int(sim.Blackwell) + 1

const (
	// All generations share these.
	prologue = perGen + figure(iota)
	gap
	eagerStart
	fusedStart
	fp8Share
	tpHidden
	slowdown
	stepHost
	spread
	loose
	looseScore
	kinds
)

// nFigures is the number of figures, of all generations.
const nFigures = int(kinds) + (gens-1)*int(perGen)

// figureTable is name, unit, range and meaning of every figure.
var figureTable = [kinds]struct {
	name, unit  string
	least, most float64
	meaning     string
}{
	ceiling:    {"ceiling", "", 0.4, 1, "part of the peak that large products reach, clocks and power included"},
	scoreRate:  {"score_rate", "", 0.1, 1.1, "part of the peak that attention in one kernel reaches, forward, its exponentials apart"},
	scoreBack:  {"score_back", "", 0.1, 1.1, "the same, backward"},
	memShare:   {"mem_share", "", 0.5, 1, "part of the memory's line rate that streams reach"},
	prologue:   {"prologue", "", 0, 800, "depth of a product, in elements, that its beginning and end cost"},
	gap:        {"gap", "us", 0, 6, "between kernels on the GPU"},
	eagerStart: {"eager_start", "us", 1, 40, "of the host for a kernel, in Python"},
	fusedStart: {"fused_start", "us", 0, 20, "of the host for a kernel, from graphs or large frameworks"},
	fp8Share:   {"fp8_share", "", 0.4, 1, "part of the ceiling that products in FP8 reach, casts included"},
	tpHidden:   {"tp_hidden", "", 0, 0.9, "part of tensor-parallel traffic that hides behind products, with sequence parallelism"},
	slowdown:   {"slowdown", "", 0, 0.3, "of computing while collectives run: they take some of its cores and memory"},
	stepHost:   {"step_host", "ms", 0, 50, "of a step for the optimizer's host work, logging and the loader"},
	spread:     {"spread", "", 0, 0.05, "of computing: how much later the slowest of many ranks is, by doubling of their number"},
	loose:      {"loose", "", 1, 4, "how much more memory is read and written between products in frameworks of many parts"},
	looseScore: {"loose_score", "", 1, 4, "how much longer attention takes in the kernels of 2022 and 2023"},
}

// place is the figure of a place in Figures: the generations' own first, then those that all share.
func place(i int) (g sim.Gen, f figure, shared bool) {
	if own := gens * int(perGen); i >= own {
		return 0, perGen + figure(i-own), true
	}
	return sim.Gen(i / int(perGen)), figure(i % int(perGen)), false
}

// of is a figure that all generations share.
func (f *Figures) of(k figure) float64 { return f[(gens-1)*int(perGen)+int(k)] }

// gen is a generation's figure.
func (f *Figures) gen(g sim.Gen, k figure) float64 { return f[int(g)*int(perGen)+int(k)] }

// Name is that of a figure: hopper.ceiling, gap.
func Name(i int) string {
	g, f, shared := place(i)
	if shared {
		return figureTable[f].name
	}
	return g.String() + "." + figureTable[f].name
}

// Range is the unit of a figure and what it may be.
func Range(i int) (unit string, lo, hi float64) {
	_, k, _ := place(i)
	f := &figureTable[k]
	return f.unit, f.least, f.most
}

// Touches says whether a figure is one of a GPU's generation, or of all.
func Touches(i int, m hardware.GPUModel) bool {
	g, _, shared := place(i)
	return shared || g == sim.GenOf(m.SM)
}

// values are all figures: those of every generation, and those that all share.
func values(own [gens][perGen]float64, shared [kinds]float64) *Figures {
	f := &Figures{}
	for i := range f {
		if g, k, all := place(i); all {
			f[i] = shared[k]
		} else {
			f[i] = own[g][k]
		}
	}
	return f
}

// Guess is where a fit begins and what it is drawn to: round values, set by hand.
func Guess() *Figures {
	return values([gens][perGen]float64{
		sim.Volta:     {ceiling: 0.6, scoreRate: 0.35, scoreBack: 0.3, memShare: 0.9},
		sim.Ampere:    {ceiling: 0.7, scoreRate: 0.8, scoreBack: 0.65, memShare: 0.9},
		sim.Hopper:    {ceiling: 0.7, scoreRate: 0.95, scoreBack: 0.8, memShare: 0.85},
		sim.Blackwell: {ceiling: 0.6, scoreRate: 0.8, scoreBack: 0.65, memShare: 0.85},
	}, [kinds]float64{
		prologue: 130, gap: 2, eagerStart: 15, fusedStart: 4, fp8Share: 0.8, tpHidden: 0.75, slowdown: 0.05, stepHost: 5, spread: 0.004, loose: 1.5, looseScore: 1.4,
	})
}

// Default are the figures in use.
func Default() *Figures {
	return values([gens][perGen]float64{
		sim.Volta:     {ceiling: 0.6096, scoreRate: 0.35, scoreBack: 0.3, memShare: 1},
		sim.Ampere:    {ceiling: 0.7, scoreRate: 0.6663, scoreBack: 0.416, memShare: 1},
		sim.Hopper:    {ceiling: 0.7, scoreRate: 0.7517, scoreBack: 0.4547, memShare: 0.8366},
		sim.Blackwell: {ceiling: 0.5158, scoreRate: 0.9779, scoreBack: 0.8788, memShare: 1},
	}, [kinds]float64{
		prologue: 111.8, gap: 2, eagerStart: 14.42, fusedStart: 4, fp8Share: 0.7874, tpHidden: 0.66, slowdown: 0.0563, stepHost: 4.576, spread: 0.004122, loose: 1.261, looseScore: 1.909,
	})
}
