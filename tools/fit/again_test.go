package main

import (
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// Five sizes of a machine make its other points better predicted, and one that is wrong does not make them much worse.
func TestSites(t *testing.T) {
	slow := figures(t, map[string]float64{"rdma_share": 0.75, "hopper.launch": 1.8})
	cases := synthetic(t, slow, 0.01, 0, 1)
	for _, spoil := range []float64{1, 4} {
		list, err := sites(cases, sim.Fitted(), spoil)
		if err != nil || len(list) != 2 {
			t.Fatalf("%d machines, %v", len(list), err)
		}
		for _, x := range list {
			if was, is := x.errors(); is > 1.2*was || spoil == 1 && is >= was {
				t.Errorf("%s, one size times %g: median error %.3f, was %.3f before the calibration", x.machine, spoil, is, was)
			}
		}
	}
}

// Nothing is fitted anew where no sweep changed, and predictions are the same; where a mechanism is left out, what
// feels it is predicted otherwise, and a name that nobody asked for keeps its figures.
func TestFoldsAgain(t *testing.T) {
	cases := synthetic(t, sim.Fitted(), 0.02, 0, 1)
	x, err := fold(cases, (*truth.Case).Machine)
	if err != nil {
		t.Fatal(err)
	}
	before, err := x.rows()
	if err != nil {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	same, refits, err := x.again(cases, all)
	if err != nil || refits != 0 || len(same) != len(before) {
		t.Fatalf("the same model: %d fitted anew, %d rows of %d, %v", refits, len(same), len(before), err)
	}
	for i := range same {
		if same[i].Predicted != before[i].Predicted {
			t.Fatalf("the same model: row %d is %v, was %v", i, same[i].Predicted, before[i].Predicted)
		}
	}
	var sweeps result.Sweeps
	for _, c := range cases {
		sweeps = append(sweeps, c.Sweep)
	}
	other, _ := truth.Gather(sweeps, sim.SimpleStart)
	rows, refits, err := x.again(other, all)
	if err != nil || refits == 0 {
		t.Fatalf("without a mechanism: %d fitted anew, %v", refits, err)
	}
	changed := 0
	for i := range rows {
		if rows[i].Predicted != before[i].Predicted {
			changed++
		}
	}
	if changed == 0 {
		t.Error("without a mechanism nothing is predicted otherwise")
	}
	if _, refits, err = x.again(other, func(string) bool { return false }); err != nil || refits != 0 {
		t.Errorf("nobody asked: %d fitted anew, %v", refits, err)
	}
}
