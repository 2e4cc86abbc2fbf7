package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/result"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// sweepsOf are the sweeps of all published files.
func sweepsOf(t *testing.T) (all result.Sweeps) {
	t.Helper()
	for _, name := range []string{"collectives.jsonl", "collectives-2.jsonl", "collectives-3.jsonl"} {
		f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", name))
		if err != nil {
			t.Fatal(err)
		}
		sweeps, _, err := truth.Read(name, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sweeps...)
	}
	return all
}

// seenBar tells that three publishers or more stand behind a row's bar, without those of its own.
func seenBar(rows []truth.Row, r *truth.Row) bool {
	who := map[string]bool{}
	for i := range rows {
		if rows[i].Bar == r.Bar && publisher(rows[i].Case) != publisher(r.Case) {
			who[publisher(rows[i].Case)] = true
		}
	}
	return len(who) >= 3
}

// TestFloors: what predict --floor says of a machine of grade seen, from 256 MiB on, by figures and bars that know
// nothing of who published it, lies below what healthy ones reach; and what was published as slow because something was
// wrong lies below the floor of the machine as it should be.
func TestFloors(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("fits thirty times; BUSBAR_LONG=1m (make test-long) does")
	}
	all := sweepsOf(t)
	cases, _ := truth.Gather(all, 0)
	rows, err := cross(cases, sim.Fitted(), publisher)
	if err != nil {
		t.Fatal(err)
	}
	refit(rows, publisher)
	type machine struct {
		held, points int
		apart        []float64 // measured bandwidth over the floor, less one
	}
	machines := map[string]*machine{}
	for i := range rows {
		r := &rows[i]
		op := r.Case.Ops[r.Index]
		if op.Size(len(r.Case.Predictor.Layout)) < 256*unit.MiB || !seenBar(rows, r) {
			continue
		}
		m := machines[r.Case.Machine()]
		if m == nil {
			m = &machine{}
			machines[r.Case.Machine()] = m
		}
		m.points++
		above := float64(r.Predicted)*r.Margin/float64(r.Measured()) - 1
		if m.apart = append(m.apart, above); above >= 0 {
			m.held++
		}
	}
	bad, apart := 0, []float64{}
	for name, m := range machines {
		middle := stats.Quantile(m.apart, 0.5)
		t.Logf("%-24s floor below %d of %d measurements, which are %.0f%% above it in the median", name, m.held, m.points,
			100*middle)
		apart = append(apart, middle)
		if 2*m.held < m.points {
			bad++
		}
	}
	t.Logf("%d machines, %d with a floor above most of their measurements; median distance %.0f%%", len(machines), bad,
		100*stats.Quantile(apart, 0.5))
	if len(machines) < 10 || 10*bad > len(machines) || stats.Quantile(apart, 0.5) > 0.25 {
		t.Error("floors do not hold, or are too low to use")
	}
	below, slow := 0, 0
	for _, s := range all {
		if s.Published == nil || !s.Published.Anomalous {
			continue
		}
		as := *s.Published
		as.Anomalous = false
		s.Published = &as
		sick, _ := truth.Gather(result.Sweeps{s}, 0)
		for _, c := range sick {
			rows, err := c.Predict(sim.Fitted())
			if err != nil {
				t.Fatal(err)
			}
			under := slices.ContainsFunc(rows, func(r truth.Row) bool {
				return float64(r.Measured()) > float64(r.Predicted)*c.Predictor.Margin(c.Ops[r.Index])
			})
			if slow++; under {
				below++
			}
		}
	}
	t.Logf("%d of %d groups that were published as faults lie below the floor", below, slow)
	if 10*below < 6*slow {
		t.Error("floors do not tell faults")
	}
}
