package schedule

import (
	"slices"
	"testing"

	"busbar.dev/coll"
)

// TestLikeChannels holds that channels of one kind send the same, and that a repeated schedule is the one with as many
// channels.
func TestLikeChannels(t *testing.T) {
	groups := [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}
	trees := &Trees{}
	for _, p := range [][]int{{-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1}} {
		if err := trees.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	turned := append(slices.Clone(everyone(12)[5:]), everyone(5)...)
	for _, c := range []struct {
		algo   string
		p      Params
		period int // of channels that Repeat may repeat, 0 none
	}{
		{"ring", Params{Orders: orders(t, everyone(12), turned)}, 2},
		{"ring", Params{Groups: groups, Turn: true}, 0},
		{"bidir_ring", Params{}, 0},
		{"tree", Params{Trees: trees, Pieces: 1}, 2},
		{"tree", Params{Groups: groups, Turn: true}, 0},
		{"tree", Params{}, 0},
		{"nvls_tree", Params{Groups: groups, Pieces: 1}, 2},
		{"nvls", Params{}, 1},
		{"direct", Params{}, 0},
	} {
		c.p.Ranks, c.p.Channels = 12, 8
		s, err := Build(coll.AllReduce, c.algo, c.p)
		if err != nil {
			t.Fatal(c.algo, err)
		}
		checkLike(t, c.algo, s)
		if c.period == 0 {
			continue
		}
		c.p.Channels = c.period
		few, err := Build(coll.AllReduce, c.algo, c.p)
		if err != nil {
			t.Fatal(c.algo, err)
		}
		sameOps(t, c.algo, s, few.Repeat(8/c.period))
	}
}

// checkLike compares what lanes of channels of one kind send.
func checkLike(t *testing.T, name string, s *Schedule) {
	per := s.Lanes / s.Channels
	for _, st := range s.Stages() {
		first := map[int]int{}
		for c := range s.Channels {
			k, ok := first[st.Like(c)]
			if !ok {
				first[st.Like(c)] = c
				continue
			}
			for p := range s.Nodes() * per {
				a, _ := st.AppendFlows(nil, p/per, k*per+p%per)
				b, _ := st.AppendFlows(nil, p/per, c*per+p%per)
				if !slices.Equal(a, b) {
					t.Errorf("%s: channel %d sends %v as %d does, which sends %v", name, c, b, k, a)
				}
			}
		}
	}
}

// sameOps compares two schedules op by op.
func sameOps(t *testing.T, name string, a, b *Schedule) {
	if a.Lanes != b.Lanes || a.Channels != b.Channels || a.Temp != b.Temp || a.Layout.Chunks != b.Layout.Chunks ||
		a.Layout.Channels != b.Layout.Channels {
		t.Errorf("%s: repeated it has %d lanes, %d channels; want %d, %d", name, b.Lanes, b.Channels, a.Lanes, a.Channels)
		return
	}
	for i := range a.Nodes() * a.Lanes {
		if x, y := ops(a, i), ops(b, i); !slices.Equal(x, y) {
			t.Errorf("%s: lane %d does %v when repeated; want %v", name, i, y, x)
		}
	}
}

func ops(s *Schedule, i int) []Op {
	var list []Op
	for _, o := range s.Ops(i/s.Lanes, i%s.Lanes) {
		list = append(list, o)
	}
	return list
}
