package predict

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// TestAgreement holds the two forms of the simulator together on what users ask for: random
// machines, layouts, sizes and collectives, by the algorithm and protocol that NCCL takes or by
// forced ones, with NCCL's rings, trees and NICs and the model as it was fitted.
func TestAgreement(t *testing.T) {
	n := 150
	switch {
	case testing.Short():
		n = 60
	case os.Getenv("BUSBAR_LONG") != "":
		n = 1000
	}
	rng := rand.New(rand.NewPCG(7, 9))
	presets := []struct {
		name string
		gpus []int
	}{
		{"dgx-h100", []int{2, 4, 8}},
		{"dgx-h100", []int{8}},
		{"dgx-a100", []int{2, 8}},
		{"baskerville", []int{1, 2, 4}},
		{"l40s-8", []int{2, 8}},
		{"alps-gh200", []int{1, 4}},
		{"dgx-1v", []int{8}},
		{"p5.48xlarge", []int{8}},
		{"a3-megagpu-8g", []int{8}},
	}
	kinds := []coll.Kind{
		coll.AllReduce, coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll,
	}
	forced := []Setting{
		{Algo: "ring", Proto: sim.Simple},
		{Algo: "ring", Proto: sim.LL},
		{Algo: "ring", Proto: sim.LL128},
		{Algo: "tree", Proto: sim.Simple},
		{Algo: "tree", Proto: sim.LL},
		{Algo: "tree", Proto: sim.LL128},
		{Algo: "nvls", Proto: sim.Simple},
		{Algo: "nvls", Proto: sim.Simple},
		{Algo: "nvls_tree", Proto: sim.Simple},
		{Algo: "nvls_tree", Proto: sim.Simple},
	}
	type worst struct {
		apart []float64
		where string
	}
	found := map[string]*worst{}
	for range n {
		x := presets[rng.IntN(len(presets))]
		nodes, gpus := 1<<rng.IntN(4), x.gpus[rng.IntN(len(x.gpus))]
		p := predictorOf(t, x.name, nodes, gpus)
		if p == nil {
			continue
		}
		op := coll.Op{Kind: kinds[rng.IntN(len(kinds))], Bytes: unit.Bytes(1) << (8 + rng.IntN(21))}
		s, err := p.Auto(op)
		if err != nil {
			t.Fatal(err)
		}
		if rng.IntN(2) == 0 && s.Algo != "direct" {
			f := forced[rng.IntN(len(forced))]
			if f.Channels = s.Channels; f.Algo == "tree" && op.Kind != coll.AllReduce ||
				f.Proto == sim.LL && op.Bytes > unit.MiB {
				continue
			}
			if s = f; s.Algo == "ring" && op.Kind.Rooted() {
				s.Algo = "chain"
			}
		}
		p.Without = sim.SwitchChunks // which is not played
		o := p.outline(op, s)
		m := p.model(p.Figures, op, s)
		if o.err != nil || o.Ops(op, m) > 150_000 || !o.Regular() {
			continue
		}
		steady := o.Price(op, m)
		exact, err := o.Exact(context.Background(), op, m, p.ports(s.Algo), false)
		if err != nil {
			t.Fatalf("%s %dx%d %s %v by %v: %v", x.name, nodes, gpus, op.Kind, op.Bytes, s, err)
		}
		d := math.Log(float64(steady.Time) / float64(exact.Time))
		where := fmt.Sprintf("%s %dx%d %s %v by %v: steady %v (%v), exact %v", x.name, nodes, gpus, op.Kind, op.Bytes, s,
			steady.Time, steady.Parts, exact.Time)
		w := found[s.Algo]
		if w == nil {
			w = &worst{}
			found[s.Algo] = w
		}
		if d = math.Abs(d); len(w.apart) == 0 || d > slices.Max(w.apart) {
			w.where = where
		}
		w.apart = append(w.apart, d)
	}
	const most = 0.25
	for algo, w := range found {
		slices.Sort(w.apart)
		far := math.Exp(w.apart[len(w.apart)-1]) - 1
		if far > most {
			t.Errorf("%s: more than %.0f%% apart: %s", algo, 100*most, w.where)
		}
		t.Logf("%-10s %3d cases, median %4.1f%%, at most %5.1f%% apart: %s", algo, len(w.apart),
			100*(math.Exp(w.apart[len(w.apart)/2])-1), 100*far, w.where)
	}
}

// predictorOf is a predictor of whole nodes; nil where a machine of several nodes is not known.
func predictorOf(t *testing.T, preset string, nodes, gpus int) *Predictor {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil || nodes*gpus < 2 {
		return nil
	}
	p, err := New(c, l, nccl.Version{Major: 2, Minor: 28, Patch: 9}, nil, nil)
	if err != nil {
		if strings.Contains(err.Error(), "NIC") {
			return nil
		}
		t.Fatal(err)
	}
	return p
}
