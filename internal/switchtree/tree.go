// Package switchtree holds a scheduler's view of a network: named switches, and
// groupings that schedulers know (blocks, racks, accelerator domains), with
// hosts below them. Readers of scheduler files fill a Tree and turn it into a
// network; Groups goes the other way and makes a tree of a real network, which
// is seldom one.
package switchtree

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// maxLevels is one more than the highest tier that is read. Real trees have
// three or four levels.
const maxLevels = 64

// Switch is a switch, or a grouping that is not a box.
type Switch struct {
	Name   string
	Label  string
	Domain bool
	Level  int // as the source says; -1 when it does not
	Line   int // where the source defines it; 0 when it only refers to it
	Up     []int32
	Down   []int32
	Hosts  []int32
}

// Tree is a tree of switches. Despite its name it keeps what a source says,
// also where that is no tree: a host on two switches, a switch under two.
type Tree struct {
	Switches []Switch
	Hosts    []string
	// Overlap says that the groupings are several views of the same hosts, so
	// that a host in two of them is nothing to warn of.
	Overlap bool
	host    map[string]int32
	sw      map[string]int // switches and groupings have names of their own
	domain  map[string]int
	// first[d][h] is the first switch (d = 0) or grouping (d = 1) that host h was
	// put on, plus one; more holds the others.
	first [2][]int32
	more  [2]map[int32][]int32

	expanded int // names, by Expand
}

// New makes an empty tree.
func New() *Tree {
	return &Tree{
		host: map[string]int32{}, sw: map[string]int{}, domain: map[string]int{}, more: [2]map[int32][]int32{{}, {}},
	}
}

// Host finds a host or adds it.
func (t *Tree) Host(name string) int32 {
	h, ok := t.host[name]
	if !ok {
		h = int32(len(t.Hosts))
		t.host[name] = h
		t.Hosts = append(t.Hosts, name)
		t.first[0] = append(t.first[0], 0)
		t.first[1] = append(t.first[1], 0)
	}
	return h
}

// Switch finds a switch (or a grouping) or adds it.
func (t *Tree) Switch(name string, domain bool) int {
	names := t.sw
	if domain {
		names = t.domain
	}
	i, ok := names[name]
	if !ok {
		i = len(t.Switches)
		names[name] = i
		t.Switches = append(t.Switches, Switch{Name: name, Domain: domain, Level: -1})
	}
	return i
}

// Join puts one switch under another. It reports false when it was there.
func (t *Tree) Join(up, down int) bool {
	if slices.Contains(t.Switches[down].Up, int32(up)) {
		return false
	}
	t.Switches[up].Down = append(t.Switches[up].Down, int32(down))
	t.Switches[down].Up = append(t.Switches[down].Up, int32(up))
	return true
}

// Attach puts a host on a switch. It reports false when it was there.
func (t *Tree) Attach(sw int, host int32) bool {
	d := 0
	if t.Switches[sw].Domain {
		d = 1
	}
	id := int32(sw + 1)
	if t.first[d][host] == id || slices.Contains(t.more[d][host], id) {
		return false
	}
	if t.first[d][host] == 0 {
		t.first[d][host] = id
	} else {
		t.more[d][host] = append(t.more[d][host], id)
	}
	t.Switches[sw].Hosts = append(t.Switches[sw].Hosts, host)
	return true
}

// Level is a switch above a host.
type Level struct {
	Name string
	Tier int
}

// Place puts a host under the switches that a line of a source names for it, the lowest first.
func (t *Tree) Place(host int32, line int, levels []Level) {
	below := -1
	for _, l := range levels {
		sw := t.Switch(l.Name, false)
		if s := &t.Switches[sw]; s.Line == 0 {
			s.Line, s.Level = line, l.Tier
		}
		switch {
		case below < 0:
			t.Attach(sw, host)
		case below != sw:
			t.Join(sw, below)
		}
		below = sw
	}
}

// Expand expands a hostlist that a source has under a key. One that cannot be read is a
// warning; too many names in all are an error.
func (t *Tree) Expand(b *cluster.Budget, f *cluster.Fragment, line int, where, key, list string) ([]string, error) {
	names, err := b.ParseHosts(list)
	if errors.Is(err, cluster.ErrTooLarge) || b.Stopped() != nil {
		return nil, fmt.Errorf("%s:%d: %s: %w", f.Source, line, key, err)
	}
	if err != nil {
		f.Warnf(line, where, "%s: %v; list skipped", key, err)
		return nil, nil
	}
	if t.expanded += len(names); t.expanded > 2*cluster.MaxHosts {
		return nil, fmt.Errorf("%s:%d: more than %d names so far; at most that many are read", f.Source, line,
			2*cluster.MaxHosts)
	}
	return names, nil
}

// Fill adds the hosts, the switches and their links to a fragment and warns of
// what is odd: references to nothing, hosts on two switches, islands. A loop of
// switches and a tree deeper than any real one are errors.
func (t *Tree) Fill(f *cluster.Fragment) error {
	tiers, err := t.tiers(f.Source)
	if err != nil {
		return err
	}
	t.warn(f, tiers)
	for i := range t.Switches { // what nothing says more of is below the switch that names it
		for _, d := range t.Switches[i].Down {
			if tiers[d] == cluster.TierUnknown {
				tiers[d] = max(tiers[i]-1, cluster.Leaf)
			}
		}
	}
	base := len(f.Hosts)
	for _, h := range t.Hosts {
		f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: -1})
	}
	n := &f.Network
	first := len(n.Switches)
	for i := range t.Switches {
		s := &t.Switches[i]
		name := s.Name
		if _, taken := t.sw[name]; s.Domain && taken {
			name += " (group)" // a network's switches have one set of names
		}
		n.Switches = append(n.Switches, cluster.Switch{
			Name: name, Label: s.Label, Domain: s.Domain, Tier: tiers[i], Rail: -1,
		})
	}
	// Real switches first: whoever asks for the switch of a host wants a box.
	for _, domain := range []bool{false, true} {
		for i := range t.Switches {
			s := &t.Switches[i]
			if s.Domain != domain {
				continue
			}
			if len(s.Hosts) > 0 {
				n.Links = append(n.Links, cluster.NetLink{
					A: cluster.End{Switch: first + i, NIC: -1},
					B: cluster.End{Switch: -1, NIC: -1, Hosts: spans(s.Hosts, base)},
				})
			}
			for _, d := range s.Down {
				n.Links = append(n.Links, cluster.NetLink{
					A: cluster.End{Switch: first + i, NIC: -1},
					B: cluster.End{Switch: first + int(d), NIC: -1},
				})
			}
		}
	}
	return nil
}

// spans turns host numbers into runs.
func spans(hosts []int32, base int) []cluster.Span {
	sorted := slices.Clone(hosts)
	slices.Sort(sorted)
	var out []cluster.Span
	for _, h := range sorted {
		out = cluster.AppendSpan(out, cluster.Span{First: base + int(h), N: 1})
	}
	return out
}

// tiers computes how far each switch is from the hosts: one with hosts is a
// leaf, another is one above the highest below it. A level that the source
// states wins.
func (t *Tree) tiers(source string) ([]cluster.Tier, error) {
	tier := slices.Repeat([]cluster.Tier{unseen}, len(t.Switches))
	for i := range tier {
		if err := t.climb(source, i, tier); err != nil {
			return nil, err
		}
	}
	return tier, nil
}

// What is known of switches before their tiers are.
const open, unseen = -3, -2

// climb computes the tier of a switch, and before it those of what is below.
func (t *Tree) climb(source string, i int, tier []cluster.Tier) error {
	if tier[i] != unseen {
		return nil
	}
	tier[i] = open
	s := &t.Switches[i]
	for _, d := range s.Down {
		if tier[d] == open {
			return fmt.Errorf("%s:%d: switch %s is below itself; remove it from the switches under %s", source, s.Line,
				t.Switches[d].Name, s.Name)
		}
		if err := t.climb(source, int(d), tier); err != nil {
			return err
		}
	}
	if tier[i] = t.tier(i, tier); tier[i] >= maxLevels {
		return fmt.Errorf("%s:%d: switch %s has %d levels under it; fewer than %d are read", source, s.Line, s.Name, tier[i],
			maxLevels)
	}
	return nil
}

func (t *Tree) tier(i int, tier []cluster.Tier) cluster.Tier {
	s := &t.Switches[i]
	if s.Level >= 0 && s.Level < maxLevels {
		return cluster.Tier(s.Level)
	}
	if len(s.Hosts) == 0 && len(s.Down) == 0 && s.Line == 0 {
		return cluster.TierUnknown
	}
	if len(s.Hosts) > 0 {
		return cluster.Leaf
	}
	at := cluster.Leaf
	for _, d := range s.Down {
		at = max(at, max(tier[d], cluster.Leaf)+1)
	}
	return at
}

// warn says what is odd about the tree.
func (t *Tree) warn(f *cluster.Fragment, tiers []cluster.Tier) {
	for i := range t.Switches {
		s := &t.Switches[i]
		what := "switch"
		if s.Domain {
			what = "group"
		}
		if s.Line > 0 && len(s.Hosts) == 0 && len(s.Down) == 0 {
			f.Warnf(s.Line, s.Name, "%s with neither hosts nor switches under it", what)
		}
		if len(s.Up) > 1 {
			f.Warnf(s.Line, s.Name, "%s under %s and %s; kept both links", what, t.Switches[s.Up[0]].Name,
				t.Switches[s.Up[1]].Name)
		}
		var missing []string
		for _, d := range s.Down {
			if tiers[d] == cluster.TierUnknown {
				missing = append(missing, t.Switches[d].Name)
			}
		}
		if len(missing) > 0 {
			f.Warnf(s.Line, s.Name, "nothing says what is under %s; define it or remove it here", shortList(missing))
		}
	}
	t.warnTwice(f)
	if tops := t.islands(); len(tops) > 1 {
		f.Warnf(0, "", "no top switch joins %s: %d islands, and a scheduler will not run one job across them",
			shortList(tops), len(tops))
	}
}

// warnTwice names the hosts that hang on more than one switch, one warning for
// all hosts with the same ones.
func (t *Tree) warnTwice(f *cluster.Fragment) {
	for d, more := range t.more {
		if d == 1 && t.Overlap {
			continue
		}
		groups := map[string][]int32{}
		for h, others := range more {
			var names []string
			for _, id := range append([]int32{t.first[d][h]}, others...) {
				names = append(names, t.Switches[id-1].Name)
			}
			key := strings.Join(names, " and ")
			groups[key] = append(groups[key], h)
		}
		keys := slices.Sorted(maps.Keys(groups))
		for _, k := range keys {
			hosts := groups[k]
			slices.Sort(hosts)
			names := make([]string, len(hosts))
			for i, h := range hosts {
				names[i] = t.Hosts[h]
			}
			line := t.Switches[slices.Max(append([]int32{0}, more[hosts[0]]...))-1].Line
			f.Warnf(line, shortList(names), "on %s; kept all links", k)
		}
	}
}

// islands lists the real switches that nothing is above, the first of those that share what is below them.
func (t *Tree) islands() []string {
	var tops []string
	joined := map[int32]bool{}
	for i := range t.Switches {
		if s := &t.Switches[i]; s.Domain || len(s.Up) > 0 || joined[int32(i)] {
			continue
		}
		tops = append(tops, t.Switches[i].Name)
		for todo := []int32{int32(i)}; len(todo) > 0; {
			at := todo[len(todo)-1]
			if todo = todo[:len(todo)-1]; !joined[at] {
				joined[at] = true
				todo = append(append(todo, t.Switches[at].Up...), t.Switches[at].Down...)
			}
		}
	}
	return tops
}

// shortList writes names as a hostlist that fits a message.
func shortList(names []string) string {
	s := cluster.FormatHosts(names)
	if len(s) > 80 {
		s = fmt.Sprintf("%s…%s (%d)", names[0], names[len(names)-1], len(names))
	}
	return s
}
