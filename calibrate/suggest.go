package calibrate

import (
	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Suggested is a size that is worth measuring.
type Suggested struct {
	Size  unit.Bytes `json:"size_bytes"`
	Algo  string     `json:"algo"` // by which NCCL would do it
	Proto string     `json:"proto"`
	Time  unit.Time  `json:"predicted_us"`
	// Left is what would remain of the uncertainty over all sizes (the variance of the error's logarithm), as a share,
	// with this size and those before it measured.
	Left float64 `json:"uncertainty_left"`
}

// Suggest chooses the sizes of a sweep that say most about all of them: one after the other the one that leaves the
// least uncertainty, by what a calibration takes errors for: alike at similar sizes by the same algorithm and protocol,
// and as large as the prediction's own error bar says.
func Suggest(p *predict.Predictor, kind coll.Kind, sizes []unit.Bytes, count int) ([]Suggested, error) {
	all := make([]Suggested, len(sizes))
	c := &curve{kind: kind, p: p}
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
		all[i] = Suggested{Size: size, Algo: s.Algo, Proto: s.Proto, Time: run.Time}
		c.spots = append(c.spots, c.spot(size))
	}
	cov := c.covariance()
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
func (c *curve) covariance() [][]float64 {
	cov := make([][]float64, len(c.spots))
	for i := range cov {
		cov[i] = make([]float64, len(cov))
		for j := range cov {
			cov[i][j] = together(&c.spots[i], &c.spots[j])
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
	return sum / (cov[k][k] + ofOne*ofOne)
}

// measured is the covariance after size k was measured.
func measured(cov [][]float64, k int) {
	by := cov[k][k] + ofOne*ofOne
	row := append([]float64(nil), cov[k]...)
	for i := range cov {
		for j := range cov {
			cov[i][j] -= row[i] * row[j] / by
		}
	}
}
