package health

import (
	"fmt"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/result/pairs"
)

// relate joins findings of one node: what a unreachable node's pairs show is that it is unreachable, and
// errors of a port are evidence for its being slow.
func relate(list []finding.Finding) []finding.Finding {
	unreachable := map[string]bool{}
	ports := map[string][]*finding.Finding{}
	var held *finding.Finding // that the network holds most ports
	cut := map[string]bool{}  // nodes whose bandwidth is already explained
	for i := range list {
		f := &list[i]
		switch f.Kind {
		case Unreachable, UnreachableFleet:
			for _, n := range f.Nodes {
				unreachable[n] = true
			}
		case Congestion, SlowTaker, Marked:
			if f.Where == "" {
				held = f
				break
			}
			ports[f.Nodes[0]] = append(ports[f.Nodes[0]], f)
		case Errors, Flapping, LinkDown:
			ports[f.Nodes[0]] = append(ports[f.Nodes[0]], f)
		}
		if f.Figure == rate.String() {
			cut[f.Transport+" "+string(f.Kind)+" "+f.Where+" "+first(f.Nodes)] = true
		}
	}
	var out []finding.Finding
	for i := range list {
		f := &list[i]
		if f.Figure != "" && f.Factor == 0 && len(f.Nodes) > 0 && gone(f, unreachable) {
			continue
		}
		if f.Figure == latency.String() && cut[f.Transport+" "+string(f.Kind)+" "+f.Where+" "+first(f.Nodes)] {
			continue // a slow link has late messages too
		}
		if f.Figure != "" && len(f.Nodes) == 1 {
			f.Evidence = slices.Clone(f.Evidence)
			for _, p := range ports[f.Nodes[0]] {
				f.Evidence = append(f.Evidence, finding.Quote{Text: "port " + p.Where + ": " + p.Evidence[0].Text})
				if f.Where == "" && len(ports[f.Nodes[0]]) == 1 {
					f.Where = p.Where
				}
			}
		}
		if f.Kind == SlowFleet && held != nil {
			f.Evidence = append(slices.Clone(f.Evidence), finding.Quote{Text: held.Text})
		}
		out = append(out, *f)
	}
	return out
}

// gone tells whether unreachable nodes explain that measurements fail: the node, or either end.
func gone(f *finding.Finding, unreachable map[string]bool) bool {
	if narrow(f.Kind) {
		return unreachable[f.Nodes[0]] || unreachable[f.Nodes[1]]
	}
	return !slices.ContainsFunc(f.Nodes, func(n string) bool { return !unreachable[n] })
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// DrainFrom is the confidence from which a node is drained.
const DrainFrom = 0.9

// Drain are the nodes that should be drained, sorted: those of findings about one node that are
// errors of a confidence of 0.9 or more and not clearing. Slow pairs, leaves and rails drain
// nobody, nor does the silence of most nodes at once.
func Drain(list []finding.Finding) []string {
	bad := []string{}
	for i := range list {
		f := &list[i]
		if f.Severity == finding.Error && f.Confidence >= DrainFrom && !f.Clearing && breadth(f.Kind) == 1 {
			bad = append(bad, f.Nodes...)
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// Tempered are findings as people read them: an error of one node that is not certain enough to drain it is a warning,
// and says how sure it is.
func Tempered(list []finding.Finding) []finding.Finding {
	list = slices.Clone(list)
	for i := range list {
		if f := &list[i]; f.Severity == finding.Error && f.Confidence < DrainFrom && breadth(f.Kind) == 1 {
			f.Severity = finding.Warn
			f.Text += fmt.Sprintf(" (%.0f%% sure; unhealthy from %.0f%% on)", 100*f.Confidence, 100*DrainFrom)
		}
	}
	return list
}

// breadth is 2 for findings about many nodes, 1 for those about one, 0 for pairs.
func breadth(k finding.Kind) int {
	switch k {
	case SlowLeaf, SlowLeafOut, SlowLeafIn, SlowPath, SlowRail, SlowFleet, SlowDaily, UnreachableFleet:
		return 2
	case pairs.SlowPair, pairs.OneWay:
		return 0
	}
	return 1
}
