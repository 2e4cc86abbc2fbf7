package doctor

import (
	"slices"
	"strings"

	"busbar.dev/doctor/audit"
	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/hang"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
	"busbar.dev/internal/words"
)

// Report is what an examination gave.
type Report struct {
	Findings []finding.Finding `json:"findings"`
	Healthy  bool              `json:"healthy"` // nothing above a note, no unknown warning, and more judged than words
	// Undecided says that no cause is likely enough: the first findings are the leading ones.
	Undecided bool            `json:"undecided,omitempty"`
	Described bool            `json:"described,omitempty"` // somebody told of a fault
	Lines     int             `json:"lines"`
	Unknown   int             `json:"not_understood"`             // lines
	Unread    int             `json:"unknown_warnings,omitempty"` // of NCCL, among them
	Sources   []string        `json:"sources"`
	Samples   []finding.Quote `json:"not_understood_samples,omitempty"`
	Dropped   map[string]int  `json:"not_kept,omitempty"`           // what bounds on memory kept out, by kind
	Blank     bool            `json:"nothing_recognised,omitempty"` // nothing of it is known
	Named     string          `json:"named,omitempty"`              // what an input is that says nothing of faults
	Tests     []string        `json:"nccl_tests_files,omitempty"`   // with output of nccl-tests, compared with no prediction
	Guessed   bool            `json:"guessed,omitempty"`            // what a verdict rests on
	Traces    int             `json:"traces,omitempty"`             // files that a profiler wrote
	// Judged is what was looked at, and Unjudged what no source says of it: an all-clear is of the first alone.
	Judged   []string `json:"judged,omitempty"`
	Unjudged []string `json:"not_judged,omitempty"`
	// Training is by its log.
	Training *evidence.Training `json:"training,omitempty"`
}

// NewModel makes a model of the built-in causes and more of a user's.
func NewModel(more ...*cause.Cause) (*cause.Model, error) {
	m, err := cause.New(more...)
	if err != nil {
		return nil, err
	}
	return m, validate(m)
}

// Weigh finds what evidence shows, and ranks causes. Without a description the confidence is that of the evidence's
// grade; what only says that something happened, and not why, is then the description.
func Weigh(m *cause.Model, s *evidence.Set) *Report { return newCase(s).weigh(m) }

func (c *Case) weigh(m *cause.Model) *Report {
	s := c.Set
	r := &Report{
		Lines: s.Lines, Unknown: s.Unknown, Unread: s.Unread, Sources: append([]string{}, s.Sources...), Samples: s.Samples,
		Dropped: s.Dropped, Blank: s.Blank(), Named: s.Named, Traces: len(s.Traces), Training: s.Training,
		Described: c.described(),
	}
	found := c.detect(m)
	causes, happened := split(m, found)
	r.Described = r.Described || s.Failed && !finding.Serious(found)
	switch {
	case r.Described:
		causes = c.rank(m, causes, c.clauses)
	case finding.Serious(happened) && !finding.Serious(causes):
		causes = undecided(c.rank(m, causes, told.Read(quotedText(happened), nil)))
	default:
		c.grade(causes)
	}
	c.grade(happened)
	if silent := *s; !r.Described && !c.contented() {
		silent.Told = false
		r.Blank = silent.Blank()
	}
	found = slices.Concat(causes, happened, c.ofFleet())
	explain(m, found)
	found = c.giveWay(m, found)
	order(m, found, c.Job != nil && c.Job.Dumped())
	r.Undecided = (r.Described || finding.Serious(found)) && !decided(m, found)
	// next to a fault it is of no use
	if t := s.Training; t != nil && (t.Bar || t.Lines == 0 && t.NaN == "") && len(found) > 0 {
		r.Training = nil
	}
	r.Findings = append([]finding.Finding{},
		slices.Concat(again(s.Job), found, among(s.Tables), reached(s), trained(r.Training))...)
	if s.Cluster != nil && !finding.Serious(r.Findings) {
		r.Findings = append(r.Findings, noted(s.Cluster.Warnings)...)
	}
	for i := range s.Tables {
		if f := s.Tables[i].File; len(s.Tables[i].Sweeps) > 0 && !slices.Contains(r.Tests, f) {
			r.Tests = append(r.Tests, f)
		}
	}
	r.judge(s)
	r.Healthy = s.Unread == 0 && !finding.Serious(r.Findings) && !r.Described && r.Examined() && r.Judged[0] != wordsOnly
	return r
}

// wordsOnly is what was judged of a text that describes nothing.
const wordsOnly = "the words of its lines"

// judge says what an all-clear is of.
func (r *Report) judge(s *evidence.Set) {
	if s.Cluster != nil {
		r.Judged, r.Unjudged = s.Cluster.Summary().Parts(), audit.Unchecked(s.Cluster)
	}
	add := func(n int, noun string) {
		if n > 0 {
			r.Judged = append(r.Judged, words.Plural(n, noun))
		}
	}
	add(len(r.Tests), "table of nccl-tests")
	add(len(s.Pairs), "table of pairs")
	add(len(s.Figures), "figure of perftest")
	if s.Log != nil {
		whole := slices.DeleteFunc(slices.Clone(s.Log.Comms), func(m nccllog.Comm) bool { return m.NRanks == 0 })
		add(len(whole), "communicator")
		if len(whole) == 0 {
			r.Unjudged = append(r.Unjudged, "who set up which communicator over which network (the log from its beginning)")
		}
	}
	for _, x := range []struct {
		seen bool
		what string
	}{
		{s.Training != nil || len(s.Steps) > 0, "steps of a training"},
		{s.Job != nil && s.Job.Dumped(), "what ranks do"},
		{s.Kernel(), "the kernel's log, for Xids and faults of NICs, PCIe and memory"},
		{s.Judged, "another check's verdict"},
		{s.Asked && len(r.Judged) == 0, "what was said"},
	} {
		if x.seen {
			r.Judged = append(r.Judged, x.what)
		}
	}
	if len(r.Judged) == 0 {
		r.Judged = []string{wordsOnly}
	}
}

// contented reports that somebody says of something that it works, or is in order.
func (c *Case) contented() bool {
	return slices.ContainsFunc(c.said,
		func(x told.Clause) bool { return x.Verdict == told.Works || x.Verdict == told.Settled })
}

// Bounds of what tells of a fault without a complaint.
const (
	shortest = 3  // words up to which a sentence tells of nothing: "hello there"
	fewLines = 12 // up to which a rate is somebody's question, not a program's output
)

// described reports that somebody tells of a fault. A sentence that says nothing but that all is well tells of none.
func (c *Case) described() bool {
	complaint := c.Told && (c.tells(told.Slow, told.Hang, told.Crash) || c.Lines <= fewLines && c.tells(told.Rate))
	if !c.Asked && (!c.Told || c.mostlyPrinted()) {
		return complaint
	}
	said := map[told.Verdict]bool{}
	for i := range c.said {
		said[c.said[i].Verdict] = true
	}
	whole := c.Asked || slices.ContainsFunc(strings.Split(c.Words, "\n"), func(line string) bool {
		return len(strings.Fields(line)) > shortest && evidence.Wording(line)
	})
	return complaint || whole && (said[told.Fails] || said[told.Seen])
}

// split parts causes from what only says that something happened.
func split(m *cause.Model, found []finding.Finding) (causes, happened []finding.Finding) {
	for _, f := range found {
		if m.Consequence(f.ID) {
			happened = append(happened, f)
		} else {
			causes = append(causes, f)
		}
	}
	return causes, happened
}

// undecided are hypotheses that rest on nothing but what happened: it alone decides nothing.
func undecided(list []finding.Finding) []finding.Finding {
	for i := range list {
		if len(list[i].Evidence) == 0 {
			list[i].Confidence, list[i].Severity = min(list[i].Confidence, cause.Threshold-0.01), finding.Note
		}
	}
	return list
}

// quotedText are the lines that findings quote.
func quotedText(list []finding.Finding) string {
	var b strings.Builder
	for _, f := range list {
		for _, q := range f.Evidence {
			b.WriteString(q.Text + "\n")
		}
	}
	return b.String()
}

// decided reports that something is likely to be the cause.
func decided(m *cause.Model, found []finding.Finding) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool {
		return f.Severity != finding.Note && f.Confidence >= cause.Threshold && !m.Consequence(f.ID)
	})
}

// Examined reports that something was read that findings can come from.
func (r *Report) Examined() bool {
	return !r.Blank || len(r.Findings) > 0
}

// Wrong reports a fault that was described, or found.
func (r *Report) Wrong(least finding.Severity) bool {
	return r.Described && least <= finding.Warn || finding.AtLeast(r.Findings, least)
}

// tier is 0 for what a live job's own dumps say, 1 for causes, 2 for who waits for whom by the logs alone, 3 for notes,
// and 4 for what says only that something happened: that is the question.
func tier(m *cause.Model, f *finding.Finding, dumps bool) int {
	switch {
	case strings.HasPrefix(f.ID, hang.Prefix) && f.Confidence >= cause.Threshold:
		if !dumps {
			return 2
		}
		return 0
	case m != nil && m.Consequence(f.ID):
		return 4
	case f.Severity == finding.Note:
		return 3
	}
	return 1
}
