package doctor

import (
	"slices"
	"strings"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
)

// Case is the evidence with what rules ask of it again and again.
type Case struct {
	*evidence.Set
	hosts   int                    // that printed records of NCCL
	ranks   int                    // of the largest communicator, 0 unknown
	clauses []told.Clause          // of what is told, lines of programs among it
	said    []told.Clause          // of its sentences
	how     map[string]cause.Grade // how evidence shows what was found
	known   map[string]any         // facts
	memo    map[string]*clue       // their answers
	without string                 // a thread to leave out of what was learned
}

func newCase(s *evidence.Set) *Case {
	c := &Case{
		Set: s, how: map[string]cause.Grade{},
		memo:    map[string]*clue{},
		clauses: told.Read(s.Words, evidence.Sentence), said: told.Read(sentences(s.Words), evidence.Sentence),
	}
	if s.Log != nil {
		c.hosts = len(s.Log.Hosts)
		for i := range s.Log.Comms {
			c.ranks = max(c.ranks, s.Log.Comms[i].NRanks)
		}
	}
	c.known = c.facts()
	return c
}

// sentences are the lines of a text that somebody wrote.
func sentences(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if evidence.Sentence(line) {
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}

// tells reports that somebody tells of a symptom.
func (c *Case) tells(symptoms ...string) bool { return told.Complaint(c.said, symptoms...) }

// value is a setting's value in lower case, "" when it is not set.
func (c *Case) value(name string) string {
	if e := c.Env(name); e != nil {
		return strings.ToLower(e.Value)
	}
	return ""
}

// quotes are the first lines of observations, and of all of a kind.
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
		}
	}
	return first(list, maxEvidence)
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// experiment reports settings of those who try things out on purpose: several
// ranks on one GPU, hosts that are none.
func (c *Case) experiment() bool {
	return c.Env("NCCL_HOSTID") != nil || c.Env("NCCL_TESTS_DEVICE") != nil || c.Env("NCCL_MULTI_RANK_GPU_ENABLE") != nil
}

// broken reports that NCCL or the program gave up, or people say so.
func (c *Case) broken() bool {
	return c.Has(evidence.TorchError, evidence.Watchdog, evidence.Returned, evidence.ConnectError, evidence.PeerGone) ||
		c.tells(told.Hang, told.Crash)
}

// rdma reports signs that the hosts have NICs for RDMA.
func (c *Case) rdma() bool {
	if c.Has(evidence.IBUsing, evidence.DeviceFailure, evidence.GDROn, evidence.GDROff, evidence.Completion) {
		return true
	}
	return c.Env("NCCL_IB_HCA") != nil && c.value("NCCL_IB_DISABLE") != "1"
}

// onInfiniBand is how somebody says it.
const onInfiniBand = "on infiniband"

// layer is the link layer of the RDMA NICs: IB, RoCE, IB+RoCE or "".
func (c *Case) layer() string {
	for _, o := range c.All(evidence.IBUsing) {
		if o.Arg(1) != "" {
			return o.Arg(1)
		}
	}
	at := strings.Index(strings.ToLower(c.Words), onInfiniBand)
	switch {
	case at >= 0 && !told.Denies(c.Words, at, at+len(onInfiniBand)):
		return "IB"
	case c.Env("NCCL_IB_GID_INDEX") != nil:
		return "RoCE"
	}
	return ""
}

// multinode reports that more than one host takes part.
func (c *Case) multinode() bool {
	if c.hosts > 1 {
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
