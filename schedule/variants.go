package schedule

import (
	"cmp"
	"fmt"

	"busbar.dev/coll"
)

// The builders below serve several names of the table.

func ringIn(both bool) func(coll.Kind, *Params) (*Schedule, error) {
	return func(kind coll.Kind, p *Params) (*Schedule, error) { return buildRing(kind, p, both) }
}

func buildChain(kind coll.Kind, p *Params) (*Schedule, error) {
	return spread(kind, p, treePlan(kind, p, chain{p.Ranks}))
}

func buildTree(kind coll.Kind, p *Params) (*Schedule, error) {
	q := *p
	q.Order = nil
	if g := p.Trees; g != nil {
		if n := g.ranks(); n != p.Ranks {
			return nil, fmt.Errorf("the trees are parents for %d ranks; there are %d", n, p.Ranks)
		}
		if kind.Rooted() { // the trees name ranks: positions must not be turned
			if err := g.rooted(p.Root); err != nil {
				return nil, err
			}
			q.Root = 0
		}
		return spread(kind, &q, treePlan(kind, p, g))
	}
	d := dtree{channels: p.Channels, rooted: kind.Rooted()}
	if len(p.Groups) == 0 && p.Shared == nil {
		d.grouping = singles(p.Ranks)
		return spread(kind, p, treePlan(kind, p, d))
	}
	var err error
	if d.grouping, err = p.grouping(); err == nil && d.rooted {
		d.grouping, err = newGrouping(p.Ranks, rootFirst(d.given, p.Root))
	}
	if err != nil {
		return nil, err
	}
	q.Root, d.turn = 0, p.Turn && !d.rooted
	return spread(kind, &q, treePlan(kind, p, d))
}

// rootFirst turns groups so that the root is the first member of the first: where the first
// tree has its root.
func rootFirst(groups [][]int, root int) [][]int {
	for g, members := range groups {
		for k, r := range members {
			if r != root {
				continue
			}
			turned := append(append([][]int{}, groups[g:]...), groups[:g]...)
			turned[0] = append(append([]int{}, members[k:]...), members[:k]...)
			return turned
		}
	}
	return groups
}

// halvingBy makes the builder of a relative of recursive halving.
func halvingBy(fold, whole bool) func(coll.Kind, *Params) (*Schedule, error) {
	return func(kind coll.Kind, p *Params) (*Schedule, error) {
		h := halving{n: p.Ranks, kind: kind, whole: whole && kind == coll.AllReduce}
		if kind == coll.Hypercube {
			h.kind = coll.AllGather
		}
		if p.Ranks != pow2(p.Ranks) && (!fold || kind != coll.AllReduce) {
			return nil, fmt.Errorf("%d ranks; the number must be a power of two (rabenseifner folds the others for "+
				"all_reduce, ring and pat do any number)", p.Ranks)
		}
		return spread(kind, p, plan{body: h, blocks: int(h.all())})
	}
}

// directBy makes the builder of a relative of direct exchange.
func directBy(paired, whole bool) func(coll.Kind, *Params) (*Schedule, error) {
	return func(kind coll.Kind, p *Params) (*Schedule, error) {
		x := plan{blocks: p.Ranks}
		switch kind {
		case coll.Gather:
			x.body = collect{p.Ranks}
		case coll.Scatter:
			x.body = mirror{collect{p.Ranks}, false}
		case coll.SendRecv:
			// Neighbours are defined by rank; an order has no meaning here.
			p.Order = nil
			x.body, x.blocks = shift{p.Ranks}, 1
		default:
			d := direct{n: p.Ranks, kind: kind, paired: paired, whole: whole}
			if kind == coll.AllToAllV {
				d.kind = coll.AllToAll
			}
			if whole {
				x.blocks = 1
			}
			x.body = d
		}
		return spread(kind, p, x)
	}
}

func buildCollNet(kind coll.Kind, p *Params) (*Schedule, error) {
	x := treePlan(kind, p, star{p.Ranks})
	x.switches = []Switch{{InNetwork, everyone(p.Ranks)}}
	return spread(kind, p, x)
}

func buildCollNetChain(kind coll.Kind, p *Params) (*Schedule, error) {
	g, err := p.grouping()
	if err != nil {
		return nil, err
	}
	p.Order = nil
	x := treePlan(kind, p, chains{g, p.Ranks})
	x.switches = []Switch{{InNetwork, everyone(p.Ranks)}}
	return spread(kind, p, x)
}

// levelsOf makes the builder of a two-level algorithm; empty names come from the parameters.
func levelsOf(inner, outer string) func(coll.Kind, *Params) (*Schedule, error) {
	return func(kind coll.Kind, p *Params) (*Schedule, error) {
		return buildLevels(kind, p, cmp.Or(inner, p.Inner, "ring"), cmp.Or(outer, p.Outer, "ring"))
	}
}
