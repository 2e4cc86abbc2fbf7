package report

import (
	"fmt"
	"math"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/plan/campaign"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Goodput prints how much of a run's time is useful, and what would change that.
func Goodput(p *Page, d *query.GoodputDoc) {
	jobLine(p, d.Cluster, d.GPU, &d.Job, true)
	p.printf("%s, %s: step time %s, %.0f %s/s without failures\n", d.Layout, d.Job.Parallel, d.Step, d.Tokens,
		counted(d.Pictures))
	goodputLines(p, &d.Asked, d.Step)
	p.printf("\n")
	of := counted(d.Pictures)
	t := texttab.New("checkpoints", "nodes that fail", ">goodput|%.1f%%", ">"+of+"/s|%.0f", ">"+of+"/s/GPU held|%.0f",
		">interval", ">fewer nodes|%.1f%%", ">waiting|%.1f%%", "")
	for _, r := range d.Rows {
		how := words.Plural(r.Spares, "spare")
		switch {
		case r.Replaced:
			how = "always replaced"
		case r.Elastic:
			how += ", elastic"
		default:
			how += ", waits"
		}
		t.Add(when(r.Async, "a")+"synchronous", how, 100*r.Goodput, r.Tokens, r.PerGPU, r.Interval.String(), 100*r.Shrunk,
			100*r.Stopped, when(r.Best, "best per GPU held"))
	}
	p.table(t)
}

// inSteps is an interval as scripts count it; "" where it is not known how long a step takes.
func inSteps(interval, step unit.Span) string {
	if !(step > 0) {
		return interval.String()
	}
	return fmt.Sprintf("%v (%s)", interval, words.Plural(int(max(1, math.Round(float64(interval/step)))), "step"))
}

// goodputLines print a goodput with its checkpoints and sources.
func goodputLines(p *Page, g *campaign.Account, step unit.Span) {
	p.say("goodput", g.Text)
	how := fmt.Sprintf(" in %v", g.Save)
	if g.Write > 0 {
		how = fmt.Sprintf(": training stops for %v and continues while it is written for %v", g.Save, g.Write)
	}
	p.say("saving", fmt.Sprintf("%v%s, every %v of training; the best interval is %v (Young's √(2CM): %v); a restart "+
		"takes %v", g.Bytes, how, inSteps(g.Interval, step), inSteps(g.Best, step), g.Young, g.Restart))
	for _, s := range g.Sources {
		if p.Verbose {
			p.say("", s)
		}
	}
}

// say prints a text behind a name, wrapped.
func (p *Page) say(name, text string) {
	width := 100
	if p.Width > 40 {
		width = p.Width - len("  123456789 ")
	}
	p.hanging(fmt.Sprintf("  %-9s ", name), fmt.Sprintf("%12s", ""), texttab.Wrap(text, width))
}
