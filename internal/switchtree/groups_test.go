package switchtree

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// build makes a network from lines "up down" (switches) and "leaf h0 h1 …"
// (hosts are numbers). Tiers are left unknown.
func build(hosts int, lines ...string) *cluster.Cluster {
	c := &cluster.Cluster{Hosts: make([]cluster.Host, hosts)}
	at := func(name string) int {
		if i := c.Network.SwitchByName(name); i >= 0 {
			return i
		}
		c.Network.Switches = append(c.Network.Switches, cluster.Switch{Name: name, Tier: cluster.TierUnknown, Rail: -1})
		return len(c.Network.Switches) - 1
	}
	for _, l := range lines {
		words := strings.Fields(l)
		end := cluster.End{Switch: -1, NIC: -1}
		for _, w := range words[1:] {
			var h int
			if _, err := fmt.Sscan(w, &h); err != nil {
				end = cluster.End{Switch: at(w), NIC: -1}
				break
			}
			end.Hosts = append(end.Hosts, cluster.Span{First: h, N: 1})
		}
		c.Network.Links = append(c.Network.Links, cluster.NetLink{A: cluster.End{Switch: at(words[0]), NIC: -1}, B: end})
	}
	return c
}

func show(f *Forest) string {
	var b strings.Builder
	for i := range f.Groups {
		g := &f.Groups[i]
		fmt.Fprintf(&b, "%s %d/%d %v", g.Name, g.Tier, len(g.Members), g.Hosts)
		if g.Up >= 0 {
			fmt.Fprintf(&b, " < %s", f.Groups[g.Up].Name)
		}
		b.WriteString("; ")
	}
	return strings.TrimSuffix(b.String(), "; ") + fmt.Sprintf(" loose %v", f.Loose)
}

func TestGroups(t *testing.T) {
	tests := []struct {
		name, want string
		c          *cluster.Cluster
	}{
		{"a tree", "a 0/1 [0 1] < t; b 0/1 [2] < t; t 1/1 [] loose []", build(3, "t a", "t b", "a 0 1", "b 2")},
		{
			"unbalanced", "a 0/1 [0] < t; b 0/1 [1] < m; m 1/1 [] < t; t 2/1 [] loose []",
			tiers(build(2, "t m", "t a", "m b", "a 0", "b 1"), "t2 m1 a0 b0"),
		},
		{
			"rails of two pods",
			"railgroup1 0/2 [0 1] < spinegroup1; railgroup2 0/2 [2] < spinegroup1; spinegroup1 1/2 [] loose [3]",
			build(4, "a 0 1", "b 0 1", "c 2", "d 2", "s a", "s b", "s c", "s d", "u a", "u b", "u c", "u d"),
		},
		{"rails that share hosts in a chain", "railgroup1 0/3 [0 1] loose []", build(2, "a 0", "b 0 1", "c 1")},
		{
			"three tiers, spines per pod", "a 0/1 [0] < spinegroup1; b 0/1 [1] < spinegroup2; spinegroup1 1/2 [] < " +
				"coregroup1; spinegroup2 1/2 [] < coregroup1; coregroup1 2/2 [] loose []",
			build(2, "a 0", "b 1", "s1 a", "s2 a", "s3 b", "s4 b", "c1 s1", "c2 s2", "c1 s3", "c2 s4"),
		},
		{
			"core planes that only spines join",
			"a 0/1 [0] < spinegroup1; spinegroup1 1/2 [] < coregroup1; coregroup1 2/2 [] loose []",
			build(1, "a 0", "s1 a", "s2 a", "c1 s1", "c2 s2"),
		},
		{"switch without hosts", "a 0/1 [0] < s; s 1/1 [] loose []", tiers(build(1, "s a", "s z", "a 0"), "z0")},
		{"none", " loose [0]", build(1)},
		{"two islands", "a 0/1 [0]; b 0/1 [1] loose []", build(2, "a 0", "b 1")},
		{
			"a ring of switches", "a 0/1 [0] < top; b 0/1 [1] < top; c 0/1 [2] < top; top 1/0 [] loose []",
			build(3, "a 0", "b 1", "c 2", "a b", "b c", "c a"),
		},
		{
			"a taken name", "railgroup2 0/2 [0] < railgroup1; railgroup1 1/1 [] loose []",
			build(1, "a 0", "b 0", "railgroup1 a", "railgroup1 b"),
		},
	}
	for _, tt := range tests {
		if got := show(Groups(tt.c)); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// tiers sets the tiers that "a0 b1" states.
func tiers(c *cluster.Cluster, text string) *cluster.Cluster {
	for _, w := range strings.Fields(text) {
		c.Network.Switches[c.Network.SwitchByName(w[:len(w)-1])].Tier = cluster.Tier(w[len(w)-1] - '0')
	}
	return c
}

func TestDomains(t *testing.T) {
	c := build(5, "big 0 1 2 3", "small 0 1", "leaf 0 1 2 3 4")
	for _, n := range []string{"big", "small"} {
		c.Network.Switches[c.Network.SwitchByName(n)].Domain = true
	}
	if got := fmt.Sprint(Domains(c)); got != "[{0 [2 3]} {1 [0 1]}]" {
		t.Error(got)
	}
	if got := show(Groups(c)); got != "leaf 0/1 [0 1 2 3 4] loose []" {
		t.Error(got)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"leaf-1_a.b": "leaf-1_a.b", "MF0;sw 1:x/U1": "MF0-sw-1-x-U1", "..": "x", "": "x", "-a-": "a", "é1": "1",
		strings.Repeat("a", 99): strings.Repeat("a", 63),
	} {
		if got := Plain(in, 63); got != want {
			t.Errorf("%q = %q; want %q", in, got, want)
		}
	}
	taken := map[string]bool{}
	long := strings.Repeat("a", 63)
	if a, b, c := Unique(long, taken), Unique(long, taken),
		Unique(long, taken); a != long || b != long[:61]+"-2" || c != long[:61]+"-3" {
		t.Error(a, b, c)
	}
}

func TestKeep(t *testing.T) {
	c := build(5, "a 0 1 2", "b 3 4")
	for i, n := range []string{"N0", "bad", "n0", "n3", "n4"} {
		c.Hosts[i].Name = n
	}
	kept, dropped := Keep(c, func(s string) string {
		if s == "bad" {
			return ""
		}
		return strings.ToLower(s)
	})
	if fmt.Sprint(dropped) != "[bad n0]" || len(kept.Hosts) != 3 || kept.Hosts[0].Name != "n0" {
		t.Errorf("dropped %v, kept %v", dropped, kept.Hosts)
	}
	if got := show(Groups(kept)); got != "a 0/1 [0]; b 0/1 [1 2] loose []" {
		t.Error(got)
	}
	if same, none := Keep(c, func(s string) string { return s }); none != nil || len(same.Hosts) != 5 {
		t.Error(none)
	}
}

func TestByTray(t *testing.T) {
	rack := &cluster.NodeType{Name: "rack", Trays: 2}
	for k := range 2 {
		rack.Add(cluster.Device{Kind: cluster.GPU, Index: 0, Parent: -1, Tray: k})
	}
	c := build(3, "a 0 1 2")
	c.Types = []*cluster.NodeType{rack, {Name: "plain"}}
	c.Hosts[0].Name, c.Hosts[1].Type, c.Hosts[2].Name = "", 1, "r"
	trays, note := ByTray(c)
	if got := fmt.Sprint(Domains(trays)); got != "[{1 [0 1]} {2 [3 4]}]" {
		t.Error(got)
	}
	if got := show(Groups(trays)); got != "a 0/1 [0 1 2 3 4] loose []" {
		t.Error(got)
	}
	if !strings.Contains(note, `"r-t00"`) {
		t.Error(note)
	}
	if same, note := ByTray(build(2, "a 0 1")); len(same.Hosts) != 2 || note != "" {
		t.Error(same.Hosts, note)
	}
}
