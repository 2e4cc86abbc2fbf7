package audit

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
)

// uncabled reports NICs that the fabric's source does not have though it has their peers', those of several hosts
// together.
func (a *auditor) uncabled() {
	type key struct {
		nic, source string
		peers       int
	}
	var hosts groups[key, string]
	for _, u := range a.c.Uncabled() {
		hosts.add(key{a.c.TypeOf(u.Host).Devices[u.NIC].Title(), u.Source, u.Peers}, a.c.Hosts[u.Host].Name)
	}
	for _, k := range hosts.order {
		a.say("nic-uncabled", cluster.FormatHosts(hosts.of[k])+"/"+k.nic, cmp.Or(k.source, "the network's source"),
			words.Plural(k.peers, "other node"))
	}
}

// swappedRails reports NICs that are cabled to the leaf of another rail.
func (a *auditor) swappedRails() {
	for _, s := range a.c.Swapped() {
		t := a.c.TypeOf(s.Host)
		var nics, on, expect []string
		for i, d := range s.NICs {
			nics, on = append(nics, t.Devices[d].Title()), append(on, a.c.Network.Switches[s.On[i]].Name)
			if s.Expect[i] >= 0 {
				expect = append(expect, a.c.Network.Switches[s.Expect[i]].Name)
			} else {
				expect = append(expect, "a leaf of its own rail")
			}
		}
		fix := "cable each NIC to the leaf of its rail; until then its traffic to other nodes crosses the spine"
		a.addFinding("rail-swapped", finding.Warn, a.c.Hosts[s.Host].Name+"/"+cluster.FormatHosts(nics),
			fmt.Sprintf("cabled to %s; on the other %s %s", strings.Join(on, ", "), words.Plural(s.Peers, "node"),
				strings.Join(expect, ", ")), fix)
	}
}
