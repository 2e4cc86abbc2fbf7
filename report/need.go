package report

import (
	"fmt"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Need prints the networks, the numbers of NICs and the upgrades that were tried, and the answer.
func Need(p *Page, d *query.NeedDoc) {
	jobLine(p, d.Cluster, d.GPU, &d.Job, true)
	p.printf("%s, %s: step time %s, %s without waiting for other nodes; tolerance %g%%\n", d.Layout, d.Parallel,
		d.Now.Step,
		d.Bound, 100*d.Within)
	p.printf("  expected: %s to %s, and every step time below within ×%.2f (from clusters left out of the fit)\n",
		d.Now.Low, d.Now.High, d.Margin)
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
		p.lines(x.title)
		p.table(needTable(x.rows, x.gain))
	}
	for _, text := range nonEmpty(d.Slower, d.Text) {
		p.printf("\n")
		p.wrapped("", "", text)
	}
}

// needTable is variants of a cluster with what they gain, or whether they are enough.
func needTable(rows []query.NeedRow, gain bool) *texttab.Table {
	t := texttab.New("", ">step", ">longer|%.1f%%", texttab.If(!gain, "enough"), texttab.If(gain, ">gain|%.1f%%"),
		"?better with")
	for _, r := range rows {
		t.Add("  "+r.What, r.Step, 100*r.Over, either(r.Enough, "yes", "no")+when(r.Now, ", now"), 100*r.Gain,
			when(r.Setting != "", fmt.Sprintf("%s: %s, %.1f%% longer", r.Setting, r.Best.Short(), 100*r.BestOver)))
	}
	return t
}
