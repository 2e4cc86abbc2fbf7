package main

import (
	"testing"

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
