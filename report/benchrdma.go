package report

import (
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/measure"
)

// mostRDMA is how many directions are listed one by one.
const mostRDMA = 64

// BenchRDMA prints rails, pairs where there are few, and what stands out.
func BenchRDMA(p *Page, d *measure.RDMA) {
	p.printf("%s, %s, %s by %s of %v, %v; %s in %.1f s\n\n", words.Plural(len(d.Hosts), "host"),
		words.Plural(len(d.Rails), "rail"), words.Plural(len(d.Pairs), "direction"),
		strings.Join(d.Programs, " and "), d.SizeBytes, d.SmallBytes, words.Plural(d.Rounds, "round"),
		d.Seconds)
	t := texttab.New(">rail", ">ports", ">link GB/s", ">median GB/s", ">both GB/s", ">latency µs")
	for _, r := range d.Rails {
		t.Add(r.Rail, len(r.Ports), threeDigits(r.Link.GBps()), threeDigits(r.Rate), threeDigits(r.Both),
			threeDigits(r.Latency*1e6))
	}
	p.table(t)
	p.printf("\n")
	t = texttab.New(">rail", "from", "to", ">GB/s", ">both GB/s", ">latency µs", "failed")
	for _, x := range d.Pairs {
		t.Add(x.Rail, x.From, x.To, threeDigits(x.Rate.GBps()), threeDigits(x.Both.GBps()),
			threeDigits(x.Latency.Micros()), x.Failed)
	}
	p.send(t)
	if len(d.Pairs) <= mostRDMA {
		p.lay(t)
		p.printf("\n")
	} else {
		p.printf("--json lists all %d directions\n\n", len(d.Pairs))
	}
	if len(d.Findings) == 0 {
		p.printf("no outliers\n")
	}
	for _, f := range d.Findings {
		p.printf("%s: %s\n", f.Severity, f.Text)
	}
	p.notes(d.Notes)
}
