package predict

import (
	"fmt"
	"testing"

	"busbar/coll"
	"busbar/hardware"
	"busbar/nccl"
)

func TestBask(t *testing.T) {
	for _, x := range []struct {
		n, g int
		algo string
		ms   float64
	}{{1, 4, "ring", 8.59}, {1, 4, "tree", 13.06}, {4, 1, "ring", 147}, {4, 1, "tree", 176}, {2, 2, "tree", 309}, {2, 2, "ring", 587}} {
		c, _ := hardware.Preset("baskerville", x.n)
		l, err := nccl.Block(c, x.n, x.g)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, l, nccl.Version{Major: 2, Minor: 18, Patch: 5}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		op := coll.Op{Kind: coll.AllReduce, Bytes: 1320000000, Type: coll.BFloat16}
		a, _ := p.Auto(op)
		r, err := p.Price(op, Setting{x.algo, "simple", p.Plan.Channels})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%dx%d %s pred %.1f ms meas %.1f ratio %.2f auto %v: %v\n", x.n, x.g, x.algo, float64(r.Time)/1e9, x.ms, float64(r.Time)/1e9/x.ms, a, r.Limit)
	}
}
