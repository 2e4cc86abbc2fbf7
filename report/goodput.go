package report

import (
	"fmt"
	"io"
	"math"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/plan/campaign"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Goodput prints how much of a run's time is useful, and what would change that.
func Goodput(w io.Writer, d *query.GoodputDoc) error {
	fmt.Fprintf(w, "%s on %s, %s: %s on %s, step time %s, %.0f %s/s without failures\n", d.Model, d.Cluster, d.Layout,
		words.Plural(d.GPUs, "GPU"),
		words.Plural(d.Nodes, "node"), d.Step.Short(), d.Tokens, counted(d.Pictures))
	goodputLines(w, &d.Asked, d.Step)
	fmt.Fprintf(w, "  %-9s %.1f%%, with failures drawn one by one\n\n", "simulated", 100*d.Played)
	of := counted(d.Pictures)
	t := texttab.New("checkpoints", "nodes that fail", ">goodput|%.1f%%", ">"+of+"/s|%.0f", ">"+of+"/s/GPU held|%.0f",
		">interval", ">fewer nodes|%.1f%%", ">waiting|%.1f%%", "")
	for i := range d.Rows {
		r := &d.Rows[i]
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
	return t.Write(w)
}

// inSteps is an interval as scripts count it; "" where it is not known how long a step takes.
func inSteps(interval fmt.Stringer, seconds, step float64) string {
	if !(step > 0) {
		return interval.String()
	}
	return fmt.Sprintf("%v (%s)", interval, words.Plural(int(math.Max(1, math.Round(seconds/step))), "step"))
}

// goodputLines print a goodput with its checkpoints and sources.
func goodputLines(w io.Writer, g *campaign.Account, step unit.Span) {
	every, best := inSteps(g.Interval, g.Interval.Seconds(), step.Seconds()),
		inSteps(g.Best, g.Best.Seconds(), step.Seconds())
	say := lines(w)
	say("goodput", g.Text)
	text := fmt.Sprintf("%v in %v, every %v of training; the best interval is %v (Young's √(2CM): %v)", g.Bytes, g.Save,
		every, best, g.Young)
	if g.Write > 0 {
		text = fmt.Sprintf("%v: training stops for %v and continues while it is written for %v, every %v of training; the "+
			"best interval is %v (Young's √(2CM): %v)",
			g.Bytes, g.Save, g.Write, every, best, g.Young)
	}
	say("saving", text+fmt.Sprintf("; a restart takes %v", g.Restart))
	for _, s := range g.Sources {
		say("", s)
	}
}

// lines prints texts behind a name, wrapped.
func lines(w io.Writer) func(name, text string) {
	width := 100
	if t, ok := w.(texttab.Terminal); ok && t.Columns() > 40 {
		width = t.Columns() - len("  123456789 ")
	}
	return func(name, text string) {
		for i, line := range texttab.Wrap(text, width) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-9s %s\n", name, line)
		}
	}
}
