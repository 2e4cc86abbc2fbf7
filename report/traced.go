package report

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// mostCalls is how many kinds of collectives are printed without -v.
const mostCalls = 12

// Traced prints where the time of traced steps went, and the prediction beside it.
func Traced(w io.Writer, d *query.TraceDoc, o TextOptions) error {
	return write(w, o, func(s style) string { return tracedText(d, s, o) })
}

func tracedText(d *query.TraceDoc, s style, o TextOptions) string {
	var b strings.Builder
	b.WriteString(tracedHead(d) + "\n")
	b.WriteString(s.fit(tracedRanks(d), o.width()))
	if len(d.Calls) > 0 {
		b.WriteString("\n" + s.bold("Collectives") + tracedWhose(d) + "\n" + tracedCalls(d, s, o))
	}
	if d.Job != nil {
		b.WriteString("\n" + s.bold("Waiting") + fmt.Sprintf(": the median rank waits %.1f%% of the time for others in collectives\n", 100*d.Job.Waiting))
		b.WriteString(jobRanks(d.Job, s, o))
	}
	if d.Step != nil {
		b.WriteString("\n" + s.bold("Beside the prediction") + "\n" + s.fit(tracedStep(d), o.width()))
	}
	b.WriteString("\n")
	for _, l := range texttab.Wrap(d.Verdict, o.width()) {
		b.WriteString(s.bold(l) + "\n")
	}
	// The verdict on the step is above.
	b.WriteString(jobFindings(slices.DeleteFunc(slices.Clone(d.Findings), func(f finding.Finding) bool { return f.ID == "slow-step" }), s, o))
	return b.String()
}

func tracedHead(d *query.TraceDoc) string {
	r := &d.Ranks[0]
	text := words.Plural(len(d.Ranks), "trace") + " of " + r.Tool
	if r.GPU != "" {
		text += ", " + r.GPU
	}
	if r.World > 0 {
		text += ", " + words.Plural(r.World, "rank")
	}
	if r.Steps == 0 {
		return text + ": no marked steps, times are of the whole trace"
	}
	return text + ": time of a step, from " + words.Plural(r.Steps, "marked step")
}

func tracedRanks(d *query.TraceDoc) *texttab.Table {
	head := ">step"
	if d.Ranks[0].Steps == 0 {
		head = ">whole trace"
	}
	t := texttab.New("rank", head, ">compute", ">communication", ">exposed", ">copies only", ">idle", "file")
	for i := range d.Ranks {
		r := &d.Ranks[i]
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
		t.Row(name, r.Step.Short(), of(r.Compute), of(r.Comm), of(r.Exposed), of(r.Copy), of(r.Idle), path.Base(r.File))
	}
	return t
}

func tracedWhose(d *query.TraceDoc) string {
	if r := d.Ranks[0].Rank; r != nil && len(d.Ranks) > 1 {
		return fmt.Sprintf(" of rank %d", *r)
	}
	return ""
}

func tracedCalls(d *query.TraceDoc, s style, o TextOptions) string {
	sized := slices.ContainsFunc(d.Calls, func(c query.TraceCall) bool { return c.Bytes > 0 })
	matched := slices.ContainsFunc(d.Calls, func(c query.TraceCall) bool { return c.Transfer > 0 })
	predicted := slices.ContainsFunc(d.Calls, func(c query.TraceCall) bool { return c.Expected > 0 })
	tree := slices.ContainsFunc(d.Calls, func(c query.TraceCall) bool { return c.Algo != "" })
	heads := []string{"operation", ">calls", ">time", ">exposed", ">per call"}
	if sized {
		heads = slices.Insert(heads, 1, "group", ">ranks", ">size")
	}
	for _, x := range []struct {
		is   bool
		head string
	}{{matched, ">transfer"}, {sized, ">busbw GB/s"}, {predicted, ">expected"}, {tree, "algorithm"}} {
		if x.is {
			heads = append(heads, x.head)
		}
	}
	t := texttab.New(heads...)
	if !o.Verbose {
		t.Most = mostCalls
	}
	for i := range d.Calls {
		c := &d.Calls[i]
		cells := []string{c.Op, fmt.Sprintf("%.4g", c.Count), c.Time.Short(), c.Exposed.Short(), c.Median.String()}
		if sized {
			cells = slices.Insert(cells, 1, c.Group, known(c.Ranks > 0, fmt.Sprint(c.Ranks)), known(c.Bytes > 0, c.Bytes.String()))
		}
		if matched {
			cells = append(cells, known(c.Transfer > 0, c.Transfer.String()))
		}
		if sized {
			cells = append(cells, known(c.BusBW > 0, fmt.Sprintf("%.1f", float64(c.BusBW)/1e9)))
		}
		if predicted {
			cells = append(cells, known(c.Expected > 0, fmt.Sprintf("%s to %s", c.Low, c.High)))
		}
		if tree {
			cells = append(cells, c.Algo)
		}
		t.Row(cells...)
	}
	text := s.fit(t, o.width())
	if n := len(d.Calls) - mostCalls; n > 0 && !o.Verbose {
		text += fmt.Sprintf("and %d more with -v\n", n)
	}
	return text
}

func known(is bool, text string) string {
	if is {
		return text
	}
	return "-"
}

// tracedStep is the traced step beside the predicted one.
func tracedStep(d *query.TraceDoc) *texttab.Table {
	r, p := &d.Ranks[0], d.Step
	t := texttab.New("", ">traced", ">predicted", ">from", ">to")
	steps := "step"
	if r.Steps == 0 {
		steps = "whole trace"
	}
	t.Row(steps, r.Step.Short(), p.Step.Short(), p.Low.Short(), p.High.Short())
	t.Row("compute", r.Compute.Short(), (p.Compute + p.Optimizer).Short(), "", "")
	t.Row("communication", r.Comm.Short(), p.Comm.Short(), "", "")
	t.Row("exposed", r.Exposed.Short(), p.Exposed.Short(), "", "")
	t.Row("idle, copies", (r.Idle + r.Copy).Short(), (p.Bubble + p.Host).Short(), "", "")
	return t
}
