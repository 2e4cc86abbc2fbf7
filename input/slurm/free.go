package slurm

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
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

// outs are the states in which a node gets no jobs, by what Slurm writes in small letters: a state, a mark behind it,
// flags behind a plus. One that drains while it is busy is not drained yet.
var outs = []struct {
	word string
	is   *lazyre.Regexp
}{
	{"down", lazyre.New(`^down`)},
	{"draining", lazyre.New(`^(draining|drng)|^(alloc|mix|comp).*drain`)},
	{"drained", lazyre.New(`drain`)},
	{"failing", lazyre.New(`fail`)},
	{"in maintenance", lazyre.New(`maint|^[^+]*\$(\+|$)`)},
	{"rebooting", lazyre.New(`reboot|^[^+]*@(\+|$)`)},
	{"invalid", lazyre.New(`^inval`)},
	{"not responding", lazyre.New(`not_responding|^[^+]*\*(\+|$)`)},
}

// outOf is why Slurm gives a node in a state no jobs; nil where it does. A reservation, saved power and what slurm.conf
// calls UNKNOWN are no reasons.
func outOf(state, reason string) *cluster.Out {
	var list []string
	for _, out := range outs {
		if out.is.MatchString(strings.ToLower(state)) && (out.word != "drained" || !slices.Contains(list, "draining")) {
			list = append(list, out.word)
		}
	}
	if len(list) == 0 {
		return nil
	}
	if reason = strings.TrimSpace(reason); strings.EqualFold(reason, "none") {
		reason = ""
	}
	return &cluster.Out{State: strings.Join(list, ", "), Reason: reason}
}

// idle reports a node that a job may have now.
func idle(state string, out *cluster.Out) bool {
	return out == nil && idleState.MatchString(state) && !takenState.MatchString(state)
}

var (
	idleState  = lazyre.New(`(?i)^idle[^+!^%]*(\+|$)`)
	takenState = lazyre.New(`(?i)\+(reserved|planned|powering_down)`)
)
