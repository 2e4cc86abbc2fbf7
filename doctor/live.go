package doctor

import (
	"math"
	"slices"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
)

// nameless are verdicts that say something without a rank.
var nameless = []hang.Kind{hang.Order, hang.Exited, hang.Killed}

// giveWay adds what a live job says of itself. A dump that names a rank beats a guess from words: findings that rest on
// words or suggest one thing among others lose what the verdict is sure of, and what only says that something happened
// follows from it. Where nothing else was found, logs alone are enough: an exception that ended a rank is no problem
// that others share, and still why the job is gone.
func (c *Case) giveWay(m *cause.Model, found []finding.Finding) []finding.Finding {
	if c.Job == nil || c.Job.Empty() || !c.Job.Waits() && finding.Serious(found) {
		return found
	}
	v := c.Job.Judge()
	if v.State == hang.Unknown && c.Job.Dumped() { // the files are known, and what is missing is worth a word
		return append(found, finding.Finding{
			ID: hang.Prefix + "unknown", Severity: finding.Note, Confidence: 1, Title: v.Title(), Cause: v.Text, Fix: v.Next[0],
			Evidence: v.Evidence,
		})
	}
	// a log that was not given is no finding
	if v.Kind == hang.UnknownKind || len(v.Ranks) == 0 && !slices.Contains(nameless, v.Kind) ||
		v.Kind == hang.NoReport && !c.Job.Dumped() {
		return found
	}
	list := v.Findings()
	if len(list) == 0 {
		return found
	}
	for i := range found {
		f := &found[i]
		switch g := c.how[f.ID]; {
		// the others' connections to it
		case m.Consequence(f.ID), f.ID == "connect-failed" && (v.Kind == hang.Killed || v.Kind == hang.Exited):
			f.ExplainedBy = list[0].ID
		case f.Severity != finding.Note && g != cause.States && g != cause.Agrees:
			f.Confidence = math.Round(100*f.Confidence*(1-v.Confidence)) / 100
		}
	}
	if !c.Job.Dumped() { // logs alone say who; a line that states why comes first
		for _, rule := range m.Detected {
			i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.ID == rule.ID && f.Severity != finding.Note })
			if i >= 0 && !rule.Consequence && c.how[rule.ID] >= cause.Agrees &&
				slices.Contains(rule.Follows, "collective-timeout") {
				list[0].ExplainedBy = rule.ID
				break
			}
		}
	}
	return append(found, list...)
}
