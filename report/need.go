package report

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Need prints the networks, the numbers of NICs and the upgrades that were tried, and the answer.
func Need(w io.Writer, d *query.NeedDoc) error {
	fmt.Fprintf(w, "%s on %s, %s, %s: step time %s, %s without waiting for other nodes; tolerance %g%%\n", d.Model, d.Cluster, d.Layout, d.Parallel, d.Now.Step.Short(), d.Bound.Short(), 100*d.Within)
	if d.Misfit != "" {
		fmt.Fprintf(w, "the job %s; figures assume GPUs with enough memory\n", d.Misfit)
	}
	for _, x := range []struct {
		title string
		rows  []query.NeedRow
		gain  bool
	}{{"\nother networks, NICs and all cables alike", d.Rates, false}, {"\nfewer NICs of today's", d.NICs, false}, {"\nupgrades: one layer twice as fast", d.Upgrades, true}} {
		if len(x.rows) == 0 {
			continue
		}
		fmt.Fprintln(w, x.title)
		if err := needTable(x.rows, x.gain).Write(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	for _, l := range texttab.Wrap(d.Text, 100) {
		fmt.Fprintln(w, l)
	}
	return nil
}

// needTable is variants of a cluster with what they gain, or whether they are enough.
func needTable(rows []query.NeedRow, gain bool) *texttab.Table {
	last := "enough"
	if gain {
		last = ">gain"
	}
	t := texttab.New("", ">step", ">longer", last)
	for _, r := range rows {
		cell := "no"
		if r.Enough {
			cell = "yes"
		}
		if r.Now {
			cell += ", now"
		}
		if gain {
			cell = fmt.Sprintf("%.1f%%", 100*r.Gain)
		}
		t.Row("  "+r.What, r.Step.Short(), fmt.Sprintf("%.1f%%", 100*r.Over), cell)
	}
	return t
}
