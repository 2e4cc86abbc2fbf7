package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

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
	for _, text := range nonEmpty(d.Slower, d.Text) {
		fmt.Fprintf(w, "\n%s\n", strings.Join(texttab.Wrap(text, 100), "\n"))
	}
	return nil
}

// needTable is variants of a cluster with what they gain, or whether they are enough.
func needTable(rows []query.NeedRow, gain bool) *texttab.Table {
	t := texttab.New("", ">step", ">longer|%.1f%%", texttab.If(!gain, "enough"), texttab.If(gain, ">gain|%.1f%%"),
		"?better with")
	for _, r := range rows {
		t.Add("  "+r.What, r.Step, 100*r.Over, cmp.Or(when(r.Enough, "yes"), "no")+when(r.Now, ", now"), 100*r.Gain,
			when(r.Setting != "", fmt.Sprintf("%s: %s, %.1f%% longer", r.Setting, r.Best.Short(), 100*r.BestOver)))
	}
	return t
}
