package step

import (
	"cmp"

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

// figureTable is name, unit, range and meaning of every figure.
var figureTable = [kinds]struct {
	name, unit  string
	least, most float64
	meaning     string
}{
	ceiling: {
		"ceiling", "", 0.4, 1, "part of the peak that products of milliseconds reach, at the clock that power allows",
	},
	scoreRate: {
		"score_rate", "", 0.1, 1.1, "part of the peak that attention in one kernel reaches, forward, its exponentials apart",
	},
	scoreBack:  {"score_back", "", 0.1, 1.1, "the same, backward"},
	memShare:   {"mem_share", "", 0.5, 1, "part of the memory's line rate that streams reach"},
	prologue:   {"prologue", "us", 0.1, 8, "of a tile of a product, for its beginning and end"},
	gap:        {"gap", "us", 0, 6, "between kernels on the GPU"},
	eagerStart: {"eager_start", "us", 1, 40, "of the host for a kernel, in Python"},
	fusedStart: {"fused_start", "us", 0, 40, "of the host for a kernel, from graphs or large frameworks"},
	fp8Share:   {"fp8_share", "", 0.4, 1, "part of the ceiling that products in FP8 reach"},
	fp4Share:   {"fp4_share", "", 0.3, 1, "part of the ceiling that products in FP4 reach"},
	scanRate:   {"scan_rate", "", 0.02, 0.5, "part of the peak that the chunks of a scan reach"},
	tpHidden: {
		"tp_hidden", "", 0, 0.9, "part of tensor-parallel traffic that hides behind products, with sequence parallelism",
	},
	slowdown: {"slowdown", "", 0, 0.3, "of computing while collectives run: they take some of its cores and memory"},
	stepHost: {"step_host", "ms", 0, 50, "of a step for the optimizer's host work, logging and the loader"},
	spread: {
		"spread", "", 0, 0.08, "of computing: by how much GPUs differ, as a standard deviation",
	},
	loose: {
		"loose", "", 1, 4, "how much more memory is read and written between products in frameworks of many parts",
	},
	looseScore: {"loose_score", "", 1, 4, "how much longer attention takes in the kernels of 2022 and 2023 on Hopper " +
		"and later: 1.5 to 2 (Shah et al. 2024), and Triton's longer"},
	eagerBetween: {
		"eager_between", "", 0.7, 2.5, "how many times as long as counted eager frameworks take between products",
	},
	eagerPieces: {"eager_pieces", "", 0.7, 4, "the same of norms without a mean and of rotary positions, times that"},
}

// place is the figure of a place in Figures: the generations' own first, then those that all share.
func place(i int) (g sim.Gen, f figure, shared bool) {
	if own := gens * int(perGen); i >= own {
		return 0, perGen + figure(i-own), true
	}
	return sim.Gen(i / int(perGen)), figure(i % int(perGen)), false
}

// common is a figure that all generations share.
func (f *Figures) common(k figure) float64 { return f[(gens-1)*int(perGen)+int(k)] }

// gen is a generation's figure.
func (f *Figures) gen(g sim.Gen, k figure) float64 { return f[int(g)*int(perGen)+int(k)] }

// Name is that of a figure: hopper.ceiling, gap.
func Name(i int) string {
	g, f, shared := place(i)
	switch {
	case shared:
		return figureTable[f].name
	case g == cdna:
		return "cdna." + figureTable[f].name
	}
	return g.String() + "." + figureTable[f].name
}

// Range is the unit of a figure and what it may be.
func Range(i int) (unit string, lo, hi float64) {
	_, k, _ := place(i)
	f := &figureTable[k]
	return f.unit, f.least, f.most
}

// doubt is how far off a guess may be, as a logarithm, where it is not the usual 0.2: little of what data sheets and
// kernels alone decide, more of what hosts and frameworks do.
var doubt = map[figure]float64{
	ceiling: 0.01, memShare: 0.1, gap: 0.5, eagerStart: 0.4, fusedStart: 0.2, fp8Share: 0.12, fp4Share: 0.2, scanRate: 0.5,
	slowdown: 0.4, stepHost: 0.7, spread: 0.1, prologue: 0.4, looseScore: 0.3, eagerPieces: 0.4,
}

// Doubt is that of a figure.
func Doubt(i int) float64 {
	_, k, _ := place(i)
	return cmp.Or(doubt[k], 0.2)
}

// Touches says whether a figure is one of a GPU's generation, or of all.
func Touches(i int, m hardware.GPUModel) bool {
	g, _, shared := place(i)
	return shared || g == genOf(m)
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

// Guess is where a fit begins and what it is drawn to: round values, set by hand. Ceilings are no fit's but measured:
// the median of products of 1 TFLOP and more on A100, H100 and B200 (ai-dynamo/aiconfigurator 095f58a51, systems/data,
// gemm_perf), cut into the tiles of GPU.product; those of MI300X and, as an estimate, V100 are what makers' libraries
// were seen to reach (stas00/ml-engineering 744d01e, compute/accelerator).
func Guess() *Figures {
	return values([gens][perGen]float64{
		sim.Volta:     {ceiling: 0.66, scoreRate: 0.35, scoreBack: 0.3, memShare: 0.9},
		sim.Ampere:    {ceiling: 0.807, scoreRate: 0.8, scoreBack: 0.65, memShare: 0.9},
		sim.Hopper:    {ceiling: 0.731, scoreRate: 0.95, scoreBack: 0.8, memShare: 0.87},
		sim.Blackwell: {ceiling: 0.659, scoreRate: 0.8, scoreBack: 0.65, memShare: 0.87},
		cdna:          {ceiling: 0.5, scoreRate: 0.5, scoreBack: 0.4, memShare: 0.8},
	}, [kinds]float64{
		fp4Share: 0.7, scanRate: 0.12, prologue: 1.5, gap: 2, eagerStart: 15, fusedStart: 14, fp8Share: 0.9, tpHidden: 0.75,
		slowdown: 0.05, stepHost: 5, spread: 0.02, loose: 1.5, looseScore: 2, eagerBetween: 1, eagerPieces: 1,
	})
}

// Default are the figures in use.
func Default() *Figures {
	f := &Figures{}
	for i := range f {
		f[i] = fitted[Name(i)]
	}
	return f
}
