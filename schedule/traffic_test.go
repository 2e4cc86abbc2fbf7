package schedule

import (
	"fmt"
	"go/parser"
	"go/token"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// TestTraffic holds what a rank sends to the known formulas, with S the size of the vector or
// of all blocks.
func TestTraffic(t *testing.T) {
	const n, S = 16, 16 * 15 * 14 * 1024 * 16
	log := bits.Len(n) - 1
	groups := cut(everyone(n), func() int { return 4 })
	frac := func(a, b int) unit.Bytes { return unit.Bytes(a) * S / unit.Bytes(b) }
	tests := []struct {
		kind        coll.Kind
		name        string
		p           Params
		most, total unit.Bytes // of the busiest rank, and of all participants
	}{
		{coll.AllReduce, "ring", Params{}, frac(2*(n-1), n), 2 * (n - 1) * S},
		{coll.AllReduce, "bidir_ring", Params{Channels: 2}, frac(2*(n-1), n), 2 * (n - 1) * S},
		{coll.ReduceScatter, "ring", Params{Channels: 3}, frac(n-1, n), (n - 1) * S},
		{coll.AllGather, "ring", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.AllReduce, "halving_doubling", Params{}, frac(2*(n-1), n), 2 * (n - 1) * S},
		{coll.AllReduce, "rabenseifner", Params{}, frac(2*(n-1), n), 2 * (n - 1) * S},
		{coll.AllReduce, "recursive_doubling", Params{}, unit.Bytes(log) * S, unit.Bytes(n*log) * S},
		{coll.AllGather, "recursive_doubling", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.Hypercube, "hypercube", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.AllGather, "bruck", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.AllToAll, "bruck", Params{}, frac(log*n/2, n), unit.Bytes(n*log/2) * S},
		{coll.AllGather, "pat", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.ReduceScatter, "pat", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.AllToAll, "direct", Params{}, frac(n-1, n), (n - 1) * S},
		{coll.AllToAll, "pairwise", Params{Channels: 2}, frac(n-1, n), (n - 1) * S},
		{coll.AllToAll, "two_phase", Params{Groups: groups}, frac(3*4+12, n), (12 + 12) * S},
		{coll.AllReduce, "one_shot", Params{}, (n - 1) * S, n * (n - 1) * S},
		{coll.AllReduce, "direct", Params{}, frac(2*(n-1), n), 2 * (n - 1) * S},
		{coll.Broadcast, "chain", Params{}, S, (n - 1) * S},
		{coll.Reduce, "chain", Params{}, S, (n - 1) * S},
		{coll.AllReduce, "chain", Params{}, 2 * S, 2 * (n - 1) * S},
		{coll.AllReduce, "tree", Params{}, 3 * S, 2 * (n - 1) * S},
		{coll.AllReduce, "tree", Params{Channels: 2}, 2 * S, 2 * (n - 1) * S}, // inner in one tree, leaf in the other
		{coll.Broadcast, "binomial", Params{}, unit.Bytes(log) * S, (n - 1) * S},
		{coll.Broadcast, "scatter_allgather", Params{}, frac(2*(n-1), n), frac(n*log/2, n) + (n-1)*S},
		{coll.Gather, "direct", Params{}, frac(1, n), frac(n-1, n)},
		{coll.Gather, "binomial", Params{}, frac(n/2, n), frac(n*log/2, n)},
		{coll.Scatter, "direct", Params{}, frac(n-1, n), frac(n-1, n)},
		{coll.SendRecv, "direct", Params{}, S, n * S},
		// Inside 2·3/4, across 2·3/4 of a quarter.
		{coll.AllReduce, "hierarchical", Params{Groups: groups}, frac(6*4+6, 16), frac(6*4+6, 16) * n},
		// NVLS: each member gives up its vector once and its own block once more; the switch as
		// much to each.
		{coll.AllReduce, "nvls", Params{}, frac(n+1, n), 2 * (n + 1) * S},
		{coll.AllReduce, "collnet", Params{}, S, 2 * n * S},
		{coll.Barrier, "dissemination", Params{}, 0, 0},
	}
	for _, tt := range tests {
		tt.p.Ranks = n
		s, err := Build(tt.kind, tt.name, tt.p)
		if err != nil {
			t.Fatal(err)
		}
		op := coll.Op{Kind: tt.kind, Bytes: S}
		var most, total, came unit.Bytes
		for r := range s.Nodes() {
			sent, received := s.Sent(op, r)
			total += sent
			came += received
			if r < n {
				most = max(most, sent)
			}
		}
		if most != tt.most || total != tt.total || came != total {
			t.Errorf("%s: a rank sends %d, all %d (received %d); want %d, %d", s, most, total, came, tt.most, tt.total)
		}
	}
}

// TestBinaryTrees holds the trees to NCCL's, by their children for 2 to 8 nodes.
func TestBinaryTrees(t *testing.T) {
	want := []string{
		2: "0:-,1|1:-,0",
		3: "0:-,2 2:1,-|0:2,- 1:-,0",
		4: "0:-,2 2:1,3|1:2,0 3:-,1",
		5: "0:-,4 2:1,3 4:2,-|0:3,- 1:-,0 3:2,4",
		6: "0:-,4 2:1,3 4:2,5|1:3,0 3:4,2 5:-,1",
		7: "0:-,4 2:1,3 4:2,6 6:5,-|0:6,- 1:-,5 3:2,4 5:3,0",
		8: "0:-,4 2:1,3 4:2,6 6:5,7|1:2,0 3:5,1 5:6,4 7:-,3",
	}
	name := func(x int) string {
		if x < 0 {
			return "-"
		}
		return fmt.Sprint(x)
	}
	for n := 2; n < len(want); n++ {
		var trees []string
		for _, second := range []bool{false, true} {
			var list []string
			for r := range n {
				if _, a, b := BinaryTree(n, r, second); a >= 0 || b >= 0 {
					list = append(list, fmt.Sprintf("%d:%s,%s", r, name(a), name(b)))
				}
			}
			trees = append(trees, strings.Join(list, " "))
		}
		if got := strings.Join(trees, "|"); got != want[n] {
			t.Errorf("%d nodes: %s, want %s", n, got, want[n])
		}
	}
}

// TestTreesInGroups holds the trees over groups to what NCCL prints for 4 nodes of 2 GPUs,
// balanced, two channels: children->rank->parent.
func TestTreesInGroups(t *testing.T) {
	g, err := newGrouping(8, cut(everyone(8), func() int { return 2 }))
	if err != nil {
		t.Fatal(err)
	}
	d := dtree{grouping: g, channels: 2}
	want := []string{
		"1/4/-1->0->-1 1/-1/-1->0->2", "-1/-1/-1->1->0 -1/-1/-1->1->0", "3/-1/-1->2->5 3/0/-1->2->6",
		"-1/-1/-1->3->2 4/-1/-1->3->2",
		"5/6/-1->4->0 5/-1/-1->4->3", "2/-1/-1->5->4 -1/-1/-1->5->4", "7/-1/-1->6->4 7/2/-1->6->-1",
		"-1/-1/-1->7->6 -1/-1/-1->7->6",
	}
	for r := range 8 {
		var both []string
		for channel := range 2 {
			kids := [3]int{-1, -1, -1}
			for k := range d.children(r, channel) {
				kids[k] = d.child(r, channel, k)
			}
			both = append(both, fmt.Sprintf("%d/%d/%d->%d->%d", kids[0], kids[1], kids[2], r, d.parent(r, channel)))
		}
		if got := strings.Join(both, " "); got != want[r] {
			t.Errorf("rank %d: %s, want %s", r, got, want[r])
		}
	}
}

// TestPATRounds: the rounds are logarithmic.
func TestPATRounds(t *testing.T) {
	for n := 2; n < 300; n++ {
		want := bits.Len(uint(n - 1))
		if n > 3 && pow2(n-1) == n-1 {
			want++ // NCCL aggregates less than n/2, rounded down, and so needs one more
		}
		if p := newPAT(n); len(p.far) != want {
			t.Errorf("%d ranks: %d rounds", n, len(p.far))
		}
	}
}

// TestGivenRingsAndTrees proves orders from outside.
func TestGivenRingsAndTrees(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for n := 1; n < 20; n++ {
		var rings, parents [][]int
		for range 3 {
			rings = append(rings, rnd.Perm(n))
			order, tree := rnd.Perm(n), make([]int, n)
			tree[order[0]] = -1
			for i := 1; i < n; i++ {
				tree[order[i]] = order[rnd.IntN(i)]
			}
			parents = append(parents, tree)
		}
		for _, kind := range shared {
			b, _ := Find("ring")
			p := Params{Ranks: n, Channels: 4, Orders: orders(t, rings...)}
			prove(t, b, kind, p)
			s, err := b.Build(kind, p)
			if err != nil {
				t.Fatal(err)
			}
			plain := *s
			plain.Program = Store(s)
			for r := range n {
				if got, want := s.AppendFlows(nil, r, 3), plain.AppendFlows(nil, r, 3); !slices.Equal(got, want) {
					t.Errorf("%s rank %d: %v, want %v", s, r, got, want)
				}
			}
		}
		b, _ := Find("tree")
		prove(t, b, coll.AllReduce, Params{Ranks: n, Channels: 3, Trees: parentsOf(t, parents...)})
		for _, kind := range []coll.Kind{coll.Broadcast, coll.Reduce} {
			prove(t, b, kind, Params{Ranks: n, Channels: 2, Trees: parentsOf(t, parents[0]), Root: slices.Index(parents[0], -1)})
		}
	}
}

// orders are those of lists of ranks.
func orders(t *testing.T, lists ...[]int) (all []*Order) {
	for _, ranks := range lists {
		order, err := NewOrder(ranks)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, order)
	}
	return all
}

// parentsOf are the trees of lists of parents.
func parentsOf(t *testing.T, lists ...[]int) *Trees {
	g := &Trees{}
	for _, parents := range lists {
		if err := g.Add(parents); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		kind coll.Kind
		name string
		p    Params
		want string
	}{
		{
			coll.AllToAll, "ring",
			Params{Ranks: 4},
			"all_to_all by ring: the algorithm does all_reduce, reduce_scatter, all_gather only",
		},
		{coll.AllReduce, "rings", Params{Ranks: 4}, `algorithm "rings" is unknown`},
		{coll.AllReduce, "ring", Params{}, "0 ranks"},
		{coll.AllReduce, "halving_doubling", Params{Ranks: 6}, "6 ranks; the number must be a power of two"},
		{coll.Hypercube, "hypercube", Params{Ranks: 5}, "power of two"},
		{coll.Broadcast, "chain", Params{Ranks: 4, Root: 4}, "root 4"},
		{coll.AllReduce, "ring", Params{Ranks: 3, Order: []int{0, 1, 1}}, "rank 1 is out of range or there twice"},
		{coll.AllReduce, "ring", Params{Ranks: 3, Orders: orders(t, []int{0, 1})}, "ring 0: 2 ranks; there are 3"},
		{coll.AllReduce, "hierarchical", Params{Ranks: 3, Groups: [][]int{{0, 1}}}, "the groups hold 2 ranks; there are 3"},
		{coll.AllReduce, "hierarchical", Params{Ranks: 2, Groups: [][]int{{0, 0}}}, "rank 0 is in two groups"},
		{coll.AllReduce, "hierarchical", Params{Ranks: 2, Groups: [][]int{{0, 5}}}, "rank 5; ranks are 0 to 1"},
		{coll.AllReduce, "hierarchical", Params{Ranks: 2, Groups: [][]int{{0, 1}, {}}}, "group 1 is empty"},
		{coll.AllReduce, "hierarchical", Params{Ranks: 2, Inner: "bruck"}, `"bruck" inside groups is unknown`},
		{coll.AllReduce, "hierarchical", Params{Ranks: 2, Outer: "bruck"}, `"bruck" across groups is unknown`},
		{coll.AllGather, "hierarchical", Params{Ranks: 2, Outer: "tree"}, "does all_reduce only"},
		{coll.AllReduce, "tree", Params{Ranks: 2, Trees: parentsOf(t, []int{-1})}, "parents for 1 ranks"},
		{
			coll.Broadcast, "tree",
			Params{Ranks: 2, Root: 1, Trees: parentsOf(t, []int{-1, 0})},
			"root 0; the operation has 1",
		},
		{coll.AllReduce, "ring", Params{Ranks: 1 << 23, Channels: 64}, "more chunks than can be numbered"},
		{coll.AllToAllV, "direct", Params{Ranks: 50000}, "at most 46340"},
	} {
		if _, err := Build(tt.kind, tt.name, tt.p); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v; want %q", tt.kind, tt.name, err, tt.want)
		}
	}
	if err := new(Trees).Add([]int{-1, -1, 0}); err == nil || !strings.Contains(err.Error(), "2 roots") {
		t.Errorf("two roots: %v", err)
	}
	// Trees from outside that hang together in a circle are found by the checker.
	s, err := Build(coll.AllReduce, "tree", Params{Ranks: 4, Trees: parentsOf(t, []int{-1, 2, 3, 1})})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "waits for ever") {
		t.Errorf("a circle of parents: %v", err)
	}
}

func TestPrint(t *testing.T) {
	s, err := Build(coll.AllReduce, "tree", Params{Ranks: 2, Pieces: 1})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rank := range 2 {
		for lane := range 2 {
			for i, o := range s.Ops(rank, lane) {
				fmt.Fprintln(&b, rank, lane, i, o)
			}
		}
	}
	want := `0 0 0 recvReduce data[0:1] from 1
0 1 0 send data[0:1] to 1 after lane 0 op 0
1 0 0 send data[0:1] to 0
1 1 0 recv data[0:1] from 0 after lane 0 op 0
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestExtents: the chunks of a buffer cover it once, whatever the order, the channels and the
// sizes.
func TestExtents(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	sizes := distanceWeighted(5, 4000, .7)
	for _, tt := range []struct {
		kind  coll.Kind
		name  string
		sizes [][]unit.Bytes
		bytes unit.Bytes
	}{
		{coll.AllReduce, "ring", nil, 4 * 1001},
		{coll.AllGather, "ring", nil, 16 * 5 * 7},
		{coll.AllToAllV, "direct", sizes, 0},
		{coll.AllReduce, "tree", nil, 12},
	} {
		s, err := Build(tt.kind, tt.name, Params{Ranks: 5, Channels: 3, Order: rnd.Perm(5)})
		if err != nil {
			t.Fatal(err)
		}
		op := coll.Op{Kind: tt.kind, Bytes: tt.bytes, Sizes: tt.sizes}
		for r := range 5 {
			want := op.Size(5)
			if tt.sizes != nil {
				want = op.Send(5, r)
			}
			covered := make([]bool, want)
			for c := range s.Layout.Chunks {
				at, size := s.Extent(op, r, Data, c)
				for i := range size {
					if covered[at+i] {
						t.Fatalf("%s: byte %d of rank %d lies in two chunks", s, at+i, r)
					}
					covered[at+i] = true
				}
			}
			if slices.Contains(covered, false) {
				t.Errorf("%s: a byte of rank %d lies in no chunk", s, r)
			}
		}
	}
}

// TestKnowsRanksOnly keeps topology out.
func TestKnowsRanksOnly(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range file.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); strings.HasPrefix(path, "busbar.dev/") && path != "busbar.dev/coll" &&
				path != "busbar.dev/unit" {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
	}
}

// TestStages holds the stages' sums to the whole schedule's.
func TestStages(t *testing.T) {
	groups := [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}
	for _, b := range Builders() {
		for _, kind := range b.Kinds {
			s, err := b.Build(kind, Params{Ranks: 12, Channels: 2, Groups: groups})
			if err != nil {
				continue
			}
			stages := s.Stages()
			for rank := range s.Nodes() {
				for lane := range s.Lanes {
					var got, want int64
					known := true
					for i := range stages {
						list, ok := stages[i].AppendFlows(nil, rank, lane)
						known = known && ok
						for _, f := range list {
							got += f.Chunks
						}
					}
					for _, f := range s.AppendFlows(nil, rank, lane) {
						want += f.Chunks
					}
					if known && got != want {
						t.Fatalf("%s %s: rank %d lane %d sends %d chunks in %d stages, %d in all", b.Name, kind, rank, lane, got,
							len(stages), want)
					}
				}
			}
		}
	}
}

// distanceWeighted makes the sizes that nccl-tests generates for all_to_all_v: total
// bytes a rank, of which the part spread (0 to 1) grows with the distance from rank to
// rank, in multiples of 16 bytes.
func distanceWeighted(n int, total unit.Bytes, spread float64) [][]unit.Bytes {
	sizes := make([][]unit.Bytes, n)
	for i := range sizes {
		sizes[i] = make([]unit.Bytes, n)
		for j := range sizes[i] {
			if n == 1 {
				sizes[i][j] = total &^ 15
				continue
			}
			far := float64((j - i + n) % n)
			uniform := float64(total) / float64(n)
			dist := far * float64(total) / float64(n*(n-1)/2)
			sizes[i][j] = unit.Bytes(float64((1-spread)*uniform)+float64(spread*dist)) &^ 15
		}
	}
	return sizes
}
