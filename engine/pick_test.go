package engine

import (
	"fmt"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Ranks on several hosts take schedules that spare the network between them, and all ranks take
// the same one.
func TestPickKnowsHosts(t *testing.T) {
	tests := []struct {
		boots string // a letter a host, by rank
		kind  coll.Kind
		size  unit.Bytes
		want  string
		how   Transport
	}{
		{"aaaa", coll.AllReduce, 16 * unit.MiB, "direct", Shm},
		{"abcd", coll.AllReduce, 16 * unit.MiB, "ring", TCP},
		{"aabb", coll.AllReduce, 16 * unit.MiB, "hierarchical", Auto},
		{"abab", coll.AllReduce, 16 * unit.MiB, "hierarchical", Auto},
		{"aabc", coll.AllReduce, 16 * unit.MiB, "hierarchical", Auto},
		{"aabb", coll.AllReduce, 1 * unit.KiB, "recursive_doubling", Auto},
		{"aabb", coll.AllGather, 16 * unit.MiB, "hierarchical", Auto},
		{"aabb", coll.Broadcast, 16 * unit.MiB, "chain", Auto},
		{"abcd", coll.Broadcast, 1 * unit.MiB, "chain", TCP},
		{"abcd", coll.Broadcast, 1 * unit.KiB, "binomial", TCP},
	}
	for _, tt := range tests {
		n := len(tt.boots)
		net := &network{cfg: Config{Size: n, Transport: Auto}}
		for r, b := range tt.boots {
			net.members = append(net.members, member{Rank: r, Boot: string(b)})
		}
		for rank := range n {
			g := &Group{cfg: net.cfg, rank: rank, size: n, net: net}
			s, err := g.Pick(coll.Op{Kind: tt.kind, Bytes: tt.size})
			if err != nil {
				t.Errorf("%s on %s: %v", tt.kind, tt.boots, err)
				continue
			}
			if s.Name != tt.want || g.Transport() != tt.how {
				t.Errorf("%s of %v on %s, rank %d: %s over %s; want %s over %s", tt.kind, tt.size, tt.boots, rank, s.Name,
					g.Transport(), tt.want, tt.how)
			}
		}
	}
}

// TestTogether: ranks that a launcher dealt out in turn belong to their hosts.
func TestTogether(t *testing.T) {
	net := &network{cfg: Config{Size: 4}}
	for r, b := range "abab" {
		net.members = append(net.members, member{Rank: r, Boot: string(b)})
	}
	g := &Group{cfg: net.cfg, size: 4, net: net}
	if got := fmt.Sprint(g.Together()); got != "[[0 2] [1 3]]" {
		t.Errorf("hosts are %s", got)
	}
}
