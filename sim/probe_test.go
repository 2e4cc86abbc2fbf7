package sim_test

import (
	"context"
	"fmt"
	"testing"

	"busbar/coll"
	"busbar/schedule"
	"busbar/sim"
	"busbar/unit"
)

func TestProbe(t *testing.T) {
	for _, x := range []struct {
		preset      string
		n, g, ch    int
		algo, proto string
		kind        coll.Kind
		size        unit.Bytes
	}{
		{"dgx-h100", 1, 8, 24, "ring", "simple", coll.AllReduce, 64 << 20},
		{"dgx-h100", 1, 8, 24, "ring", "simple", coll.AllReduce, 8 << 20},
		{"dgx-h100", 1, 8, 24, "ring", "ll", coll.AllReduce, 1 << 20},
		{"dgx-h100", 1, 8, 4, "ring", "ll", coll.AllReduce, 1 << 20},
		{"dgx-h100", 2, 8, 16, "ring", "simple", coll.AllReduce, 64 << 20},
		{"alps-gh200", 8, 1, 3, "ring", "ll", coll.AllReduce, 16 << 20},
		{"alps-gh200", 8, 1, 1, "ring", "ll", coll.AllReduce, 16 << 20},
		{"alps-gh200", 8, 1, 2, "ring", "ll", coll.AllReduce, 16 << 20},
		{"alps-gh200", 2, 4, 4, "direct", "ll128", coll.ReduceScatter, 16 << 20},
		{"alps-gh200", 2, 4, 1, "direct", "ll128", coll.ReduceScatter, 16 << 20},
	} {
		m, groups := machine(t, x.preset, x.n, x.g)
		s, err := schedule.Build(x.kind, x.algo, schedule.Params{Ranks: x.n * x.g, Channels: x.ch, Pieces: 1, Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		o, err := m.Outline(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := sim.Fitted()
		f[sim.RampTime] = 0
		model := f.NCCLModel(sim.Hopper, false, x.kind, x.algo, x.proto)
		op := coll.Op{Kind: x.kind, Bytes: x.size}
		a := o.Price(op, model)
		e, err := o.Exact(context.Background(), op, model, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(x, "steady", a.Time, a.Parts, "exact", e.Time, a.Limit.Text)
	}
}
