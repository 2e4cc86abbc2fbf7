package report

import (
	"fmt"
	"io"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Orders prints a table of orders.
func Orders(w io.Writer, doc *query.OrdersDoc) error {
	if len(doc.Orders) == 0 {
		text := "no pending or running orders"
		if doc.Over > 0 {
			text += fmt.Sprintf("; %d finished: --all", doc.Over)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	t := texttab.New("order", "what", "job", "state", ">sweep", ">parts", "every", "next", "by")
	for _, o := range doc.Orders {
		every, next := "-", "-"
		if o.Every > 0 {
			every = everyText(o.Every)
		}
		if !o.Next.IsZero() {
			next = clockText(o.Next)
		}
		what, job := purpose(&o.Order)
		t.Row(o.ID, what, texttab.Clean(job), string(o.State), fmt.Sprint(o.Sweep),
			fmt.Sprintf("%d of %d", o.Measured, o.Parts), every, next, texttab.Clean(o.By))
	}
	return t.Write(w)
}

// purpose is what an order is for, and the job that is about to start where it is a check.
func purpose(o *fleet.Order) (what, job string) {
	switch o.Job {
	case "":
		if o.What.By == fleet.TCP {
			return string(o.What.Measure), "-"
		}
		return string(o.What.Measure) + " by " + o.What.By.Text(), "-"
	case query.UnnamedJob:
		return "check", "-"
	}
	return "check", o.Job
}

// everyText is a time as --every takes it.
func everyText(d time.Duration) string {
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if d%u.of == 0 {
			return fmt.Sprintf("%d%s", d/u.of, u.name)
		}
	}
	return unit.Span(d.Seconds()).String()
}

// clockText is a time by the clock of who reads it, with its zone.
func clockText(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// OrderProgress is one line about how an order goes.
func OrderProgress(p query.OrderProgress, now time.Time) string {
	switch {
	case p.Gone != nil:
		return fmt.Sprintf("no answer: %v; asked again until %s", p.Gone, clockText(p.Until))
	case p.Back:
		return "the server answers again"
	case p.State == fleet.Waiting && p.Next.Sub(now) > time.Second:
		return fmt.Sprintf("waiting; sweep %d starts at %s", p.Sweep+1, clockText(p.Next))
	case p.State == fleet.Waiting:
		return "queued"
	}
	return fmt.Sprintf("%s, sweep %d: %d of %d parts measured, %d failed", p.State, p.Sweep, p.Measured, p.Parts, p.Failed)
}

// Order prints how an order went that was waited for, and what it measured.
func Order(w io.Writer, doc *query.OrderDoc) error {
	fmt.Fprintf(w, "%s: %s, %d of %d parts measured, %d failed", doc.ID, doc.State, doc.Measured, doc.Parts, doc.Failed)
	if doc.LeftOut > 0 {
		fmt.Fprintf(w, ", %d left out", doc.LeftOut)
	}
	if took := doc.Since.Sub(doc.Ran); took > 0 && !doc.Ran.IsZero() {
		fmt.Fprintf(w, ", in %v", took.Round(10*time.Millisecond))
	}
	fmt.Fprintln(w)
	if doc.Why != "" {
		fmt.Fprintln(w, texttab.Clean(doc.Why))
	}
	orderReasons(w, doc.Reasons)
	if v := doc.Verdict; v != nil {
		if len(v.Healthy) > 0 {
			fmt.Fprintf(w, "healthy: %s\n", cluster.FormatSlurmHosts(v.Healthy))
		}
		if len(v.Unmeasured) > 0 {
			fmt.Fprintf(w, "not measured: %s\n", cluster.FormatSlurmHosts(v.Unmeasured))
		}
		for _, b := range v.Unhealthy {
			fmt.Fprintf(w, "unhealthy: %s: %s\n", b.Node, texttab.Clean(b.Why))
		}
		for _, n := range v.Notes {
			fmt.Fprintf(w, "note: %s\n", texttab.Clean(n))
		}
	}
	return orderFigures(w, doc)
}

// shownReasons is how many reasons a summary shows; --json has more.
const shownReasons = 3

// orderReasons says why parts were not measured, the commonest reason first.
func orderReasons(w io.Writer, list []fleet.Reason) {
	for _, r := range list[:min(len(list), shownReasons)] {
		what := "failed"
		if r.LeftOut {
			what = "left out"
		}
		who := ""
		if len(r.Nodes) > 0 {
			who = cluster.FormatSlurmHosts(r.Nodes) + ": "
		}
		fmt.Fprintf(w, "%s %s: %s%s\n", words.Plural(r.Parts, "part"), what, who, texttab.Clean(r.Why))
	}
	if more := len(list) - shownReasons; more > 0 {
		fmt.Fprintf(w, "and %s more (--json)\n", words.Plural(more, "reason"))
	}
}

// orderFigures prints what an order measured.
func orderFigures(w io.Writer, f *query.OrderDoc) error {
	pairs := texttab.New("of pairs", ">median", ">worst", "from", "to")
	for _, x := range []struct {
		name, worst string
		*fleet.Spread
		text func(float64) string
	}{
		{"rate", "slowest", f.Rate, func(v float64) string { return unit.Rate(v * 1e9).String() }},
		{"latency", "highest", f.Latency, func(v float64) string { return unit.Micros(v).String() }},
	} {
		if x.Spread != nil {
			pairs.Row(x.name, x.text(x.Median), x.text(x.Worst), string(x.From), string(x.To))
			fmt.Fprintf(w, "%s: median %s, %s %s (%s to %s)\n", x.name, x.text(x.Median), x.worst, x.text(x.Worst), x.From, x.To)
		}
	}
	if pairs.Len() > 0 {
		if _, err := pairs.Send(w); err != nil { // to writers that take tables
			return err
		}
	}
	if len(f.Results) == 0 {
		return nil
	}
	t := texttab.New("collective", ">ranks", ">size", "place", "algorithm", ">time", ">busbw")
	for _, r := range f.Results.Rows() {
		place := "out"
		if r.InPlace {
			place = "in"
		}
		t.Row(r.Op.String(), fmt.Sprint(r.Ranks), r.Size.String(), place, texttab.Clean(r.Algo),
			r.Mean().String(), r.BusBW().String())
	}
	return t.Write(w)
}
