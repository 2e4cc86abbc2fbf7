package lab

import (
	"errors"
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

func TestTrials(t *testing.T) {
	for _, x := range []struct {
		word        string
		nodes, each int
		ok          bool
	}{
		{"ring", 4, 1, true},
		{"ring:interleaved", 2, 2, true},
		{"ring:interleaved", 4, 1, false},
		{"ring:crossing", 8, 1, true},
		{"ring:crossing", 3, 1, false},
		{"hierarchical", 2, 2, true},
		{"hierarchical", 1, 4, false},
		{"hierarchical:leaves", 8, 1, true},
		{"hierarchical:tree", 4, 2, true},
		{"nvls", 1, 4, false},
		{"halving_doubling", 3, 1, false},
	} {
		tr, err := NewTrial(coll.AllReduce, x.word, x.nodes, x.each)
		var no *schedule.Refusal
		if x.ok != (err == nil) || !x.ok && !errors.As(err, &no) {
			t.Errorf("%s on %dx%d: %v", x.word, x.nodes, x.each, err)
			continue
		}
		if err == nil {
			s, err := tr.Schedule()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil {
				t.Errorf("%s: %v", x.word, err)
			}
		}
	}
	var no *schedule.Refusal
	if _, err := NewTrial(coll.AllReduce, "ring:backwards", 2, 2); err == nil || errors.As(err, &no) {
		t.Errorf("a word that means nothing: %v", err)
	}
}

func TestScore(t *testing.T) {
	at := func(algo string, measured, predicted float64) Point {
		return Point{Layout: "2x2", Algo: algo, Measured: unit.Micros(measured), Predicted: unit.Micros(predicted), Error: predicted/measured - 1}
	}
	noisy := at("chain", 100, 1000)
	noisy.TooNoisy = true
	s := Rate([]Point{at("ring", 100, 110), at("tree", 120, 105), at("direct", 101, 90), noisy}, 0.15)
	if s.Points != 3 || s.Noisy != 1 || math.Abs(s.Worst-0.125) > 1e-9 || s.Where != "2x2 tree 0 B" {
		t.Errorf("%+v", s)
	}
	// ring against tree and direct against tree differ by more than 15%; the first is wrong.
	if s.Pairs != 2 || len(s.Wrong) != 1 {
		t.Errorf("order: %d pairs, wrong %v", s.Pairs, s.Wrong)
	}
}

// Data crosses what it must, and a collective in the simulated lab takes what the
// arithmetic of its NICs says.
func TestWiringGivesArithmetic(t *testing.T) {
	for _, x := range []struct {
		name  string
		o     Options
		text  string
		word  string
		nodes int
		each  int
		want  float64 // in sizes over a NIC's data rate
	}{
		{"one leaf", Options{}, "", "ring", 8, 1, 2 * 7.0 / 8},
		{"over 4:1 in node order", Options{Spines: 1}, "", "ring", 8, 1, 2 * 7.0 / 8},
		{"over 4:1 to and fro", Options{Spines: 1}, "", "ring:crossing", 8, 1, 4 * 2 * 7.0 / 8},
		{"half duplex", Options{Staging: 12.5e9}, "", "ring", 4, 1, 2 * 1.5},
	} {
		p, err := New(read(t, clos), x.o)
		if err != nil {
			t.Fatal(err)
		}
		const size = 1 << 22
		w, took, busy := played(t, p, x.word, x.nodes, x.each, size)
		want := x.want * size / w.Capacity()[0]
		if got := took.Seconds(); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: %.4f s, want %.4f; limited by %s", x.name, got, want, w.Name(busy))
		}
	}
}

// played is an all-reduce on a plan's wires with processors enough: how long it takes, and
// the number of what limits it.
func played(t *testing.T, p *Plan, word string, nodes, each int, size unit.Bytes) (w *Wiring, took unit.Time, busy int) {
	t.Helper()
	tr, err := NewTrial(coll.AllReduce, word, nodes, each)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tr.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	seats := p.Seats(nodes, each)
	w = p.Wire(seats)
	job := sim.Job{Schedule: s, Op: tr.Op(size)}
	for i := range seats {
		job.Ranks = append(job.Ranks, i)
	}
	times, busy, err := (&sim.Sockets{Cores: 1000}).Play(t.Context(), w, []sim.Job{job})
	if err != nil {
		t.Fatal(err)
	}
	return w, times[0], busy
}

func TestCostsBetweenSizes(t *testing.T) {
	var times []unit.Time
	for i, s := range PairSizes() {
		times = append(times, unit.Seconds(float64(s)*float64(i+1)*1e-10))
	}
	for _, x := range []struct {
		memory unit.Bytes
		want   float64
	}{{1, 1e-10}, {4 * 128 * unit.KiB, 1e-10}, {4 * unit.MiB, 2e-10}, {8 * unit.MiB, 2.5e-10}, {unit.GiB, 5e-10}} {
		if got := cost(times, 1, 4, x.memory); math.Abs(got/x.want-1) > 1e-6 {
			t.Errorf("%v: %g, want %g", x.memory, got, x.want)
		}
	}
}
