package calibrate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/internal/corpus"
	"busbar.dev/step"
)

// publishedRuns are the runs of both open collections.
func publishedRuns(t *testing.T) (old, recent []*truth.Training) {
	for _, x := range []struct {
		name string
		to   *[]*truth.Training
	}{{"training.jsonl", &old}, {"training-2.jsonl", &recent}} {
		f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", x.name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if *x.to, err = truth.Runs(x.name, f); err != nil {
			t.Fatal(err)
		}
	}
	return old, recent
}

// TestStepTable writes every run's error and where its time goes to a file that STEPS names.
func TestStepTable(t *testing.T) {
	out := os.Getenv("STEPS")
	if out == "" {
		t.Skip("for whoever works on the model: STEPS names a file for the table")
	}
	old, recent := publishedRuns(t)
	var rows []*truth.RunRow
	isNew := map[*truth.RunRow]bool{}
	for i, list := range [][]*truth.Training{old, recent} {
		r, left := truth.PredictRuns(list, step.Guess())
		for _, x := range r {
			isNew[x] = i == 1
		}
		rows = append(rows, r...)
		for _, l := range left {
			t.Logf("left: %s: %s", l.ID, l.Reason)
		}
	}
	of := func(isRecent bool) (list []*truth.RunRow) {
		for _, r := range rows {
			if isNew[r] == isRecent {
				list = append(list, r)
			}
		}
		return list
	}
	show := func(what string) {
		for _, new := range []bool{false, true} {
			s, c := truth.RateRuns("", of(new)), truth.RateChoices(of(new))
			t.Logf("%-22s new=%-5v %3d: median %5.1f%% p90 %5.1f%% clusters %5.1f%% (%d) bias %.2f pairs %d/%d", what, new, s.Points, 100*s.Median, 100*s.P90, 100*s.ClusterMedian, s.Clusters, s.Bias, c.Right, c.Pairs)
		}
	}
	show("guess")
	f, err := FitSteps(rows, step.Guess())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, v := range f.Figures {
		fmt.Fprintf(&b, "# %s %.4g (guess %.4g) clusters %d\n", step.Name(i), v, step.Guess()[i], f.Informed[i])
	}
	for _, r := range rows {
		if err := r.Predict(&f.Figures); err != nil {
			t.Fatal(err)
		}
	}
	show("fitted")
	fitted := map[*truth.RunRow]float64{}
	for _, r := range rows {
		fitted[r] = r.Predicted
	}
	if err := f.Cross(ByCluster); err != nil {
		t.Fatal(err)
	}
	byCluster := map[*truth.RunRow]float64{}
	for _, r := range rows {
		byCluster[r] = r.Predicted
	}
	show("clusters left out")
	if err := f.Cross(BySource); err != nil {
		t.Fatal(err)
	}
	show("sources left out")
	for _, r := range rows {
		x, j := r.Result, r.Step.Job()
		m := r.Seconds()
		fmt.Fprintf(&b, "%v\t%.2f\t%.2f\t%.2f\t%s\t%s\t%s\t%s %s %s\tmeas %.3g pred %.3g comp %.0f%% bub %.0f%% opt %.0f%% exp %.0f%%\tmem %.0f/%.0f\t%v\t%s\n", isNew[r], fitted[r]/m, byCluster[r]/m, r.Predicted/m, r.Cluster, r.Publisher(), r.ID, j.Split, j.Precision, j.Recompute,
			m, x.Step.Seconds(), 100*float64(x.Compute/x.Step), 100*float64(x.Bubble/x.Step), 100*float64(x.Optimizer/x.Step), 100*float64(x.Exposed/x.Step), x.Memory.Total().GB(), float64(r.GPU.Memory)/1e9, r.Assumed, traffic(x))
	}
	if err := os.WriteFile(out, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func traffic(r *step.Result) string {
	var list []string
	for _, x := range r.Traffic {
		list = append(list, fmt.Sprintf("%s %.0f%%", x.Group, 100*float64(x.Exposed/r.Step)))
	}
	return strings.Join(list, " ")
}

// TestAblation prints what every mechanism is worth on the second collection, whole clusters and whole sources left out, and holds the model to
// what docs/accuracy.md says. It takes minutes: BUSBAR_LONG=1 go test ./calibrate -run TestAblation -v
func TestAblation(t *testing.T) {
	if os.Getenv("BUSBAR_LONG") == "" {
		t.Skip("fits the model a dozen times; set BUSBAR_LONG")
	}
	old, recent := publishedRuns(t)
	mine := map[string]bool{}
	for _, r := range recent {
		mine[r.ID] = true
	}
	list, err := Ablate(append(old, recent...), func(r *truth.RunRow) bool { return mine[r.ID] })
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		t.Logf("%-10s %3d runs; clusters left out: median %5.1f%%, 90%% %6.1f%%, averaged over clusters %5.1f%%, pairs %d of %d; sources left out: %5.1f%%, %6.1f%%, %5.1f%%; %s", a.Name, a.Clusters.Points, 100*a.Clusters.Median, 100*a.Clusters.P90,
			100*a.Clusters.ClusterMedian, a.Choices.Right, a.Choices.Pairs, 100*a.Sources.Median, 100*a.Sources.P90, 100*a.Sources.ClusterMedian, a.Meaning)
	}
	if s := list[0].Clusters; s.Median > 0.12 || s.ClusterMedian > 0.18 {
		t.Errorf("clusters left out: median %.3f, averaged over clusters %.3f; expected at most 0.12 and 0.18", s.Median, s.ClusterMedian)
	}
}
