package predict

import (
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// PAT over more ranks than can be counted is what fewer take and a round for every doubling: where both
// can be had they agree, and where only the sample can, times go on without a jump.
func TestFew(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 4096)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[int]*Predictor{}
	ask := func(nodes int) *Predictor {
		if asked[nodes] != nil {
			return asked[nodes]
		}
		l, err := nccl.Block(c, nodes, 1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(c, l, nccl.Newest, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		asked[nodes] = p
		return p
	}
	set := Setting{Algo: "pat", Proto: "simple", Channels: 2}
	for _, kind := range []coll.Kind{coll.ReduceScatter, coll.AllGather} {
		for _, size := range []unit.Bytes{1 << 20, 4 << 30} {
			op := coll.Op{Kind: kind, Bytes: size, Type: coll.BFloat16}
			was := unit.Time(0)
			for _, n := range []int{512, 1024, 4096} {
				p := ask(n)
				run, err := p.Price(op, set)
				if err != nil {
					t.Fatal(kind, n, err)
				}
				if run.Ranks != n || run.Op.Bytes != op.Bytes ||
					run.Parts.Launch+run.Parts.Latency+run.Parts.Sync+run.Parts.Moving-run.Time > 10 {
					t.Errorf("%v over %d: %+v", kind, n, run)
				}
				// The first ranks are nearer to each other than all are: a tenth is allowed.
				if float64(run.Time) < 0.9*float64(was) || was > 0 && float64(run.Time) > 2*float64(was) {
					t.Errorf("%v of %v over %d ranks takes %v, over fewer %v", kind, size, n, run.Time, was)
				}
				was = run.Time
			}
			// What can be counted, from a smaller sample all the same.
			p := ask(512)
			counted, err := p.Price(op, set)
			if err != nil {
				t.Fatal(err)
			}
			q, err := p.first(256)
			if err != nil {
				t.Fatal(err)
			}
			part, err := q.Price(op, set)
			if err != nil {
				t.Fatal(err)
			}
			if off := math.Abs(float64(part.Time)/float64(counted.Time) - 1); off > 0.35 {
				t.Errorf("%v of %v: 512 ranks %v, the first 256 of them %v", kind, size, counted.Time, part.Time)
			}
		}
	}
}
