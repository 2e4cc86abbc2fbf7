package predict

import (
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// TestNVLinkNetwork holds 256 GPUs of one NVLink network to what their links allow: switches sum an all-reduce on the
// way, so that the second level has one copy of a node's eight to carry and a GPU's own 450 GB/s are the limit;
// all-to-all sends 8 × 31/32 of its data out of the node, over half of the links.
func TestNVLinkNetwork(t *testing.T) {
	c, err := hardware.Preset("dgx-h100-nvl256", 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 1, 256)
	if err != nil {
		t.Fatal(err)
	}
	v, err := nccl.ParseVersion("2.28")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, l, v, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	rate := map[coll.Kind]float64{}
	for kind, limit := range map[coll.Kind]string{coll.AllReduce: "gpu0", coll.AllToAll: "–nvswitch32"} {
		op := coll.Op{Kind: kind, Bytes: 8 << 30, Type: coll.Float}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Price(op, s)
		if err != nil {
			t.Fatal(err)
		}
		rate[kind] = float64(op.Bytes) / run.Time.Micros() / 1e3
		if !strings.HasSuffix(run.Limit.Where, limit) {
			t.Errorf("%v by %+v is limited by %s: %s", kind, s, run.Limit.Where, run.Limit.Text)
		}
	}
	if out := rate[coll.AllToAll] * 31 / 32; out > 225 || out < 0.7*225 {
		t.Errorf("all-to-all sends %.0f GB/s a GPU out of its node, which has 225 for each", out)
	}
	if sum := rate[coll.AllReduce]; sum > 450/2*1.2 || sum < 0.7*450/2 {
		t.Errorf("all-reduce at %.0f GB/s", sum)
	}
}

// TestPartOfRack: some GPUs of a rack add as fast as all of it, since each has less to send and fewer to hear of.
func TestPartOfRack(t *testing.T) {
	whole := 0.0
	for _, gpus := range []int{72, 36, 16, 8} {
		p := predictorOf(t, "gb200-nvl72", 1, gpus)
		op := coll.Op{Kind: coll.AllReduce, Bytes: 64 << 20, Type: coll.Float}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Price(op, s)
		if err != nil {
			t.Fatal(err)
		}
		if whole == 0 {
			whole = run.Time.Micros()
		}
		if run.Time.Micros() > whole {
			t.Errorf("%d GPUs take %.0f µs, the rack's 72 take %.0f µs", gpus, run.Time.Micros(), whole)
		}
	}
}

// TestOutrun: what is left out because a ring cannot be as fast is slower indeed.
func TestOutrun(t *testing.T) {
	x, left := newForced(predictorOf(t, "dgx-h100", 64, 8)), 0
	for size := unit.Bytes(8); size <= 64<<20; size *= 4 {
		op := coll.Op{Kind: coll.AllReduce, Bytes: size, Type: coll.Float}
		auto, err := x.auto(op)
		if err != nil {
			t.Fatal(err)
		}
		now, err := x.row(op, auto, auto)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range x.all(op, "") {
			if !x.outrun(op, s, now.Time) {
				continue
			}
			left++
			if r, err := x.row(op, s, auto); err != nil || r.Time < now.Time {
				t.Errorf("%v by %+v takes %v, not more than %v by %+v (%v)", size, s, r.Time, now.Time, auto, err)
			}
		}
	}
	if left == 0 {
		t.Error("no ring was left out among 512 ranks")
	}
}
