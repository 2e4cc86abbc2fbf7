package step

import (
	"busbar.dev/hardware"
	"busbar.dev/sim"
)

// Figures are what the time of a GPU's work depends on beyond its data sheet. They are few,
// each with a physical meaning; docs/steps.md says what they were fitted on.
type Figures [nFigures]float64

// Figures of a generation of GPUs, counted from Gen × perGen.
const (
	Ceiling   = iota // of the peak that large products reach, clocks and power included
	ScoreRate        // of the peak that attention in one kernel reaches, forward, beside its exponentials
	ScoreBack        // the same, backward
	MemShare         // of the memory's line rate that streams reach
	perGen
)

// Figures that all generations share.
const (
	Prologue   = 4*perGen + iota // depth of a product, in elements, that its beginning and end cost
	Gap                          // µs between kernels on the GPU
	EagerStart                   // µs of the host for a kernel, in Python
	FusedStart                   // µs of the host for a kernel, from graphs or large frameworks
	Fp8Share                     // of the ceiling that products in FP8 reach, casts included
	TPHidden                     // of tensor-parallel traffic that hides behind products, with sequence parallelism
	Slowdown                     // of compute while collectives run beside it: they take some of its cores and memory
	StepHost                     // ms of a step for the optimizer's host work, logging and the loader
	Spread                       // of compute: how much later the slowest of many ranks is, by doubling of their number
	Loose                        // how much more memory is read and written between products in frameworks of many parts
	LooseScore                   // how much longer attention takes in the kernels of 2022 and 2023
	nFigures
)

type figure struct {
	name, unit string
	lo, hi     float64
}

var genFigures = [perGen]figure{
	{"ceiling", "", 0.4, 1}, {"score_rate", "", 0.1, 1.1}, {"score_back", "", 0.1, 1.1}, {"mem_share", "", 0.5, 1},
}

var sharedFigures = [nFigures - 4*perGen]figure{
	{"prologue", "", 0, 800},
	{"gap", "us", 0, 6},
	{"eager_start", "us", 1, 40},
	{"fused_start", "us", 0, 20},
	{"fp8_share", "", 0.4, 1},
	{"tp_hidden", "", 0, 0.9},
	{"slowdown", "", 0, 0.3},
	{"step_host", "ms", 0, 50},
	{"spread", "", 0, 0.05},
	{"loose", "", 1, 4},
	{"loose_score", "", 1, 4},
}

// Name is that of a figure: hopper.ceiling, gap.
func Name(i int) string {
	if i < 4*perGen {
		return sim.Gen(i/perGen).String() + "." + genFigures[i%perGen].name
	}
	return sharedFigures[i-4*perGen].name
}

// Range is the unit of a figure and what it may be.
func Range(i int) (unit string, lo, hi float64) {
	f := genFigures[i%perGen]
	if i >= 4*perGen {
		f = sharedFigures[i-4*perGen]
	}
	return f.unit, f.lo, f.hi
}

// Touches says whether a figure is one of a GPU's generation, or of all.
func Touches(i int, m hardware.GPUModel) bool {
	return i >= 4*perGen || sim.Gen(i/perGen) == sim.GenOf(m.SM)
}

func (f *Figures) gen(g sim.Gen, k int) float64 { return f[int(g)*perGen+k] }

// Guess is where a fit begins and what it is drawn to: round values, set by hand.
func Guess() *Figures {
	return &Figures{
		// volta
		0.6, 0.35, 0.3, 0.9,
		// ampere
		0.7, 0.8, 0.65, 0.9,
		// hopper
		0.7, 0.95, 0.8, 0.85,
		// blackwell
		0.6, 0.8, 0.65, 0.85,
		// shared
		130, 2, 15, 4, 0.8, 0.75, 0.05, 5, 0.004, 1.5, 1.4,
	}
}

// Default are the figures in use.
func Default() *Figures {
	return &Figures{
		// volta
		0.6096, 0.35, 0.3, 1,
		// ampere
		0.7, 0.6663, 0.416, 1,
		// hopper
		0.7, 0.7517, 0.4547, 0.8366,
		// blackwell
		0.5158, 0.9779, 0.8788, 1,
		// shared
		111.8, 2, 14.42, 4, 0.7874, 0.66, 0.0563, 4.576, 0.004122, 1.261, 1.909,
	}
}
