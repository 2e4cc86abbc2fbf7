package truth

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/result"
)

func lineOf(i int, gpu string) string {
	return fmt.Sprintf(`{"id":"x-%d","collective":"all_reduce","nodes":1,"gpus_per_node":8,"gpu":%q,"intra":"NVLink4 NVSwitch","sizes_bytes":[1024,1048576],"time_us":[20,30]}`, i, gpu)
}

// Groups with one description have one predictor; a group of another machine has
// its own, and predictions are those of sweeps that stand alone.
func TestShared(t *testing.T) {
	var b strings.Builder
	for i := range 6 {
		b.WriteString(lineOf(i, []string{"H100-SXM", "A100-SXM4-80GB"}[i%2]) + "\n")
	}
	sweeps, _, err := Read("f", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	cases, left := Gather(sweeps, 0)
	if len(cases) != 6 || len(left) != 0 {
		t.Fatalf("%d cases, left %v", len(cases), left)
	}
	for i, c := range cases {
		if got := c.Predictor == cases[i%2].Predictor; !got {
			t.Errorf("case %d does not share the predictor of case %d", i, i%2)
		}
	}
	if cases[0].Predictor == cases[1].Predictor {
		t.Error("two machines have one predictor")
	}
	rows, _ := Predicted(sweeps)
	for i := range rows {
		if rows[i].Case.Predictor != nil {
			t.Fatal("a row keeps its predictor")
		}
		alone, err := Prepare(sweeps[i/2])
		if err != nil {
			t.Fatal(err)
		}
		want, err := alone.Predict(nil)
		if err != nil || want[i%2].Predicted != rows[i].Predicted || ByClass(&want[i%2]) != ByClass(&rows[i]) {
			t.Errorf("row %d: %v, alone %v, %v", i, rows[i].Predicted, want[i%2].Predicted, err)
		}
	}
}

// The predictors that are kept for later sweeps are bounded.
func TestShelfBounded(t *testing.T) {
	var s shelf
	for i := range 3 * maxShelf {
		g := read(t, lineOf(i, "H100-SXM"))
		g.Machine.Joined += fmt.Sprint(i)
		if _, err := s.prepare(g); err != nil {
			t.Fatal(err)
		}
		if len(s.by) > maxShelf {
			t.Fatalf("%d predictors are kept; the bound is %d", len(s.by), maxShelf)
		}
	}
}

func TestRepeated(t *testing.T) {
	sweeps := result.Sweeps{{ID: "a", File: "f", Line: 1}, {ID: "b"}, {ID: "a"}, {ID: "a"}, {ID: "c"}}
	got := Repeated(sweeps)
	if len(got) != 1 || !strings.HasPrefix(got[0], `3 lines have the id "a", the first at f:1`) {
		t.Errorf("%q", got)
	}
}
