package cluster

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/unit"
)

// Residual is what is left between measurements of one collective on one layout and the model with this
// calibration's figures: predictions of the same are multiplied by it, of similar ones by a part of it.
type Residual struct {
	Op     string          `json:"op" yaml:"op"`
	Class  string          `json:"class" yaml:"class"`   // multi-node-infiniband, …
	Layout string          `json:"layout" yaml:"layout"` // 2x8
	Points []ResidualPoint `json:"points" yaml:"points"` // from small to large
}

// ResidualPoint is one size.
type ResidualPoint struct {
	Size unit.Bytes `json:"bytes" yaml:"bytes"`
	// Factor is measured over predicted, as far as points that were left out say that it helps.
	Factor float64 `json:"factor" yaml:"factor"`
}

// At is the logarithm of the factor at a size: between points linear in the logarithm of the size, outside as at
// the nearest.
func (r *Residual) At(size unit.Bytes) float64 {
	if len(r.Points) == 0 {
		return 0
	}
	at := func(p ResidualPoint) float64 { return math.Log(float64(max(p.Size, 1))) }
	x := math.Log(float64(max(size, 1)))
	i, _ := slices.BinarySearchFunc(r.Points, size,
		func(p ResidualPoint, s unit.Bytes) int { return cmp.Compare(p.Size, s) })
	switch {
	case i == 0:
		return math.Log(r.Points[0].Factor)
	case i == len(r.Points):
		return math.Log(r.Points[i-1].Factor)
	}
	a, b := r.Points[i-1], r.Points[i]
	part := (x - at(a)) / (at(b) - at(a))
	return float64(math.Log(a.Factor)*(1-part)) + math.Log(b.Factor)*part
}

// maxResiduals bounds the curves and the points of one.
const maxResiduals = 1000

// check says what is wrong with a curve.
func (r *Residual) check() error {
	if len(r.Points) > maxResiduals {
		return fmt.Errorf("%d points; expected at most %d", len(r.Points), maxResiduals)
	}
	for i, p := range r.Points {
		switch {
		case p.Size < 0 || i > 0 && p.Size <= r.Points[i-1].Size:
			return fmt.Errorf("points[%d]: %d bytes; expected sizes from small to large", i, p.Size)
		case !(p.Factor > 1e-3 && p.Factor < 1e3):
			return fmt.Errorf("points[%d]: factor %g; expected measured over predicted, between 0.001 and 1000", i, p.Factor)
		}
	}
	return nil
}
