package step

import (
	"math"

	"busbar.dev/hardware"
	"busbar.dev/workload"
)

// Margins are the error bars of steps.
type Margins struct {
	// Classes are the factors that a step's true time is expected within, time/factor to time×factor, by class of jobs.
	Classes map[string]float64
	// Clusters is of how many clusters there is data of jobs with a trait.
	Clusters map[string]int
}

// Of bars: the factor of a job whose class nobody has measured, and how far off a trait that nobody has measured may
// be, as a logarithm; one of n clusters counts by the root of n+1.
const (
	widest    = 2
	untested  = 0.25
	mostWide  = 3
	hopedWide = 1.05
)

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
	case kind == "experts" && j.Kernels != workload.Fused: // outside frameworks that were written for them
		return "experts-plain"
	case kind == "experts" && (j.Recipe.Known || j.Dispatcher != ""): // how tokens travel is known
		return "experts-recipe"
	}
	return kind
}

// TraitsOf are what a prediction depends on that data may lack: the GPU, the precision on its generation, the kernels
// there, frozen weights of fewer bits, adapters of mixtures, graphs, long sequences, parts of models and of
// parallelism.
func TraitsOf(j *workload.Job, m hardware.GPUModel) []string {
	g := "amd"
	if m.Vendor != "amd" {
		g = genOf(m).String()
	}
	list := []string{
		"gpu " + m.Name, string(j.Precision) + " on " + g, string(j.Kernels) + " on " + g, "class " + Class(j, m),
	}
	add := func(name string, on bool) {
		if on {
			list = append(list, name)
		}
	}
	class := Class(j, m)
	add("recompute "+string(j.Recompute), j.Recompute != workload.None && j.Recompute != "")
	add("adapters of "+class, j.LoRA.Frozen() && class != "adapters")
	add("frozen weights of fewer bits", j.LoRA.Frozen() && j.LoRA.Bits > 0 && j.LoRA.Bits < 16)
	add("offload", j.Offloads())
	add("cp", j.Split.CP > 1)
	add("zero 3", j.Split.ZeRO == 3)
	add("sequences over 16384", j.Seq > 16384)
	return list
}

// Of is the factor within which the true time of a job's step is expected. That of its class holds four of five runs of
// four of five clusters that were left out of the fit; it is wider the fewer clusters have each of the job's traits.
func (x *Margins) Of(j *workload.Job, m hardware.GPUModel) float64 {
	f, ok := x.Classes[Class(j, m)]
	if !ok {
		f = widest
	}
	sum := math.Log(f) * math.Log(f)
	if j.Framework != nil && j.Framework.Other {
		sum += math.Log(otherWide) * math.Log(otherWide)
	}
	if j.Model.Sinks() {
		sum += math.Log(sinksWide) * math.Log(sinksWide)
	}
	for _, t := range TraitsOf(j, m) {
		sum += untested * untested / float64(1+x.Clusters[t])
	}
	return min(mostWide, max(hopedWide, math.Exp(math.Sqrt(sum))))
}

// otherWide is how far off the time of a program may be that is taken as a framework which it is only known to be like.
const otherWide = 2

// sinksWide is how much longer a step may take whose attention has sinks: libraries ran it in one kernel late, by
// release and GPU, and through memory before (NVIDIA/TransformerEngine pull requests 2148 and 2568).
const sinksWide = 1.5

// Margin is that of the bars in use.
func Margin(j *workload.Job, m hardware.GPUModel) float64 { return margins.Of(j, m) }

// TieMargin is the factor below which two settings of one job on one cluster are not told apart: errors that they share
// do not matter between them. Of pairs of settings of one job in both open sets (2026-11-16), those predicted less than
// 2% apart were measured in the predicted order in 21 of 39 cases, 2 to 5% in 31 of 60, 5 to 10% in 45 of 73, 10 to 20%
// in 39 of 46, more than that in 30 of 37.
const TieMargin = 1.1
