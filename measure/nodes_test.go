package measure

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/result/pairs"
)

// TestCheckUnknownHost: what the description says nothing of is never healthy; where it names no hosts of a site, its
// nodes stand for any.
func TestCheckUnknownHost(t *testing.T) {
	named := func(names ...string) *cluster.Cluster {
		c := described()
		c.Types = append(c.Types, &cluster.NodeType{}) // a host without GPUs
		c.Hosts = nil
		for i, name := range names {
			c.Hosts = append(c.Hosts, cluster.Host{Name: name, Type: min(1, i/2)})
		}
		return c
	}
	for name, tt := range map[string]struct {
		local  Node
		given  *cluster.Cluster
		reason string // "": healthy
	}{
		"not there": {
			Node{Host: "vm", GPUs: 8},
			named("gn1", "gn2"),
			"vm is not among the hosts of the cluster's description, gn[1-2]",
		},
		"there, no GPUs":            {Node{Host: "gn2.example.org"}, named("gn1", "gn2"), "0 of 8 GPUs"},
		"there":                     {Node{Host: "gn2", GPUs: 8}, named("gn1", "gn2"), ""},
		"no GPUs, as described":     {Node{Host: "login"}, named("gn1", "gn2", "login"), ""},
		"another name in Slurm":     {Node{Host: "vm", Name: "gn1", GPUs: 7}, named("gn1", "gn2"), "7 of 8 GPUs"},
		"an address":                {Node{Host: "10.0.0.7", GPUs: 7}, named("gn1", "gn2"), "7 of 8 GPUs"},
		"invented names":            {Node{Host: "vm", GPUs: 8}, named("node0", "node1"), ""},
		"invented names, not alike": {Node{Host: "vm", GPUs: 8}, named("node0", "node1", "node2"), "vm is not among"},
		"one node":                  {Node{Host: "vm"}, named("gn1"), "0 of 8 GPUs"},
		"nothing given":             {Node{Host: "vm"}, nil, ""},
		"nothing is said of a host": {
			Node{Host: "gn1"},
			&cluster.Cluster{Hosts: []cluster.Host{{Name: "gn1", Type: -1}, {Name: "gn2", Type: -1}}},
			"gn1 is among the hosts",
		},
		"invented names, no GPUs yet": {Node{Host: "vm"}, named("node0", "node1"), "0 of 8 GPUs"},
	} {
		tt.local.Asked = true
		d := judged([]Node{tt.local}, &pairs.Table{Names: []string{"a"}, Hosts: []string{"a"}},
			Expectation{Cluster: tt.given})
		n := d.Nodes[0]
		if d.Wrong() != (tt.reason != "") || tt.reason != "" && !strings.HasPrefix(n.Reasons[0], tt.reason) {
			t.Errorf("%s: %+v; expected %q", name, n, tt.reason)
		}
		if says := slices.Contains(d.Notes,
			"no GPUs were checked: healthy says nothing about GPUs here"); says != (tt.local.GPUs == 0) {
			t.Errorf("%s: notes %q", name, d.Notes)
		}
	}
}
