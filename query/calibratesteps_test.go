package query_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"busbar.dev/measure"
	"busbar.dev/query"
)

// trainer stands for ten steps of the files of a plan: each takes as many times as long as predicted as a kind and its
// number say.
func trainer(t *testing.T, factor func(kind string, run int) float64) measure.Programs {
	predicted, rate := regexp.MustCompile(`step of ([\d.]+) (m?)s`),
		regexp.MustCompile(`global batch (\d+) sequences of (\d+)`)
	runs := map[string]int{}
	return measure.Programs{Run: func(_ context.Context, _ time.Duration, args []string, w io.Writer) error {
		dir := filepath.Dir(args[len(args)-1])
		readme, err := os.ReadFile(filepath.Join(dir, "README"))
		if err != nil {
			t.Fatal(err)
		}
		var step, batch, seq float64
		fmt.Sscan(predicted.FindStringSubmatch(string(readme))[1], &step)
		m := rate.FindStringSubmatch(string(readme))
		fmt.Sscan(m[1], &batch)
		fmt.Sscan(m[2], &seq)
		kind := strings.Join(strings.Split(filepath.Base(dir), "-")[:2], "-")
		step *= factor(kind, runs[kind])
		if runs[kind]++; step == 0 {
			fmt.Fprintln(w, "RuntimeError: no GPU")
			return errors.New("exit status 1")
		}
		for i := range 10 {
			fmt.Fprintf(w, "step %d: loss 10.5, %.4f s, %.0f tokens/s, 34.2 GB\n", i+1, step, batch*seq/step)
		}
		return nil
	}}
}

// TestCalibrateSteps measures kinds of jobs: one that is off alike is kept and changes its kind alone, one whose steps
// do not agree changes nothing, and one that does not run is said.
func TestCalibrateSteps(t *testing.T) {
	programs := trainer(t, func(kind string, run int) float64 {
		switch kind {
		case "ddp-eager":
			return 1.2
		case "ddp-compiled":
			return []float64{1.1, 0.9, 1}[run]
		}
		return 0
	})
	job := query.Job{Cluster: "h200", Model: "llama3.2-1b", Seq: 2048}
	var notes []string
	d, err := query.CalibrateSteps{Job: job, Folder: t.TempDir()}.RunWith(t.Context(), query.Env{
		Note: func(s string) { notes = append(notes, s) },
	}, programs)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Calibration.Figures) != 1 || !d.Better || !strings.Contains(d.Calibration.Figures[0].Name, "ddp, eager") {
		t.Fatalf("kept %+v, %q", d.Calibration, notes)
	}
	if v := d.Calibration.Figures[0].Value; v < 1.19 || v > 1.21 {
		t.Errorf("kept %g, want 1.2", v)
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{
		"ddp with compiled kernels: steps that are left out", "hf with eager kernels is not measured", "no GPU",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q lack %q", text, want)
		}
	}
}
