package plan

import (
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Objective is what a plan should have little of. It grows with the time of a step and with how
// much of that is computing, so that what bounds those bounds it.
type Objective struct {
	// Step and Computing are what a second of each counts.
	Step, Computing float64
	// PerGPU says that every GPU counts: fewer of them may be better then.
	PerGPU bool
}

// Shortest is the time of a step in seconds.
func Shortest() Objective { return Objective{Step: 1} }

func (o Objective) costOf(ranks int, step, computing unit.Span) float64 {
	v := o.Step*step.Seconds() + o.Computing*computing.Seconds()
	if o.PerGPU {
		v *= float64(ranks)
	}
	return v
}

// Value is a step's.
func (o Objective) Value(r *step.Result) float64 {
	return o.costOf(r.Ranks, r.Step, r.Compute+r.Optimizer)
}

// objective is what is asked for.
func (q *Query) objective() Objective {
	if q.Objective == (Objective{}) {
		return Shortest()
	}
	return q.Objective
}
