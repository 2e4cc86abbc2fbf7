package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

var (
	shared = []coll.Kind{coll.AllReduce, coll.ReduceScatter, coll.AllGather}
	exch   = []coll.Kind{coll.AllToAll, coll.AllToAllV}
	trees  = []coll.Kind{coll.AllReduce, coll.Broadcast, coll.Reduce}
)

// Builders is the table of algorithms and of the collectives that they do.
func Builders() []Builder {
	return []Builder{
		{"ring", "every block once around a ring", shared, "", ringIn(false)},
		{"bidir_ring", "a ring in both directions, every other channel the other way", shared, "", ringIn(true)},
		{"chain", "a pipeline from rank to rank", trees, "", buildChain},
		{"tree", "NCCL's double binary tree, chains inside groups", trees, "", buildTree},
		{"binomial", "a binomial tree", []coll.Kind{coll.AllReduce, coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.Barrier}, "", buildBinomial},
		{"recursive_doubling", "whole vectors with partners at distance 1, 2, 4, …", []coll.Kind{coll.AllReduce, coll.AllGather}, "a power of two for all_gather", halvingBy(true, true)},
		{"halving_doubling", "recursive halving, then doubling", shared, "a power of two", halvingBy(false, false)},
		{"rabenseifner", "halving and doubling, odd ranks folded", []coll.Kind{coll.AllReduce}, "", halvingBy(true, false)},
		{"hypercube", "nccl-tests' all-gather by pairwise exchange", []coll.Kind{coll.Hypercube}, "a power of two", halvingBy(false, false)},
		{"bruck", "the fewest rounds, with local copies", []coll.Kind{coll.AllGather, coll.AllToAll}, "", buildBruck},
		{"pat", "NCCL's parallel aggregated trees", []coll.Kind{coll.ReduceScatter, coll.AllGather}, "", buildPAT},
		{"direct", "everyone with everyone at once", append(append([]coll.Kind{coll.Gather, coll.Scatter, coll.SendRecv}, shared...), exch...), "", directBy(false, false)},
		{"pairwise", "one partner after the other", append(append([]coll.Kind{}, shared...), exch...), "", directBy(true, false)},
		{"one_shot", "everyone sends the whole vector to everyone", []coll.Kind{coll.AllReduce}, "", directBy(false, true)},
		{"scatter_allgather", "scatter along a tree and gather around a ring, or the reverse", []coll.Kind{coll.Broadcast, coll.Reduce}, "", buildTwoStep},
		{"dissemination", "hear from 1, 2, 4, … places back", []coll.Kind{coll.Barrier}, "", buildBarrier},
		{"hierarchical", "inside the groups, across them rail by rail, inside again", shared, "groups", levelsOf("", "")},
		{"two_phase", "inside the group first, then across", []coll.Kind{coll.AllToAll}, "groups", buildTwoPhase},
		{"nvls", "summed and multicast in the NVLink switch", shared, "", buildNVLS},
		{"nvls_tree", "NVLink switch inside the groups, double binary trees across", []coll.Kind{coll.AllReduce}, "groups", levelsOf("nvls", "tree")},
		{"collnet", "summed in the network", []coll.Kind{coll.AllReduce}, "", buildCollNet},
		{"collnet_chain", "chains inside the groups, summed in the network", []coll.Kind{coll.AllReduce}, "groups", buildCollNetChain},
		{"collnet_direct", "everyone with everyone inside the groups, summed in the network", []coll.Kind{coll.AllReduce}, "groups", levelsOf("direct", "collnet")},
	}
}

func buildRing(kind coll.Kind, p *Params, both bool) (*Schedule, error) {
	r := ring{n: p.Ranks, kind: kind, both: both}
	if len(p.Rings)+len(p.Orders) == 0 && p.Turn && (len(p.Groups) > 0 || p.Shared != nil) {
		g, err := p.grouping()
		if err != nil {
			return nil, err
		}
		p.Order = nil
		return spread(kind, p, plan{body: newTurned(r, g, kind.Blocked()), blocks: p.Ranks})
	}
	if len(p.Rings)+len(p.Orders) == 0 {
		return spread(kind, p, plan{body: r, blocks: p.Ranks})
	}
	x := &rings{ring: r, orders: p.Orders, blocks: kind.Blocked()}
	for i, ranks := range p.Rings {
		order, err := NewOrder(ranks)
		if err != nil {
			return nil, fmt.Errorf("ring %d: %w", i, err)
		}
		x.orders = append(x.orders, order)
	}
	for i, order := range x.orders {
		if n := len(order.ranks); n != p.Ranks {
			return nil, fmt.Errorf("ring %d: %d ranks; there are %d", i, n, p.Ranks)
		}
	}
	p.Order = nil
	return spread(kind, p, plan{body: x, blocks: p.Ranks})
}

// treePlan is a tree that serves a kind.
func treePlan(kind coll.Kind, p *Params, s shape) plan {
	t := &tree{shape: s, n: p.Ranks, pieces: p.Pieces, way: up}
	x := plan{body: t, blocks: p.Pieces}
	switch kind {
	case coll.Broadcast:
		t.way = down
	case coll.AllReduce:
		t.way = upDown
		x.lanes = 2
	}
	return x
}

func buildBinomial(kind coll.Kind, p *Params) (*Schedule, error) {
	b := binomial{p.Ranks}
	switch kind {
	case coll.Gather:
		return spread(kind, p, plan{body: collectTree{b}, blocks: p.Ranks})
	case coll.Scatter:
		return spread(kind, p, plan{body: mirror{collectTree{b}, false}, blocks: p.Ranks})
	}
	t := &tree{shape: b, n: p.Ranks, pieces: 1}
	switch kind {
	case coll.Broadcast:
		t.way = down
	case coll.AllReduce, coll.Barrier:
		t.way = upThenDown
	}
	return spread(kind, p, plan{body: t, blocks: 1})
}

func buildBruck(kind coll.Kind, p *Params) (*Schedule, error) {
	if kind == coll.AllGather {
		return spread(kind, p, plan{body: bruckGather{p.Ranks}, blocks: p.Ranks, temp: p.Ranks})
	}
	b := bruckExchange{p.Ranks}
	return spread(kind, p, plan{body: b, blocks: p.Ranks, temp: p.Ranks + 2*b.half()})
}

func buildPAT(kind coll.Kind, p *Params) (*Schedule, error) {
	t := newPAT(p.Ranks, p.Agg)
	x := plan{body: t, blocks: p.Ranks, temp: 2 * t.agg}
	if kind == coll.ReduceScatter {
		x.body = mirror{t, true}
	}
	return spread(kind, p, x)
}

// buildTwoStep is van de Geijn's broadcast for long vectors, and its mirror (Thakur et al.
// 2005).
func buildTwoStep(kind coll.Kind, p *Params) (*Schedule, error) {
	gather := collectTree{binomial{p.Ranks}}
	if kind == coll.Broadcast {
		return spread(kind, p, plan{body: seq{mirror{gather, false}, ring{n: p.Ranks, kind: coll.AllGather}}, blocks: p.Ranks})
	}
	return spread(kind, p, plan{body: seq{ring{n: p.Ranks, kind: coll.ReduceScatter}, gather}, blocks: p.Ranks})
}

func buildBarrier(kind coll.Kind, p *Params) (*Schedule, error) {
	return spread(kind, p, plan{body: dissemination{p.Ranks}, blocks: 1})
}

func buildTwoPhase(_ coll.Kind, p *Params) (*Schedule, error) {
	g, err := p.grouping()
	if err != nil {
		return nil, err
	}
	g.layRails(1)
	t := newTwoPhase(g)
	s := &Schedule{Lanes: p.Channels, Temp: p.Channels * int(t.temp), Program: t}
	s.Layout = Layout{Chunks: p.Channels * p.Ranks, Blocks: p.Ranks, Channels: p.Channels, Order: g.order()}
	return s, nil
}

func buildNVLS(kind coll.Kind, p *Params) (*Schedule, error) {
	x := plan{blocks: p.Ranks, switches: []Switch{{Multimem, everyone(p.Ranks)}}}
	switch kind {
	case coll.AllReduce:
		x.body, x.lanes = nvlsBoth{nvls{p.Ranks, coll.ReduceScatter}, nvls{p.Ranks, coll.AllGather}}, 2
	default:
		x.body = nvls{p.Ranks, kind}
	}
	return spread(kind, p, x)
}
