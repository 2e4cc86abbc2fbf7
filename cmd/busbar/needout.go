package main

import (
	"fmt"
	"io"

	"busbar.dev/internal/texttab"
)

// printNeed writes the three tables and the sentence.
func printNeed(w io.Writer, d *needDoc) error {
	fmt.Fprintf(w, "%s on %s, %s, %s: %s now, %s without waiting for other nodes; allowed are %g %% more\n", d.Model, d.Cluster, d.Layout, d.Parallel, seconds(d.Now.Step), seconds(d.Bound), 100*d.Within)
	if d.Misfit != "" {
		fmt.Fprintf(w, "the job %s; the figures are those of GPUs with room for it\n", d.Misfit)
	}
	for _, x := range []struct {
		title string
		rows  []needRow
		gain  bool
	}{{"\nother networks, NICs and all cables alike", d.Rates, false}, {"\nfewer NICs of today's", d.NICs, false}, {"\nupgrades: one layer twice as fast", d.Upgrades, true}} {
		if len(x.rows) == 0 {
			continue
		}
		fmt.Fprintln(w, x.title)
		last := texttab.Column{Head: "enough"}
		if x.gain {
			last = texttab.Column{Head: "gain", Align: texttab.Right}
		}
		t := texttab.Table{Columns: []texttab.Column{{Head: ""}, {Head: "step", Align: texttab.Right}, {Head: "longer", Align: texttab.Right}, last}}
		for _, r := range x.rows {
			cell := "no"
			if r.Enough {
				cell = "yes"
			}
			if r.Now {
				cell += ", now"
			}
			if x.gain {
				cell = fmt.Sprintf("%.1f%%", 100*r.Gain)
			}
			t.Row("  "+r.What, seconds(r.Step), fmt.Sprintf("%.1f%%", 100*r.Over), cell)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n")
	for _, l := range texttab.Wrap(d.Text, 100) {
		fmt.Fprintln(w, l)
	}
	return nil
}
