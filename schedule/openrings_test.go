package schedule

import (
	"slices"
	"testing"

	"busbar.dev/coll"
)

// TestOpenRings compares rings that are cut open where they are asked for with the same as trees that are kept, and
// sees the whole of a chain that is too long to look at everyone.
func TestOpenRings(t *testing.T) {
	turn := func(n int) func(rank, ring, step int) int { // blocks of eight one after the other, each from ring on
		return func(rank, ring, step int) int {
			at := rank/8*8 + mod(rank-ring, 8) + step
			at = mod(at, n)
			return at/8*8 + mod(at+ring, 8)
		}
	}
	const n, rings, root = 24, 3, 13
	for _, kind := range []coll.Kind{coll.Broadcast, coll.Reduce} {
		up, beside := kind == coll.Reduce, turn(n)
		kept := &Trees{}
		for c := range rings {
			parents := make([]int, n)
			for r := range parents {
				if up {
					parents[r] = beside(r, c, 1)
				} else {
					parents[r] = beside(r, c, -1)
				}
			}
			parents[root] = -1
			if err := kept.Add(parents); err != nil {
				t.Fatal(err)
			}
		}
		want, err := Build(kind, "tree", Params{Ranks: n, Root: root, Channels: 5, Trees: kept})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Build(kind, "tree", Params{
			Ranks: n, Root: root, Channels: 5, Trees: OpenRings(n, rings, root, up, beside),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		for r := range n {
			for lane := range want.Lanes {
				if a, b := opsOf(got, r, lane), opsOf(want, r, lane); !slices.Equal(a, b) {
					t.Fatalf("%v rank %d lane %d: %v, want %v", kind, r, lane, a, b)
				}
			}
		}
		const many = 8192
		long, err := Build(kind, "tree", Params{Ranks: many, Channels: 2, Trees: OpenRings(many, rings, 0, up, turn(many))})
		if err != nil {
			t.Fatal(err)
		}
		for channel := range 2 {
			links := 0
			st := long.Stages()[0]
			st.Chain(channel, 0, func(_, _ int, times, _ float64) { links += int(times) })
			if links != many-1 {
				t.Errorf("%v of %d ranks, channel %d: a chain of %d links", kind, many, channel, links)
			}
			links, st.Links = 0, 100
			if st.Chain(channel, 0, func(_, _ int, times, _ float64) { links += int(times) }); links != 100 {
				t.Errorf("%d links, where 100 were asked for", links)
			}
		}
	}
}

func opsOf(s *Schedule, rank, lane int) []Op {
	var list []Op
	for i := range s.Len(rank, lane) {
		list = append(list, s.At(rank, lane, i))
	}
	return list
}
