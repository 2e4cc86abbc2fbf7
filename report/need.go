package report

import (
	"fmt"

	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Need prints the networks, the numbers of NICs and the upgrades that were tried, and the answer.
func Need(p *Page, d *query.NeedDoc) {
	jobLine(p, d.Cluster, d.GPU, &d.Job, true)
	p.printf("%s, %s: %s per step (%s expected), %s without waiting for other nodes; tolerance %g%%\n", d.Layout,
		d.Job.Parallel, d.Now.Step, spanRange(d.Now.Low, d.Now.High), d.Bound, 100*d.Within)
	for _, text := range nonEmpty(d.Text, d.Slower) {
		p.wrapped("", "", text)
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
		if len(x.rows) == 0 || x.gain && x.rows[0].Gain < 0.005 && !p.Verbose {
			continue
		}
		p.lines(x.title)
		p.table(needTable(x.rows, x.gain))
	}
}

// needTable is variants of a cluster with what they gain, or whether they are enough.
func needTable(rows []query.NeedRow, gain bool) *texttab.Table {
	t := texttab.New("", ">step", ">longer|%.1f%%", texttab.If(!gain, "enough"), texttab.If(gain, ">gain|%.1f%%"),
		"?better with")
	for from := 0; from < len(rows); {
		r, to, now := rows[from], from, ""
		for ; to < len(rows) &&
			(to == from || r.Rate > 0 && r.NICs == rows[to].NICs && r.Step.Short() == rows[to].Step.Short() &&
				r.Setting == rows[to].Setting && r.Enough == rows[to].Enough); to++ {
			if rows[to].Now {
				now = fmt.Sprintf(", now %g Gb/s", rows[to].Rate.Gbps())
			}
		}
		what, last := r.What, rows[to-1]
		if to-from > 1 {
			what = fmt.Sprintf("%d × %g to %g Gb/s", r.NICs, r.Rate.Gbps(), last.Rate.Gbps())
		}
		from = to
		t.Add("  "+what, r.Step, 100*r.Over, either(r.Enough, "yes", "no")+now, 100*r.Gain,
			when(r.Setting != "", fmt.Sprintf("%s: %s, %.1f%% longer", r.Setting, r.Best.Short(), 100*r.BestOver)))
	}
	return t
}
