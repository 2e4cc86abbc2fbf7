package hub

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// TwoAgents is a finding about a name that two agents connect under.
const TwoAgents finding.Kind = "two-agents"

const (
	longestUp     = 10 * 365 * 24 * time.Hour // that an agent is believed to run
	instanceLasts = 35 * time.Second          // an agent that has not beaten for so long has ended
	settleAgain   = 5 * time.Second           // between two words about the same agents
)

// rivals tells agents of one name apart. An agent that is started again has another mark than before, and
// the old one is never heard again; where it is, there are two. All times are by the process's own clock, which
// nobody sets.
type rivals struct {
	mu   sync.Mutex // guards following
	seen map[fleet.Name]*[2]instance
	met  recent[*fleet.Settled] // two were heard, and were told this
}

// instance is one agent of a name.
type instance struct {
	agent       string
	began, came time.Time
	since       time.Time // it is heard here
}

// beat hears an agent. What it returns is for all agents of the name, nil where nothing is to be said.
func (r *rivals) beat(b *fleet.Beat, now time.Time) *fleet.Settled {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.seen[b.Node]
	v := r.update(b, known, now)
	if known == nil {
		if r.seen == nil || len(r.seen) >= 2*fleet.MaxNodes {
			r.seen = map[fleet.Name]*[2]instance{}
		}
		r.seen[b.Node] = &[2]instance{v}
		return nil
	}
	last, other := known[0], known[1]
	if v.agent == last.agent {
		known[0] = v
		return nil
	}
	*known = [2]instance{v, last}
	switch {
	case now.Sub(last.came) > instanceLasts:
		known[1] = instance{}
		return nil
	case v.agent != other.agent || other.came.IsZero() || now.Sub(other.came) > instanceLasts:
		return &fleet.Settled{} // a restart, or a second: the first answers if it is there
	}
	return r.decide(b.Node, v, last, now)
}

// update is an agent as it says it is. Who took a node's credentials would say that it was there for years: one that
// comes while another has been heard for a while began after that, whatever it says.
func (r *rivals) update(b *fleet.Beat, known *[2]instance, now time.Time) instance {
	up := b.Up
	if !(up >= 0 && up <= longestUp.Seconds()) { // NaN too
		up = 0
	}
	v := instance{cut(b.Agent), now.Add(-time.Duration(up * float64(time.Second))), now, now}
	if known == nil {
		return v
	}
	for _, k := range known {
		if k.agent == v.agent && !k.came.IsZero() && now.Sub(k.came) <= instanceLasts {
			v.began, v.since = k.began, k.since // as it said at first
			return v
		}
	}
	if k := known[0]; now.Sub(k.came) <= instanceLasts && k.came.Sub(k.since) > instanceLasts && !v.began.After(k.began) {
		v.began = k.began.Add(2 * time.Second)
	}
	return v
}

// decide settles who goes on: who began first.
func (r *rivals) decide(n fleet.Name, a, b instance, now time.Time) *fleet.Settled {
	earlier := a.began.Compare(b.began)
	if d := a.began.Sub(b.began); d.Abs() < time.Second { // beats take their time
		earlier = cmp.Compare(a.agent, b.agent)
	}
	if earlier > 0 {
		a, b = b, a
	}
	m, _ := r.met.notice(n, now)
	if s := m.what; s != nil && s.GoesOn == a.agent && s.GivesUp == b.agent && now.Sub(m.last) < settleAgain {
		return nil
	}
	m.last = now
	m.what = &fleet.Settled{
		GoesOn: a.agent, GivesUp: b.agent, Up: now.Sub(a.began).Seconds(), Later: now.Sub(b.began).Seconds(),
	}
	return m.what
}

// findings are the names that two agents connected under of late.
func (r *rivals) findings(now time.Time) []finding.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met.findings(TwoAgents, finding.Warn, now, func(n fleet.Name, _ *fleet.Settled) (text, fact, fix string) {
		return fmt.Sprintf("two agents use the name %s", n),
			"two processes send heartbeats under this name; the first one continues, the other was told to stop",
			fmt.Sprintf("find the second agent that runs with the credentials of %s, and give it its own (busbar serve token "+
				"node NAME); if they were stolen: busbar serve token node %s --revoke", n, n)
	})
}

// settle has one agent of a name go on where there are two.
func (h *Hub) settle(b *fleet.Beat) {
	s := h.rivals.beat(b, time.Now())
	if s == nil {
		return
	}
	sent := *s
	if s.GoesOn != "" || s.GivesUp != "" {
		h.lookNow()
		if n, ok := h.Node(b.Node); ok {
			sent.Meet = n.Meet
		}
	}
	if err := h.cfg.Bus.Settle(b.Node, &sent); err != nil {
		h.cfg.Warn(fmt.Errorf("node %s has two agents, and they cannot be notified: %w", b.Node, err))
	}
}
