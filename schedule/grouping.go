package schedule

import "fmt"

// grouping is a partition of the ranks: nodes, or whatever is close to each other. Member k of
// all groups form rail k. Where groups differ in size, there are as many rails as the greatest
// has members, and a member of a smaller group serves several neighbouring rails.
//
// Mostly groups are stretches of ranks, all of one size, and everything about them is arithmetic:
// a million ranks cost nothing. Tables are kept for others.
type grouping struct {
	given  [][]int // as they were told
	count  int     // of groups
	ranks  int
	rails  int
	equal  bool // all groups have the same size
	even   bool // and group k has the ranks from k times that on
	chunks int  // of a rank's slot

	groups         [][]int32
	groupOf, posOf []int32 // of each rank
	// by rail, then group: the chunk of a channel at which the slot of (rail, group) begins, and the end
	off    []int32
	across []int32 // by rail, then group: the rank that serves
}

func (g *grouping) sizeOf(group int) int {
	if g.even {
		return g.rails
	}
	return len(g.groups[group])
}

// member is the rank that is member k of a group.
func (g *grouping) member(group, k int) int32 {
	if g.even {
		return int32(group*g.rails + k)
	}
	return g.groups[group][k]
}

func (g *grouping) group(rank int) int {
	if g.even {
		return rank / g.rails
	}
	return int(g.groupOf[rank])
}

// pos is which member of its group a rank is.
func (g *grouping) pos(rank int) int {
	if g.even {
		return rank % g.rails
	}
	return int(g.posOf[rank])
}

// begin is the chunk of a channel at which the slot of a rail and group begins.
func (g *grouping) begin(rail, group int) int32 {
	if g.even {
		return int32((rail*g.count + group) * g.chunks)
	}
	return g.off[rail*g.count+group]
}

// server is the rank of a group that serves a rail.
func (g *grouping) server(rail, group int) int32 {
	if g.even {
		return int32(group*g.rails + rail)
	}
	return g.across[rail*g.count+group]
}

// placed is where a rank is in its group if the group began with member by of it, and seen who is there.
func (g *grouping) placed(rank, by int) (group, k int) {
	group = g.group(rank)
	return group, mod(g.pos(rank)-by, g.sizeOf(group))
}

func (g *grouping) seen(group, k, by int) int {
	return int(g.member(group, mod(k+by, g.sizeOf(group))))
}

// inner is where the members of a group sit.
func (g *grouping) inner(group int) seat {
	s := seat{n: int32(g.sizeOf(group))}
	if g.even {
		s.first = int32(group * g.rails)
	} else {
		s.members = g.groups[group]
	}
	return s
}

// outer is where those who serve a rail sit, whose blocks are the slots of the rail.
func (g *grouping) outer(rail int) seat {
	m := g.count
	s := seat{n: int32(m), lo: g.begin(rail, 0), width: g.begin(rail+1, 0) - g.begin(rail, 0), blocks: int32(m)}
	if g.even {
		s.first, s.skip = int32(rail), int32(g.rails-1)
	} else {
		s.members, s.bounds = g.across[rail*m:(rail+1)*m], g.off[rail*m:(rail+1)*m+1]
	}
	return s
}

// Groups is groups of ranks that several schedules share.
type Groups struct{ grouping }

// NewGroups takes groups of ranks 0 to n-1, or every rank for itself where there are none.
func NewGroups(n int, groups [][]int) (*Groups, error) {
	g, err := newGrouping(n, groups)
	if err != nil {
		return nil, err
	}
	return &Groups{*g}, nil
}

// grouping is that of a schedule: the shared one, whose rails it lays out for itself, or one of its own.
func (p *Params) grouping() (*grouping, error) {
	if p.Shared == nil {
		return newGrouping(p.Ranks, p.Groups)
	}
	if g := p.Shared.grouping; g.ranks == p.Ranks {
		return &g, nil
	}
	return nil, fmt.Errorf("the groups hold %d ranks; there are %d", p.Shared.ranks, p.Ranks)
}

// singles is every rank for itself.
func singles(n int) *grouping {
	return &grouping{count: n, ranks: n, rails: 1, equal: true, even: true}
}

// newGrouping takes groups of ranks, or every rank for itself where there are none.
func newGrouping(n int, groups [][]int) (*grouping, error) {
	if len(groups) == 0 {
		groups = make([][]int, n)
		for r := range groups {
			groups[r] = []int{r}
		}
	}
	g := &grouping{given: groups, count: len(groups), ranks: n, equal: true}
	if g.even = stretches(n, groups); g.even {
		g.rails = n / max(len(groups), 1)
		return g, nil
	}
	g.groupOf, g.posOf, g.groups = make([]int32, n), make([]int32, n), make([][]int32, 0, len(groups))
	seen := make([]bool, n)
	count := 0
	all := make([]int32, 0, n)
	for k, members := range groups {
		if len(members) == 0 {
			return nil, fmt.Errorf("group %d is empty; leave it out", k)
		}
		for i, r := range members {
			if r < 0 || r >= n {
				return nil, fmt.Errorf("group %d has rank %d; ranks are 0 to %d", k, r, n-1)
			}
			if seen[r] {
				return nil, fmt.Errorf("rank %d is in two groups or twice in one; each belongs to one", r)
			}
			seen[r] = true
			count++
			all = append(all, int32(r))
			g.groupOf[r], g.posOf[r] = int32(k), int32(i)
		}
		g.groups = append(g.groups, all[count-len(members):count:count])
		g.rails = max(g.rails, len(members))
		g.equal = g.equal && len(members) == len(groups[0])
	}
	if count != n {
		return nil, fmt.Errorf("the groups hold %d ranks; there are %d", count, n)
	}
	return g, nil
}

// stretches reports groups of one size that have ranks 0 to n-1 in order.
func stretches(n int, groups [][]int) bool {
	at := 0
	for _, members := range groups {
		if len(members) == 0 || len(members) != len(groups[0]) {
			return false
		}
		for _, r := range members {
			if r != at {
				return false
			}
			at++
		}
	}
	return at == n
}

// firstRail is the rail of member p of a group of some size: the first that it serves, and the
// one its block is on. It serves those up to the next member's.
func (g *grouping) firstRail(size, p int) int { return (p*g.rails + size - 1) / size }

// serves is the member of a group of some size that serves a rail.
func (g *grouping) serves(size, rail int) int { return rail * size / g.rails }

// layRails lays a slot of chunks for every rank, rail by rail.
func (g *grouping) layRails(chunks int) {
	if g.chunks = chunks; g.even {
		return
	}
	m := g.count
	g.off = make([]int32, g.rails*m+1)
	g.across = make([]int32, g.rails*m)
	at := int32(0)
	for rail := range g.rails {
		for k, group := range g.groups {
			p := g.serves(len(group), rail)
			g.off[rail*m+k] = at
			g.across[rail*m+k] = group[p]
			if g.firstRail(len(group), p) == rail {
				at += int32(chunks)
			}
		}
	}
	g.off[g.rails*m] = at
}

// width is the chunks of a channel.
func (g *grouping) width() int32 { return int32(g.ranks * g.chunks) }

// own tells whether the rank that serves a rail has its slot there: in small groups it serves others too.
func (g *grouping) own(rail, group int) bool {
	return g.even || g.off[rail*g.count+group+1] > g.off[rail*g.count+group]
}

// order is the ranks in the order of their slots.
func (g *grouping) order() []int32 {
	list := make([]int32, 0, g.ranks)
	for rail := range g.rails {
		for k := range g.count {
			if g.own(rail, k) {
				list = append(list, g.server(rail, k))
			}
		}
	}
	return list
}

// slot is where the slot of a rank begins.
func (g *grouping) slot(rank int) int32 {
	k := g.group(rank)
	return g.begin(g.firstRail(g.sizeOf(k), g.pos(rank)), k)
}

// shares is the chunks that the members of a group of some size answer for: the bounds of their
// rails.
func (g *grouping) shares(size int) []int32 {
	b := make([]int32, size+1)
	for p := range b {
		b[p] = g.begin(g.firstRail(size, p), 0)
	}
	return b
}
