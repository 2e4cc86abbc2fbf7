package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Sched prints a schedule in a line for each round, with the busiest link of the cluster; every op of every rank is for
// those who ask.
func Sched(p *Page, d *query.SchedDoc) {
	s := d.Schedule
	p.printf("%s %s of %v over %d ranks%s, %s: %s one after the other\n", s.Op, s.Name, d.Size, s.Ranks,
		when(d.Cluster != "", fmt.Sprintf(" (%s, %s)", d.Cluster, d.Layout)), words.Plural(s.Channels, "channel"),
		words.Plural(len(d.Rounds), "round"))
	t := texttab.New(">round", "phase", ">a send", texttab.If(d.Cluster != "", "busiest link", ">its time"),
		"from›to")
	for i, r := range d.Rounds {
		link, most := "", unit.Bytes(0)
		if len(r.Links) > 0 {
			link = busiestLink(r.Links)
		}
		var sends []string
		for _, x := range r.Sends {
			sends = append(sends, fmt.Sprintf("%d›%d", x.From, x.To))
			most = max(most, x.Bytes)
		}
		t.Add(i+1, r.Phase, most, link, r.Time, strings.Join(firstOf(sends, 12, ""), " "))
	}
	p.table(t)
	if d.Cluster != "" {
		p.para("", fmt.Sprintf("rounds overlap: in all %v; %s", d.Time, d.Limit.Text))
	}
}

// busiestLink names the first of the busiest links of a round.
func busiestLink(list []result.Links) string {
	at, best := "", result.LinkUse{}
	for _, g := range list {
		if len(g.Uses) > 0 && g.Uses[0].Share > best.Share {
			at, best = g.Hosts, g.Uses[0]
		}
	}
	return fmt.Sprintf("%s %s %s", best.Kind, at, strings.Join(best.Which[:min(1, len(best.Which))], ""))
}

// algorithmKinds are the columns of the list of algorithms.
var algorithmKinds = []struct {
	head string
	kind coll.Kind
}{
	{"AR", coll.AllReduce},
	{"RS", coll.ReduceScatter},
	{"AG", coll.AllGather},
	{"B", coll.Broadcast},
	{"R", coll.Reduce},
	{"A2A", coll.AllToAll},
	{"A2AV", coll.AllToAllV},
	{"G", coll.Gather},
	{"S", coll.Scatter},
	{"SR", coll.SendRecv},
	{"HC", coll.Hypercube},
	{"BAR", coll.Barrier},
}

// Algorithms prints which algorithm does which collectives.
func Algorithms(p *Page, d *query.ListDoc) {
	heads, legend := []string{"name"}, []string(nil)
	for _, k := range algorithmKinds {
		heads = append(heads, k.head)
		legend = append(legend, k.head+" "+k.kind.String())
	}
	t := texttab.New(append(heads, "needs", texttab.If(p.Verbose, "what it is"))...)
	for _, a := range d.Algorithms {
		row := []string{a.Name}
		for _, k := range algorithmKinds {
			row = append(row, either(slices.Contains(a.Kinds, k.kind), "x", "·"))
		}
		t.Row(append(row, a.Needs, a.Does)...)
	}
	p.table(t)
	if !p.Verbose {
		legend = append(legend, "what each is: -v")
	}
	p.printf("\n")
	p.hanging("", "", texttab.Flow(legend, ", ", cmp.Or(p.Width, 98)))
}
