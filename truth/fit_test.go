package truth

import (
	"fmt"
	"math"
	"os"
	"sort"
	"testing"
	"time"

	"busbar/sim"
)

func load(t testing.TB) []*Case {
	f, err := os.Open("../../shared/truth/collectives.jsonl")
	if err != nil {
		t.Skip(err)
	}
	gs, _, err := Read("c", f)
	if err != nil {
		t.Fatal(err)
	}
	var list []*Case
	for i := range gs {
		if gs[i].Anomalous || gs[i].Grade == "C" {
			continue
		}
		c, err := Prepare(&gs[i], nil)
		if err != nil {
			fmt.Println("SKIP", gs[i].ID, len(gs[i].Sizes), err)
			continue
		}
		if _, err := c.Predict(nil); err != nil {
			fmt.Println("SKIP", gs[i].ID, len(gs[i].Sizes), err)
			continue
		}
		list = append(list, c)
	}
	return list
}

func report(cases []*Case, f *sim.Figures, verbose bool) {
	var small, big []float64
	by := map[string][]float64{}
	type worst struct {
		s string
		e float64
	}
	var ws []worst
	for _, c := range cases {
		rows, err := c.Predict(f)
		if err != nil {
			panic(err)
		}
		var ge []float64
		bias := 0.0
		for _, r := range rows {
			p := c.Points[r.Index]
			k := "small"
			if p.Op.Bytes >= 1<<20 {
				big = append(big, r.APE)
				k = "big"
			} else {
				small = append(small, r.APE)
			}
			by[c.Class+"/"+k] = append(by[c.Class+"/"+k], r.APE)
			ge = append(ge, r.APE)
			bias += math.Log(float64(r.Predicted) / float64(p.Time))
		}
		ws = append(ws, worst{fmt.Sprintf("%s med %.3f bias %.2f n %d", c.ID, Quantile(ge, .5), math.Exp(bias/float64(len(rows))), len(rows)), Quantile(ge, .5)})
	}
	fmt.Printf("big n %d median %.3f p90 %.3f | small n %d median %.3f p90 %.3f\n", len(big), Quantile(big, .5), Quantile(big, .9), len(small), Quantile(small, .5), Quantile(small, .9))
	if verbose {
		var ks []string
		for k := range by {
			ks = append(ks, k)
		}
		sort.Strings(ks)
		for _, k := range ks {
			fmt.Printf("  %-55s n %4d median %.3f p90 %.3f\n", k, len(by[k]), Quantile(by[k], .5), Quantile(by[k], .9))
		}
		sort.Slice(ws, func(i, j int) bool { return ws[i].e > ws[j].e })
		for _, w := range ws[:min(60, len(ws))] {
			fmt.Println("   ", w.s)
		}
	}
}

func objective(cases []*Case, f *sim.Figures) float64 {
	sum, weight := 0.0, 0.0
	for _, c := range cases {
		rows, err := c.Predict(f)
		if err != nil {
			panic(err)
		}
		w := 1 / math.Sqrt(float64(len(rows)))
		for _, r := range rows {
			e := math.Abs(math.Log(float64(r.Predicted) / float64(r.Measured())))
			// like a median: the far ones count less
			sum += w * math.Min(e, 0.05+math.Log1p(e)*0.9)
			weight += w
		}
	}
	return sum / weight
}

func TestFit(t *testing.T) {
	start := time.Now()
	cases := load(t)
	fmt.Println("cases", len(cases), time.Since(start))
	f := *sim.Fitted()
	start = time.Now()
	best := objective(cases, &f)
	fmt.Println("objective", best, time.Since(start))
	report(cases, &f, os.Getenv("FIT") == "")
	if os.Getenv("FIT") == "" {
		return
	}
	step := make([]float64, len(f))
	for i := range step {
		step[i] = 0.3
	}
	for round := 0; round < 25; round++ {
		moved := 0
		for i := range f {
			_, lo, hi := sim.FigureRange(i)
			old := f[i]
			for _, dir := range []float64{1, -1} {
				f[i] = math.Min(hi, math.Max(lo, old*math.Exp(dir*step[i])))
				if f[i] == old {
					continue
				}
				if o := objective(cases, &f); o < best-1e-6 {
					best = o
					moved++
					old = f[i]
					step[i] *= 1.3
					break
				}
				f[i] = old
			}
			if f[i] == old {
				step[i] *= 0.6
			}
		}
		fmt.Println("round", round, best, moved, time.Since(start))
		if time.Since(start) > 4*time.Minute {
			break
		}
	}
	report(cases, &f, true)
	for i := range f {
		fmt.Printf("%s=%.4g ", sim.FigureName(i), f[i])
	}
	fmt.Println()
	out, _ := os.Create("/tmp/figs.txt")
	for i := range f {
		fmt.Fprintf(out, "%.4g, ", f[i])
		if (i+1)%11 == 0 && i < 44 {
			fmt.Fprintln(out)
		}
	}
	out.Close()
}
