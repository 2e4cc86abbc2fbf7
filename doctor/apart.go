package doctor

import (
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// testsApart are the lines that show processes of nccl-tests which know nothing of
// each other: one command made several of them and each prints a header, a table
// and ranks from 0 on.
func (c *Case) testsApart() []finding.Quote {
	if c.ranks > 1 && c.hosts > 1 {
		return nil
	}
	started := 0
	for _, o := range c.All(evidence.Launched) {
		started = max(started, atoi(o.Arg(0)))
	}
	seen := max(c.Count(evidence.TestHeader), c.Count(evidence.Average))
	if started > 1 && len(c.All(evidence.Launched)) == 1 && seen == started {
		return c.quotes(evidence.Launched, evidence.TestHeader, evidence.Average, evidence.TestRank)
	}
	if o := c.First(evidence.TestHeader); o != nil && c.headersTogether(o) {
		return c.quotes(o, evidence.TestRank)
	}
	var zero []*evidence.Observation
	top, count := 0, map[string]int{}
	for _, o := range c.All(evidence.TestRank) {
		top = max(top, atoi(o.Arg(0)))
		count[o.Arg(1)]++
		if o.Arg(0) == "0" {
			zero = append(zero, o)
		}
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	if len(zero) < 2 || top >= most || zero[0].Quotes[0].File != zero[1].Quotes[0].File ||
		!c.Told && !c.Has(evidence.Launched) && len(c.All(evidence.Average)) < 2 && c.First(evidence.Average, "0") == nil {
		return nil
	}
	return c.quotes(zero[0], zero[1], evidence.Average)
}

// headersTogether reports two equal headers of nccl-tests with no device between them:
// two processes began at once, of which each takes itself for the first.
func (c *Case) headersTogether(o *evidence.Observation) bool {
	for i := 1; i < len(o.Quotes); i++ {
		a, b := o.Quotes[i-1], o.Quotes[i]
		if a.File == b.File && a.Text == b.Text && b.Line-a.Line <= 4 && !c.between(a, b) {
			return true
		}
	}
	return false
}

// between reports a device of nccl-tests' list that stands between two lines.
func (c *Case) between(a, b finding.Quote) bool {
	for _, o := range c.All(evidence.TestRank) {
		for _, q := range o.Quotes {
			if q.File == a.File && q.Line > a.Line && q.Line < b.Line {
				return true
			}
		}
	}
	return false
}
