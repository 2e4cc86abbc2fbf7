package report

import (
	"cmp"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/schedule"
)

// Sched prints the programs of a schedule, or the outcome of its proof.
func Sched(p *Page, d *query.SchedDoc) {
	switch {
	case d.Check == nil:
		p.send(opsTable(d.Programs))
		p.err = d.Print(&p.text)
	case !d.Check.Proven:
		p.printf("%s\nwrong: %v\n", d.Schedule, d.Check.Fault)
	default:
		p.printf("%s\nverified: every rank ends with the right result, and no lane deadlocks\nlongest chain: %d messages\n",
			d.Schedule, d.Schedule.Rounds)
	}
}

// opsTable is every op of a schedule, for writers that take tables.
func opsTable(list []schedule.LaneProgram) *texttab.Table {
	t := texttab.New(">rank", "switch", ">lane", ">op", "action", "buffer", ">first chunk", ">chunks", ">peer", "to",
		">after lane", ">after op")
	for _, p := range list {
		for i, o := range p.Ops {
			cells := []any{p.Rank, p.Switch, p.Lane, i, o.Verb, o.Buf, "", "", "", o.Target()}
			if o.Buf != "" {
				cells[6], cells[7] = o.From, o.To-o.From
			}
			if o.Peer != nil {
				cells[8] = *o.Peer
			}
			if o.After != nil {
				cells = append(cells, o.After.Lane, o.After.Op)
			}
			t.Add(cells...)
		}
	}
	return t
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
