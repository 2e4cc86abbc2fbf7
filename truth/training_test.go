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
	"busbar/workload"
)

type protoRow struct {
	t *Training
	j *workload.Job
	m hardware.GPUModel
	f *step.Fabric
}

func TestTrainingProto(t *testing.T) {
	f, err := os.Open("../../shared/truth/training.jsonl")
	if err != nil {
		t.Skip(err)
	}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	left := map[string]int{}
	var rows []protoRow
	for sc.Scan() {
		tr, ok := readTraining(sc.Bytes())
		if !ok || tr.Grade == "C" {
			continue
		}
		j, err := tr.Job()
		if err == nil {
			var place *Place
			if place, err = tr.Place(); err == nil {
				gm, _ := hardware.GPUByName(tr.Hardware.GPU)
				rows = append(rows, protoRow{tr, j, gm, step.NewFabric(place.Cluster, place.Layout, j.Split, nccl.Version{Major: 2, Minor: 23, Patch: 4})})
			}
		}
		if err != nil {
			left[tr.Cluster+": "+err.Error()]++
		}
	}
	eval := func(fig *step.Figures, each func(r *protoRow, res *step.Result, ratio float64)) float64 {
		sum := 0.0
		n := map[string]float64{}
		for i := range rows {
			n[rows[i].t.Cluster]++
		}
		for i := range rows {
			r := &rows[i]
			g, err := step.NewGPU(r.m, fig)
			if err != nil {
				t.Fatal(err)
			}
			res, err := step.Step(r.j, g, r.f)
			if err != nil {
				t.Fatal(r.t.ID, err)
			}
			ratio := res.Step / r.t.Seconds()
			if each != nil {
				each(r, res, ratio)
			}
			e := math.Abs(math.Log(ratio))
			sum += math.Min(e, 0.1+0.3*e) / math.Sqrt(n[r.t.Cluster])
		}
		return sum
	}
	fig := step.Default()
	best := eval(fig, nil)
	if os.Getenv("FIT") != "" {
		prior := *step.Default()
		pull := func(f *step.Figures) float64 {
			s := 0.0
			for i := range f {
				if prior[i] > 0 && f[i] > 0 {
					d := math.Log(f[i] / prior[i])
					s += 0.3 * d * d
				}
			}
			return s
		}
		best += pull(fig)
		width := 0.25
		for round := 0; round < 14; round++ {
			moved := false
			for i := range fig {
				_, lo, hi := step.Range(i)
				for _, k := range []float64{1 + width, 1 / (1 + width)} {
					old := fig[i]
					fig[i] = math.Min(hi, math.Max(lo, old*k))
					if v := eval(fig, nil) + pull(fig); v < best-1e-6 {
						best, moved = v, true
						break
					}
					fig[i] = old
				}
			}
			if !moved {
				width /= 2
			}
		}
		for i := range fig {
			fmt.Printf("%s %.4g (was %.4g)\n", step.Name(i), fig[i], prior[i])
		}
	}
	by := map[string][]float64{}
	var all []float64
	eval(fig, func(r *protoRow, res *step.Result, ratio float64) {
		by[r.t.Cluster] = append(by[r.t.Cluster], ratio)
		all = append(all, math.Abs(ratio-1))
		if os.Getenv("ROWS") != "" {
			fmt.Printf("%5.2f %-44s meas %8.3f pred %8.3f comp %7.3f bub %6.3f opt %6.3f exp %6.3f of %6.3f mfu %.2f %v\n", ratio, r.t.ID, r.t.Seconds(), res.Step, res.Compute, res.Bubble, res.Optimizer, res.Exposed, res.Comm, res.MFU, r.j.Split)
		}
	})
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
