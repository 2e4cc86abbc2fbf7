package sim

import (
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// TestRoundsAreAProgram does what the parts of rounds say with numbers: every rank ends with the sum over all.
func TestRoundsAreAProgram(t *testing.T) {
	groups := [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}
	for _, x := range []struct {
		algo string
		p    schedule.Params
	}{
		{"ring", schedule.Params{Ranks: 6, Channels: 2}},
		{"bidir_ring", schedule.Params{Ranks: 5, Channels: 2}},
		{"tree", schedule.Params{Ranks: 7, Channels: 2, Pieces: 3}},
		{"hierarchical", schedule.Params{Ranks: 8, Groups: groups}},
		{"rabenseifner", schedule.Params{Ranks: 7}},
		{"direct", schedule.Params{Ranks: 5}},
		{"nvls_tree", schedule.Params{Ranks: 8, Groups: groups, Pieces: 2}},
	} {
		s, err := schedule.Build(coll.AllReduce, x.algo, x.p)
		if err != nil {
			t.Fatal(err)
		}
		held := make([][]int, s.Nodes())
		for r := range held {
			held[r] = make([]int, s.Layout.Chunks)
			for k := range held[r] {
				if r < s.Ranks {
					held[r][k] = 1 << r
				}
			}
		}
		for _, round := range Rounds(s, coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: unit.MiB}) {
			before := make([][]int, len(held))
			for r := range held {
				before[r] = append([]int{}, held[r]...)
			}
			for _, send := range round.Sends {
				for _, part := range send.Parts {
					for k := range part.To - part.From {
						to := &held[send.To][part.At+k]
						if part.Reduces {
							*to += before[send.From][part.From+k]
						} else {
							*to = before[send.From][part.From+k]
						}
					}
				}
			}
		}
		for r := range s.Ranks {
			for k, sum := range held[r] {
				if sum != 1<<s.Ranks-1 {
					t.Errorf("%s: rank %d has %b of chunk %d", x.algo, r, sum, k)
				}
			}
		}
	}
}
