package main

import (
	"fmt"

	"busbar.dev/hardware"
	"busbar.dev/plan"
	"busbar.dev/plan/campaign"
	"busbar.dev/unit"
)

// goalFlags are what a plan should have little of.
type goalFlags struct {
	Objective string  `enum:"time,cost,energy" default:"time" help:"What the best plan has least of: time of a step, cost or energy of its tokens. The latter two also try fewer nodes."`
	Price     string  `placeholder:"AMOUNT/gpu-hour" help:"What a GPU costs: 2.50/gpu-hour, EUR 20/node-hour."`
	Energy    string  `placeholder:"AMOUNT/kWh" help:"What energy costs: 0.12/kWh."`
	Power     string  `name:"gpu-power" placeholder:"POWER" help:"What a GPU draws at most: 700W. Without it: its data sheet's."`
	Overhead  float64 `default:"1" help:"Watts of hosts, network and cooling included for each of a GPU; 1 is the GPUs alone."`
}

// goal is the objective, and how its values are told.
type goal struct {
	name      string // time, cost, energy
	objective plan.Objective
	head      string  // of a column with its values for a million tokens; "" is none
	scale     float64 // from the objective of a step to what is shown
	unit      string
	note      string // what is assumed
}

// goal reads the flags for GPUs of a model, so many a node.
func (f *goalFlags) goal(m hardware.GPUModel, node int) (goal, error) {
	w := &whole{overhead: f.Overhead}
	if err := w.prices(&wholeFlags{Price: f.Price, Energy: f.Energy, Power: f.Power, Overhead: f.Overhead}); err != nil {
		return goal{}, err
	}
	if f.Objective == "time" {
		if w.money || w.power > 0 {
			return goal{}, fmt.Errorf("--price, --energy and --gpu-power are for --objective cost or energy; the objective is time")
		}
		return goal{name: "time", objective: plan.Shortest()}, nil
	}
	watts := w.power
	if watts == 0 {
		watts = m.TDP
	}
	if watts == 0 && (f.Objective == "energy" || f.Energy != "") {
		return goal{}, fmt.Errorf("what a %s draws is not in the catalogue; give --gpu-power", m.Title)
	}
	// A GPU draws one share of its power while it waits, and more while it computes.
	energy := plan.Objective{
		Step:      float64(watts) * f.Overhead * campaign.Waiting,
		Computing: float64(watts) * f.Overhead * (campaign.Computing - campaign.Waiting),
		PerGPU:    true,
	}
	note := fmt.Sprintf("energy: a GPU is taken to draw %.0f%% of %v while it computes and %.0f%% while it waits, times %g", 100*campaign.Computing, watts, 100*campaign.Waiting, f.Overhead)
	kWh := 1 / (unit.Hour.Seconds() * 1e3)
	if f.Objective == "energy" {
		return goal{name: "energy", objective: energy, head: "kWh/Mtoken", scale: kWh, unit: "kWh", note: note}, nil
	}
	if !w.money {
		return goal{name: "cost", objective: plan.Objective{Step: 1, PerGPU: true}, head: "GPU h/Mtoken", scale: 1 / unit.Hour.Seconds(), unit: "GPU hours"}, nil
	}
	rent := w.rent.Amount / unit.Hour.Seconds()
	if w.rent.Per == "node-hour" {
		rent /= float64(node)
	}
	o := plan.Objective{Step: rent + energy.Step*kWh*w.energy.Amount, Computing: energy.Computing * kWh * w.energy.Amount, PerGPU: true}
	if o.Step == 0 {
		return goal{}, fmt.Errorf("--objective cost with prices of nothing; expected --price such as 2.50/gpu-hour")
	}
	currency := w.rent.Currency
	if currency == "" {
		currency = w.energy.Currency
	}
	if w.energy.Amount == 0 {
		note = ""
	}
	return goal{name: "cost", objective: o, head: currency + "/Mtoken", scale: 1, unit: currency, note: note}, nil
}

// longest is what --max-step says; 0 is any time.
func (c *planCmd) longest() (unit.Span, error) {
	if c.MaxStep == "" {
		return 0, nil
	}
	t, err := unit.ParseSpan(c.MaxStep)
	if err != nil || t <= 0 {
		return 0, fmt.Errorf("--max-step %q; expected a time, such as 30s", c.MaxStep)
	}
	return t, nil
}

// each is what a plan needs for a million tokens.
func (g goal) each(p *plan.Plan) float64 { return p.Value * g.scale / p.Result.Tokens * 1e6 }

// better is what plans are that have less of it.
func (g goal) better() string {
	switch g.name {
	case "cost":
		return "cheaper"
	case "energy":
		return "thriftier"
	}
	return "faster"
}

// worse is what plans are that have more of it.
func (g goal) worse() string {
	switch g.name {
	case "cost":
		return "dearer"
	case "energy":
		return "more"
	}
	return "slower"
}

// gap is how much better than the best plan something could be that was not seen.
func (p *planned) gap() float64 {
	if p.answer.Bound <= 0 {
		return 0
	}
	return max(0, p.answer.Plans[0].Value/p.answer.Bound-1)
}
