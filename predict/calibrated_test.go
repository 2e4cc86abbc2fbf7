package predict

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// A calibration narrows the error bar of what was measured, as far as the error on
// left-out points and the noise allow, and no other.
func TestCalibratedMargin(t *testing.T) {
	c := &cluster.Calibration{
		Figures: []cluster.Calibrated{{Name: "ll_net", Value: 4}}, Points: 9, P90: 0.001,
		Measured: []cluster.MeasuredRange{
			{Op: "all_reduce", Class: "nvlink-single-node", From: 1024, To: 1 << 20, Points: 9, Error: 0.2, Noise: 0.1},
			{Op: "all_gather", Class: "nvlink-single-node", From: 1024, To: 1 << 20, Points: 9, Error: 0.01, Noise: 0.5},
		},
	}
	for _, x := range []struct {
		kind  coll.Kind
		class string
		bytes unit.Bytes
		want  float64
	}{
		{coll.AllReduce, "nvlink-single-node", 4096, 1.3},
		{coll.AllGather, "nvlink-single-node", 4096, 1.5},
		{coll.AllReduce, "nvlink-single-node", 512, 1.6},
		{coll.AllReduce, "nvlink-single-node", 2 << 20, 1.6},
		{coll.AllReduce, "multi-node-infiniband", 4096, 1.6},
		{coll.Broadcast, "nvlink-single-node", 4096, 1.6},
	} {
		if got := calibratedMargin(1.6, c, x.class, coll.Op{Kind: x.kind, Bytes: x.bytes}); got < x.want-1e-9 ||
			got > x.want+1e-9 {
			t.Errorf("%s of %s on %s: %g, want %g", x.kind, x.bytes, x.class, got, x.want)
		}
	}
	if got := calibratedMargin(1.6, &cluster.Calibration{Figures: c.Figures, Points: 9}, "nvlink-single-node",
		coll.Op{Kind: coll.AllReduce, Bytes: 4096}); got != 1.6 {
		t.Errorf("without what was measured %g, want 1.6", got)
	}
}
