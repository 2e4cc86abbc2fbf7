package cluster

import (
	"math"
	"testing"

	"busbar.dev/unit"
)

func TestResidualAt(t *testing.T) {
	r := Residual{Points: []ResidualPoint{{unit.KiB, 2}, {unit.MiB, 1}}}
	for _, c := range []struct {
		size unit.Bytes
		want float64
	}{{8, 2}, {unit.KiB, 2}, {32 * unit.KiB, math.Sqrt2}, {unit.MiB, 1}, {unit.GiB, 1}} {
		if got := math.Exp(r.At(c.size)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("at %v: %.4f, want %.4f", c.size, got, c.want)
		}
	}
	if (&Residual{}).At(8) != 0 {
		t.Error("a curve without points changes something")
	}
}

func TestResidualCheck(t *testing.T) {
	for _, r := range []Residual{
		{Points: []ResidualPoint{{8, 0}}},
		{Points: []ResidualPoint{{8, math.NaN()}}},
		{Points: []ResidualPoint{{8, 1}, {8, 1}}},
		{Points: []ResidualPoint{{16, 1}, {8, 1}}},
		{Points: []ResidualPoint{{-1, 1}}},
		{Points: make([]ResidualPoint, maxResiduals+1)},
	} {
		if c := (&Calibration{Residuals: []Residual{r}}); c.Check() == nil {
			t.Errorf("%+v is taken", r.Points[:1])
		}
	}
}
