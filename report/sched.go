package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/schedule"
)

// Sched prints the programs of a schedule, or the outcome of its proof.
func Sched(w io.Writer, d *query.SchedDoc) error {
	switch {
	case d.Check == nil:
		if taken, err := opsTable(d.Programs).Send(w); taken {
			return err
		}
		return d.Print(w)
	case !d.Check.Proven:
		_, err := fmt.Fprintf(w, "%s\nwrong: %v\n", d.Schedule, d.Check.Fault)
		return err
	default:
		_, err := fmt.Fprintf(w, "%s\nverified: every rank ends with the right result, and no lane deadlocks\nlongest "+
			"chain: %d messages\n", d.Schedule, d.Schedule.Rounds)
		return err
	}
}

// opsTable is every op of a schedule, for writers that take tables.
func opsTable(list []schedule.LaneProgram) *texttab.Table {
	t := texttab.New(">rank", "switch", ">lane", ">op", "action", "buffer", ">first chunk", ">chunks", ">peer", "to",
		">after lane", ">after op")
	for _, p := range list {
		for i, o := range p.Ops {
			cells := []string{
				fmt.Sprint(p.Rank), p.Switch, fmt.Sprint(p.Lane), fmt.Sprint(i), o.Verb, o.Buf, "", "", "",
				o.Target(), "", "",
			}
			if o.Buf != "" {
				cells[6], cells[7] = fmt.Sprint(o.From), fmt.Sprint(o.To-o.From)
			}
			if o.Peer != nil {
				cells[8] = fmt.Sprint(*o.Peer)
			}
			if o.After != nil {
				cells[10], cells[11] = fmt.Sprint(o.After.Lane), fmt.Sprint(o.After.Op)
			}
			t.Row(cells...)
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
			row = append(row, cmp.Or(when(slices.Contains(a.Kinds, k.kind), "x"), "·"))
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
