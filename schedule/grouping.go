package schedule

import "fmt"

// grouping is a partition of the ranks: nodes, or whatever is close to each other. Member k of
// all groups form rail k. Where groups differ in size, there are as many rails as the greatest
// has members, and a member of a smaller group serves several neighbouring rails.
type grouping struct {
	given          [][]int // as they were told
	groups         [][]int32
	groupOf, posOf []int32 // of each rank
	rails          int
	equal          bool    // all groups have the same size
	off            []int32 // by rail, then group: the chunk of a channel at which the slot of (rail, group) begins, and the end
	across         []int32 // by rail, then group: the rank that serves
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
	if g := p.Shared.grouping; len(g.groupOf) == p.Ranks {
		return &g, nil
	}
	return nil, fmt.Errorf("the groups hold %d ranks; there are %d", len(p.Shared.groupOf), p.Ranks)
}

// newGrouping takes groups of ranks, or every rank for itself where there are none.
func newGrouping(n int, groups [][]int) (*grouping, error) {
	g := &grouping{groupOf: make([]int32, n), posOf: make([]int32, n), equal: true}
	seen := make([]bool, n)
	count := 0
	if len(groups) == 0 {
		groups = make([][]int, n)
		for r := range groups {
			groups[r] = []int{r}
		}
	}
	g.given, g.groups = groups, make([][]int32, 0, len(groups))
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

// firstRail is the rail of member p of a group of some size: the first that it serves, and the
// one its block is on. It serves those up to the next member's.
func (g *grouping) firstRail(size, p int) int { return (p*g.rails + size - 1) / size }

// serves is the member of a group of some size that serves a rail.
func (g *grouping) serves(size, rail int) int { return rail * size / g.rails }

// layRails lays a slot of chunks for every rank, rail by rail.
func (g *grouping) layRails(chunks int) {
	m := len(g.groups)
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

// order is the ranks in the order of their slots.
func (g *grouping) order() []int32 {
	var list []int32
	for i, r := range g.across {
		if g.off[i+1] > g.off[i] {
			list = append(list, r)
		}
	}
	return list
}

// slot is where the slot of a rank begins.
func (g *grouping) slot(rank int) int32 {
	k := int(g.groupOf[rank])
	rail := g.firstRail(len(g.groups[k]), int(g.posOf[rank]))
	return g.off[rail*len(g.groups)+k]
}

// shares is the chunks that the members of a group of some size answer for: the bounds of their
// rails.
func (g *grouping) shares(size int) []int32 {
	b := make([]int32, size+1)
	for p := range b {
		b[p] = g.off[g.firstRail(size, p)*len(g.groups)]
	}
	return b
}
