package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/internal/words"
)

// status is a completion with a status.
func (c *Case) status(code ...string) *clue {
	return clueOf(c.Find(evidence.Completion, func(o *evidence.Observation) bool { return o.Arg(0) == code[0] }))
}

// verdictOf is a work completion's error by name, as words or as NCCL's number.
func (c *Case) verdictOf(nameAndCode ...string) *clue {
	named := c.Find(evidence.Verdict,
		func(o *evidence.Observation) bool { return strings.HasPrefix(o.Arg(0), nameAndCode[0]) })
	return cmp.Or(clueOf(named), c.status(nameAndCode[1]))
}

// lostPeer is a peer that several hosts name whose transfers to it failed, more than name any other: its host's name
// where the logs tell it.
func (c *Case) lostPeer() *clue {
	var most *evidence.Observation
	alone := false
	for _, o := range c.All(evidence.LostPeer) {
		switch {
		case most == nil || len(o.Hosts) > len(most.Hosts):
			most, alone = o, len(o.Hosts) > 1
		case len(o.Hosts) == len(most.Hosts):
			alone = false
		}
	}
	if !alone {
		return nil
	}
	host := most.Arg(0)
	if c.Job != nil {
		host = c.Job.HostOf(host)
	}
	return &clue{args: []string{host}, quotes: first(most.Quotes, maxEvidence)}
}

// failed is the first failure of a call for a reason; "": for none that was printed. Without calls it is any call's.
func (c *Case) failed(reasonAndCalls ...string) *clue {
	reason, calls := reasonAndCalls[0], reasonAndCalls[1:]
	return clueOf(c.Find(evidence.VerbsFailure, func(o *evidence.Observation) bool {
		return o.Arg(1) == reason &&
			slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(o.Arg(0), call) })
	}))
}

// sharers are the GPUs of a host and its fewer NICs, in a job over several hosts.
func (c *Case) sharers() *clue {
	gpus := 0
	list := c.All(evidence.IBUsing)
	if c.Log == nil || len(list) == 0 {
		return nil
	}
	for i := range c.Log.Comms {
		m := &c.Log.Comms[i]
		for _, r := range m.Ranks {
			if max(r.NNodes, m.NNodes) > 1 {
				gpus = max(gpus, r.LocalRanks)
			}
		}
	}
	nics := strings.Count(list[0].Arg(0), ",") + 1
	if gpus < 2 || nics >= gpus {
		return nil
	}
	return &clue{args: []string{strconv.Itoa(gpus), words.Plural(nics, "NIC")}, quotes: first(list[0].Quotes, 1)}
}
