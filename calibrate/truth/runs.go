package truth

import (
	"fmt"
	"math"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
)

// RunRow is a training run and its prediction.
type RunRow struct {
	*Training
	Step      *step.Prepared
	GPU       hardware.GPUModel
	Predicted float64 // s
	Margin    float64 // the measured time is expected within predicted/margin and predicted×margin
	Result    *step.Result
	APE       float64
}

// Limit is what the step is bounded by, in words.
func (r *RunRow) Limit() string { return r.Result.Limit(r.Step.Job()).Text }

// Use takes a predicted time.
func (r *RunRow) Use(seconds float64) {
	r.Predicted = seconds
	r.APE = math.Abs(r.Predicted-r.Seconds()) / r.Seconds()
}

// trainedWith is the release that is assumed of all runs: none states its own.
var trainedWith = nccl.Version{Major: 2, Minor: 23, Patch: 4}

// Prepare describes the run's cluster and lays out its tasks; the error says in words why it
// cannot be predicted.
func (t *Training) Prepare() (*RunRow, error) {
	if s := t.Seconds(); !(s > 0) || math.IsInf(s, 0) {
		return nil, fmt.Errorf("neither a time nor a throughput from which it follows")
	}
	j, err := t.Job()
	if err != nil {
		return nil, err
	}
	place, err := t.Place()
	if err != nil {
		return nil, err
	}
	m, ok := hardware.GPUByName(gpuName(t.Hardware.GPU))
	if !ok {
		return nil, fmt.Errorf("GPU %q is not in the catalogue", t.Hardware.GPU)
	}
	if t.Change != nil {
		t.Change(t, j, &m)
		if err := j.Check(); err != nil {
			return nil, err
		}
	}
	return &RunRow{
		Training: t, GPU: m, Step: step.Prepare(j, step.NewFabric(place.Cluster, place.Layout, j.Split, trainedWith)),
	}, nil
}

// Predict prices the run by figures.
func (r *RunRow) Predict(f *step.Figures) error {
	g, err := step.NewGPU(r.GPU, f)
	if err != nil {
		return err
	}
	res, err := r.Step.Price(g)
	if err != nil {
		return err
	}
	r.Result, r.Margin = res, step.Margin(r.Step.Job(), r.GPU)
	r.Use(res.Step.Seconds())
	return nil
}

// PredictRuns prices all runs that can be; what is left out says why.
func PredictRuns(runs []*Training, f *step.Figures) ([]*RunRow, []Left) {
	var rows []*RunRow
	var left []Left
	for _, t := range runs {
		if t.Grade == "C" {
			left = append(left, Left{
				ID: t.ID, Reason: "grade C: partly unknown, or noise above 10%; not scored", Points: 1, Class: t.Class,
				Machine: t.Cluster,
			})
			continue
		}
		r, err := t.Prepare()
		if err == nil {
			err = r.Predict(f)
		}
		if err != nil {
			left = append(left, Left{
				ID: t.ID, Reason: err.Error(), Points: 1, Gradable: true, Class: t.Class, Machine: t.Cluster,
			})
			continue
		}
		rows = append(rows, r)
	}
	return rows, left
}

// RateRuns scores rows; machines are their clusters.
func RateRuns(name string, rows []*RunRow) Part {
	list := make([]graded, len(rows))
	for i, r := range rows {
		list[i] = graded{r.Cluster, r.APE, r.Predicted / r.Seconds(), r.Margin}
	}
	return Part{name, rate(list)}
}

// SplitRuns scores rows by a name that each has.
func SplitRuns(rows []*RunRow, name func(*RunRow) string) []Part {
	by := map[string][]*RunRow{}
	for _, r := range rows {
		by[name(r)] = append(by[name(r)], r)
	}
	var list []Part
	for _, n := range sorted(by) {
		list = append(list, RateRuns(n, by[n]))
	}
	return list
}
