package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/finding"
	"busbar.dev/internal/natural"
	"busbar.dev/plan"
)

// hostFindings are what an audit finds on single hosts, by name, as sentences, the most telling first. What most hosts have is
// no reason to take others.
func hostFindings(cl *cluster.Cluster) map[string][]string {
	known := map[string]bool{}
	for i := range cl.Hosts {
		known[cl.Hosts[i].Name] = true
	}
	list := map[string][]string{}
	found := audit.Run(cl)
	slices.SortStableFunc(found, func(a, b finding.Finding) int { return telling(a.ID) - telling(b.ID) })
	for i := range found {
		f := &found[i]
		if f.Severity < finding.Warn && f.ID != "node-unavailable" {
			continue
		}
		for end := range strings.SplitSeq(f.Where, "–") {
			hosts, _, _ := strings.Cut(end, "/")
			names, err := cluster.ParseHosts(hosts)
			if err != nil || 2*len(names) > len(cl.Hosts) {
				continue
			}
			for _, n := range names {
				if known[n] {
					text, _, _ := strings.Cut(f.Text, "; ")
					list[n] = append(list[n], f.Where+": "+text)
				}
			}
		}
	}
	return list
}

// noteFindings notes what is wrong with hosts that were given.
func (e *Env) noteFindings(found map[string][]string, names []string) {
	const most = 8
	n := 0
	for _, name := range names {
		if len(found[name]) == 0 {
			continue
		}
		if n++; n <= most {
			e.note(fmt.Sprintf("%s has a finding: %s (busbar map --audit)", name, found[name][0]))
		}
	}
	if n > most {
		e.note(fmt.Sprintf("%d more hosts have findings (busbar map --audit)", n-most))
	}
}

// telling orders findings of one node: what says which cable before what only says that something differs.
func telling(id string) int {
	switch id {
	case "node-unavailable":
		return -1
	case "link-slow", "port-slow", "port-down", "link-down", "nic-uncabled":
		return 0
	case "asymmetry-node":
		return 2
	}
	return 1
}

// flaws is how many findings each free node has.
func (x *placing) flaws() []int {
	list := make([]int, len(x.free.names))
	for i, n := range x.free.names {
		list[i] = len(x.found[n])
	}
	return list
}

// samePlacement is the share of a step by which two placements may differ and still be equally good.
const samePlacement = 0.001

// prefer puts placements that are equally good in the order in which they should be taken: on nodes without findings, then as
// the scheduler does.
func (x *placing) prefer(list []plan.Placement, scheduler string) {
	equal := list[0].Result.Step * (1 + samePlacement)
	n := slices.IndexFunc(list, func(p plan.Placement) bool { return p.Result.Step > equal })
	if n < 0 {
		n = len(list)
	}
	rank := func(p *plan.Placement) int {
		if p.Why == scheduler {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list[:n], func(a, b plan.Placement) int {
		return cmp.Or(x.placer.Flaws(a.Nodes)-x.placer.Flaws(b.Nodes), rank(&a)-rank(&b))
	})
}

// findings says which nodes are left out for what an audit finds on them, and which are taken in spite of it.
func (x *placing) findings(take *PlaceRow) string {
	const most = 3
	text, more := "", 0
	for _, n := range natural.Sort(slices.Clone(x.free.names)) {
		if len(x.found[n]) == 0 {
			continue
		}
		if more++; more > most {
			continue
		}
		word := "is left out"
		if slices.Contains(take.Names(), n) {
			word = "is taken in spite of a finding"
		}
		text += fmt.Sprintf(" %s %s: %s.", n, word, x.found[n][0])
	}
	if more > most {
		text += fmt.Sprintf(" %d more nodes have findings (busbar map --audit).", more-most)
	}
	return text
}

// hostText is a placement's hosts sorted, with the order of ranks where that is another one.
func hostText(r *PlaceRow) string {
	sorted := natural.Sort(slices.Clone(r.Names()))
	if slices.Equal(sorted, r.Names()) {
		return r.Hosts
	}
	return fmt.Sprintf("%s, ranks in the order %s", cluster.FormatHosts(sorted), r.Hosts)
}
