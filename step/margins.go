package step

import (
	"cmp"

	"busbar.dev/hardware"
	"busbar.dev/workload"
)

// Classes of jobs whose errors are alike, with the factor that a step's true time is expected within: time/factor to time×factor.
// From the errors of clusters that were left out of the fit (calibrate.StepMargins), of 27, 19, 22, 7 and 5 clusters.
var margins = map[string]float64{"adapters": 1.45, "dense": 1.31, "dense-low": 1.26, "experts": 1.78, "hybrid": 1.49}

// widest is the factor of a job whose class nobody has measured.
const widest = 2

// Class is what kind of job its error is known by: what it trains, and whether products take few bits.
func Class(j *workload.Job, m hardware.GPUModel) string {
	kind := "dense"
	for i := range j.Model.Blocks {
		for _, p := range j.Model.Blocks[i].Parts {
			switch {
			case p.Kind == workload.Scan:
				kind = "hybrid"
			case p.Experts > 0 && kind == "dense":
				kind = "experts"
			}
		}
	}
	switch {
	case m.Vendor == "amd":
		return "amd"
	case kind == "dense" && j.LoRA.Frozen():
		return "adapters"
	case kind == "dense" && j.Precision.Low():
		return "dense-low"
	}
	return kind
}

// Margin is the factor within which the true time of a job's step is expected: four of five runs of four of five clusters that were
// left out of the fit are inside.
func Margin(j *workload.Job, m hardware.GPUModel) float64 {
	return cmp.Or(margins[Class(j, m)], widest)
}

// TieMargin is the factor below which two settings of one job on one cluster are not told apart: errors that they share do not matter
// between them. Of pairs of settings of one job in both open sets (2026-11-16), those predicted less than 2% apart were measured in the
// predicted order in 21 of 39 cases, 2 to 5% in 31 of 60, 5 to 10% in 45 of 73, 10 to 20% in 39 of 46, more than that in 30 of 37.
const TieMargin = 1.1
