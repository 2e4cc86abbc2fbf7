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

// NewModel makes a model of the built-in causes and more of a user's.
func NewModel(more ...*cause.Cause) (*cause.Model, error) {
	m, err := cause.New(more...)
	if err != nil {
		return nil, err
	}
	return m, validate(m)
}

// grade is how a detector knows what it found.
func (c *Case) grade(f *finding.Finding) cause.Grade {
	how := c.how[f.ID]
	switch {
	case how == cause.Expects:
		return how
	case f.Severity == finding.Note:
		return cause.None
	case c.printed(f):
		return how
	case how == cause.Suggests:
		return cause.Hint
	}
	return cause.Says
}

// lineGrade is grade where most lines are printed: an error message may read like a sentence.
func (c *Case) lineGrade(f *finding.Finding) cause.Grade {
	if g := c.grade(f); g != cause.Says || !c.lined[f.ID] {
		return g
	}
	return c.how[f.ID]
}

// printed reports a finding that rests on a line which a program printed, or a setting.
func (c *Case) printed(f *finding.Finding) bool {
	return len(f.Evidence) == 0 || slices.ContainsFunc(f.Evidence,
		func(q finding.Quote) bool { return !c.Talk[q.File] || !evidence.Sentence(q.Text) })
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
	if share := parseFloat(c.ofPredicted().arg(1)); share > 0 && share < farBelow {
		x.Against = append(x.Against, "quantity-expectation")
	}
	return x
}

// byRecord gives findings that rest on lines the share in which such evidence was right.
func (c *Case) byRecord(m *cause.Model, found []finding.Finding) {
	for i := range found {
		g := c.lineGrade(&found[i])
		if g == cause.None { // a note is not weighed; its evidence is as good as any
			g = c.how[found[i].ID]
		}
		found[i].Confidence = math.Round(100*m.Record(found[i].ID, g)) / 100
	}
}

// Bounds of what is shown of hypotheses.
const (
	maxHypotheses = 5
	minHypotheses = 3
	leastShown    = 0.03
	maxQuestions  = 4
	faint         = 0.2
	unlikely      = 0.1 // what is less likely is a note
	farBelow      = 50  // percent of the prediction: nobody only expects too much
)

// weigh gives findings of what somebody tells the confidence of their cause, adds causes that no detector looks for,
// and questions where none is likely. Findings that rest on other sources keep their own.
func (c *Case) weigh(m *cause.Model, found []finding.Finding, asked cause.Case, r *Report) []finding.Finding {
	x := c.differential(found)
	x.Answers, x.Skipped = asked.Answers, asked.Skipped
	var lines, told []finding.Finding
	log := c.mostlyPrinted(found)
	for _, f := range found {
		g := c.grade(&f)
		if m.Consequence(f.ID) || c.elsewhere(&f) || g == cause.None ||
			log && (g == cause.States || g == cause.Says && c.lined[f.ID]) {
			lines = append(lines, f)
		} else {
			told = append(told, f)
		}
	}
	c.byRecord(m, lines)
	left := 1.0
	for _, f := range lines {
		if f.Severity != finding.Note && !m.Consequence(f.ID) {
			left = min(left, 1-f.Confidence)
		}
	}
	list := m.Weigh(&x)
	inherit(m, list, x.Rules)
	have := map[string]bool{}
	for _, f := range lines {
		have[f.ID] = true
	}
	shown := 0
	for _, h := range list {
		if h.Cause == nil || h.P < leastShown && (shown >= minHypotheses || top(list) >= cause.Threshold) &&
			!x.Confirmed(h.ID) || shown == maxHypotheses {
			continue
		}
		if f := c.finding(&h, told, left); !have[f.ID] {
			if x.Confirmed(h.ID) {
				f.Evidence = append(f.Evidence, finding.Quote{Text: "answered yes: " + h.Ask})
			}
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
				if lines[i].Confidence < faint && !m.Consequence(lines[i].ID) {
					lines[i].Severity = finding.Note
				}
			}
		}
	}
	if left == 1 && top(list) < cause.Sure {
		r.Questions = m.Ask(&x, list, maxQuestions)
	}
	return lines
}

// inherit gives what a detector's finding explains to that finding's cause: sockets in use are a consequence of the
// setting that forbids RDMA.
func inherit(m *cause.Model, list []cause.Hypothesis, rules map[string]cause.Grade) {
	for _, r := range m.Detected() {
		if g := rules[r.ID]; g != cause.States && g != cause.Agrees && g != cause.Says {
			continue
		}
		root := slices.IndexFunc(list, func(h cause.Hypothesis) bool { return h.Cause != nil && h.Finds(r.ID) })
		for i := range list {
			if root < 0 || i == root || list[i].Cause == nil || list[i].P < leastShown {
				continue
			}
			if slices.ContainsFunc(r.Follows,
				func(id string) bool { return rules[id] != cause.None && list[i].Finds(id) && !list[root].Finds(id) }) {
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
	return c.Asked && !cause.Contented(c.Words) ||
		c.Told && (c.Has(evidence.Symptom, evidence.Blames) || c.slow() || c.worded())
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

// mostlyPrinted reports a text in which programs printed at least as many lines as somebody wrote: what its lines state
// keeps its own confidence.
func (c *Case) mostlyPrinted(found []finding.Finding) bool {
	stated := map[string]bool{} // lines that no rule for sentences would be so sure of
	for _, f := range found {
		if c.how[f.ID] == cause.States {
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
	f := finding.Finding{
		ID: h.ID, Severity: finding.Warn, Title: h.Title, Cause: h.Why, Fix: h.Fix, Cost: h.Cause.Cost, Reference: h.See,
		Evidence: []finding.Quote{},
	}
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
		if len(f.Evidence) < maxEvidence &&
			!slices.ContainsFunc(f.Evidence, func(q finding.Quote) bool { return strings.Contains(q.Text, o.Text) }) {
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
