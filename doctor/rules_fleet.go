package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// fleetRules take over what the statistics of a fleet have found over many sweeps: more than one job's logs can show.
func fleetRules() []Rule {
	return []Rule{
		{"fleet-fault", "busbar nodes --json, or /api/fleet/findings of busbar serve", "the fleet's measurements name a node, a port, a leaf or a path that is slow, silent or failing", trouble, []string{"straggler", "nic-slow", "pair-slow", "pair-dropped"}, fleetFault},
		{"pair-dropped", "/api/fleet/link?from=A&to=B of busbar serve", "a pair became slow at a time, flaps, or cannot be measured any more", trouble, []string{"pair-slow"}, pairDropped},
	}
}

// fleetFault is the worst of them; the others stand among its evidence.
func fleetFault(c *Case) *finding.Finding {
	list := slices.Clone(c.Fleet)
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b evidence.FleetFinding) int {
		return cmp.Or(finding.BySeverity(a.Finding, b.Finding), cmp.Compare(b.Confidence, a.Confidence))
	})
	worst := list[0]
	var facts []string
	for _, q := range worst.Evidence {
		facts = append(facts, q.Text)
	}
	if !worst.Since.IsZero() {
		facts = append(facts, "since "+worst.Since.Format(time.RFC3339Nano))
	}
	var quotes []finding.Quote
	shown := c.histories(worst.Nodes...)
	for _, f := range list[:min(len(list), maxEvidence-len(shown))] {
		quotes = append(quotes, finding.Quote{File: f.File, Text: fmt.Sprintf("%s: %s", f.Severity, f.Text)})
	}
	quotes = append(quotes, shown...)
	title, where := worst.Text, worst.Nodes
	if others := sameFault(list[1:], worst); len(others) > 0 {
		title += "; the same of " + hostlist(others)
		where = append(slices.Clone(where), others...)
	}
	return &finding.Finding{
		Severity: worst.Severity, Confidence: worst.Confidence, Where: hostlist(where), Title: title,
		Cause: "What the fleet measured: " + strings.Join(facts, "; ") + ".", Fix: worst.Fix, Evidence: quotes,
	}
}

// sameFault are the nodes that a fault of the same kind and weight is told of.
func sameFault(list []evidence.FleetFinding, worst evidence.FleetFinding) []string {
	var nodes []string
	for _, f := range list {
		if f.Kind != worst.Kind || f.Severity != worst.Severity {
			continue
		}
		for _, n := range f.Nodes {
			if !slices.Contains(worst.Nodes, n) && !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// pairDropped is the worst that the history of a pair shows. Of a pair alone nobody can say which end it is.
func pairDropped(c *Case) *finding.Finding {
	list := slices.DeleteFunc(c.stories(), func(s story) bool {
		return s.course != failing && s.course != flapping && (s.course != dropped || float64(s.after) > worthTelling*float64(s.before))
	})
	if len(list) == 0 {
		return nil
	}
	left := func(s story) float64 {
		if s.course == failing || s.before == 0 {
			return 0
		}
		return float64(s.after) / float64(s.before)
	}
	worst := slices.MinFunc(list, func(a, b story) int { return cmp.Compare(left(a), left(b)) })
	f := &finding.Finding{
		Severity: finding.Warn, Confidence: 0.7, Where: worst.From + ", " + worst.To, Evidence: c.histories(worst.From, worst.To),
		Fix: "Compare with pairs that share one end (/api/fleet/pairs, busbar nodes): if all of a host's pairs fell it is that host, else the path between the two. Then what changed there at that time: cable, switch port, route, driver.",
	}
	switch worst.course {
	case failing:
		f.Severity = finding.Error
		f.Title = fmt.Sprintf("%s and %s cannot be measured since %s", worst.From, worst.To, minute(worst.at))
		f.Cause = "The fleet's measurements of this pair worked and now fail: a host, its interface or the way between them is down or blocked."
	case flapping:
		f.Confidence = 0.6
		f.Title = fmt.Sprintf("%s to %s flaps between %v and %v", worst.From, worst.To, worst.before, worst.after)
		f.Cause = "The pair is fast and slow by turns, from one sweep to the next: a link that falls back and recovers, one bad link of several that are shared by hashing, or another job that comes and goes."
	default:
		f.Title = fmt.Sprintf("%s to %s dropped to %.0f%% at %s", worst.From, worst.To, 100*left(worst), minute(worst.at))
		f.Cause = fmt.Sprintf("The fleet measured %v before and %v since. What became slow at one time has a cause that began then.", worst.before, worst.after)
	}
	return f
}

// worthTelling is the part that is left, above which a drop is the pair's own business.
const worthTelling = 0.85
