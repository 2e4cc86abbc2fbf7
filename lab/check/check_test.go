package check

import (
	"errors"
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
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
		tr, err := newTrial(coll.AllReduce, x.word, x.nodes, x.each)
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
	if _, err := newTrial(coll.AllReduce, "ring:backwards", 2, 2); err == nil || errors.As(err, &no) {
		t.Errorf("a word that means nothing: %v", err)
	}
}

func TestScore(t *testing.T) {
	at := func(algo string, measured, predicted float64) Point {
		return Point{Layout: "2x2", Algo: algo, Measured: unit.Micros(measured), Predicted: unit.Micros(predicted), Error: predicted/measured - 1}
	}
	noisy := at("chain", 100, 1000)
	noisy.TooNoisy = true
	s := rate([]Point{at("ring", 100, 110), at("tree", 120, 105), at("direct", 101, 90), noisy}, 0.15)
	if s.Points != 3 || s.Noisy != 1 || math.Abs(s.Worst-0.125) > 1e-9 || s.Where != "2x2 tree 0 B" {
		t.Errorf("%+v", s)
	}
	// ring against tree and direct against tree differ by more than 15%; the first is wrong.
	if s.Pairs != 2 || len(s.Wrong) != 1 {
		t.Errorf("order: %d pairs, wrong %v", s.Pairs, s.Wrong)
	}
}

func TestCostsBetweenSizes(t *testing.T) {
	var times []unit.Time
	for i, s := range pairSizes() {
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
