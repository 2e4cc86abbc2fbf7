package msccl

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// mutate changes one thing of a file.
func mutate(a *Algo, rnd *rand.Rand) {
	g := &a.GPUs[rnd.IntN(len(a.GPUs))]
	b := &g.Blocks[rnd.IntN(len(g.Blocks))]
	s := &b.Steps[rnd.IntN(len(b.Steps))]
	switch rnd.IntN(6) {
	case 0:
		s.SrcOff = rnd.IntN(max(a.ChunksPerLoop, 1))
	case 1:
		s.DstOff = rnd.IntN(max(a.ChunksPerLoop, 1))
	case 2:
		s.DepBlock, s.DepStep = -1, -1
	case 3:
		s.HasDep = !s.HasDep
	case 4:
		s.Src, s.Dst = s.Dst, s.Src
	case 5:
		to := map[Op]Op{RecvReduceSend: RecvCopySend, RecvReduceCopy: Recv, Recv: RecvReduceCopy, RecvCopySend: RecvReduceCpySend, RecvReduceCpySend: RecvReduceSend, Copy: Reduce, Reduce: Copy}
		if op, ok := to[s.Op]; ok {
			s.Op = op
		}
	}
}

// TestProofHolds changes files at random: one that Prove still accepts gives the right numbers, in
// several orders of running.
func TestProofHolds(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 2))
	accepted, refused := 0, 0
	for _, c := range []struct {
		kind coll.Kind
		name string
	}{
		{coll.AllReduce, "ring"},
		{coll.AllReduce, "tree"},
		{coll.AllReduce, "rabenseifner"},
		{coll.AllReduce, "direct"},
		{coll.AllGather, "bruck"},
		{coll.AllGather, "ring"},
		{coll.ReduceScatter, "pat"},
		{coll.AllToAll, "bruck"},
		{coll.AllToAll, "direct"},
	} {
		s, err := schedule.Build(c.kind, c.name, schedule.Params{Ranks: 5})
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			a, err := Lower(s, Settings{})
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + rnd.IntN(2) {
				mutate(a, rnd)
			}
			if _, err := a.Prove(); err != nil {
				refused++
				continue
			}
			accepted++
			var text bytes.Buffer
			if err := a.Write(&text); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if err := works(text.Bytes(), s, rnd); err != nil {
					t.Fatalf("seed %d: %s was proven: %v\n%s", seed, s, err, text.String())
				}
			}
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
}
