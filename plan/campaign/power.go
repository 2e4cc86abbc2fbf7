package campaign

import "busbar.dev/unit"

// Shares of its design power that a GPU draws in the phases of a run. They are assumptions, each with
// what it leans on; clocks, cooling and the work itself move them.
const (
	// Computing draws all of it: Patel et al. 2024, Characterizing Power Management Opportunities
	// for LLMs in the Cloud (ASPLOS), find peaks of training at the design power or above.
	Computing = 1.0
	// Waiting for the network, for a pipeline or for storage draws half: the same paper finds large
	// swings between phases that compute and phases that communicate; the half is a guess.
	Waiting = 0.5
	// Idle draws a tenth: nvidia-smi shows 70 W of 700 W on an idle H100.
	Idle = 0.1
)

// Draw is what the GPUs of a job take of electric power.
type Draw struct {
	TDP  unit.Power // of one GPU
	GPUs int
	// Overhead is what hosts, network and cooling take beside, as a multiple of all: 1 is the GPUs
	// alone.
	Overhead float64
}

// Phases are the parts of a step.
type Phases struct{ Computing, Waiting unit.Span }

// all is the power of all GPUs at a share of their design power.
func (d Draw) all(share float64) unit.Power {
	return d.TDP * unit.Power(float64(d.GPUs)*d.Overhead*share)
}

// Step is the energy of a step.
func (d Draw) Step(p Phases) unit.Energy {
	return d.all(Computing).For(p.Computing) + d.all(Waiting).For(p.Waiting)
}
