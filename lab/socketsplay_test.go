package lab

import (
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// star is nodes of equal ranks on one switch; every node has one port.
type star struct {
	per   int
	nodes int
	rate  float64
	half  float64 // of a path that both directions of a node share; 0 is none
}

func (s star) Capacity() []float64 {
	var caps []float64
	for range s.nodes {
		h := s.half
		if h == 0 {
			h = 1e15
		}
		caps = append(caps, s.rate, s.rate, h)
	}
	return caps
}

func (s star) Route(from, to int) ([]int, bool) {
	a, b := from/s.per, to/s.per
	if a == b {
		return nil, true
	}
	return []int{3 * a, 3*a + 2, 3*b + 1, 3*b + 2}, false
}

func placed(t *testing.T, kind coll.Kind, algo string, n int, p schedule.Params, size unit.Bytes) Played {
	t.Helper()
	p.Ranks = n
	s, err := schedule.Build(kind, algo, p)
	if err != nil {
		t.Fatal(err)
	}
	j := Played{Schedule: s, Op: coll.Op{Kind: kind, Bytes: size, Type: coll.Float}}
	for r := range n {
		j.Ranks = append(j.Ranks, r)
	}
	return j
}

// The times that arithmetic gives, where nothing but the ports counts.
func TestSocketsAgreeWithArithmetic(t *testing.T) {
	const size, rate = 1 << 24, 1e8
	s := float64(size) / rate
	pairs := [][]int{{0, 1}, {2, 3}}
	for _, x := range []struct {
		name string
		w    star
		algo string
		p    schedule.Params
		want float64
	}{
		{"ring over four nodes", star{1, 4, rate, 0}, "ring", schedule.Params{}, 1.5 * s},
		{"ring in node order over two nodes", star{2, 2, rate, 0}, "ring", schedule.Params{}, 1.5 * s},
		{"ring that goes back and forth", star{2, 2, rate, 0}, "ring", schedule.Params{Order: []int{0, 2, 1, 3}}, 3 * s},
		{"inside first", star{2, 2, rate, 0}, "hierarchical", schedule.Params{Groups: pairs}, s},
		{"half duplex, four nodes", star{1, 4, rate, rate}, "ring", schedule.Params{}, 3 * s},
		{"half duplex, two nodes", star{2, 2, rate, rate}, "ring", schedule.Params{}, 3 * s},
	} {
		m := &Sockets{Cores: 1e6}
		times, busy, err := m.Simulate(t.Context(), x.w, []Played{placed(t, coll.AllReduce, x.algo, 4, x.p, size)})
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if got := times[0].Seconds(); math.Abs(got/x.want-1) > 0.01 || busy < 0 {
			t.Errorf("%s: %.4f s, want %.4f; busiest %d", x.name, got, x.want, busy)
		}
	}
}

func TestSocketsShareProcessors(t *testing.T) {
	// Four ranks of one node, a byte costs 1 ns to add and 0.5 to copy: a ring adds and
	// copies 3/4 of the data at every rank, on two processors two ranks at a time.
	m := &Sockets{Cores: 2, Near: Carrier{Copy: 0.5e-9, Reduce: 1e-9}}
	times, _, err := m.Simulate(t.Context(), star{4, 1, 1, 0},
		[]Played{placed(t, coll.AllReduce, "ring", 4, schedule.Params{}, 1<<24)})
	if err != nil {
		t.Fatal(err)
	}
	want := 2 * 0.75 * 1.5e-9 * (1 << 24)
	if got := times[0].Seconds(); math.Abs(got/want-1) > 0.02 {
		t.Errorf("%.5f s, want %.5f", got, want)
	}
}

func TestSocketsTwoJobsShareALink(t *testing.T) {
	// Both jobs send from node 0 to node 1.
	one := placed(t, coll.AllReduce, "ring", 2, schedule.Params{}, 1<<22)
	two := one
	one.Ranks, two.Ranks = []int{0, 2}, []int{1, 3}
	m := &Sockets{Cores: 100}
	alone, _, err := m.Simulate(t.Context(), star{2, 2, 1e8, 0}, []Played{one})
	if err != nil {
		t.Fatal(err)
	}
	both, _, err := m.Simulate(t.Context(), star{2, 2, 1e8, 0}, []Played{one, two})
	if err != nil {
		t.Fatal(err)
	}
	for j := range both {
		if got := both[j].Seconds() / alone[0].Seconds(); math.Abs(got-2) > 0.02 {
			t.Errorf("job %d: %.3f times as long as alone, want 2", j, got)
		}
	}
}

// Every algorithm that has no switch comes to its end.
func TestSocketsPlayAllAlgorithms(t *testing.T) {
	for _, b := range schedule.Builders() {
		for _, kind := range b.Kinds {
			for _, n := range []int{4, 8} {
				p := schedule.Params{Ranks: n, Groups: [][]int{{0, 1}, {2, 3}}}
				if n == 8 {
					p.Groups = [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}}
				}
				s, err := schedule.Build(kind, b.Name, p)
				if err != nil || len(s.Switches) > 0 || kind == coll.AllToAllV {
					continue
				}
				j := Played{Schedule: s, Op: coll.Op{Kind: kind, Bytes: 1 << 20, Type: coll.Float}}
				for r := range n {
					j.Ranks = append(j.Ranks, r)
				}
				m := &Sockets{
					Cores: 2, Net: Carrier{Latency: unit.Micros(30)},
					Near: Carrier{Latency: unit.Micros(2), Copy: 1e-10, Reduce: 1e-10},
				}
				times, _, err := m.Simulate(t.Context(), star{n / 2, 2, 1e8, 0}, []Played{j})
				if err != nil || times[0] <= 0 {
					t.Errorf("%s by %s over %d: %v, %v", kind, b.Name, n, times, err)
				}
			}
		}
	}
}

// Buckets of a step have their ranks in common: begun together they take as long as one after
// the other where nothing but the ports counts, and one that begins late is waited for.
func TestSocketsBucketsOfAStep(t *testing.T) {
	const size, rate = 1 << 22, 1e8
	w := star{1, 4, rate, 0}
	m := &Sockets{Cores: 100}
	one := placed(t, coll.AllReduce, "ring", 4, schedule.Params{}, size)
	whole := 1.5 * size / rate
	times, busy, err := m.Once(t.Context(), w, []Played{one, one, one})
	if err != nil {
		t.Fatal(err)
	}
	if got := times[2].Seconds() / whole; math.Abs(got-3) > 0.05 || busy < 0 {
		t.Errorf("three at once: %.3f times one, busiest %d", got, busy)
	}
	late := one
	late.Start = unit.Seconds(10 * whole)
	if times, _, err = m.Once(t.Context(), w, []Played{one, late}); err != nil {
		t.Fatal(err)
	}
	if a, b := times[0].Seconds()/whole, times[1].Seconds()/whole; math.Abs(a-1) > 0.02 || math.Abs(b-11) > 0.02 {
		t.Errorf("one after %.3f, the late one after %.3f; want 1 and 11", a, b)
	}
}
