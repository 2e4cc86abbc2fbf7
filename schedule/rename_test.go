package schedule

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"busbar.dev/coll"
)

// each builds every combination over n ranks with random parameters.
func each(t *testing.T, rnd *rand.Rand, n int, visit func(s *Schedule)) {
	for _, b := range Builders() {
		for _, kind := range b.Kinds {
			p := Params{Ranks: n, Root: rnd.IntN(n), Channels: 1 + rnd.IntN(3), Pieces: 1 + rnd.IntN(4)}
			if rnd.IntN(2) == 0 {
				p.Order = rnd.Perm(n)
			}
			if b.Needs == "groups" || rnd.IntN(2) == 0 {
				p.Groups = cut(rnd.Perm(n), func() int { return 1 + rnd.IntN(5) })
			}
			for _, q := range variants(b.Name, kind, p) {
				if s, err := b.Build(kind, q); err == nil {
					visit(s)
				}
			}
		}
	}
}

// TestRenamingKeepsItCorrect proves every combination again after the ranks got other numbers.
func TestRenamingKeepsItCorrect(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 2, 5, 8, 13} {
		each(t, rnd, n, func(s *Schedule) {
			if s.Kind == coll.SendRecv {
				return
			}
			other, err := Rename(s, rnd.Perm(n))
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Check(); err != nil {
				t.Errorf("%s: %v", s, err)
			}
		})
	}
}

// TestFlowsAreTheSumsOfOps compares closed forms with ops added up.
func TestFlowsAreTheSumsOfOps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	lanes := 0
	for _, n := range []int{1, 2, 3, 7, 8, 12, 16} {
		each(t, rnd, n, func(s *Schedule) {
			plain := *s
			plain.Program = Store(s)
			for r := range s.Nodes() {
				for l := range s.Lanes {
					got, want := s.AppendFlows(nil, r, l), plain.AppendFlows(nil, r, l)
					byPeer := func(a, b Flow) int { return cmp.Compare(a.Peer, b.Peer) }
					slices.SortFunc(got, byPeer)
					slices.SortFunc(want, byPeer)
					if !slices.Equal(got, want) {
						t.Errorf("%s rank %d lane %d: %v, want %v", s, r, l, got, want)
					}
					lanes++
				}
			}
		})
	}
	t.Logf("%d lanes compared", lanes)
}
