package calibrate

import (
	"math"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Suggested is a size that is worth measuring.
type Suggested struct {
	Size    unit.Bytes
	Setting predict.Setting // by which NCCL would do it
	Time    unit.Time       // predicted
	// Left is what would remain of the uncertainty over all sizes (the variance of the error's logarithm), as a share, with
	// this size and those before it measured.
	Left float64
}

// How errors of a model go together: sizes whose logarithms are this far apart (a factor of e a unit) know little of each
// other; another algorithm or protocol knows only a part; and two measurements of one size differ by this much.
const (
	likeSizes   = 3.0
	likeSetting = 0.6
	repeatNoise = 0.03
)

// Suggest chooses the sizes of a sweep that say most about all of them: one after the other the one that leaves the least
// uncertainty, where errors at similar sizes by the same algorithm and protocol go together and are as large as the
// prediction's own error bar says.
func Suggest(p *predict.Predictor, kind coll.Kind, sizes []unit.Bytes, count int) ([]Suggested, error) {
	all := make([]Suggested, len(sizes))
	bars := make([]float64, len(sizes))
	for i, size := range sizes {
		op := coll.Op{Kind: kind, Bytes: size, Type: coll.Float}
		s, err := p.Auto(op)
		if err != nil {
			return nil, err
		}
		run, err := p.Price(op, s)
		if err != nil {
			return nil, err
		}
		all[i], bars[i] = Suggested{Size: size, Setting: s, Time: run.Time}, math.Log(max(run.Margin, 1.01))
	}
	cov := covariance(all, bars)
	whole := trace(cov)
	var list []Suggested
	for range min(count, len(sizes)) {
		best, gain := -1, 0.0
		for k := range all {
			if g := explained(cov, k); g > gain {
				best, gain = k, g
			}
		}
		if best < 0 {
			break
		}
		measured(cov, best)
		all[best].Left = trace(cov) / whole
		list = append(list, all[best])
	}
	return list, nil
}

// covariance is how the errors of sizes go together before anything is measured.
func covariance(all []Suggested, bars []float64) [][]float64 {
	cov := make([][]float64, len(all))
	for i := range all {
		cov[i] = make([]float64, len(all))
		for j := range all {
			d := (math.Log(float64(max(all[i].Size, 1))) - math.Log(float64(max(all[j].Size, 1)))) / likeSizes
			like := math.Exp(-d * d / 2)
			if a, b := all[i].Setting, all[j].Setting; a.Algo != b.Algo || a.Proto != b.Proto {
				like *= likeSetting
			}
			cov[i][j] = bars[i] * bars[j] * like
		}
	}
	return cov
}

func trace(cov [][]float64) float64 {
	t := 0.0
	for i := range cov {
		t += cov[i][i]
	}
	return t
}

// explained is by how much measuring size k would lower the variance of all.
func explained(cov [][]float64, k int) float64 {
	sum := 0.0
	for i := range cov {
		sum += cov[i][k] * cov[i][k]
	}
	return sum / (cov[k][k] + repeatNoise*repeatNoise)
}

// measured is the covariance after size k was measured.
func measured(cov [][]float64, k int) {
	by := cov[k][k] + repeatNoise*repeatNoise
	row := append([]float64(nil), cov[k]...)
	for i := range cov {
		for j := range cov {
			cov[i][j] -= row[i] * row[j] / by
		}
	}
}
