package slurm

import (
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
	add := func(names, state, reason string) error {
		ok = true
		free, out := idle(state), outOf(state, reason)
		found, err := hosts(b, names)
		for _, n := range found {
			at, known := seen[n]
			switch {
			case !known:
				seen[n] = len(list)
				list = append(list, NodeState{n, free, out})
			case free && !list[at].Free:
				list[at] = NodeState{n, free, out}
			}
		}
		return err
	}
	var at []int // the columns NODELIST, STATE and REASON
	width := 0
	var node, state, reason string
	flush := func() {
		if node != "" && state != "" && err == nil {
			err = add(node, state, reason)
		}
		node, state, reason = "", "", ""
	}
	for text != "" && err == nil {
		raw, rest, _ := strings.Cut(text, "\n")
		text = rest
		l := clean(raw)
		cells := strings.Fields(l)
		if h := freeHeader(cells); h != nil {
			at, width = h, len(cells)
			continue
		}
		if at != nil && (len(cells) == width || len(cells) > width && at[2] == width-1) {
			why := ""
			switch {
			case at[2] == width-1: // of several words
				why = strings.Join(cells[at[2]:], " ")
			case at[2] >= 0:
				why = cells[at[2]]
			}
			err = add(cells[at[0]], cells[at[1]], why)
			continue
		}
		for _, f := range recordFields(l) {
			switch {
			case f.is("NodeName"):
				flush()
				node = f.val
			case f.is("State"):
				state = f.val
			case f.is("Reason"):
				reason = f.val
			}
		}
	}
	flush()
	return list, ok, err
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

// freeHeader finds the columns of an sinfo table.
func freeHeader(cells []string) []int {
	at := []int{-1, -1, -1}
	for i, c := range cells {
		switch c {
		case "NODELIST", "HOSTNAMES":
			at[0] = i
		case "STATE":
			at[1] = i
		case "REASON":
			at[2] = i
		}
	}
	if at[0] < 0 || at[1] < 0 {
		return nil
	}
	return at
}

func idle(state string) bool {
	base, flags, _ := strings.Cut(strings.ToLower(state), "+")
	if !strings.HasPrefix(base, "idle") || strings.ContainsAny(base, "*$@!^%") {
		return false
	}
	for _, bad := range []string{
		"drain", "down", "maint", "not_responding", "reserved", "fail", "reboot", "planned", "powering_down",
	} {
		for _, f := range strings.Split(flags, "+") {
			if strings.HasPrefix(f, bad) {
				return false
			}
		}
	}
	return true
}
