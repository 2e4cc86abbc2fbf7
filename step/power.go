package step

import (
	"math"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/sim"
)

// mostReached is the part of the peak that large products reach where no power limit slows the clock.
const mostReached = 0.93

// tflopsPerWatt is the peak in 16 bits by watt of the GPU that most runs of a generation were made on: the boards of
// V100, A100, H100, B200 and MI300X.
var tflopsPerWatt = [gens]float64{
	sim.Volta: 125.0 / 300, sim.Ampere: 312.0 / 400, sim.Hopper: 989.4 / 700, sim.Blackwell: 2250.0 / 1000,
	cdna: 1307.4 / 750,
}

// cdna4 is how much more of the peak products reach on MI350X and MI355X than on MI300X: two thirds against a half
// (rates of hipBLASLt that AMD and SemiAnalysis published in 2024 and 2025).
const cdna4 = 1.3

// powered is how many times the ceilings of its generation the power of a GPU allows. Dense products draw all that
// there is, and clocks fall until it is enough: power goes with the clock and the square of a voltage that falls with
// it, so that near the limit the rate goes about with the root of the power. An H100 PCIe with 350 W loses a fifth by
// it, an H20 with 148 TFLOP/s and 400 W runs at full clock. A GPU whose power is unknown is taken as the usual board.
func powered(m hardware.GPUModel, g sim.Gen) float64 {
	peak := float64(max(m.Peak[cluster.BF16], m.Peak[cluster.FP16])) / 1e12
	if m.TDP <= 0 || peak <= 0 {
		return 1
	}
	f := math.Sqrt(tflopsPerWatt[g] / (peak / float64(m.TDP)))
	if m.Arch == "gfx950" {
		f *= cdna4
	}
	return f
}
