package doctor

import (
	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// wireBeatsNCCL is the rate of one NIC that a test without NCCL reached, in GB/s,
// when somebody also tells of far less with NCCL; else 0. NCCL's figure is that of
// all NICs together, so less than one NIC's rate is little whatever their number.
func (c *Case) wireBeatsNCCL() float64 {
	wire := 0.0
	for _, f := range c.Rates("wire") {
		wire = max(wire, f.GBps)
	}
	if wire < 5 {
		return 0
	}
	least := 0.0
	for _, f := range c.Rates("nccl") {
		if !f.Bits && (least == 0 || f.GBps < least) {
			least = f.GBps
		}
	}
	switch {
	case least > 0 && least < 0.6*wire:
		return wire
	case least == 0 && c.is("slow"):
		return wire
	}
	return 0
}

func (c *Case) wireQuotes() []finding.Quote {
	var list []finding.Quote
	for _, f := range append(first(c.Rates("wire"), 2), first(c.Rates("nccl"), 2)...) {
		list = append(list, f.Quote)
	}
	return list
}

func (c *Case) figureQuotes() []finding.Quote {
	var list []finding.Quote
	for _, f := range first(c.Figures, 4) {
		list = append(list, f.Quote)
	}
	return list
}

func (c *Case) changeQuotes() []finding.Quote {
	var list []finding.Quote
	for _, f := range first(c.Changes, 3) {
		list = append(list, f.Quote)
	}
	return list
}

// greatestDrop is the greatest factor between figures that are told to belong
// together: 481 to 104 GB/s is 4.6; 0 when there is none.
func (c *Case) greatestDrop() float64 {
	most := 0.0
	for _, x := range c.Changes {
		lo, hi := min(x.From, x.To), max(x.From, x.To)
		if lo > 0 && hi/lo < 1e4 {
			most = max(most, hi/lo)
		}
	}
	return max(most, c.tableDrop())
}

// tableDrop is the factor between printed averages of nccl-tests in one text.
func (c *Case) tableDrop() float64 {
	lo, hi := 0.0, 0.0
	for _, o := range c.All(evidence.Average) {
		v := parseFloat(o.Arg(0))
		if v <= 0 {
			continue
		}
		if lo == 0 || v < lo {
			lo = v
		}
		hi = max(hi, v)
	}
	if lo == 0 {
		return 0
	}
	return hi / lo
}

// best is the greatest of the figures for which ok holds, in GB/s.
func (c *Case) best(ok func(evidence.Figure) bool) float64 {
	best := 0.0
	for _, f := range c.Figures {
		if ok(f) {
			best = max(best, f.GBps)
		}
	}
	return best
}

// shareOfLine is what NCCL reached of what should come, when both are told; else 0.
func (c *Case) shareOfLine() float64 {
	got, want := 0.0, 0.0
	for _, f := range c.Figures {
		switch {
		case f.Expected:
			want = max(want, f.GBps)
		case f.Tool != "wire":
			got = max(got, f.GBps)
		}
	}
	for _, x := range c.Changes { // "6 GB/s instead of 12"
		if x.Unit == "GB/s" && x.To < x.From {
			return x.To / x.From
		}
	}
	if want == 0 || got == 0 || got > want {
		return 0
	}
	return got / want
}

// hostlist writes hosts short: node[0-15].
func hostlist(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return cluster.FormatHosts(names)
}
