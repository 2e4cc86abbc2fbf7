package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/words"
	"busbar.dev/plan/campaign"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// campaignLines prints what was asked about a whole run of steps, of tokens or samples.
func campaignLines(w io.Writer, d *query.CampaignDoc, step unit.Span, passed string) {
	say := lines(w)
	if d.Straggler != nil {
		say("slow", d.Straggler.Text)
	}
	if d.Goodput != nil {
		goodputLines(w, d.Goodput, step)
	}
	if d.Cost != nil {
		costLines(d.Cost, d.Goodput != nil, passed, say)
	}
	if r := d.Run; r != nil {
		text := fmt.Sprintf("%s %s take %v, %s GPU hours", abbreviated(r.Tokens), passed, unit.Span(r.Days)*unit.Day,
			abbreviated(r.GPUHours))
		if r.MWh > 0 {
			text += fmt.Sprintf(", %v", unit.Energy(r.MWh)*unit.MegawattHour)
		}
		if d.Cost.Rented || d.Cost.Powered {
			text += fmt.Sprintf(", %s", amount(d.Cost, r.Bill))
		}
		say("run", text)
	}
}

// costLines print what a step and a million tokens cost.
func costLines(c *campaign.Cost, lost bool, passed string, say func(name, text string)) {
	if c.Rented || c.Powered {
		text := fmt.Sprintf("per step %s; per million %s %s", amount(c, c.Step), passed, amount(c, c.Million))
		if lost {
			text += " with what failures and checkpoints cost"
		}
		say("cost", text)
	}
	if c.Assumed != "" {
		text := fmt.Sprintf("%v per step, %.3g W per GPU on average: %s (%s)", unit.Energy(c.Step.KWh)*unit.KilowattHour,
			c.Average, c.Assumed, c.WattsSource)
		if c.Overhead > 1 {
			text += fmt.Sprintf(", times %g for hosts, network and cooling", c.Overhead)
		} else {
			text += "; hosts, network and cooling are not in it (--overhead)"
		}
		say("energy", text)
	}
}

// amount is a sum of money with its parts.
func amount(c *campaign.Cost, b campaign.Bill) string {
	text := fmt.Sprintf("%s %s", c.Currency, money(b.Total))
	if c.Rented && c.Powered {
		text += fmt.Sprintf(" (rent %s, energy %s)", money(b.Rent), money(b.Power))
	}
	return text
}

// abbreviated prints a number with the letter that people use: 15.6T, 26.9M.
func abbreviated(x float64) string {
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
		return words.Thousands(int64(x + 0.5))
	}
	return fmt.Sprintf("%.3g", x)
}
