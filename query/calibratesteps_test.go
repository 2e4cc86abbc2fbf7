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
		name, loss := "step", "loss 10.5, "
		if strings.HasPrefix(kind, "hf") { // which prints none there
			name, loss = "Trainer step", ""
		}
		for i := range 10 {
			took := step
			if i < 3 {
				took *= 3
			}
			if loss == "" {
				fmt.Fprintf(w, " %d%%| | %d/10 [00:09<00:01,  9.99s/it]", 10*i, i)
			}
			fmt.Fprintf(w, "%s %d: %s%.4f s, %.0f tokens/s, 34.2 GB\n", name, i+1, loss, took, batch*seq/took)
		}
		return nil
	}}
}

// TestCalibrateSteps measures kinds of jobs: those that are off alike are kept, one whose steps do not agree changes
// nothing, nor does one that is off by no more than one measurement, and one that does not run is said.
func TestCalibrateSteps(t *testing.T) {
	programs := trainer(t, func(kind string, run int) float64 {
		switch kind {
		case "ddp-eager":
			return 1.2
		case "fsdp-eager":
			return 1.05
		case "hf-eager":
			return 0.8
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
	kept := ""
	for _, x := range d.Calibration.Figures {
		name, _, _ := strings.Cut(x.Name, " kernels")
		kept += fmt.Sprintf("%s %.1f; ", name, x.Value)
	}
	if kept != "step.measured ddp, eager 1.2; step.measured hf, eager 0.8; " || !d.Better {
		t.Errorf("kept %s, %q", kept, notes)
	}
	text := strings.Join(notes, "\n")
	for _, want := range []string{
		"ddp with compiled kernels: steps take ", "fsdp with eager kernels: steps take ", "nothing is kept",
		"hf with compiled kernels is not measured", "no GPU",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("notes %q lack %q", text, want)
		}
	}
}
