package slurm

import (
	"strings"

	"busbar.dev/cluster"
)

// FreeNodes lists the nodes that a text says are idle: an sinfo table with the columns STATE and NODELIST, in any layout, or
// "scontrol show node". ok is false where the text is neither.
//
// A state with a mark is that state and something else: ~ is powered down and # powering up, which a job waits for; * does not
// respond, $ is maintained, @ reboots, ! powers down, and such a node is not free. Source: sinfo(1), NODE STATE CODES.
func FreeNodes(b *cluster.Budget, text string) (names []string, ok bool, err error) {
	seen := map[string]bool{}
	add := func(list, state string) error {
		ok = true
		if !idle(state) {
			return nil
		}
		found, err := hosts(b, list)
		for _, n := range found {
			if !seen[n] {
				seen[n] = true
				names = append(names, n)
			}
		}
		return err
	}
	var at []int // the columns NODELIST and STATE
	width, node := 0, ""
	for text != "" && err == nil {
		raw, rest, _ := strings.Cut(text, "\n")
		text = rest
		l := clean(raw)
		cells := strings.Fields(l)
		if h := freeHeader(cells); h != nil {
			at, width = h, len(cells)
			continue
		}
		if at != nil && len(cells) == width {
			err = add(cells[at[0]], cells[at[1]])
			continue
		}
		for _, f := range recordFields(l) {
			switch {
			case f.is("NodeName"):
				node = f.val
			case f.is("State") && node != "":
				err, node = add(node, f.val), ""
			}
		}
	}
	return names, ok, err
}

// freeHeader finds the columns of an sinfo table.
func freeHeader(cells []string) []int {
	at := []int{-1, -1}
	for i, c := range cells {
		switch c {
		case "NODELIST", "HOSTNAMES":
			at[0] = i
		case "STATE":
			at[1] = i
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
	for _, bad := range []string{"drain", "down", "maint", "not_responding", "reserved", "fail", "reboot", "planned", "powering_down"} {
		for _, f := range strings.Split(flags, "+") {
			if strings.HasPrefix(f, bad) {
				return false
			}
		}
	}
	return true
}
