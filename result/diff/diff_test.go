package diff_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/result/diff"
	"busbar.dev/unit"
)

func sweep(size unit.Bytes, micros ...float64) *result.Sweep {
	t := &result.Timing{}
	for _, us := range micros {
		t.Samples = append(t.Samples, unit.Micros(us))
	}
	t.Sample(t.Samples)
	return &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "float", Ranks: 4, Transport: "tcp",
		Points: []result.Point{{Size: size, Algo: "ring", Out: t}},
	}
}

// around draws n times with noise of a few percent.
func around(rng *rand.Rand, mid float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = mid * math.Exp(0.02*rng.NormFloat64())
	}
	return list
}

func TestChangeAndNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name     string
		old, new []float64
		want     diff.Verdict
		bad      bool
	}{
		{"the same", around(rng, 100, 20), around(rng, 100, 20), diff.Same, false},
		{"a fifth slower", around(rng, 100, 20), around(rng, 120, 20), diff.Slower, true},
		{"a fifth faster", around(rng, 100, 20), around(rng, 80, 20), diff.Faster, false},
		{"slower within the threshold", around(rng, 100, 200), around(rng, 104, 200), diff.Slower, false},
		{"twice as slow, seen once", []float64{100}, []float64{200}, diff.Unknown, false},
		{"twice as slow, three times", []float64{100, 101, 102}, []float64{200, 201, 202}, diff.Unknown, false},
		{"twice as slow, four times", []float64{100, 101, 102, 103}, []float64{200, 201, 202, 203}, diff.Slower, true},
		{"all equal", []float64{5, 5, 5, 5}, []float64{5, 5, 5, 5}, diff.Same, false},
	} {
		rep := diff.Compare(result.Sweeps{sweep(1024, c.old...)}, result.Sweeps{sweep(1024, c.new...)}, diff.Options{})
		if len(rep.Rows) != 1 {
			t.Fatalf("%s: %d rows", c.name, len(rep.Rows))
		}
		if r := rep.Rows[0]; r.Verdict != c.want || r.Bad != c.bad || rep.Bad() != c.bad {
			t.Errorf("%s: %s, bad %v, change %.3f, p %v; want %s, bad %v", c.name, r.Verdict, r.Bad, r.Change, r.P, c.want,
				c.bad)
		}
	}
}

// Calls within a run are alike, runs are not: four runs a side show that a difference of one
// pair of runs was an accident.
func TestRunsAreObservations(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var old, now result.Sweeps
	for _, mid := range []float64{100, 115, 107, 122, 95} {
		old = append(old, sweep(1024, around(rng, mid, 20)...))
	}
	for _, mid := range []float64{118, 99, 109, 120, 104} {
		now = append(now, sweep(1024, around(rng, mid, 20)...))
	}
	rep := diff.Compare(old[:1], now[:1], diff.Options{})
	if r := rep.Rows[0]; r.Verdict != diff.Slower || r.Between ||
		!strings.Contains(strings.Join(rep.Notes, "\n"), "single runs") {
		t.Errorf("one run each: %+v, notes %q", r, rep.Notes)
	}
	rep = diff.Compare(old, now, diff.Options{})
	if r := rep.Rows[0]; r.Verdict != diff.Same || !r.Between || len(rep.Notes) > 0 {
		t.Errorf("five runs each: %+v, notes %q", r, rep.Notes)
	}
}

func TestRowsAreMatched(t *testing.T) {
	tree := sweep(2048, 1, 2, 3, 4, 3)
	tree.Points[0].Algo = "tree"
	inPlace := sweep(1024, 1, 2, 3, 4)
	p := &inPlace.Points[0]
	p.Out, p.In = nil, p.Out
	old := result.Sweeps{sweep(2048, 5, 6, 7, 8, 7), sweep(1024, 5, 6, 7, 8), sweep(4096, 1)}
	now := result.Sweeps{inPlace, tree, sweep(1024, 5, 6, 7, 8)}
	rep := diff.Compare(old, now, diff.Options{})
	if len(rep.Rows) != 2 || len(rep.OnlyOld) != 1 || len(rep.OnlyNew) != 1 {
		t.Fatalf("%d rows, %d and %d alone", len(rep.Rows), len(rep.OnlyOld), len(rep.OnlyNew))
	}
	if r := rep.Rows[1]; rep.Rows[0].Size != 1024 || r.Old.Algo != "ring" || r.New.Algo != "tree" ||
		r.Verdict != diff.Faster {
		t.Errorf("the row whose algorithm changed: %+v", r)
	}
	// Where a side has both algorithms, they are rows of their own.
	rep = diff.Compare(result.Sweeps{sweep(2048, 1), tree}, result.Sweeps{tree, sweep(2048, 1)}, diff.Options{})
	if len(rep.Rows) != 2 || rep.Rows[0].Old.Algo != rep.Rows[0].New.Algo {
		t.Errorf("two algorithms: %+v", rep.Rows)
	}
}

func TestWrongResultsAreBad(t *testing.T) {
	right, wrong := int64(0), int64(3)
	old, now := sweep(1024, 1, 1, 1, 1), sweep(1024, 1, 1, 1, 1)
	old.Points[0].Out.Wrong, now.Points[0].Out.Wrong = &right, &wrong
	if rep := diff.Compare(result.Sweeps{old}, result.Sweeps{now}, diff.Options{}); !rep.Bad() {
		t.Error("wrong results that were right are not bad")
	}
}

// Swapping the sides turns slower into faster and keeps p.
func TestSidesCanBeSwapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Whole numbers, each once: with ties the test's p is not quite the same both ways.
		all := rapid.SliceOfNDistinct(rapid.IntRange(1, 1000), 2, 24, rapid.ID[int]).Draw(t, "times")
		cut := rapid.IntRange(1, len(all)-1).Draw(t, "cut")
		var left, right []float64
		for i, v := range all {
			if i < cut {
				left = append(left, float64(v))
			} else {
				right = append(right, float64(v))
			}
		}
		a, b := result.Sweeps{sweep(8, left...)}, result.Sweeps{sweep(8, right...)}
		x, y := diff.Compare(a, b, diff.Options{}).Rows[0], diff.Compare(b, a, diff.Options{}).Rows[0]
		if (x.P == nil) != (y.P == nil) || x.P != nil && math.Abs(*x.P-*y.P) > 1e-9 || x.Old != y.New || x.New != y.Old {
			t.Fatalf("%+v and %+v", x, y)
		}
		turned := map[diff.Verdict]diff.Verdict{
			diff.Slower: diff.Faster, diff.Faster: diff.Slower, diff.Same: diff.Same, diff.Unknown: diff.Unknown,
		}
		if y.Verdict != turned[x.Verdict] {
			t.Fatalf("%s and %s", x.Verdict, y.Verdict)
		}
		if x.P != nil && (*x.P < 0 || *x.P > 1) || x.Old.Low > x.Old.Median || x.Old.High < x.Old.Median {
			t.Fatalf("%+v", x)
		}
	})
}
