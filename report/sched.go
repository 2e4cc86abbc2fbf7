package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/schedule"
)

// Sched prints the programs of a schedule, or the outcome of its proof.
func Sched(w io.Writer, d *query.SchedDoc) error {
	if d.Program == nil {
		return query.ErrDecoded
	}
	switch s := d.Program; {
	case d.Check == nil && s.MoreOps(query.MaxSchedText):
		return failure.Cannot(fmt.Errorf("more than %d ops; ask for fewer ranks, channels or pieces: the programs are alike",
			query.MaxSchedText))
	case d.Check == nil:
		if taken, err := opsTable(s).Send(w); taken {
			return err
		}
		return schedule.Print(w, s)
	case d.Fault != nil:
		_, err := fmt.Fprintf(w, "%s\nwrong: %v\n", s, d.Fault)
		return err
	default:
		_, err := fmt.Fprintf(w, "%s\nverified: every rank ends with the right result, and no lane deadlocks\nlongest "+
			"chain: %d messages\n", s, d.Schedule.Rounds)
		return err
	}
}

// opsTable is every op of a schedule, for writers that take tables.
func opsTable(s *schedule.Schedule) *texttab.Table {
	t := texttab.New(">rank", "switch", ">lane", ">op", "action", "buffer", ">first chunk", ">chunks", ">peer", "to",
		">after lane", ">after op")
	for r := range s.Nodes() {
		through := ""
		if r >= s.Ranks {
			through = s.Switches[r-s.Ranks].Kind.String()
		}
		for l := range s.Lanes {
			for i := range s.Len(r, l) {
				t.Row(append([]string{fmt.Sprint(r), through, fmt.Sprint(l), fmt.Sprint(i)}, opCells(s.At(r, l, i))...)...)
			}
		}
	}
	return t
}

// opCells are what an op does, with what, and after which.
func opCells(o schedule.Op) []string {
	cells := []string{o.Verb.String(), "", "", "", "", "", "", ""}
	if o.Verb != schedule.Nop {
		cells[1], cells[2], cells[3] = o.Buf.String(), fmt.Sprint(o.From), fmt.Sprint(o.To-o.From)
	}
	switch o.Verb {
	case schedule.Nop:
	case schedule.Send, schedule.Recv, schedule.RecvReduce:
		cells[4] = fmt.Sprint(o.Peer)
	default:
		cells[5] = fmt.Sprintf("%s[%d:%d]", o.Dst, o.At, o.At+o.To-o.From)
	}
	if o.After.Count > 0 {
		cells[6], cells[7] = fmt.Sprint(o.After.Lane), fmt.Sprint(o.After.Count-1)
	}
	return cells
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
func Algorithms(w io.Writer, d *query.AlgorithmsDoc, o TextOptions) error {
	heads, legend := []string{"name"}, []string(nil)
	for _, k := range algorithmKinds {
		heads = append(heads, k.head)
		legend = append(legend, k.head+" "+k.kind.String())
	}
	heads = append(heads, "needs")
	if o.Verbose {
		heads = append(heads, "what it is")
	} else {
		legend = append(legend, "what each is: -v")
	}
	t := texttab.New(heads...)
	for _, a := range d.Algorithms {
		row := []string{a.Name}
		for _, k := range algorithmKinds {
			mark := "·"
			if slices.Contains(a.Ops, k.kind) {
				mark = "x"
			}
			row = append(row, mark)
		}
		row = append(row, a.Needs)
		if o.Verbose {
			row = append(row, a.Does)
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range texttab.Flow(legend, ", ", cmp.Or(o.Width, 98)) {
		fmt.Fprintln(w, line)
	}
	return nil
}
