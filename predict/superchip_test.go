package predict

import (
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// TestSuperchipBroadcast holds a broadcast over two GH200 nodes of four ports of 200 Gb/s to what such nodes move,
// about 90 GB/s, by every release: the way to the NIC over C2C is none through host memory (94 GB/s with GPUDirect:
// NVIDIA/nccl issue 1579).
func TestSuperchipBroadcast(t *testing.T) {
	c, err := hardware.Preset("alps-gh200", 2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{"2.26", "2.27", "2.28", "2.29", "2.30"} {
		v, err := nccl.ParseVersion(release)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, l, v, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		op := coll.Op{Kind: coll.Broadcast, Bytes: 1 << 30, Type: coll.Float}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		run, err := p.Price(op, s)
		if err != nil {
			t.Fatal(err)
		}
		if rate := float64(op.Bytes) / run.Time.Micros() / 1e3; rate < 80 || rate > 100 {
			t.Errorf("%s: %.1f GB/s by %+v", release, rate, s)
		}
	}
}
