package doctor

import (
	"cmp"
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
)

// Case is the evidence with what rules ask of it again and again.
type Case struct {
	*evidence.Set
	hosts   int // that printed records of NCCL
	ranks   int // of the largest communicator, 0 unknown
	prices  map[string]priced
	known   **machine              // what machine found, once it was asked
	release [3]int                 // oldest release of NCCL seen, zero unknown
	how     map[string]cause.Grade // how evidence shows what was found
	lined   map[string]bool        // what was found by lines, beyond what somebody tells
	memo    map[string]any         // answers of facts
}

// Report is what an examination gave.
type Report struct {
	Findings []finding.Finding `json:"findings"`
	Healthy  bool              `json:"healthy"` // nothing above a note, no unknown warning
	// Undecided says that no cause is likely enough: the first findings are the leading ones, and Questions tell them
	// apart.
	Undecided bool             `json:"undecided,omitempty"`
	Asked     bool             `json:"described,omitempty"` // somebody described a problem to the program itself
	Questions []cause.Question `json:"questions,omitempty"`
	Lines     int              `json:"lines"`
	Unknown   int              `json:"not_understood"`             // lines
	Unread    int              `json:"unknown_warnings,omitempty"` // of NCCL, among them
	Sources   []string         `json:"sources"`
	Samples   []finding.Quote  `json:"not_understood_samples,omitempty"`
	Dropped   map[string]int   `json:"not_kept,omitempty"`           // what bounds on memory kept out, by kind
	Blank     bool             `json:"nothing_recognised,omitempty"` // nothing of it is known
	Slowing   bool             `json:"notes_on_speed,omitempty"`     // a note is a cause of slow jobs
	Tests     []string         `json:"nccl_tests_files,omitempty"`   // with output of nccl-tests
	Traces    int              `json:"traces,omitempty"`             // files that a profiler wrote
	// Training is by its log.
	Training *evidence.Training `json:"training,omitempty"`
}

// Examine weighs the built-in causes.
func Examine(s *evidence.Set) *Report {
	m, err := model()
	if err != nil {
		panic(err) // data of the program; a test has read it
	}
	return Weigh(m, s, nil)
}

// Weigh applies all detectors and weighs causes. answers are those to questions of an earlier report, by their names;
// skipped are questions that nobody can answer.
func Weigh(m *cause.Model, s *evidence.Set, answers map[string]bool, skipped ...string) *Report {
	c := newCase(s)
	found := c.detect(m)
	detected := map[string]bool{}
	for i := range found {
		detected[found[i].ID] = true
	}
	for _, x := range m.Causes() {
		detected[x.ID] = detected[x.ID] || slices.ContainsFunc(x.Rules, func(id string) bool { return detected[id] })
	}
	r := &Report{
		Lines: s.Lines, Unknown: s.Unknown, Unread: s.Unread, Sources: append([]string{}, s.Sources...), Samples: s.Samples,
		Dropped: s.Dropped,
		Blank:   s.Blank(),
		Asked:   s.Asked,
	}
	if c.complains() || answers != nil {
		found = c.weigh(m, found, cause.Case{Answers: answers, Skipped: skipped}, r)
	} else {
		c.byRecord(m, found)
	}
	for i := range found {
		c.cost(&found[i])
	}
	explain(m, found)
	found = c.giveWay(m, found, r)
	best := 0.0 // of causes that no detector found: what is less than a quarter as likely does not come before them
	for _, f := range found {
		if !detected[f.ID] && !m.Consequence(f.ID) && !strings.HasPrefix(f.ID, hang.Prefix) {
			best = max(best, f.Confidence)
		}
	}
	for _, f := range found {
		detected[f.ID] = detected[f.ID] && 4*f.Confidence >= best
	}
	order(m, found, c.Job != nil && c.Job.Dumped(), detected)
	for i := range found { // after the order: a line that states it comes before guesses all the same
		if f := &found[i]; f.Confidence < unlikely && !m.Consequence(f.ID) {
			f.Severity = finding.Note
		}
	}
	// What nothing in the text speaks for and is as good as excluded would only be read.
	r.Findings = slices.DeleteFunc(found,
		func(f finding.Finding) bool { return f.Confidence < 0.005 && len(f.Evidence) == 0 })
	r.Slowing = slowing(m, r.Findings)
	r.Findings = append(append([]finding.Finding{}, r.Findings...),
		slices.Concat(inPlace(s.Tables), trained(s.Training), traced(s.Traces))...)
	r.Healthy = s.Unread == 0 && !finding.Serious(r.Findings)
	r.Traces, r.Training = len(s.Traces), s.Training
	for i := range s.Tables {
		if f := s.Tables[i].File; !slices.Contains(r.Tests, f) {
			r.Tests = append(r.Tests, f)
		}
	}
	return r
}

// slowing reports a note whose cause is one of slow jobs.
func slowing(m *cause.Model, list []finding.Finding) bool {
	return slices.ContainsFunc(m.Causes(), func(x *cause.Cause) bool {
		return slices.Contains(x.Symptoms, "slow") && slices.ContainsFunc(list, func(f finding.Finding) bool {
			return f.ID == x.ID && f.Severity == finding.Note && f.Confidence >= cause.Threshold
		})
	})
}

// Examined reports that something was read that findings can come from. A profiler's traces are read by another
// question.
func (r *Report) Examined() bool {
	return !r.Blank || len(r.Findings) > min(r.Traces, 1)
}

func newCase(s *evidence.Set) *Case {
	c := &Case{
		Set: s, prices: map[string]priced{}, how: map[string]cause.Grade{}, lined: map[string]bool{}, memo: map[string]any{},
	}
	if s.Log != nil {
		c.hosts = len(s.Log.Hosts)
		for i := range s.Log.Comms {
			c.ranks = max(c.ranks, s.Log.Comms[i].NRanks)
		}
	}
	for _, o := range s.All(evidence.NCCLVersion) {
		v := parseRelease(o.Arg(0))
		if c.release == [3]int{} || slices.Compare(v[:], c.release[:]) < 0 {
			c.release = v
		}
	}
	return c
}

// parseRelease reads 2.18.5.
func parseRelease(s string) (v [3]int) {
	for i, part := range strings.SplitN(s, ".", 3) {
		n := 0
		for _, r := range part {
			if r < '0' || r > '9' || n > 9999 {
				break
			}
			n = 10*n + int(r-'0')
		}
		v[i] = n
	}
	return v
}

// before reports that the release of NCCL is known and older.
func (c *Case) before(major, minor int) bool {
	return c.release != [3]int{} && cmp.Or(cmp.Compare(c.release[0], major), cmp.Compare(c.release[1], minor)) < 0
}

// is reports that people told of a symptom.
func (c *Case) is(names ...string) bool { return c.First(evidence.Symptom, names...) != nil }

// slow reports that people complain of speed: they say so, or they give figures
// and nothing worse.
func (c *Case) slow() bool {
	if c.is("slow", "drop") {
		return true
	}
	return c.Told && len(c.Figures)+len(c.Changes) > 0 && !c.is("hang", "crash", "wrong") && !c.about("abovelimit") &&
		!c.aboveLimit() && c.shareOfLine() < 0.7 && c.toldOf() < 0.7
}

// in reports that people told of a circumstance.
func (c *Case) in(names ...string) bool { return c.First(evidence.Setting, names...) != nil }

// about reports that people spoke of something.
func (c *Case) about(names ...string) bool { return c.First(evidence.Topic, names...) != nil }

// helps and hurts report settings that people told to make it work, or fail.
func (c *Case) helps(part ...string) bool { return contains(c.All(evidence.Helps), part[0]) }
func (c *Case) hurts(part ...string) bool { return contains(c.All(evidence.Hurts), part[0]) }

// helper is a setting that is told to help and begins so.
func (c *Case) helper(setting ...string) *evidence.Observation {
	return c.Find(evidence.Helps, func(o *evidence.Observation) bool {
		return strings.HasPrefix(strings.ReplaceAll(o.Arg(0), " ", ""), setting[0])
	})
}

func contains(list []*evidence.Observation, part string) bool {
	return slices.ContainsFunc(list, func(o *evidence.Observation) bool {
		return strings.Contains(strings.ReplaceAll(o.Arg(0), " ", ""), part)
	})
}

// value is a setting's value in lower case, "" when it is not set.
func (c *Case) value(name string) string {
	if e := c.Env(name); e != nil {
		return strings.ToLower(e.Value)
	}
	return ""
}

// quotes are the lines of observations and settings.
func (c *Case) quotes(what ...any) []finding.Quote {
	var list []finding.Quote
	for _, w := range what {
		switch w := w.(type) {
		case evidence.Kind:
			for _, o := range c.All(w) {
				list = append(list, first(o.Quotes, 1)...)
			}
		case *evidence.Observation:
			if w != nil {
				list = append(list, first(w.Quotes, 1)...)
			}
		case string:
			if e := c.Env(w); e != nil {
				list = append(list, e.Quote)
			}
		case finding.Quote:
			list = append(list, w)
		}
	}
	return first(list, maxEvidence)
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// told are the lines of symptoms and circumstances.
func (c *Case) told(names ...string) []finding.Quote {
	var list []finding.Quote
	for _, k := range []evidence.Kind{
		evidence.Symptom, evidence.Setting, evidence.Topic, evidence.Blames, evidence.Release,
	} {
		for _, n := range names {
			if o := c.First(k, n); o != nil {
				list = append(list, first(o.Quotes, 1)...)
			}
		}
	}
	return list
}

// experiment reports settings of those who try things out on purpose: several
// ranks on one GPU, hosts that are none.
func (c *Case) experiment() bool {
	return c.Env("NCCL_HOSTID") != nil || c.Env("NCCL_TESTS_DEVICE") != nil || c.Env("NCCL_MULTI_RANK_GPU_ENABLE") != nil
}

// broken reports that NCCL or the program gave up, or people say so.
func (c *Case) broken() bool {
	return c.Has(evidence.TorchError, evidence.Watchdog, evidence.Returned, evidence.ConnectError, evidence.PeerGone) ||
		c.is("hang", "crash", "timeout")
}

// rdma reports signs that the hosts have NICs for RDMA.
func (c *Case) rdma() bool {
	if c.Has(evidence.IBUsing, evidence.DeviceFailure, evidence.GDROn, evidence.GDROff, evidence.Completion) ||
		c.in("ib", "roce", "efa", "slingshot") {
		return true
	}
	return c.Env("NCCL_IB_HCA") != nil && c.value("NCCL_IB_DISABLE") != "1"
}

// layer is the link layer of the RDMA NICs: IB, RoCE, IB+RoCE or "".
func (c *Case) layer() string {
	for _, o := range c.All(evidence.IBUsing) {
		if o.Arg(1) != "" {
			return o.Arg(1)
		}
	}
	switch {
	case c.in("roce"), c.Env("NCCL_IB_GID_INDEX") != nil, c.Has(evidence.GID):
		return "RoCE"
	case c.in("ib"):
		return "IB"
	}
	return ""
}

// multinode reports that more than one host takes part.
func (c *Case) multinode() bool {
	if c.hosts > 1 || c.in("multinode") {
		return true
	}
	if c.Log != nil {
		for i := range c.Log.Comms {
			if c.Log.Comms[i].NNodes > 1 {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.All(evidence.OverNet), func(o *evidence.Observation) bool { return o.Count > 0 })
}

// oneHost reports that nccl-tests lists its GPUs on a single host.
func (c *Case) oneHost() bool {
	names := map[string]bool{}
	for _, o := range c.All(evidence.TestRank) {
		names[o.Arg(1)] = true
	}
	return len(names) == 1 && !c.multinode()
}

// rankTwice are the lines of ranks that were started more than once while others of
// the same job are missing.
func (c *Case) rankTwice() []finding.Quote {
	var twice []finding.Quote
	list := c.All(evidence.GlobalRank)
	for _, o := range list {
		if o.Count > 1 && len(list) < atoi(o.Arg(1)) {
			twice = append(twice, first(o.Quotes, 2)...)
		}
	}
	if len(twice) < 4 { // one rank alone may have been restarted
		return nil
	}
	return twice
}
