package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar/evidence"
	"busbar/pairs"
)

// fleetRules take over what the statistics of a fleet have found over many sweeps: more than one job's logs can show.
func fleetRules() []Rule {
	return []Rule{
		{"fleet-fault", "busbar nodes --json, or /api/fleet/findings of busbar serve", "the fleet's measurements name a node, a port, a leaf or a path that is slow, silent or failing", trouble, []string{"straggler", "nic-slow", "pair-slow"}, fleetFault},
	}
}

// fleetFault is the worst of them; the others stand among its evidence.
func fleetFault(c *Case) *Finding {
	list := slices.Clone(c.Fleet)
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b evidence.FleetFinding) int {
		return cmp.Or(fleetRank(b.Severity)-fleetRank(a.Severity), cmp.Compare(b.Confidence, a.Confidence))
	})
	worst := list[0]
	severity := Note
	switch worst.Severity {
	case pairs.Error:
		severity = Error
	case pairs.Warn:
		severity = Warn
	}
	cause := strings.Join(worst.Evidence, "; ")
	if worst.Since != "" {
		cause = strings.TrimPrefix(cause+"; since "+worst.Since, "; ")
	}
	var quotes []evidence.Quote
	for _, f := range list[:min(len(list), 5)] {
		quotes = append(quotes, evidence.Quote{File: f.File, Text: fmt.Sprintf("%s: %s", f.Severity, f.Text)})
	}
	return &Finding{
		Severity: severity, Confidence: worst.Confidence, Where: hostlist(worst.Nodes), Title: worst.Text,
		Cause: "What the fleet measured: " + cause + ".", Fix: worst.Fix, Evidence: quotes,
	}
}

func fleetRank(s pairs.Severity) int {
	return slices.Index([]pairs.Severity{pairs.Note, pairs.Warn, pairs.Error}, s)
}
