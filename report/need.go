package report

import (
	"fmt"
	"io"
	"slices"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Need prints the networks, the numbers of NICs and the upgrades that were tried, and the answer.
func Need(w io.Writer, d *query.NeedDoc) error {
	fmt.Fprintf(w, "%s on %s, %s, %s: step time %s, %s without waiting for other nodes; tolerance %g%%\n", d.Model,
		d.Cluster, d.Layout, d.Parallel, d.Now.Step.Short(), d.Bound.Short(), 100*d.Within)
	fmt.Fprintf(w, "  expected: %s to %s, and every step time below within ×%.2f (from clusters left out of the fit)\n",
		d.Now.Low.Short(), d.Now.High.Short(), d.Margin)
	if d.Misfit != "" {
		fmt.Fprintf(w, "the job %s; figures assume GPUs with enough memory\n", d.Misfit)
	}
	for _, x := range []struct {
		title string
		rows  []query.NeedRow
		gain  bool
	}{
		{"\nother networks, NICs and all cables alike", d.Rates, false},
		{"\nfewer NICs of today's", d.NICs, false},
		{"\nupgrades, one at a time: a layer twice as fast, more NICs, RDMA, or direct access", d.Upgrades, true},
	} {
		if len(x.rows) == 0 {
			continue
		}
		fmt.Fprintln(w, x.title)
		if err := needTable(x.rows, x.gain).Write(w); err != nil {
			return err
		}
	}
	for _, text := range []string{d.Slower, d.Text} {
		if text == "" {
			continue
		}
		fmt.Fprintln(w)
		for _, l := range texttab.Wrap(text, 100) {
			fmt.Fprintln(w, l)
		}
	}
	return nil
}

// needTable is variants of a cluster with what they gain, or whether they are enough.
func needTable(rows []query.NeedRow, gain bool) *texttab.Table {
	last := "enough"
	if gain {
		last = ">gain"
	}
	t := texttab.New("", ">step", ">longer", last, "better with")
	t.Columns[4].Hidden = !slices.ContainsFunc(rows, func(r query.NeedRow) bool { return r.Setting != "" })
	for _, r := range rows {
		with := ""
		if r.Setting != "" {
			with = fmt.Sprintf("%s: %s, %.1f%% longer", r.Setting, r.Best.Short(), 100*r.BestOver)
		}
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
		t.Row("  "+r.What, r.Step.Short(), fmt.Sprintf("%.1f%%", 100*r.Over), cell, with)
	}
	return t
}
