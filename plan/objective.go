package plan

import (
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Objective is what a plan should have little of.
type Objective int

const (
	Shortest Objective = iota // the time of a step, in seconds
	Cheapest                  // that of all GPUs together: fewer of them may be better then
)

func (o Objective) costOf(ranks int, step unit.Span) float64 {
	if o == Cheapest {
		return step.Seconds() * float64(ranks)
	}
	return step.Seconds()
}

// Value is a step's.
func (o Objective) Value(r *step.Result) float64 { return o.costOf(r.Ranks, r.Step) }
