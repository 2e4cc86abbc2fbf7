package engine_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/schedule"
)

// TestRoundings holds counts that can be told by hand.
func TestRoundings(t *testing.T) {
	for _, tt := range []struct {
		kind coll.Kind
		algo string
		n    int
		want int
	}{
		{coll.AllReduce, "ring", 4, 4}, // three hops, and the owner
		{coll.AllReduce, "ring", 8, 8},
		{coll.AllReduce, "recursive_doubling", 8, 3}, // three exchanges
		{coll.AllReduce, "rabenseifner", 8, 4},       // three halvings, and the owner
		{coll.AllReduce, "direct", 8, 2},             // to the owner, and from it
		{coll.ReduceScatter, "ring", 4, 3},
		{coll.AllGather, "ring", 5, 1},
		{coll.Broadcast, "binomial", 7, 1},
		{coll.Reduce, "binomial", 8, 3},
		{coll.AllToAll, "bruck", 5, 1},
		{coll.SendRecv, "direct", 3, 1},
		{coll.AllReduce, "ring", 1, 0},
	} {
		s, err := schedule.Build(tt.kind, tt.algo, schedule.Params{Ranks: tt.n})
		if err != nil {
			t.Fatal(err)
		}
		b, err := engine.BoundFor(s, coll.Op{Kind: tt.kind, Bytes: 1 << 20}, engine.FP16)
		if err != nil || b.Roundings != tt.want {
			t.Errorf("%s by %s on %d ranks: %d roundings, %v; want %d", tt.kind, tt.algo, tt.n, b.Roundings, err, tt.want)
		}
	}
}

// TestBoundOfEveryAlgorithm: every schedule that we build leaves all ranks with the same bits.
func TestBoundOfEveryAlgorithm(t *testing.T) {
	for _, b := range schedule.Builders() {
		for _, kind := range b.Kinds {
			for n := 1; n <= 17; n++ {
				p := schedule.Params{Ranks: n, Channels: 1 + n%3, Pieces: 1 + n%4}
				if b.Needs == "groups" {
					p.Groups = grouped(n, 1+n/3)
				}
				s, err := b.Build(kind, p)
				op := coll.Op{Kind: kind, Bytes: 1 << 20}
				if err != nil || len(s.Switches) > 0 || engine.CanCompress(op, engine.Int8) != nil {
					continue
				}
				x, err := engine.BoundFor(s, op, engine.Int8)
				if err != nil {
					t.Errorf("%d ranks: %v", n, err)
				}
				if n > 1 && (x.Roundings < 1 || x.Roundings > n+2) {
					t.Errorf("%d ranks: %s by %s: %d roundings", n, kind, s.Name, x.Roundings)
				}
				if n == 8 && testing.Verbose() {
					fmt.Println(kind, s.Name, x.Roundings)
				}
			}
		}
	}
}

// TestBoundsAreDocumented reads the table of docs/compression.md back.
func TestBoundsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/compression.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) \\| (\\d+) \\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 7 {
		t.Fatalf("%d algorithms in the table", len(rows))
	}
	for _, row := range rows {
		for i, n := range []int{4, 8} {
			s, err := schedule.Build(coll.AllReduce, row[1], schedule.Params{Ranks: n})
			if err != nil {
				t.Fatal(err)
			}
			b, err := engine.BoundFor(s, coll.Op{Kind: coll.AllReduce}, engine.BF16)
			if err != nil || fmt.Sprint(b.Roundings) != row[2+i] {
				t.Errorf("%s on %d ranks: %d roundings (%v), the document says %s", row[1], n, b.Roundings, err, row[2+i])
			}
		}
	}
	ring, err := schedule.Build(coll.AllReduce, "ring", schedule.Params{Ranks: 8})
	if err != nil {
		t.Fatal(err)
	}
	for wire, want := range map[engine.Wire]string{engine.FP16: "0.4", engine.BF16: "3.2", engine.Int8: "3.2"} {
		b, _ := engine.BoundFor(ring, coll.Op{Kind: coll.AllReduce}, wire)
		if got := fmt.Sprintf("%.1f", 100*b.Rel); got != want {
			t.Errorf("%v: %s %%; the document says %s %%", wire, got, want)
		}
	}
}
