package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

// buildLevels puts two algorithms together.
func buildLevels(kind coll.Kind, p *Params, inner, outer string) (*Schedule, error) {
	g, err := p.grouping()
	if err != nil {
		return nil, err
	}
	l := &levels{grouping: g, kind: kind}
	if err := l.setOuter(outer, p.Pieces); err != nil {
		return nil, err
	}
	slot := l.slotChunks(kind)
	if int64(p.Ranks)*int64(slot)*int64(p.Channels) >= 1<<31 {
		return nil, fmt.Errorf("%d ranks, %d channels: more chunks than can be numbered", p.Ranks, p.Channels)
	}
	g.layRails(slot)
	if err := l.setInner(inner); err != nil {
		return nil, err
	}
	s := &Schedule{Lanes: p.Channels, Program: l}
	if l.two {
		s.Lanes *= 2
	}
	s.Layout = Layout{Chunks: p.Channels * p.Ranks * slot, Blocks: 1, Channels: p.Channels}
	if kind.Blocked() {
		s.Layout.Blocks, s.Layout.Order = p.Ranks, g.order()
	}
	s.Switches = l.switches()
	return s, nil
}

// setOuter chooses what runs across the groups.
func (l *levels) setOuter(name string, pieces int) error {
	m := l.count
	whole := l.kind == coll.AllReduce
	switch name {
	case "ring":
		l.cross = ring{n: m, kind: l.kind}
		if whole {
			l.blocks = int32(m)
		}
	case "halving_doubling", "rabenseifner":
		h := halving{n: m, kind: l.kind}
		if m != pow2(m) && (name == "halving_doubling" || !whole) {
			return fmt.Errorf("%s across %d groups; the number must be a power of two", name, m)
		}
		l.cross = h
		if whole {
			l.blocks = h.all()
		}
	case "tree", "collnet":
		if !whole {
			return fmt.Errorf("%s across groups does all_reduce only; use ring", name)
		}
		l.two, l.blocks = true, int32(pieces)
		t := &tree{shape: btrees{n: m, channels: 2}, n: m, pieces: pieces, way: upDown}
		if name == "collnet" {
			t.shape, l.beyond = star{m}, true
		}
		l.cross = t
	default:
		return fmt.Errorf("%q across groups is unknown; use ring, tree, halving_doubling, rabenseifner or collnet", name)
	}
	return nil
}

// slotChunks is the number of chunks that each rank answers for, chosen so that the blocks of
// the outer algorithm divide a rail's part, but no more than eight: beyond, blocks of somewhat
// different size do less harm than so many chunks.
func (l *levels) slotChunks(kind coll.Kind) int {
	if kind != coll.AllReduce {
		return 1
	}
	a, b := l.count, int(l.blocks)
	for b != 0 {
		a, b = b, a%b
	}
	return min(int(l.blocks)/a, 8)
}

// setInner chooses what runs inside groups of every size there is.
func (l *levels) setInner(name string) error {
	n := l.rails + 1
	l.reduce, l.gather, l.share = make([]body, n), make([]body, n), make([][]int32, n)
	for k := range l.count {
		size := l.sizeOf(k)
		if l.share[size] != nil {
			continue
		}
		l.share[size] = l.shares(size)
		switch name {
		case "ring":
			l.reduce[size], l.gather[size] = ring{n: size, kind: coll.ReduceScatter}, ring{n: size, kind: coll.AllGather}
		case "direct":
			l.reduce[size], l.gather[size] = direct{n: size, kind: coll.ReduceScatter}, direct{n: size, kind: coll.AllGather}
		case "nvls":
			l.inside = true
			l.reduce[size], l.gather[size] = nvls{size, coll.ReduceScatter}, nvls{size, coll.AllGather}
		default:
			return fmt.Errorf("%q inside groups is unknown; use ring, direct or nvls", name)
		}
	}
	return nil
}

// switches lists those of the groups, then those of the rails.
func (l *levels) switches() []Switch {
	var list []Switch
	if l.inside {
		list = make([]Switch, 0, len(l.given))
		for _, group := range l.given {
			list = append(list, Switch{Multimem, group})
		}
	}
	if l.beyond {
		for rail := range l.rails {
			all := make([]int, l.count)
			for k := range all {
				all[k] = int(l.server(rail, k))
			}
			list = append(list, Switch{InNetwork, all})
		}
	}
	return list
}
