package doctor

import (
	"slices"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
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

// aboveLimit reports that somebody tells of more than what they say can come.
func (c *Case) aboveLimit() bool {
	for _, f := range c.Figures {
		for _, g := range c.Figures {
			if f.Expected && !g.Expected && f.Quote == g.Quote && g.Tool != "wire" && g.GBps > 1.1*f.GBps &&
				!f.Bits == !g.Bits && c.twoNodes() {
				return true
			}
		}
	}
	return false
}

// twoNodes reports that two nodes are spoken of.
func (c *Case) twoNodes() bool {
	o := c.First(evidence.Setting, "multinode")
	return o != nil || c.hosts == 2
}

// toldOf is the share in "600 Gb/s of 800".
func (c *Case) toldOf() float64 {
	for _, f := range c.Figures {
		if m := ofTotal.FindStringSubmatch(f.Quote.Text); m != nil {
			a, b := parseFloat(m[1]), parseFloat(m[2])
			if a > 0 && b >= a {
				return a / b
			}
		}
	}
	return 0
}

func parseFloat(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return v
}

// ofTotal reads "600 Gb/s of 800".
var ofTotal = lazyre.New(`(\d+(?:\.\d+)?) ?G[Bb](?:/s|ps) of (?:~?)(\d+(?:\.\d+)?)`)

// manyNodes reports that more than two nodes are spoken of.
func (c *Case) manyNodes() bool {
	return slices.ContainsFunc(c.All(evidence.Setting), func(o *evidence.Observation) bool {
		return o.Arg(0) == "multinode" &&
			slices.ContainsFunc(o.Quotes, func(q finding.Quote) bool { return moreNodes.MatchString(q.Text) })
	}) || c.hosts > 2
}

var moreNodes = lazyre.New(
	`(?i)\b(?:[3-9]|\d{2,5})(?:x\d+ (?:NVIDIA )?[A-Z]|x Dell| ?(?:nodes|hosts|servers)|-node)|/ \d+ nodes`)
