package calibrate

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/result"
	"busbar.dev/sim"
)

var once struct {
	sync.Once
	cases []*truth.Case
}

// published are the cases of the published sweeps.
func published(t testing.TB) []*truth.Case {
	t.Helper()
	dir := corpus.Dir(t)
	once.Do(func() { once.cases = readPublished(t, dir) })
	return once.cases
}

func readPublished(t testing.TB, dir string) []*truth.Case {
	t.Helper()
	var all result.Sweeps
	for _, name := range []string{"collectives.jsonl", "collectives-2.jsonl"} {
		f, err := os.Open(filepath.Join(dir, "truth", name))
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
	cases, _ := truth.Gather(all, nil, 0)
	return cases
}

// The fitted figures are what the fit gives, and they are as good as promised.
func TestFittedIsTheFit(t *testing.T) {
	cases := published(t)
	p := Published(&Problem{Cases: cases})
	p.Quick = true
	a, err := p.Solve()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := truth.Rows(cases, &a.Figures)
	if err != nil {
		t.Fatal(err)
	}
	best := truth.Rate(rows)
	if rows, err = truth.Rows(cases, sim.Fitted()); err != nil {
		t.Fatal(err)
	}
	got := truth.Rate(rows)
	if got.Median > best.Median+0.01 || got.P90 > best.P90+0.03 {
		t.Errorf("sim.Fitted has a median error of %.3f, p90 %.3f; a fit gives %.3f, %.3f: write it anew with busbar calibrate --figures", got.Median, got.P90, best.Median, best.P90)
	}
	for _, p := range truth.Split(rows, truth.ByMiB) {
		median, p90 := 0.12, 0.40
		if p.Name == "below 1 MiB" {
			median = 0.25
		}
		if p.Median > median || p.P90 > p90 || p.Covered < 0.85 {
			t.Errorf("%s: median %.3f, p90 %.3f, %.3f in the bar; promised %.2f, %.2f, 0.85", p.Name, p.Median, p.P90, p.Covered, median, p90)
		}
	}
}

// Machines of a publisher that the fit has not seen are predicted as docs/accuracy.md says.
func TestCross(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("fits thirty times; BUSBAR_LONG=1m (make test-long) does, and TestSyntheticCross holds the method")
	}
	cases := published(t)
	rows, err := Cross(cases, sim.Fitted(), Publishers, nil)
	if err != nil {
		t.Fatal(err)
	}
	Refit(rows, Publishers)
	for _, p := range truth.Split(rows, truth.ByMiB) {
		t.Logf("%s: %d points, median %.3f, p90 %.3f, %.3f in the bar", p.Name, p.Points, p.Median, p.P90, p.Covered)
		if p.Median > 0.28 || p.P90 > 0.70 || p.MachineCovered < 0.85 {
			t.Errorf("%s: median %.3f, p90 %.3f, %.3f in the bar", p.Name, p.Median, p.P90, p.Covered)
		}
	}
}

// Figures stay in their ranges, and a fit is the same every time.
func TestFitIsDeterministic(t *testing.T) {
	cases := published(t)[:12]
	p := Published(&Problem{Cases: cases, Rounds: 6})
	a, err := p.Solve()
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Solve()
	if err != nil {
		t.Fatal(err)
	}
	if a.Figures != b.Figures {
		t.Error("two fits differ")
	}
	for i, v := range a.Figures {
		if _, lo, hi := sim.FigureRange(i); v < lo || v > hi {
			t.Errorf("%s is %g, out of %g to %g", sim.FigureName(i), v, lo, hi)
		}
	}
	if p := Prior(); a.Touch[0] != 0 && p[0] == a.Figures[0] {
		t.Errorf("%s did not move", sim.FigureName(0))
	}
}

// The table of fitted values has one for every figure, in its range: a figure that
// was added to the one and not to the other would move all behind it.
func TestFittedInRange(t *testing.T) {
	f := sim.Fitted()
	for i, v := range f {
		_, lo, hi := sim.FigureRange(i)
		if v < lo || v > hi || v == 0 {
			t.Errorf("%s is %g; expected %g to %g", sim.FigureName(i), v, lo, hi)
		}
		if j, err := sim.FigureByName(sim.FigureName(i)); err != nil || j != i {
			t.Errorf("%s is found at %d, %v; it is at %d", sim.FigureName(i), j, err, i)
		}
		if Prior()[i] == 0 {
			t.Errorf("%s has no usual value", sim.FigureName(i))
		}
	}
}
