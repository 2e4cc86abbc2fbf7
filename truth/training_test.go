package truth

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar/hardware"
	"busbar/internal/corpus"
	"busbar/nccl"
	"busbar/step"
)

// TestTraining holds steps to published runs.
func TestTraining(t *testing.T) {
	f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", "training.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, maxLine)
	by := map[string][]float64{}
	left := map[string]int{}
	var all []float64
	n := 0
	for sc.Scan() {
		run, ok := readTraining(sc.Bytes())
		if !ok || run.Grade == "C" {
			continue
		}
		if n++; testing.Short() && n%5 != 0 {
			continue
		}
		ratio, err := predicted(run)
		if err != nil {
			left[run.Cluster+": "+err.Error()]++
			continue
		}
		by[run.Cluster] = append(by[run.Cluster], ratio)
		all = append(all, math.Abs(ratio-1))
	}
	for c, l := range by {
		slices.Sort(l)
		t.Logf("%-40s %3d runs, predicted over measured: %.2f to %.2f, median %.2f", c, len(l), l[len(l)/10], l[len(l)*9/10], l[len(l)/2])
	}
	for why, n := range left {
		t.Logf("%d not predicted: %s", n, why)
	}
	slices.Sort(all)
	median, p90 := all[len(all)/2], all[len(all)*9/10]
	t.Logf("%d runs: median %.1f%%, 90th percentile %.1f%%", len(all), 100*median, 100*p90)
	if median > 0.1 || p90 > 0.25 {
		t.Errorf("median %.3f, 90th percentile %.3f; expected at most 0.1 and 0.25", median, p90)
	}
}

// predicted is the predicted time over the measured one.
func predicted(run *Training) (float64, error) {
	j, err := run.Job()
	if err != nil {
		return 0, err
	}
	place, err := run.Place()
	if err != nil {
		return 0, err
	}
	m, _ := hardware.GPUByName(run.Hardware.GPU)
	g, err := step.NewGPU(m, step.Default())
	if err != nil {
		return 0, err
	}
	r, err := step.Step(j, g, step.NewFabric(place.Cluster, place.Layout, j.Split, nccl.Version{Major: 2, Minor: 23, Patch: 4}))
	if err != nil {
		return 0, err
	}
	return r.Step / run.Seconds(), nil
}
