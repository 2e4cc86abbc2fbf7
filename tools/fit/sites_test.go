package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
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

// openMachines are the machines of the open collections with ten points or more, and what their sources measured in
// place: a second measurement of the same size.
func openMachines(t *testing.T) (machines map[string][]*truth.Case, again map[string]float64, all []*truth.Case) {
	t.Helper()
	var sweeps result.Sweeps
	again = map[string]float64{}
	for _, name := range []string{"collectives.jsonl", "collectives-2.jsonl", "collectives-3.jsonl"} {
		data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", name))
		if err != nil {
			t.Fatal(err)
		}
		list, _, err := truth.Read(name, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		sweeps = append(sweeps, list...)
		for line := range bytes.Lines(data) {
			var x struct {
				ID    string
				Sizes []int64 `json:"sizes_bytes"`
				Same  struct {
					Times []float64 `json:"time_us"`
				} `json:"inplace"`
			}
			if json.Unmarshal(line, &x) == nil && len(x.Same.Times) == len(x.Sizes) {
				for i, size := range x.Sizes {
					again[fmt.Sprint(x.ID, size)] = x.Same.Times[i]
				}
			}
		}
	}
	all, err := gather(sweeps, 0)
	if err != nil {
		t.Fatal(err)
	}
	machines = map[string][]*truth.Case{}
	points := map[string]int{}
	for _, c := range all {
		machines[c.Machine()] = append(machines[c.Machine()], c)
		points[c.Machine()] += len(c.Ops)
	}
	for name, n := range points {
		if n < leastPoints {
			delete(machines, name)
		}
	}
	return machines, again, all
}

// Every machine of the open collections with ten points or more: five sizes of a sweep, measured in place too where the
// source did that, calibrate the others of the same calls. The form was chosen on these machines. BUSBAR_LONG predicts
// each by figures fitted without its publisher.
func TestOpenMachines(t *testing.T) {
	machines, again, all := openMachines(t)
	long := os.Getenv("BUSBAR_LONG") != ""
	full, fits := published(all), map[string]*sim.Figures{}
	if long {
		if err := full.run(); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		what         string
		spoil        float64 // what one of the five, in turn, is multiplied by
		most, worst  float64 // mean over machines, and of its error before that a machine may have
		twice, every bool    // measured in place too; all other points of the machine
	}{
		{"same calls", 1, 0.07, 1.2, true, false},
		{"same calls, each once", 1, 0.07, 1.2, false, false},
		{"same calls, one of two measurements ×4", 4, 0.085, 1.2, true, false},
		{"all calls of the machine", 1, 0.095, 1.2, true, true},
	} {
		var was, is, worse []float64
		for _, name := range names(all, (*truth.Case).Machine) {
			own := machines[name]
			if len(own) == 0 {
				continue
			}
			f := sim.Fitted()
			if long {
				who := publisher(own[0])
				if fits[who] == nil {
					var err error
					if fits[who], _, err = without(all, who, &full.f, publisher); err != nil {
						t.Fatal(err)
					}
				}
				f = fits[who]
			}
			s := &site{machine: name}
			for _, c := range longest(own) {
				at := nearest(c)
				if len(at) < 2 || len(at) < len(calibrate.Sizes) && len(at) < len(c.Ops) {
					continue
				}
				rest := []*truth.Case{c.Pick(func(i int) bool { return !slices.Contains(at, i) })}
				for _, o := range own {
					if x.every && o != c {
						rest = append(rest, o)
					}
				}
				if rest = slices.DeleteFunc(rest, func(c *truth.Case) bool { return len(c.Ops) == 0 }); len(rest) == 0 {
					continue
				}
				for k := range at {
					in := c.Pick(func(i int) bool { return slices.Contains(at, i) })
					in.Times = slices.Clone(in.Times)
					list := []*truth.Case{in}
					if x.twice {
						list = append(list, inPlace(in, again))
					}
					if x.spoil != 1 {
						if len(list[1].Ops) < len(in.Ops) {
							break
						}
						in.Times[k] = unit.Time(float64(in.Times[k]) * x.spoil)
					} else if k > 0 {
						break
					}
					if err := s.calibrate(list, rest, f); err != nil {
						t.Fatalf("%s: %v", c.Sweep.ID, err)
					}
				}
			}
			if len(s.before) == 0 {
				continue
			}
			before, after := s.errors()
			was, is = append(was, before), append(is, after)
			if after > 0.05 { // what is right to 5% is as good as the measurements
				worse = append(worse, after/before)
			}
			t.Logf("%-30s %5.1f%% before, %5.1f%% after", name, 100*before, 100*after)
		}
		t.Logf("%s: %d machines, mean %.1f%% before, %.1f%% after; the worst above 5%% has %.2f times its error", x.what,
			len(was), 100*mean(was), 100*mean(is), stats.Quantile(worse, 1))
		if len(was) < 20 || mean(is) > x.most || stats.Quantile(worse, 1) > x.worst {
			t.Errorf("%s: mean of %d machines %.3f, the worst has %.2f times its error; expected 20 machines or more, %.2f "+
				"and %.2f",
				x.what, len(was), mean(is), stats.Quantile(worse, 1), x.most, x.worst)
		}
	}
}

// longest are the sweeps of a machine that it is calibrated with.
func longest(own []*truth.Case) []*truth.Case {
	order := slices.Clone(own)
	slices.SortStableFunc(order, func(a, b *truth.Case) int { return len(b.Ops) - len(a.Ops) })
	return order[:min(sweepsEach, len(order))]
}

// inPlace are the points of a case that were measured in place too, with those times.
func inPlace(c *truth.Case, again map[string]float64) *truth.Case {
	key := func(i int) string { return fmt.Sprint(c.Sweep.ID, int64(c.Ops[i].Bytes)) }
	x := c.Pick(func(i int) bool { return again[key(i)] > 0 })
	x.Times = nil
	for i := range c.Ops {
		if us := again[key(i)]; us > 0 {
			x.Times = append(x.Times, unit.Time(us*float64(unit.Microsecond)))
		}
	}
	return x
}

// A sweep that is ten times as slow as the same machine's is refused wherever its bar tells, and keeps nothing.
func TestOpenMachinesSick(t *testing.T) {
	machines, _, _ := openMachines(t)
	refused, tried := 0, 0
	for _, own := range machines {
		c := longest(own)[0]
		at := nearest(c)
		in := c.Pick(func(i int) bool { return slices.Contains(at, i) })
		in.Times = slices.Clone(in.Times)
		for i := range in.Times {
			in.Times[i] *= 10
		}
		s, err := calibrate.Cluster([]*truth.Case{in}, sim.Fitted(), false)
		if err != nil {
			t.Fatal(err)
		}
		if tried++; len(s.Refused) > 0 {
			refused++
			if s.Better() {
				t.Errorf("%s: refused and kept", c.Sweep.ID)
			}
		}
	}
	t.Logf("%d of %d sick sweeps refused", refused, tried)
	if refused < tried*9/10 {
		t.Errorf("%d of %d sick sweeps refused; expected nine of ten", refused, tried)
	}
}
