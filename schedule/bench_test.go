package schedule

import (
	"fmt"
	"testing"

	"busbar.dev/coll"
)

var benches = []struct {
	kind coll.Kind
	name string
	p    Params
}{
	{coll.AllReduce, "ring", Params{}},
	{coll.AllReduce, "tree", Params{Channels: 2}},
	{coll.AllReduce, "rabenseifner", Params{}},
	{coll.AllReduce, "hierarchical", Params{Inner: "nvls"}},
	{coll.AllReduce, "hierarchical", Params{Outer: "tree"}},
	{coll.ReduceScatter, "pat", Params{}},
	{coll.AllToAll, "direct", Params{}},
	{coll.AllToAll, "bruck", Params{}},
	{coll.AllToAll, "two_phase", Params{}},
}

func build(tb testing.TB, kind coll.Kind, name string, p Params, n int) *Schedule {
	p.Ranks = n
	if name == "hierarchical" || name == "two_phase" {
		p.Groups = cut(everyone(n), func() int { return 8 })
	}
	s, err := Build(kind, name, p)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// sink keeps the compiler from leaving the work out.
var sink Op

func BenchmarkAt(b *testing.B) {
	for _, x := range benches {
		s := build(b, x.kind, x.name, x.p, 4096)
		b.Run(fmt.Sprintf("%s/%s%s%s", x.kind, x.name, x.p.Inner, x.p.Outer), func(b *testing.B) {
			b.ReportAllocs()
			n := s.Len(77, 0)
			for i := 0; b.Loop(); i++ {
				sink = s.At(77, 0, i%n)
			}
		})
	}
}

func BenchmarkCheck1024(b *testing.B) {
	for _, x := range benches {
		s := build(b, x.kind, x.name, x.p, 1024)
		b.Run(fmt.Sprintf("%s/%s%s%s", x.kind, x.name, x.p.Inner, x.p.Outer), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAtDoesNotAllocate holds every builder to it.
func TestAtDoesNotAllocate(t *testing.T) {
	for _, b := range Builders() {
		for _, kind := range b.Kinds {
			s, err := b.Build(kind, Params{Ranks: 32, Channels: 2, Groups: cut(everyone(32), func() int { return 8 })})
			if err != nil {
				t.Fatal(err)
			}
			n := s.Len(5, 1)
			if allocs := testing.AllocsPerRun(10, func() {
				for i := range n {
					sink = s.At(5, 1, i)
				}
			}); allocs > 0 {
				t.Errorf("%s: %v allocations", s, allocs)
			}
		}
	}
}

// TestMillionRanks: building and asking cost next to nothing at any size.
func TestMillionRanks(t *testing.T) {
	for _, x := range []struct {
		name string
		p    Params
	}{{"ring", Params{}}, {"tree", Params{}}, {"hierarchical", Params{}}} {
		s := build(t, coll.AllReduce, x.name, x.p, 1<<20)
		last := s.Len(1<<19, 0) - 1
		if o := s.At(1<<19, 0, last); o.Verb == Nop {
			t.Errorf("%s: the last op is %s", s, o)
		}
	}
}
