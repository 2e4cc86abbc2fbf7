package diff_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"busbar.dev/result"
	"busbar.dev/result/diff"
	"busbar.dev/unit"
)

// table is runs of as many rows; draw gives the time of a run of a row.
func table(rows, runs int, draw func(row int) float64) (list result.Sweeps) {
	for range runs {
		for k := range rows {
			list = append(list, sweep(unit.Bytes(1024<<k), draw(k)))
		}
	}
	return list
}

// heavy is noise as busy hosts have it: a few percent, and now and then a multiple of that.
func heavy(rng *rand.Rand) float64 {
	x := math.Exp(0.05 * rng.NormFloat64() / math.Sqrt(rng.ExpFloat64()+0.05))
	if rng.IntN(12) == 0 {
		x *= 1 + rng.ExpFloat64()
	}
	return x
}

// TestFalseAlarms: where nothing has changed, a table of 16 rows says so, 95 times of a hundred.
func TestFalseAlarms(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, runs := range []int{4, 6, 10} {
		alarms, bad := 0, 0
		const tables = 1000
		for range tables {
			draw := func(int) float64 { return 100 * heavy(rng) }
			rep := diff.Compare(table(16, runs, draw), table(16, runs, draw), diff.Options{})
			found := false
			for _, r := range rep.Rows {
				found = found || r.Verdict != diff.Same
			}
			if found {
				alarms++
			}
			if rep.Bad() {
				bad++
			}
		}
		t.Logf("%d+%d runs: %d of %d tables with a false alarm, %d of them bad", runs, runs, alarms, tables, bad)
		if alarms > tables*5/100 {
			t.Errorf("%d+%d runs: %d of %d tables have a false alarm; expected 5 %% at most", runs, runs, alarms, tables)
		}
	}
}

// TestSlowdownIsFound: a fifth slower, with noise of 5 %, six runs a side.
func TestSlowdownIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 5))
	for _, c := range []struct {
		name       string
		rows, slow int
		runs       int
		least      float64
	}{
		{"the only row", 1, 1, 6, 0.95},
		{"all rows", 16, 16, 6, 0.95},
		{"four of sixteen", 16, 4, 6, 0.95},
		{"one of sixteen", 16, 1, 6, 0.80}, // for which nothing but the rarest outcome is enough
		{"one of sixteen, eight runs", 16, 1, 8, 0.95},
	} {
		found, all := 0, 0
		for range 400 {
			noise := func() float64 { return 100 * math.Exp(0.05*rng.NormFloat64()) }
			old := table(c.rows, c.runs, func(int) float64 { return noise() })
			now := table(c.rows, c.runs, func(k int) float64 {
				if k < c.slow {
					return 1.2 * noise()
				}
				return noise()
			})
			for _, r := range diff.Compare(old, now, diff.Options{}).Rows[:c.slow] {
				all++
				if r.Bad {
					found++
				}
			}
		}
		t.Logf("%s: %d of %d found", c.name, found, all)
		if float64(found) < c.least*float64(all) {
			t.Errorf("%s: %d of %d found; expected %.0f %%", c.name, found, all, 100*c.least)
		}
	}
}

// Four runs cannot show that one of many rows has changed, and the report says how many could.
func TestTooFewRunsForTheTable(t *testing.T) {
	draw := func(int) float64 { return 100 }
	for runs, want := range map[int]string{4: "keep 6 runs or more", 6: ""} {
		notes := strings.Join(diff.Compare(table(16, runs, draw), table(16, runs, draw), diff.Options{}).Notes, "; ")
		if want == "" && notes != "" || !strings.Contains(notes, want) {
			t.Errorf("%d runs: notes %q; expected %q", runs, notes, want)
		}
	}
}
