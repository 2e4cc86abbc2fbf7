package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// mostCalls is how many kinds of collectives are printed without -v.
const mostCalls = 12

// Traced prints where the time of traced steps went, and the prediction beside it.
func Traced(p *Page, d *query.TraceDoc) {
	p.Width = p.width // tables are as narrow as the text
	p.lines(tracedHead(d))
	p.table(tracedRanks(d))
	if r := &d.Ranks[0]; r.Profiler > 0 {
		p.wrapped("", "", fmt.Sprintf("the profiler's own work takes %s of the host's time in a %s", r.Profiler.Short(),
			tracedSpan(d)))
	}
	if len(d.Calls) > 0 {
		whose := ""
		if r := d.Ranks[0].Rank; r != nil && len(d.Ranks) > 1 {
			whose = fmt.Sprintf(" of rank %d", *r)
		}
		p.printf("\n%s%s\n", p.bold("Collectives"), whose)
		tracedCalls(p, d)
	}
	if d.Job != nil {
		p.printf("\n%s: the median rank waits %.1f%% of the time for others in collectives\n", p.bold("Waiting"),
			100*d.Job.Waiting)
		jobRanks(p, d.Job)
	}
	if d.Step != nil {
		p.heading("Beside the prediction")
		p.table(tracedStep(d))
	}
	p.printf("\n")
	p.wrapped("", "", p.bold(d.Verdict))
	// The verdict on the step is above.
	jobFindings(p, slices.DeleteFunc(slices.Clone(d.Findings),
		func(f finding.Finding) bool { return f.ID == "slow-step" }))
}

func tracedHead(d *query.TraceDoc) string {
	r := &d.Ranks[0]
	text := words.Plural(len(d.Ranks), "trace") + " of " + r.Tool + when(r.GPU != "", ", "+r.GPU) +
		when(r.World > 0, ", "+words.Plural(r.World, "rank"))
	if r.Steps == 0 {
		return text + ": no marked steps, times are of the whole trace"
	}
	return text + ": time of a step, from " + words.Plural(r.Steps, "marked step")
}

// tracedSpan is what the times of a trace are of.
func tracedSpan(d *query.TraceDoc) string {
	return cmp.Or(when(d.Ranks[0].Steps == 0, "whole trace"), "step")
}

func tracedRanks(d *query.TraceDoc) *texttab.Table {
	t := texttab.New("rank", ">"+tracedSpan(d), ">compute", ">communication", ">exposed", ">copies only", ">idle", "file")
	for _, r := range d.Ranks {
		name := "?"
		if r.Rank != nil {
			name = fmt.Sprint(*r.Rank)
		} else if len(d.Ranks) > 1 {
			name = fmt.Sprintf("GPU %d", r.Device)
		}
		of := func(x unit.Span) string {
			if r.Step <= 0 {
				return x.Short()
			}
			return fmt.Sprintf("%s %3.0f%%", x.Short(), 100*float64(x/r.Step))
		}
		t.Add(name, r.Step, of(r.Compute), of(r.Comm), of(r.Exposed), of(r.Copy), of(r.Idle), path.Base(r.File))
	}
	return t
}

func tracedCalls(p *Page, d *query.TraceDoc) {
	var sized, matched, predicted bool
	for _, c := range d.Calls {
		sized, matched, predicted = sized || c.Bytes > 0, matched || c.Transfer > 0, predicted || c.Expected > 0
	}
	t := texttab.New("operation", texttab.If(sized, "group", ">ranks", ">size"), ">calls|%.4g", ">time", ">exposed",
		">per call", texttab.If(matched, ">transfer"), texttab.If(sized, ">busbw GB/s"), texttab.If(predicted, ">expected"),
		"?algorithm")
	for _, c := range d.Calls {
		t.Add(c.Op, c.Group, orDash(c.Ranks), orDash(c.Bytes), c.Count,
			c.Time, c.Exposed, c.Median, orDash(c.Transfer),
			known(c.BusBW > 0, fmt.Sprintf("%.1f", c.BusBW.GBps())),
			known(c.Expected > 0, fmt.Sprintf("%s to %s", c.Low, c.High)), c.Algo)
	}
	if p.Verbose {
		p.table(t)
	} else {
		p.first(t, mostCalls, " with -v")
	}
}

// tracedStep is the traced step beside the predicted one.
func tracedStep(d *query.TraceDoc) *texttab.Table {
	r, p := &d.Ranks[0], d.Step
	t := texttab.New("", ">traced", ">predicted", ">from", ">to")
	t.Add(tracedSpan(d), r.Step, p.Step, p.Low, p.High)
	t.Add("compute", r.Compute, p.Compute+p.Optimizer)
	t.Add("communication", r.Comm, p.Comm)
	t.Add("exposed", r.Exposed, p.Exposed)
	t.Add("idle, copies", r.Idle+r.Copy, p.Bubble+p.Host)
	return t
}
