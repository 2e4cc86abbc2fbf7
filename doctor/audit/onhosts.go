package audit

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
)

// OnHosts is what an audit finds on single hosts, by name, as sentences, the most telling first. What most hosts
// have is no reason to take others.
func OnHosts(cl *cluster.Cluster) map[string][]string {
	known := map[string]bool{}
	for i := range cl.Hosts {
		known[cl.Hosts[i].Name] = true
	}
	list := map[string][]string{}
	found := Run(cl)
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

// telling orders findings: what is broken, and says which cable, before nodes that differ, and these before how all are
// built.
func telling(id string) int {
	switch id {
	case "node-unavailable":
		return -1
	case "link-slow", "port-slow", "port-down", "link-down", "nic-uncabled", "rail-swapped", "uplink-missing",
		"error-counters", "pcie-trained-low":
		return 0
	case "asymmetry-node":
		return 1
	case "nic-shared":
		return 2
	}
	return 3
}
