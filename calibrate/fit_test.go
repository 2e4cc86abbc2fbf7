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
	cases, _ := truth.Gather(all, 0)
	return cases
}

// The fitted figures are as good as promised; tools/fit holds them to be what the fit gives.
func TestFittedIsGood(t *testing.T) {
	rows, err := truth.Rows(published(t), sim.Fitted())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range truth.Split(rows, truth.ByMiB) {
		median, p90 := 0.12, 0.40
		if p.Name == "below 1 MiB" {
			median = 0.25
		}
		if p.Median > median || p.P90 > p90 || p.Covered < 0.85 {
			t.Errorf("%s: median %.3f, p90 %.3f, %.3f in the bar; promised %.2f, %.2f, 0.85", p.Name, p.Median, p.P90, p.Covered,
				median, p90)
		}
	}
}
