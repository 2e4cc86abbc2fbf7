package cluster

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/unit"
)

// Residual is what is left between measurements of one collective on one layout, by one release of the library under
// one set of settings, and the model with this calibration's figures: predictions of the same are multiplied by it.
type Residual struct {
	Op       string `json:"op" yaml:"op"`
	Class    string `json:"class" yaml:"class"`                           // multi-node-infiniband, …
	Layout   string `json:"layout" yaml:"layout"`                         // 2x8
	NCCL     string `json:"nccl,omitempty" yaml:"nccl,omitempty"`         // 2.28
	Settings string `json:"settings,omitempty" yaml:"settings,omitempty"` // also the plugin, and how calls were launched
	// From and To are the least and the greatest size that was measured.
	From unit.Bytes `json:"from_bytes,omitempty" yaml:"from_bytes,omitempty"`
	To   unit.Bytes `json:"to_bytes,omitempty" yaml:"to_bytes,omitempty"`
	// Error is what nine of ten sizes are not farther off than that were predicted from the others, Noise how far two
	// measurements of one size are apart, both as a share; 0 where too few sizes were measured to tell.
	Error  float64         `json:"left_out_error,omitempty" yaml:"left_out_error,omitempty"`
	Noise  float64         `json:"noise,omitempty" yaml:"noise,omitempty"`
	Source string          `json:"source,omitempty" yaml:"source,omitempty"` // what was measured
	Points []ResidualPoint `json:"points" yaml:"points"`                     // from small to large
}

// ResidualPoint is one size.
type ResidualPoint struct {
	Size unit.Bytes `json:"bytes" yaml:"bytes"`
	// Factor is measured over predicted, as far as neighbouring sizes bear it out.
	Factor float64 `json:"factor" yaml:"factor"`
}

// String is what the curve holds for.
func (r *Residual) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s on %s by NCCL %s %s", r.Op, r.Layout, cmp.Or(r.NCCL, "of any release"),
		r.Settings))
}

// Same tells of two curves of the same calls.
func (r *Residual) Same(o *Residual) bool {
	return r.Op == o.Op && r.Class == o.Class && r.Layout == o.Layout && r.NCCL == o.NCCL && r.Settings == o.Settings
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
	if r.From < 0 || r.To < r.From || !share(r.Error) || !share(r.Noise) {
		return fmt.Errorf("from %d to %d bytes, errors of %g and %g; expected numbers from zero on", r.From, r.To, r.Error,
			r.Noise)
	}
	if len(r.Points) == 0 || len(r.Points) > maxResiduals {
		return fmt.Errorf("%d points; expected 1 to %d", len(r.Points), maxResiduals)
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
