package main

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/internal/stats"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/step"
)

// vTrain is what its repository states of its runs beside the columns of its tables: Megatron-DeepSpeed in FP16 with
// recomputation and gradients summed after the backward pass, on nodes of eight A100 with four NICs of 200 Gb/s.
const vTrain = `{"id":"%s-%d","grade":"A","cluster":"vTrain","model":{"name":"GPT","layers":%d,"hidden":%d,"ffn":%d,"heads":%d,` +
	`"seq":%d,"vocab":51200},"hardware":{"gpu":"A100-SXM4-80GB","gpus":%d,"nodes":%d,"gpus_per_node":8,"intra":"NVLink3 NVSwitch",` +
	`"nics_per_node":4,"nic_gbps":200,"node_gbps":800,"fabric":"InfiniBand HDR"},"parallel":{"dp":%d,"tp":%d,"pp":%d,"zero":0,` +
	`"sequence_parallel":false,"micro_batch":%d,"global_batch":%d,"recompute":"full","precision":"fp16"},` +
	`"source":"vTrain, Megatron-DeepSpeed","measured":{"step_time_s":%g}}`

// vTrainRuns are the runs of one of vTrain's tables, and which are settings of one job.
func vTrainRuns(t *testing.T, name string) (rows []*runRow, jobs map[string][]*runRow) {
	f, err := os.Open(filepath.Join(corpus.Dir(t), "truth", "vtrain", "ground_truth_"+name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, c := range table[0] {
		column[strings.TrimPrefix(c, "\ufeff")] = i
	}
	job := map[string]string{}
	var runs []*training
	for i, line := range table[1:] {
		n := func(c string) int {
			k, ok := column[c]
			x, err := strconv.ParseFloat(line[max(0, k)], 64)
			if !ok || err != nil {
				t.Fatalf("%s:%d: column %q: %v", name, i+2, c, err)
			}
			return int(math.Round(x))
		}
		ms, err := strconv.ParseFloat(line[column["iteration time (ms)"]], 64)
		if err != nil {
			t.Fatal(err)
		}
		h, g := n("hidden size"), n("# GPUs")
		r, ok := readTraining(fmt.Appendf(nil, vTrain, name, i, n("# layers"), h, 4*h, n("attention heads"),
			n("sequence length"), g, max(1, g/8), n("data parallelism"), n("tensor parallelism"), n("pipeline parallelism"),
			n("micro batch"), n("global batch"), ms/1e3))
		if !ok {
			t.Fatalf("%s:%d is no run", name, i+2)
		}
		job[r.ID] = fmt.Sprint(n("# layers"), h, g, n("global batch"))
		runs = append(runs, r)
	}
	rows, left := predictRuns(runs, step.Default())
	if len(left) > 0 {
		t.Errorf("%s: %d runs are not predicted; the first: %s", name, len(left), left[0].Reason)
	}
	jobs = map[string][]*runRow{}
	for _, r := range rows {
		jobs[job[r.ID]] = append(jobs[job[r.ID]], r)
	}
	return rows, jobs
}

// tau is Kendall's of predictions and measurements.
func tau(rows []*runRow) float64 {
	var same, all, tiedP, tiedM float64
	for i, a := range rows {
		for _, b := range rows[:i] {
			x, y := a.Predicted-b.Predicted, a.Seconds()-b.Seconds()
			switch {
			case x == 0 && y != 0:
				tiedP++
			case y == 0 && x != 0:
				tiedM++
			case x != 0:
				all++
				same += math.Copysign(1, x*y)
			}
		}
	}
	return same / math.Sqrt((all+tiedP)*(all+tiedM))
}

// TestVTrain holds steps to what vTrain's authors measured, which no fit sees: the error, and on several nodes what
// taking the setting that is predicted to be the fastest loses, and the order of settings.
func TestVTrain(t *testing.T) {
	for _, c := range []struct {
		name string
		most float64
	}{{"multi", 0.1}, {"single", 0.11}} {
		rows, jobs := vTrainRuns(t, c.name)
		var ratio []float64
		mean := 0.0
		by := map[int64][]float64{}
		for _, r := range rows {
			mean += r.APE / float64(len(rows))
			ratio = append(ratio, r.Predicted/r.Seconds())
			by[r.Model.Hidden] = append(by[r.Model.Hidden], r.Predicted/r.Seconds())
		}
		t.Logf("%s: %d runs, mean error %.3f, predicted over measured %.2f", c.name, len(rows), mean,
			stats.Quantile(ratio, 0.5))
		for _, h := range slices.Sorted(maps.Keys(by)) {
			t.Logf("hidden %5d: %4d runs, predicted over measured %.2f", h, len(by[h]), stats.Quantile(by[h], 0.5))
		}
		if !(mean <= c.most) {
			t.Errorf("%s: mean error %.3f, expected at most %.3f", c.name, mean, c.most)
		}
		if c.name != "multi" {
			continue
		}
		for _, j := range slices.Sorted(maps.Keys(jobs)) {
			list := jobs[j]
			taken := slices.MinFunc(list, func(a, b *runRow) int { return sign(a.Predicted - b.Predicted) })
			best := slices.MinFunc(list, func(a, b *runRow) int { return sign(a.Seconds() - b.Seconds()) })
			regret := taken.Seconds()/best.Seconds() - 1
			t.Logf("%s: %d settings, regret %.3f, tau %.2f", j, len(list), regret, tau(list))
		}
	}
}

func sign(x float64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}
