package main

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

// taken is what sweeps were taken to be about, and on whose word.
type taken struct {
	Op         string `json:"op"`
	OpFrom     string `json:"op_from"`
	Layout     string `json:"layout"`
	LayoutFrom string `json:"layout_from"`
	NCCL       string `json:"nccl"`
	NCCLFrom   string `json:"nccl_from"`
}

// takenAs lists the different things that sweeps are about.
func (c *calibrateCmd) takenAs(sweeps result.Sweeps, release nccl.Version) []taken {
	var list []taken
	for _, s := range sweeps {
		t := taken{Op: s.Op.String(), OpFrom: s.OpFrom, Layout: s.Layout(), LayoutFrom: s.LayoutFrom, NCCL: release.String(), NCCLFrom: "assumed; --nccl says which"}
		if v, ok := truth.Release(s); ok {
			t.NCCL, t.NCCLFrom = v.String(), "its own word"
		} else if c.NCCL != "" {
			t.NCCLFrom = "--nccl"
		}
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// takenLine is the list in one line.
func takenLine(list []taken) string {
	const most = 4
	var parts []string
	for i, t := range list {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s) on %s (%s), NCCL %s (%s)", t.Op, t.OpFrom, t.Layout, t.LayoutFrom, t.NCCL, t.NCCLFrom))
	}
	return "measured: " + strings.Join(parts, "; ")
}

// contradicted says which measurements cannot both be right, and whether there are
// any.
func contradicted(e *env, cases []*truth.Case) bool {
	list := truth.Contradictions(cases)
	if len(list) == 0 {
		return false
	}
	const most = 8
	fmt.Fprintf(e.stderr, "the measurements contradict each other, more than %d times apart for the same collective on the same ranks; nothing was fitted or written:\n", truth.TooFar)
	for i, r := range list {
		if i == most {
			fmt.Fprintf(e.stderr, "  and %d sizes more\n", len(list)-most)
			break
		}
		fmt.Fprintf(e.stderr, "  %s: %.2f and %.2f µs (%s)\n", r.Size, micros(r.Least), micros(r.Most), r.ID)
	}
	fmt.Fprintln(e.stderr, "give only the run that is right")
	return true
}
