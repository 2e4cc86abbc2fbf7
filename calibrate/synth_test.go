package calibrate

import (
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/coll"
	"busbar.dev/internal/test/synth"
	"busbar.dev/sim"
)

// figures are the fitted ones with some changed by a factor.
func figures(t testing.TB, by map[string]float64) *sim.Figures {
	t.Helper()
	f := *sim.Fitted()
	for name, k := range by {
		i, err := sim.FigureByName(name)
		if err != nil {
			t.Fatal(err)
		}
		f[i] *= k
	}
	return &f
}

// synthetic are cases of machines whose times follow from figures, with noise of the given spread.
func synthetic(t testing.TB, f *sim.Figures, spread float64, machines ...int) []*truth.Case {
	t.Helper()
	var all []synth.Sweep
	for _, i := range machines {
		list, err := synth.Machines()[i].Sweeps(f, spread, synth.Sizes(10, 4), coll.AllReduce, coll.AllGather)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	text, err := synth.Lines(all)
	if err != nil {
		t.Fatal(err)
	}
	sweeps, _, err := truth.Read("synthetic.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	cases, left := truth.Gather(sweeps, 0)
	if len(cases) != len(all) || len(left) != 0 {
		t.Fatalf("%d cases of %d, left %v", len(cases), len(all), left)
	}
	return cases
}
