package truth

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"busbar/hardware"
	"busbar/nccl"
	"busbar/step"
)

func TestTrainingProto(t *testing.T) {
	f, err := os.Open("../../shared/truth/training.jsonl")
	if err != nil {
		t.Skip(err)
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	by := map[string][]float64{}
	left := map[string]int{}
	var all []float64
	for sc.Scan() {
		tr, ok := readTraining(sc.Bytes())
		if !ok || tr.Grade == "C" {
			continue
		}
		j, err := tr.Job()
		if err != nil {
			left[tr.Cluster+": "+err.Error()]++
			continue
		}
		place, err := tr.Place()
		if err != nil {
			left[tr.Cluster+": "+err.Error()]++
			continue
		}
		gm, _ := hardware.GPUByName(tr.Hardware.GPU)
		g, err := step.NewGPU(gm, step.Default())
		if err != nil {
			left[err.Error()]++
			continue
		}
		r, err := step.Step(j, g, step.NewFabric(place.Cluster, place.Layout, j.Split, nccl.Version{Major: 2, Minor: 23, Patch: 4}))
		if err != nil {
			left[tr.Cluster+": "+err.Error()]++
			continue
		}
		m := tr.Seconds()
		e := math.Abs(r.Step-m) / m
		by[tr.Cluster] = append(by[tr.Cluster], r.Step/m)
		all = append(all, e)
		if os.Getenv("ROWS") != "" {
			fmt.Printf("%5.2f %-44s meas %8.3f pred %8.3f comp %7.3f bub %6.3f opt %6.3f exp %6.3f of %6.3f mfu %.2f %v\n", r.Step/m, tr.ID, m, r.Step, r.Compute, r.Bubble, r.Optimizer, r.Exposed, r.Comm, r.MFU, j.Split)
		}
	}
	for c, l := range by {
		slices.Sort(l)
		fmt.Printf("%-40s %3d  ratio p10 %.2f median %.2f p90 %.2f\n", c, len(l), l[len(l)/10], l[len(l)/2], l[len(l)*9/10])
	}
	slices.Sort(all)
	fmt.Printf("all %d median %.3f p90 %.3f\n", len(all), all[len(all)/2], all[len(all)*9/10])
	for k, n := range left {
		fmt.Println("left", n, k)
	}
}
