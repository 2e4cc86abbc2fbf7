package report

import (
	"fmt"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Orders prints a table of orders.
func Orders(p *Page, doc *query.OrdersDoc) {
	if len(doc.Orders) == 0 {
		p.printf("no pending or running orders%s\n", when(doc.Over > 0, fmt.Sprintf("; %d finished: --all", doc.Over)))
		return
	}
	t := texttab.New("order", "what", "job", "state", ">sweep", ">parts", "every", "next", "by")
	for _, o := range doc.Orders {
		what, job := purpose(&o.Order)
		t.Add(o.ID, what, job, o.State, o.Sweep, fmt.Sprintf("%d of %d", o.Measured, o.Parts),
			known(o.Every > 0, everyText(o.Every)), known(!o.Next.IsZero(), clockText(o.Next)), o.By)
	}
	p.table(t)
}

// purpose is what an order is for, and the job that is about to start where it is a check.
func purpose(o *fleet.Order) (what, job string) {
	switch o.Job {
	case "":
		return string(o.What.Measure) + when(o.What.By != fleet.TCP, " by "+o.What.By.Text()), "-"
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
func Order(p *Page, doc *query.OrderDoc) {
	took := doc.Since.Sub(doc.Ran)
	p.printf("%s: %s, %d of %d parts measured, %d failed%s%s\n", doc.ID, doc.State, doc.Measured, doc.Parts, doc.Failed,
		when(doc.LeftOut > 0, fmt.Sprintf(", %d left out", doc.LeftOut)),
		when(took > 0 && !doc.Ran.IsZero(), fmt.Sprintf(", in %v", took.Round(10*time.Millisecond))))
	p.lines(doc.Why)
	orderReasons(p, doc.Reasons)
	if v := doc.Verdict; v != nil {
		if len(v.Healthy) > 0 {
			p.printf("healthy: %s\n", cluster.FormatSlurmHosts(v.Healthy))
		}
		if len(v.Unmeasured) > 0 {
			p.printf("not measured: %s\n", cluster.FormatSlurmHosts(v.Unmeasured))
		}
		for _, b := range v.Unhealthy {
			p.printf("unhealthy: %s: %s\n", b.Node, b.Why)
		}
		p.notes(v.Notes)
	}
	orderFigures(p, doc)
}

// shownReasons is how many reasons a summary shows; --json has more.
const shownReasons = 3

// orderReasons says why parts were not measured, the commonest reason first.
func orderReasons(p *Page, list []fleet.Reason) {
	for _, r := range list[:min(len(list), shownReasons)] {
		p.printf("%s %s: %s%s\n", words.Plural(r.Parts, "part"), either(r.LeftOut, "left out", "failed"),
			when(len(r.Nodes) > 0, cluster.FormatSlurmHosts(r.Nodes)+": "), r.Why)
	}
	if more := len(list) - shownReasons; more > 0 {
		p.printf("and %s more (--json)\n", words.Plural(more, "reason"))
	}
}

// orderFigures prints what an order measured.
func orderFigures(p *Page, f *query.OrderDoc) {
	pairs := texttab.New("of pairs", ">median", ">worst", "from", "to")
	for _, x := range []struct {
		name, worst string
		*fleet.Spread
		quantity func(float64) fmt.Stringer
	}{
		{"rate", "slowest", f.Rate, func(v float64) fmt.Stringer { return unit.Rate(v * 1e9) }},
		{"latency", "highest", f.Latency, func(v float64) fmt.Stringer { return unit.Seconds(v) }},
	} {
		if x.Spread != nil {
			median, worst := x.quantity(x.Median), x.quantity(x.Worst)
			pairs.Add(x.name, median, worst, x.From, x.To)
			p.printf("%s: median %s, %s %s (%s to %s)\n", x.name, median, x.worst, worst, x.From, x.To)
		}
	}
	if pairs.Len() > 0 {
		p.send(pairs)
	}
	if len(f.Results) == 0 {
		return
	}
	t := texttab.New("collective", ">ranks", ">size", "place", "algorithm", ">time", ">busbw")
	for _, r := range f.Results.Rows() {
		t.Add(r.Op, r.Ranks, r.Size, either(r.InPlace, "in", "out"), r.Algo, r.Time.Mean, r.BusBW())
	}
	p.table(t)
}
