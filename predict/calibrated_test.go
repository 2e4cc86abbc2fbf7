package predict

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// calibratedOn is a predictor of four nodes or fewer, whose cluster was measured on 2x8 with NCCL 2.28.
func calibratedOn(t *testing.T, nodes int, release nccl.Version, env map[string]string) *Predictor {
	t.Helper()
	cl, err := hardware.Preset("dgx-h100", 4)
	if err != nil {
		t.Fatal(err)
	}
	cl.Calibration = &cluster.Calibration{Residuals: []cluster.Residual{{
		Op: "all_reduce", Class: "multi-node-infiniband", Layout: "2x8", NCCL: "2.28", From: unit.KiB, To: 64 * unit.MiB,
		Error: 0.1, Source: "two-nodes.log",
		Points: []cluster.ResidualPoint{{Size: unit.MiB, Factor: 1.5}, {Size: 4 * unit.MiB, Factor: 1}},
	}}}
	if err := cl.Calibration.Check(); err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(cl, nodes, 8)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(cl, l, release, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a calibration leaves corrects what was measured, along the size, and nothing else: no other layout, collective,
// release, setting or way of launching. Bars narrow likewise.
func TestCurveHoldsForItsKey(t *testing.T) {
	measured, newer := nccl.Version{Major: 2, Minor: 28, Patch: 9}, nccl.Version{Major: 2, Minor: 29, Patch: 2}
	price := func(p *Predictor, op coll.Op) float64 {
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Price(op, s)
		if err != nil {
			t.Fatal(err)
		}
		if sum := r.Parts.Launch + r.Parts.Latency + r.Parts.Sync + r.Parts.Moving; sum != r.Time {
			t.Errorf("parts of %v, time %v", sum, r.Time)
		}
		return float64(r.Time)
	}
	for _, c := range []struct {
		what    string
		nodes   int
		release nccl.Version
		env     map[string]string
		how     Conditions
		kind    coll.Kind
		size    unit.Bytes
		like    float64 // of the logarithm
		narrow  bool
	}{
		{"the same", 2, measured, nil, Conditions{}, coll.AllReduce, unit.MiB, 1, true},
		{"half way", 2, measured, nil, Conditions{}, coll.AllReduce, 2 * unit.MiB, 0.5, true},
		{"beyond", 2, measured, nil, Conditions{}, coll.AllReduce, unit.GiB, 0, false},
		{"below", 2, measured, nil, Conditions{}, coll.AllReduce, 8, 1, false},
		{
			"words to print", 2, measured,
			map[string]string{"NCCL_DEBUG": "INFO"},
			Conditions{},
			coll.AllReduce, unit.MiB, 1,
			true,
		},
		{"layout", 4, measured, nil, Conditions{}, coll.AllReduce, unit.MiB, 0, false},
		{"collective", 2, measured, nil, Conditions{}, coll.AllGather, unit.MiB, 0, false},
		{"class", 1, measured, nil, Conditions{}, coll.AllReduce, unit.MiB, 0, false},
		{"release", 2, newer, nil, Conditions{}, coll.AllReduce, unit.MiB, 0, false},
		{
			"setting", 2, measured,
			map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4"},
			Conditions{},
			coll.AllReduce, unit.MiB,
			0, false,
		},
		{"launch", 2, measured, nil, Conditions{Serial: 8}, coll.AllReduce, unit.MiB, 1, true},
		{"timing", 2, measured, nil, Conditions{Alone: true}, coll.AllReduce, unit.MiB, 0, false},
	} {
		p := calibratedOn(t, c.nodes, c.release, c.env)
		p.Conditions = c.how
		op := coll.Op{Kind: c.kind, Bytes: c.size}
		is, bar := price(p, op), p.Margin(op)
		p.Cluster.Calibration = nil
		was, usual := price(p, op), p.Margin(op)
		if want := math.Pow(1.5, c.like); math.Abs(is/was/want-1) > 1e-6 {
			t.Errorf("%s: %.4f times as long, want %.4f", c.what, is/was, want)
		}
		if want := min(usual, 1.15); c.narrow && math.Abs(bar-want) > 1e-9 || !c.narrow && bar != usual {
			t.Errorf("%s: bar ×%.3f, was ×%.3f", c.what, bar, usual)
		}
	}
}

// A prediction says that it is calibrated and by what, and takes the release that was measured where nobody says one.
func TestOrigin(t *testing.T) {
	p := calibratedOn(t, 2, nccl.Newest, nil)
	for _, want := range []string{"calibrated on this cluster (two-nodes.log)", "all_reduce on 2x8 by NCCL 2.28"} {
		if got := Origin(p.Cluster); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
	if v := CalibratedRelease(p.Cluster, nccl.Newest); v.Minor != 28 {
		t.Errorf("release %s", v)
	}
	p.Cluster.Calibration.Residuals = append(p.Cluster.Calibration.Residuals, cluster.Residual{NCCL: "2.27"})
	if v := CalibratedRelease(p.Cluster, nccl.Newest); v != nccl.Newest {
		t.Errorf("of two releases %s", v)
	}
	p.Cluster.Calibration = nil
	if got := Origin(p.Cluster); strings.Contains(got, "calibrated") ||
		CalibratedRelease(p.Cluster, nccl.Newest) != nccl.Newest {
		t.Errorf("without a calibration: %q", got)
	}
}
