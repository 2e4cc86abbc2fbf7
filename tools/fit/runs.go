package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
)

// runRow is a training run and its prediction.
type runRow struct {
	*training
	Step      *step.Prepared
	GPU       hardware.GPUModel
	Predicted float64 // s
	Margin    float64 // the measured time is expected within predicted/margin and predicted×margin
	Result    *step.Result
	APE       float64
}

// Limit is what the step is bounded by, in words.
func (r *runRow) Limit() string { return r.Result.Limit(r.Step.Job()).Text }

// readRuns are the training runs of a file, one a line; lines about other things are left.
func readRuns(data []byte) []*training {
	var list []*training
	for line := range bytes.Lines(data) {
		if t, ok := readTraining(line); ok {
			list = append(list, t)
		}
	}
	return list
}

// gpuOf is the catalogue's row of a GPU, of whose name a part may stand in brackets.
func gpuOf(name string) (hardware.GPUModel, bool) {
	name, _, _ = strings.Cut(name, "(")
	return hardware.GPUByName(name)
}

// trainedWith is the release that is assumed of all runs: none states its own.
var trainedWith = nccl.Version{Major: 2, Minor: 23, Patch: 4}

// Prepare describes the run's cluster and lays out its tasks; the error says in words why it
// cannot be predicted.
func (t *training) Prepare() (*runRow, error) {
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
	m, ok := gpuOf(t.Hardware.GPU)
	if !ok {
		return nil, fmt.Errorf("GPU %q is not in the catalogue", t.Hardware.GPU)
	}
	return &runRow{
		training: t, GPU: m, Step: step.Prepare(j, step.NewFabric(place.Cluster, place.Layout, j.Split, trainedWith)),
	}, nil
}

// Predict prices the run by figures.
func (r *runRow) Predict(f *step.Figures) error {
	g, err := step.NewGPU(r.GPU, f)
	if err != nil {
		return err
	}
	res, err := r.Step.Price(g)
	if err != nil {
		return err
	}
	r.Result, r.Margin = res, step.Margin(r.Step.Job(), r.GPU)
	r.Predicted = res.Step.Seconds()
	r.APE = math.Abs(r.Predicted-r.Seconds()) / r.Seconds()
	return nil
}

// predict prices the run by figures.
func (t *training) predict(f *step.Figures) (*runRow, error) {
	if t.Grade == "C" {
		return nil, errors.New("grade C: partly unknown, or noise above 10%; not scored")
	}
	r, err := t.Prepare()
	if err == nil {
		err = r.Predict(f)
	}
	return r, err
}

// predictRuns prices all runs that can be; what is left out says why.
func predictRuns(runs []*training, f *step.Figures) ([]*runRow, []truth.Left) {
	var rows []*runRow
	var left []truth.Left
	for _, t := range runs {
		r, err := t.predict(f)
		if err != nil {
			left = append(left, truth.Left{
				ID: t.ID, Reason: err.Error(), Points: 1, Gradable: t.Grade != "C", Class: t.Class, Machine: t.Cluster,
			})
			continue
		}
		rows = append(rows, r)
	}
	return rows, left
}

// rateRuns scores rows; machines are their clusters.
func rateRuns(name string, rows []*runRow) truth.Part {
	list := make([]truth.Graded, len(rows))
	for i, r := range rows {
		list[i] = truth.Graded{Machine: r.Cluster, APE: r.APE, Ratio: r.Predicted / r.Seconds(), Bar: r.Margin}
	}
	return truth.Part{Name: name, Score: truth.RateAll(list)}
}

// splitRuns scores rows by a name that each has.
func splitRuns(rows []*runRow, name func(*runRow) string) []truth.Part {
	by := map[string][]*runRow{}
	for _, r := range rows {
		by[name(r)] = append(by[name(r)], r)
	}
	var list []truth.Part
	for _, n := range slices.Sorted(maps.Keys(by)) {
		list = append(list, rateRuns(n, by[n]))
	}
	return list
}
