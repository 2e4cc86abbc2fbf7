package step

import (
	"fmt"
	"strings"
)

// Placement is which ranks form the groups of a kind, and on which hosts they are.
type Placement struct {
	Group Group `json:"group"`
	Size  int   `json:"size"`  // ranks of one
	Count int   `json:"count"` // groups
	Ranks []int `json:"ranks"` // of the first, 64 at most
	Hosts int   `json:"nodes"` // that the first one's ranks are on
	// Concurrent is how many groups of the kind the first host has ranks of: they communicate at once.
	Concurrent int `json:"groups_on_a_node"`
}

// maxListed bounds the ranks that are listed.
const maxListed = 64

// Groups are the kinds of groups that the split has, and where they are placed.
func (f *Fabric) Groups() []Placement {
	var list []Placement
	for g := range ToHost {
		at := f.pattern(g)
		switch {
		case at.size < 2, g == Copies && f.size(Shards) == 1, (g == Shards || g == Copies) && f.split.ZeRO == 0,
			g == Shards && f.size(Copies) == 1, g == SameExperts && f.split.EP == 1:
			continue
		}
		s := Placement{Group: g, Size: at.size}
		hosts := map[int]bool{}
		for i, r := range f.ranks(g, 0) {
			if i < maxListed {
				s.Ranks = append(s.Ranks, at.from+at.rank(i))
			}
			hosts[r.Host] = true
		}
		s.Hosts = len(hosts)
		for r := range f.layout {
			if f.begins(at, r) {
				s.Count++
				if at.from+r < len(f.layout) && f.layout[at.from+r].Host == f.layout[at.from].Host {
					s.Concurrent++
				}
			}
		}
		if g == Next { // every stage but the last has one behind it
			s.Count = (f.split.PP - 1) * len(f.layout) / f.split.PP
		}
		list = append(list, s)
	}
	return list
}

// String is the seating in words: "4 groups of 8, each in a node: ranks 0 to 7".
func (s Placement) String() string {
	where := "each in a node"
	if s.Hosts > 1 {
		where = fmt.Sprintf("over %d nodes", s.Hosts)
		if s.Concurrent > 1 {
			where += fmt.Sprintf(", %d concurrent on a node", s.Concurrent)
		}
	}
	what := fmt.Sprintf("%d groups of %d", s.Count, s.Size)
	switch {
	case s.Group == Next:
		what = fmt.Sprintf("%d pairs of neighbours", s.Count)
	case s.Count == 1:
		what = fmt.Sprintf("one group of %d", s.Size)
	}
	return fmt.Sprintf("%s, %s: ranks %s", what, where, s.members())
}

// members are the first group's ranks, as few words as they take.
func (s Placement) members() string {
	if n := len(s.Ranks); n > 2 && s.Ranks[n-1]-s.Ranks[0] == n-1 {
		return fmt.Sprintf("%d to %d", s.Ranks[0], s.Ranks[0]+s.Size-1)
	}
	var list []string
	for i, r := range s.Ranks {
		if i == 8 && s.Size > 9 {
			list = append(list, "…")
			break
		}
		list = append(list, fmt.Sprint(r))
	}
	return strings.Join(list, ", ")
}
