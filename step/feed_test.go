package step

import (
	"math"
	"testing"
)

func TestFeed(t *testing.T) {
	r := Result{Step: 0.2, MFU: 0.5, HFU: 0.6, Tokens: 1000}
	if r.Feed(0.1); r.Step != 0.2 || r.Starved != 0 || r.Data != 0.1 {
		t.Errorf("samples that come in time: %+v", r)
	}
	if r.Feed(0.5); r.Step != 0.5 || math.Abs(float64(r.Starved)-0.3) > 1e-12 || r.TokensPerSecond() != 2000 ||
		math.Abs(r.MFU-0.2) > 1e-12 || math.Abs(r.HFU-0.24) > 1e-12 {
		t.Errorf("samples that come late: %+v", r)
	}
}
