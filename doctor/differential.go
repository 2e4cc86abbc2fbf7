package doctor

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// model weighs the built-in causes, and the detectors that are no cause's, as causes of their own.
var model = sync.OnceValues(func() (*cause.Model, error) { return NewModel() })

// NewModel makes a model of the built-in causes, the detectors, and more causes of a user's.
func NewModel(more ...*cause.Cause) (*cause.Model, error) {
	m, err := cause.New(more...)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, c := range m.Causes() {
		known[c.ID] = true
		for _, r := range c.Rules {
			known[r] = true
		}
	}
	for _, r := range Rules() {
		if !known[r.ID] && !surface[r.ID] {
			more = append(more, &cause.Cause{ID: r.ID, Title: r.Says, Why: r.Says, See: r.Reference, Area: "detector"})
		}
	}
	return cause.New(more...)
}

// expected are findings that say that nothing is wrong.
var expected = map[string]bool{"two-node-tree": true, "near-line-rate": true, "as-predicted": true, "duplex-figure": true, "small-messages": true, "one-gpu-limit": true}

// grade is how a detector knows what it found.
func (c *Case) grade(f *finding.Finding) cause.Grade {
	printed := c.printed(f)
	switch {
	case f.Severity == finding.Note && expected[f.ID]:
		return cause.Expects
	case f.Severity == finding.Note:
		return cause.None
	case printed && f.Confidence >= 0.85:
		return cause.States
	case printed && f.Confidence >= 0.6:
		return cause.Agrees
	case printed:
		return cause.Suggests
	case f.Confidence >= 0.6:
		return cause.Says
	}
	return cause.Hint
}

// lineGrade is grade where most lines are printed: an error message may read like a sentence.
func (c *Case) lineGrade(f *finding.Finding) cause.Grade {
	switch g := c.grade(f); {
	case g == cause.Says && f.Confidence >= 0.85:
		return cause.States
	case g == cause.Says && f.Confidence >= 0.75:
		return cause.Agrees
	default:
		return g
	}
}

// printed reports a finding that rests on a line which a program printed, or a setting.
func (c *Case) printed(f *finding.Finding) bool {
	return len(f.Evidence) == 0 || slices.ContainsFunc(f.Evidence, func(q finding.Quote) bool { return !c.Talk[q.File] || !evidence.Sentence(q.Text) })
}

// differential is the case as the model sees it.
func (c *Case) differential(found []finding.Finding) cause.Case {
	x := cause.Case{Told: cause.Tell(c.Words), Rules: map[string]cause.Grade{}}
	for i := range found {
		x.Rules[found[i].ID] = c.grade(&found[i])
	}
	if c.wireBeatsNCCL() > 0 { // a rate below what one NIC carries has nothing to do with their number
		x.Against = []string{"single-nic", "slow-network"}
	}
	return x
}

// detect applies all rules.
func (c *Case) detect() []finding.Finding {
	rules := Rules()
	var found []finding.Finding
	for i := range rules {
		if f := rules[i].Check(c); f != nil {
			tidy(f, &rules[i])
			found = append(found, *f)
		}
	}
	return append(found, c.audited(found)...)
}

// lineConfidence is how often a finding of a grade is right that rests on lines which programs printed.
var lineConfidence = [...]float64{cause.None: 0.5, cause.Hint: 0.3, cause.Says: 0.45, cause.Suggests: 0.45, cause.Agrees: 0.7, cause.States: 0.9, cause.Expects: 0.7}

// byGrade gives findings that rest on lines their confidence.
func (c *Case) byGrade(found []finding.Finding) {
	for i := range found {
		found[i].Confidence = lineConfidence[c.lineGrade(&found[i])]
	}
}

// Bounds of what is shown of hypotheses.
const (
	maxHypotheses = 5
	minHypotheses = 3
	leastShown    = 0.03
	maxQuestions  = 4
	faint         = 0.2
)

// weigh gives findings of what somebody tells the confidence of their cause, adds causes that no detector looks for, and questions where none is
// likely. Findings that rest on other sources keep their own.
func (c *Case) weigh(m *cause.Model, found []finding.Finding, answers map[string]bool, r *Report) []finding.Finding {
	x := c.differential(found)
	x.Answers = answers
	var lines, told []finding.Finding
	log := c.mostlyPrinted(found)
	for _, f := range found {
		g := c.grade(&f)
		if surface[f.ID] || c.elsewhere(&f) || g == cause.None || log && (c.lineGrade(&f) == cause.States || g == cause.Says && c.lineGrade(&f) == cause.Agrees) {
			lines = append(lines, f)
		} else {
			told = append(told, f)
		}
	}
	c.byGrade(lines)
	left := 1.0
	for _, f := range lines {
		if f.Severity != finding.Note && !surface[f.ID] {
			left = min(left, 1-f.Confidence)
		}
	}
	list := m.Weigh(&x)
	inherit(list, x.Rules)
	have := map[string]bool{}
	for _, f := range lines {
		have[f.ID] = true
	}
	shown := 0
	for _, h := range list {
		if h.Cause == nil || h.P < leastShown && (shown >= minHypotheses || top(list) >= cause.Threshold) || shown == maxHypotheses {
			continue
		}
		if f := c.finding(&h, told, left); !have[f.ID] {
			have[f.ID] = true
			lines = append(lines, f)
			shown++
		}
	}
	for _, f := range told { // what a line states is not left out, however unlikely it is to be the cause
		if g := c.grade(&f); !have[f.ID] && (g == cause.States || g == cause.Agrees) {
			f.Confidence = leastShown
			lines = append(lines, f)
		}
	}
	if left == 1 && top(list) < cause.Threshold {
		r.Undecided = true
		if !c.Asked && top(list) < faint { // nothing speaks for any: what leads is no finding
			for i := range lines {
				if lines[i].Confidence < faint && !surface[lines[i].ID] {
					lines[i].Severity = finding.Note
				}
			}
		}
		r.Questions = m.Ask(list, answers, maxQuestions)
	}
	return lines
}

// inherit gives what a detector's finding explains to that finding's cause: sockets in use are a consequence of the setting that forbids RDMA.
func inherit(list []cause.Hypothesis, rules map[string]cause.Grade) {
	for _, r := range Rules() {
		if g := rules[r.ID]; g != cause.States && g != cause.Agrees && g != cause.Says {
			continue
		}
		root := slices.IndexFunc(list, func(h cause.Hypothesis) bool { return h.Cause != nil && h.Finds(r.ID) })
		for i := range list {
			if root < 0 || i == root || list[i].Cause == nil || list[i].P < leastShown {
				continue
			}
			if slices.ContainsFunc(r.Explains, func(id string) bool { return rules[id] != cause.None && list[i].Finds(id) && !list[root].Finds(id) }) {
				list[root].P += list[i].P / 2
				list[i].P /= 2
			}
		}
	}
	slices.SortStableFunc(list, func(a, b cause.Hypothesis) int { return cmp.Compare(b.P, a.P) })
}

// elsewhere reports a finding that rests on a source in which nobody tells anything.
func (c *Case) elsewhere(f *finding.Finding) bool {
	return slices.ContainsFunc(f.Evidence, func(q finding.Quote) bool { return !c.Talk[q.File] })
}

// complains reports that what somebody wrote tells of a fault, and does not only stand beside a log.
func (c *Case) complains() bool {
	return c.Asked || c.Told && (c.Has(evidence.Symptom, evidence.Blames) || c.slow() || c.worded())
}

// worded reports a sentence that complains in words of the causes' vocabulary.
func (c *Case) worded() bool {
	for line := range strings.Lines(c.Words) {
		if evidence.Sentence(line) && cause.Complains(line) {
			return true
		}
	}
	return false
}

// mostlyPrinted reports a text in which programs printed at least as many lines as somebody wrote: what its lines state keeps its own confidence.
func (c *Case) mostlyPrinted(found []finding.Finding) bool {
	stated := map[string]bool{} // lines that no rule for sentences would be so sure of
	for _, f := range found {
		if f.Confidence >= 0.85 {
			for _, q := range f.Evidence {
				stated[q.Text] = true
			}
		}
	}
	said, all := 0, 0
	for line := range strings.Lines(c.Words) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		all++
		if evidence.Sentence(line) && !stated[strings.TrimSpace(line)] {
			said++
		}
	}
	return 2*said <= max(all, c.Lines)
}

// top is how likely the likeliest cause is.
func top(list []cause.Hypothesis) float64 {
	for _, h := range list {
		if h.Cause != nil {
			return h.P
		}
	}
	return 0
}

// finding is a hypothesis as it is reported: with the words of its detector where there is one.
func (c *Case) finding(h *cause.Hypothesis, told []finding.Finding, left float64) finding.Finding {
	f := finding.Finding{ID: h.ID, Severity: finding.Warn, Title: h.Title, Cause: h.Why, Fix: h.Fix, Cost: h.Cause.Cost, Reference: h.See, Evidence: []finding.Quote{}}
	if h.Test != "" {
		f.Fix += " To confirm: " + h.Test
	}
	by := slices.IndexFunc(told, func(f finding.Finding) bool { return f.ID == h.ID })
	if by < 0 {
		by = slices.IndexFunc(told, func(f finding.Finding) bool { return h.Finds(f.ID) })
	}
	if by >= 0 {
		f = told[by]
	}
	for _, o := range h.Basis {
		if len(f.Evidence) < maxEvidence && !slices.ContainsFunc(f.Evidence, func(q finding.Quote) bool { return strings.Contains(q.Text, o.Text) }) {
			f.Evidence = append(f.Evidence, c.quoteOf(o.Text))
		}
	}
	f.Confidence = math.Round(100*h.P*left) / 100
	return f
}

// quoteOf is the line of a clause.
func (c *Case) quoteOf(clause string) finding.Quote {
	q := finding.Quote{Text: clause}
	if len(c.Sources) == 1 {
		q.File = c.Sources[0]
	}
	return q
}
