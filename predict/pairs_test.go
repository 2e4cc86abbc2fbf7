package predict_test

import (
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// What NCCL and RCCL take for calls that their tables of estimates do not decide: LL for small sends within a node
// since 2.14, where connections have buffers for it, and MSCCL's exchange of all pairs on eight MI300X.
func TestChosenWithoutEstimates(t *testing.T) {
	small := coll.Op{Kind: coll.AllToAll, Bytes: unit.KiB}
	sum := func(b unit.Bytes) coll.Op { return coll.Op{Kind: coll.AllReduce, Bytes: b} }
	newest := nccl.Newest
	for _, x := range []struct {
		preset      string
		nodes, per  int
		release     nccl.Version
		env         map[string]string
		op          coll.Op
		serial      int
		algo, proto string
	}{
		{"dgx-h100", 1, 8, newest, nil, small, 0, "direct", sim.LL},
		{"dgx-h100", 2, 8, newest, nil, small, 0, "direct", sim.Simple},
		{"dgx-a100", 1, 8, nccl.Version{Major: 2, Minor: 13, Patch: 4}, nil, small, 0, "direct", sim.Simple},
		{"mi300x-8", 1, 8, newest, nil, sum(64 * unit.KiB), 0, "direct", sim.LL},
		{"mi300x-8", 1, 8, newest, nil, sum(512), 0, "ring", sim.LL},
		{"mi300x-8", 1, 8, newest, nil, sum(64 * unit.KiB), 8, "ring", sim.LL},
		{"mi300x-8", 1, 4, newest, nil, sum(64 * unit.KiB), 0, "ring", sim.LL},
		{"mi300x-8", 1, 8, newest, map[string]string{"RCCL_MSCCL_ENABLE": "0"}, sum(64 * unit.KiB), 0, "ring", sim.LL},
		{"mi300x-8", 1, 8, newest, map[string]string{"NCCL_ALGO": "Ring"}, sum(64 * unit.KiB), 0, "ring", sim.LL},
	} {
		c, err := hardware.Preset(x.preset, x.nodes)
		if err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(c, x.nodes, x.per)
		if err != nil {
			t.Fatal(err)
		}
		p, err := predict.New(c, l, x.release, x.env, sim.Fitted())
		if err != nil {
			t.Fatal(err)
		}
		p.Serial = x.serial
		s, err := p.Auto(x.op)
		if err != nil || s.Algo != x.algo || s.Proto != x.proto {
			t.Errorf("%s, %d×%d, %v of %v under %v: %s %s, %v; want %s %s", x.preset, x.nodes, x.per, x.op.Kind, x.op.Bytes,
				x.env, s.Algo, s.Proto, err, x.algo, x.proto)
		}
		if r, err := p.Price(x.op, s); err != nil || r.Time <= 0 {
			t.Errorf("%s: %v", x.preset, err)
		}
	}
}
