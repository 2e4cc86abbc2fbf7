package report

import (
	"fmt"

	"busbar.dev/internal/words"
	"busbar.dev/plan/campaign"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// campaignLines prints what was asked about a whole run of steps, of tokens or samples.
func campaignLines(p *Page, d *query.CampaignDoc, step unit.Span, passed string) {
	if d.Straggler != nil {
		p.say("slow", d.Straggler.Text)
	}
	if d.Goodput != nil {
		goodputLines(p, d.Goodput, step)
	}
	c := d.Cost
	if c == nil {
		return // what a run takes is part of its cost
	}
	if c.Priced {
		p.say("cost", fmt.Sprintf("per step %s; per million %s %s%s", amount(c, c.Step), passed, amount(c, c.Million),
			when(d.Goodput != nil, " with what failures and checkpoints cost")))
	}
	if r := d.Run; r != nil {
		p.say("run", fmt.Sprintf("%s %s take %v, %s GPU hours%s", abbreviated(r.Tokens), passed,
			unit.Span(r.Days)*unit.Day, abbreviated(r.GPUHours), when(c.Priced, ", "+amount(c, r.Bill))))
	}
}

// amount is a sum of money.
func amount(c *campaign.Cost, b campaign.Bill) string { return c.Currency + " " + money(b.Rent) }

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
