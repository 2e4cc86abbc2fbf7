package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/plan/campaign"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// wholeDoc is what the steps of a whole run take, in --json beside a row's other fields.
type wholeDoc struct {
	Straggler *stragglerDoc `json:"straggler,omitempty"`
	Goodput   *goodputDoc   `json:"goodput,omitempty"`
	Cost      *costDoc      `json:"cost,omitempty"`
	Run       *runDoc       `json:"run,omitempty"`
}

type slowDoc struct {
	Node string  `json:"node"`
	What string  `json:"what"` // compute, nic
	Loss float64 `json:"loss"`
}

type stragglerDoc struct {
	Slow  []slowDoc `json:"slow"` // the first of them
	Nodes int       `json:"nodes"`
	Step  unit.Span `json:"step_s"`
	Extra unit.Span `json:"extra_s"`
	Share float64   `json:"extra_share"` // of the step without
	Lost  unit.Span `json:"lost_gpu_s"`  // that others wait for in a step, all GPUs together
	Why   string    `json:"why"`
	Text  string    `json:"text"`
}

// fill says what slow nodes cost.
func (d *stragglerDoc) fill(r *pricedStep, late *step.Result, nodes int, nics, slow bool) {
	d.Step, d.Extra = late.Step, late.Step-r.Step
	d.Share = float64(d.Extra / r.Step)
	d.Lost = d.Extra * unit.Span(r.Ranks) * unit.Span(nodes-d.Nodes) / unit.Span(nodes)
	var why []string
	if slow {
		why = append(why, r.tasks.WhyWait())
	}
	if nics {
		why = append(why, "a collective goes through every node, at the rate of the slowest")
	}
	if d.Nodes == nodes {
		why = []string{"no other node is left"}
	}
	d.Why = strings.Join(why, "; ")
	names := d.Slow[0].Node
	switch x := d.Slow[0]; {
	case d.Nodes > 1:
		names = fmt.Sprintf("%d slow nodes (%s, …)", d.Nodes, names)
	case len(d.Slow) > 1:
		names += ", slow in several ways"
	case x.What == "nic":
		names += fmt.Sprintf(" with NICs at %.3g%%", 100*(1-x.Loss))
	default:
		names += fmt.Sprintf(" at %.3g%% of its speed", 100*(1-x.Loss))
	}
	if d.Share < 0.0005 {
		d.Text = fmt.Sprintf("%s: the step stays at %s; others hide it", names, seconds(d.Step))
		return
	}
	d.Text = fmt.Sprintf("%s: the step takes %s instead of %s (%+.1f%%), since %s", names, seconds(d.Step), seconds(r.Step), 100*d.Share, d.Why)
	if nodes > d.Nodes {
		d.Text += fmt.Sprintf("; to go without would cost %.3g%% of the GPUs", 100*float64(d.Nodes)/float64(nodes))
	}
}

type goodputDoc struct {
	Goodput  float64            `json:"goodput"`
	Tokens   float64            `json:"tokens_per_s"`
	Between  unit.Span          `json:"mtbf_job_s"`
	Each     unit.Span          `json:"mtbf_gpu_s"`
	PerDay   float64            `json:"interruptions_per_day"`
	Bytes    unit.Volume        `json:"checkpoint_bytes"`
	Storage  float64            `json:"storage_GBps,omitempty"`
	Save     unit.Span          `json:"checkpoint_s"`
	Restart  unit.Span          `json:"restart_s"`
	Interval unit.Span          `json:"interval_s"`
	Best     unit.Span          `json:"best_interval_s"`
	Young    unit.Span          `json:"young_interval_s"`
	AtBest   float64            `json:"goodput_at_best"`
	Lost     map[string]float64 `json:"lost"`
	Sources  []string           `json:"sources"`
	Text     string             `json:"text"`
}

func (d *goodputDoc) fill(g *campaign.Goodput, gpus int, rate float64) {
	d.Goodput, d.Tokens = g.Share, g.Share*rate
	d.Between, d.Each, d.PerDay = g.Between, g.Between*unit.Span(gpus), g.PerDay
	d.Save, d.Restart, d.Interval, d.Best, d.Young, d.AtBest = g.Save, g.Restart, g.Interval, g.Best, g.Young, g.AtBest
	d.Lost = map[string]float64{"checkpoints": g.Saving, "redone": g.Redoing, "restarts": g.Restarts}
	d.Text = fmt.Sprintf("%.1f%% of the time goes into steps that count: an interruption every %v; lost are %.1f%% in checkpoints, %.1f%% in steps done again, %.1f%% in restarts",
		100*g.Share, g.Between, 100*g.Saving, 100*g.Redoing, 100*g.Restarts)
	if g.Restarts > 0.1 && g.Restarts > g.Saving+g.Redoing {
		d.Text += fmt.Sprintf("; shorter restarts than %v would help most", g.Restart)
	}
	if g.AtBest-g.Share > 0.0005 {
		d.Text += fmt.Sprintf("; checkpoints every %v instead of every %v would leave %.1f%%", g.Best, g.Interval, 100*g.AtBest)
	}
}

type billDoc struct {
	Rent   float64 `json:"rent"`
	Energy float64 `json:"energy"`
	Total  float64 `json:"total"`
	KWh    float64 `json:"kWh"`
}

func newBillDoc(b campaign.Bill) billDoc { return billDoc{b.Rent, b.Power, b.Total(), b.Energy.KWh()} }

type costDoc struct {
	Currency    string  `json:"currency"`
	Step        billDoc `json:"per_step"`
	Million     billDoc `json:"per_million_tokens"`
	Watts       float64 `json:"gpu_power_W"`
	WattsSource string  `json:"gpu_power_source"`
	Average     float64 `json:"gpu_power_average_W"`
	Overhead    float64 `json:"overhead"`
	Assumed     string  `json:"assumed,omitempty"`
	Rented      bool    `json:"-"`
	Powered     bool    `json:"-"`
	money       bool
}

type runDoc struct {
	Tokens   float64 `json:"tokens"`
	Days     float64 `json:"days"`
	GPUHours float64 `json:"gpu_hours"`
	MWh      float64 `json:"MWh"`
	billDoc
}

// print writes the lines that were asked for.
func (d *wholeDoc) print(w io.Writer) {
	if d == nil {
		return
	}
	say := func(name, text string) {
		for i, line := range texttab.Wrap(text, 100) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-9s %s\n", name, line)
		}
	}
	if d.Straggler != nil {
		say("slow", d.Straggler.Text)
	}
	if g := d.Goodput; g != nil {
		say("goodput", g.Text)
		text := fmt.Sprintf("%v in %v, every %v of training; the best interval is %v (Young's √(2CM): %v)", g.Bytes, g.Save, g.Interval, g.Best, g.Young)
		say("saving", text+fmt.Sprintf("; a restart takes %v", g.Restart))
		for _, s := range g.Sources {
			say("", s)
		}
	}
	if c := d.Cost; c != nil {
		c.print(say)
	}
	if r := d.Run; r != nil {
		text := fmt.Sprintf("%s tokens take %v, %s GPU hours", large(r.Tokens), unit.Span(r.Days)*unit.Day, large(r.GPUHours))
		if r.MWh > 0 {
			text += fmt.Sprintf(", %v", unit.Energy(r.MWh)*unit.MegawattHour)
		}
		if d.Cost.money {
			text += fmt.Sprintf(", %s", d.Cost.amount(r.billDoc))
		}
		say("run", text)
	}
}

// print writes what a step and a million tokens cost.
func (c *costDoc) print(say func(name, text string)) {
	if c.money {
		say("cost", fmt.Sprintf("a step %s; a million tokens %s", c.amount(c.Step), c.amount(c.Million)))
	}
	if c.Assumed != "" {
		text := fmt.Sprintf("%v a step, %.3g W a GPU on average: %s (%s)", unit.Energy(c.Step.KWh)*unit.KilowattHour, c.Average, c.Assumed, c.WattsSource)
		if c.Overhead > 1 {
			text += fmt.Sprintf(", times %g for what is beside it", c.Overhead)
		} else {
			text += "; hosts, network and cooling are not in it (--overhead)"
		}
		say("energy", text)
	}
}

// amount is a sum of money with its parts.
func (c *costDoc) amount(b billDoc) string {
	text := fmt.Sprintf("%s %s", c.Currency, money(b.Total))
	if c.Rented && c.Powered {
		text += fmt.Sprintf(" (rent %s, energy %s)", money(b.Rent), money(b.Energy))
	}
	return text
}

// large prints a number with the letter that people say: 15.6T, 26.9M.
func large(x float64) string {
	for _, u := range []struct {
		v float64
		s string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if x >= u.v {
			return fmt.Sprintf("%.4g%s", x/u.v, u.s)
		}
	}
	return fmt.Sprintf("%.4g", x)
}

// money prints three digits of small sums and whole numbers of large ones.
func money(x float64) string {
	if x >= 1000 {
		return thousands(int64(x + 0.5))
	}
	return fmt.Sprintf("%.3g", x)
}
