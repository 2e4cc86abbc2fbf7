package slurm

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// NodeState is what Slurm says of a node.
type NodeState struct {
	Name string
	Free bool         // idle, and a job may have it
	Out  *cluster.Out // nil where it gets jobs
}

// FreeNodes lists the nodes that a text says are idle. ok is false where the text is not one that NodeStates reads.
func FreeNodes(b *cluster.Budget, text string) (names []string, ok bool, err error) {
	states, ok, err := NodeStates(b, text)
	for i := range states {
		if states[i].Free {
			names = append(names, states[i].Name)
		}
	}
	return names, ok, err
}

// NodeStates reads the states of nodes from an sinfo table with the columns STATE and NODELIST, in any layout, or from
// "scontrol show node". ok is false where the text is neither. A node that is listed twice, as sinfo does for
// partitions, has the first state in which it is free, else the first.
//
// A state with a mark is that state and something else: ~ is powered down and # powering up, which a job waits for; *
// does not respond, $ is maintained, @ reboots, ! powers down, and such a node is not free. Source: sinfo(1), NODE
// STATE CODES.
func NodeStates(b *cluster.Budget, text string) (list []NodeState, ok bool, err error) {
	seen := map[string]int{}
	for _, fields := range nodes(text) {
		state := get(fields, "State")
		if state == "" {
			continue
		}
		names, err := hosts(b, get(fields, "NodeName"))
		if err != nil {
			return list, true, err
		}
		ok = true
		for _, n := range names {
			out := outOf(state, get(fields, "Reason"))
			is := NodeState{n, idle(state, out), out}
			if at, known := seen[n]; !known {
				seen[n] = len(list)
				list = append(list, is)
			} else if is.Free && !list[at].Free {
				list[at] = is
			}
		}
	}
	return list, ok, nil
}

// outOf is why Slurm gives a node in a state no jobs; nil where it does. A reservation, saved power and what slurm.conf
// calls UNKNOWN are no reasons.
func outOf(state, reason string) *cluster.Out {
	state = strings.ToLower(state)
	base, _, _ := strings.Cut(state, "+")
	var is []string
	say := func(when bool, word string) {
		if when {
			is = append(is, word)
		}
	}
	busy := strings.HasPrefix(base, "alloc") || strings.HasPrefix(base, "mix") || strings.HasPrefix(base, "comp")
	drains := strings.Contains(state, "drain") || strings.HasPrefix(base, "drng")
	draining := strings.HasPrefix(base, "draining") || strings.HasPrefix(base, "drng") || drains && busy
	say(strings.HasPrefix(base, "down"), "down")
	say(draining, "draining")
	say(drains && !draining, "drained")
	say(strings.Contains(state, "fail"), "failing")
	say(strings.Contains(state, "maint") || strings.HasSuffix(base, "$"), "in maintenance")
	say(strings.Contains(state, "reboot") || strings.HasSuffix(base, "@"), "rebooting")
	say(strings.Contains(state, "not_responding") || strings.HasSuffix(base, "*"), "not responding")
	if len(is) == 0 {
		return nil
	}
	if reason = strings.TrimSpace(reason); strings.EqualFold(reason, "none") {
		reason = ""
	}
	return &cluster.Out{State: strings.Join(is, ", "), Reason: reason}
}

// idle reports a node that a job may have now.
func idle(state string, out *cluster.Out) bool {
	base, flags, _ := strings.Cut(strings.ToLower(state), "+")
	busy := slices.ContainsFunc(strings.Split(flags, "+"), func(f string) bool {
		return strings.HasPrefix(f, "reserved") || strings.HasPrefix(f, "planned") || strings.HasPrefix(f, "powering_down")
	})
	return strings.HasPrefix(base, "idle") && out == nil && !busy && !strings.ContainsAny(base, "!^%")
}
