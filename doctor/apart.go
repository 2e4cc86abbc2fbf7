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
	return nil
}

// headersTogether reports two equal headers of nccl-tests with no table between them:
// two processes began at once, of which each takes itself for the first.
func (c *Case) headersTogether(o *evidence.Observation) bool {
	for i := 1; i < len(o.Quotes); i++ {
		a, b := o.Quotes[i-1], o.Quotes[i]
		if a.File == b.File && a.Text == b.Text && b.Line-a.Line <= 4 {
			return true
		}
	}
	return false
}
