package query

import (
	"cmp"
	"fmt"

	"busbar.dev/hardware"
	"busbar.dev/plan"
	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

// PlanGoal is what plans should have little of, and how its values are shown.
type PlanGoal struct {
	Name string // time, cost, energy
	Head string // of a column with its values for a million tokens; "" is none
	Unit string // of those values
	Note string // what is assumed

	objective plan.Objective
	scale     float64 // from the objective of a step to what is shown
}

// goal is the objective for GPUs of a model, so many per node.
func (q *Plan) goal(m hardware.GPUModel, node int) (PlanGoal, error) {
	pay, err := q.Prices.read()
	if err != nil {
		return PlanGoal{}, err
	}
	if q.Objective == "time" {
		if pay.money || pay.power > 0 {
			return PlanGoal{}, fmt.Errorf("--price, --energy and --gpu-power are for --objective cost or energy; the objective is time")
		}
		return PlanGoal{Name: "time", objective: plan.Shortest()}, nil
	}
	watts := cmp.Or(pay.power, m.TDP)
	if watts == 0 && (q.Objective == "energy" || q.Energy != "") {
		return PlanGoal{}, fmt.Errorf("what a %s draws is not in the catalogue; give --gpu-power", m.Title)
	}
	// A GPU draws one share of its power while it waits, and more while it computes.
	energy := plan.Objective{
		Step:      float64(watts) * pay.overhead * campaign.Waiting,
		Computing: float64(watts) * pay.overhead * (campaign.Computing - campaign.Waiting),
		PerGPU:    true,
	}
	note := fmt.Sprintf("energy: a GPU is taken to draw %.0f%% of %v while it computes and %.0f%% while it waits, times %g", 100*campaign.Computing, watts, 100*campaign.Waiting, pay.overhead)
	kWh := 1 / (unit.Hour.Seconds() * 1e3)
	switch {
	case q.Objective == "energy":
		return PlanGoal{Name: "energy", objective: energy, Head: "kWh/Mtoken", scale: kWh, Unit: "kWh", Note: note}, nil
	case !pay.money:
		return PlanGoal{Name: "cost", objective: plan.Objective{Step: 1, PerGPU: true}, Head: "GPU h/Mtoken", scale: 1 / unit.Hour.Seconds(), Unit: "GPU hours"}, nil
	}
	rent := pay.rent.Amount / unit.Hour.Seconds()
	if pay.rent.Per == "node-hour" {
		rent /= float64(node)
	}
	o := plan.Objective{Step: rent + energy.Step*kWh*pay.energy.Amount, Computing: energy.Computing * kWh * pay.energy.Amount, PerGPU: true}
	if o.Step == 0 {
		return PlanGoal{}, fmt.Errorf("--objective cost with prices of nothing; expected --price such as 2.50/gpu-hour")
	}
	if pay.energy.Amount == 0 {
		note = ""
	}
	return PlanGoal{Name: "cost", objective: o, Head: pay.currency() + "/Mtoken", scale: 1, Unit: pay.currency(), Note: note}, nil
}

// perMillion is what a plan needs for a million tokens.
func (g *PlanGoal) perMillion(p *plan.Plan) float64 { return p.Value * g.scale / p.Result.Tokens * 1e6 }

// Better is what plans are that have less of it.
func (g *PlanGoal) Better() string {
	switch g.Name {
	case "cost":
		return "cheaper"
	case "energy":
		return "lower in energy"
	}
	return "faster"
}

// worse is what plans are that have more of it.
func (g *PlanGoal) worse() string {
	switch g.Name {
	case "cost":
		return "dearer"
	case "energy":
		return "more"
	}
	return "slower"
}
