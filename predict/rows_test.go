package predict

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// predictor is one for all GPUs of a preset.
func predictor(t *testing.T, preset string, nodes int, v nccl.Version, env map[string]string) *Predictor {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := AllGPUs(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, l, v, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// block is one for some GPUs of each node of a preset.
func block(t *testing.T, preset string, nodes, gpus int, v nccl.Version, env map[string]string,
	which ...int,
) *Predictor {
	t.Helper()
	c, err := hardware.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, nodes, gpus)
	if err != nil {
		t.Fatal(err)
	}
	if len(which) > 0 {
		for i, r := range l {
			l[i].GPU = c.TypeOf(r.Host).Of(cluster.GPU)[which[i%gpus]]
		}
	}
	p, err := New(c, l, v, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var sweep = []unit.Bytes{8, 4 * unit.KiB, unit.MiB, 64 * unit.MiB, unit.GiB}

// Every operation has an answer, exactly one row a size by auto, which NCCL
// takes, and none of the rows of best is slower.
func TestEveryOperation(t *testing.T) {
	for _, machine := range []struct {
		preset string
		nodes  int
	}{{"dgx-h100", 1}, {"dgx-h100", 4}, {"dgx-a100", 2}, {"baskerville", 2}, {"dgx-1v", 2}} {
		p := predictor(t, machine.preset, machine.nodes, nccl.Newest, nil)
		for _, kind := range coll.Kinds() {
			q := Query{Kind: kind, Sizes: sweep}
			auto := ask(t, p, q, Auto)
			sizes := len(sweep)
			if kind == coll.Barrier {
				sizes = 1
			}
			if len(auto) != sizes {
				t.Fatalf("%s %s: %d rows for %d sizes", machine.preset, kind, len(auto), sizes)
			}
			best := ask(t, p, q, Best)
			for _, a := range auto {
				if !a.Chosen || a.Beyond || a.Time <= 0 || a.Limit.Text == "" || a.run.Op.Kind != kind {
					t.Errorf("%s %s %v: row %+v", machine.preset, kind, a.Asked, a)
				}
				i := slices.IndexFunc(best, func(b Row) bool { return b.Asked == a.Asked })
				switch {
				case i < 0:
					t.Errorf("%s %s %v: best has no row", machine.preset, kind, a.Asked)
				case best[i].Beyond || best[i].Time > a.Time:
					t.Errorf("%s %s %v: best is not the fastest that NCCL can run: %+v", machine.preset, kind, a.Asked, best[i])
				}
			}
		}
	}
}

func ask(t *testing.T, p *Predictor, q Query, algos ...string) []Row {
	t.Helper()
	q.Algos = algos
	a, err := p.Ask(q)
	if err != nil {
		t.Fatalf("%s by %v: %v", q.Kind, algos, err)
	}
	return a.Rows
}

// Among the rows of all, the one of auto is marked, and only it; best is their
// fastest unless more channels beat it.
func TestAllMarksTheChosen(t *testing.T) {
	for _, v := range []nccl.Version{{Major: 2, Minor: 18, Patch: 6}, {Major: 2, Minor: 24, Patch: 3}, nccl.Newest} {
		p := predictor(t, "dgx-h100", 2, v, nil)
		for _, kind := range []coll.Kind{
			coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.SendRecv,
		} {
			q := Query{Kind: kind, Sizes: sweep}
			auto, best, all := ask(t, p, q, Auto), ask(t, p, q, Best), ask(t, p, q, All)
			for i, size := range sweep {
				chosen, least := 0, Row{}
				for _, r := range all {
					if r.Asked != size {
						continue
					}
					if r.Chosen {
						chosen++
						if r.setting != auto[i].setting || r.Time != auto[i].Time {
							t.Errorf("NCCL %v %s %v: chosen %+v, auto takes %+v", v, kind, size, r.setting, auto[i].setting)
						}
					}
					if least.run == nil || r.Time < least.Time {
						least = r
					}
				}
				if chosen != 1 {
					t.Errorf("NCCL %v %s %v: %d rows are chosen", v, kind, size, chosen)
				}
				j := slices.IndexFunc(best, func(b Row) bool { return b.Asked == size })
				if best[j].Time > least.Time {
					t.Errorf("NCCL %v %s %v: best takes %v by %+v, %+v takes %v", v, kind, size, best[j].Time, best[j].setting,
						least.setting, least.Time)
				}
			}
		}
	}
}

// A named algorithm and a forced protocol are what is priced, or refused with
// what there is.
func TestNamed(t *testing.T) {
	h, a := predictor(t, "dgx-h100", 2, nccl.Newest, nil), predictor(t, "dgx-a100", 1, nccl.Newest, nil)
	for _, c := range []struct {
		p           *Predictor
		kind        coll.Kind
		algo, proto string
		row         string // algorithm and protocol of the row
		err         string
	}{
		{h, coll.AllReduce, "ring", "ll", "ring ll", ""},
		{h, coll.AllReduce, "tree", "ll128", "tree ll128", ""},
		{h, coll.AllReduce, "nvls_tree", "", "nvls_tree simple", ""},
		{h, coll.AllReduce, "nvls_tree", "ll", "", "does not offer it here"},
		{h, coll.AllReduce, Auto, "ll", "", ""},
		{h, coll.Broadcast, "ring", "simple", "ring simple", ""},
		{h, coll.Broadcast, "chain", "simple", "ring simple", ""},
		{h, coll.AllToAll, "direct", "simple", "direct simple", ""},
		{h, coll.AllToAll, "direct", "ll128", "", "know ll and simple"},
		{h, coll.AllToAll, "two_phase", "simple", "two_phase simple", ""},
		{h, coll.AllReduce, "hierarchical", "simple", "hierarchical simple", ""},
		{h, coll.AllToAll, "ring", "", "", "ring"},
		{a, coll.AllReduce, "nvls", "", "", "its candidates are tree ll, "},
		{a, coll.AllReduce, "halving_doubling", "ll", "halving_doubling ll", ""},
		{a, coll.AllReduce, "marble", "", "", "unknown"},
		{h, coll.Barrier, "dissemination", "ll", "dissemination ll", ""},
		{h, coll.Barrier, "tree", "ll", "tree ll", ""},
	} {
		got, err := c.p.Ask(Query{Kind: c.kind, Sizes: []unit.Bytes{unit.MiB}, Algos: []string{c.algo}, Proto: c.proto})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s by %s %s: error %v, want %q", c.kind, c.algo, c.proto, err, c.err)
			}
		case err != nil:
			t.Errorf("%s by %s %s: %v", c.kind, c.algo, c.proto, err)
		case len(got.Rows) != 1 || c.row != "" && got.Rows[0].Algo+" "+got.Rows[0].Proto != c.row:
			t.Errorf("%s by %s %s: rows %+v, want %s", c.kind, c.algo, c.proto, got.Rows, c.row)
		case c.proto != "" && got.Rows[0].run.Proto != c.proto:
			t.Errorf("%s by %s %s: the run has protocol %s", c.kind, c.algo, c.proto, got.Rows[0].run.Proto)
		}
	}
}

// Of several names those that cannot run are told, and the others answered.
func TestSkipped(t *testing.T) {
	p := predictor(t, "dgx-a100", 1, nccl.Newest, nil)
	a, err := p.Ask(Query{Kind: coll.AllReduce, Sizes: sweep, Algos: []string{"ring", "nvls"}})
	if err != nil || len(a.Rows) != len(sweep) || len(a.Skipped) != 1 || a.Skipped[0].Algo != "nvls" {
		t.Errorf("rows %d, skipped %+v, error %v", len(a.Rows), a.Skipped, err)
	}
	if _, err := p.Ask(Query{Kind: coll.AllReduce, Sizes: sweep, Algos: []string{"nvls", "nvls_tree"}}); err == nil {
		t.Error("nothing can run, and no error")
	}
}

// All channels of a broadcast count: two nodes with eight NICs each carry more
// than one NIC does.
func TestBroadcastUsesAllNICs(t *testing.T) {
	p := predictor(t, "dgx-h100", 2, nccl.Newest, nil)
	for _, kind := range []coll.Kind{coll.Broadcast, coll.Reduce} {
		for _, root := range []int{0, 3, 11} {
			rows := ask(t, p, Query{Kind: kind, Root: root, Sizes: []unit.Bytes{unit.GiB}}, Auto)
			if bw := rows[0].BusBW; bw < 200*unit.GBps {
				t.Errorf("%s from %d: %v; eight NICs of 50 GB/s carry more", kind, root, bw)
			}
		}
	}
}
