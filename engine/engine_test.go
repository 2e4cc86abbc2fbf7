package engine_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// each runs a function for every rank at once and returns the errors.
func each(groups []*engine.Group, f func(g *engine.Group) error) []error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = f(g) })
	}
	wg.Wait()
	return errs
}

func local(t testing.TB, n int) []*engine.Group {
	t.Helper()
	groups, err := engine.Local(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(groups) })
	return groups
}

func closeAll(groups []*engine.Group) {
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() { g.Close() })
	}
	wg.Wait()
}

// trial is one collective call with random data.
type trial struct {
	s       *schedule.Schedule
	op      coll.Op
	inPlace bool
	seed    uint64
	shared  *sync.Map // memory of ranks that peers can map; nil: any
}

// pool is shared memory of a rank.
type pool struct{ all, rest []byte }

// memory is a piece of what a rank has of shared memory, one after the other.
func (x trial) memory(t testing.TB, g *engine.Group, n int) []byte {
	if x.shared == nil {
		return make([]byte, n)
	}
	const most = 8 << 20 // for some calls, one after the other
	if n > most/2 {
		return make([]byte, n)
	}
	v, ok := x.shared.Load(g)
	if !ok {
		b, err := g.Alloc(most)
		if err != nil {
			t.Error(err)
			return make([]byte, n)
		}
		v = &pool{b, b}
		x.shared.Store(g, v)
	}
	p := v.(*pool)
	if len(p.rest) < n {
		p.rest = p.all
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

func (x trial) String() string {
	return fmt.Sprintf("%s, %d bytes of %s, %s, root %d, in place %v, seed %d", x.s, x.op.Bytes, x.op.Type, x.op.Reduce,
		x.op.Root, x.inPlace, x.seed)
}

// run runs the trial on groups and compares with the reference.
func (x trial) run(t testing.TB, groups []*engine.Group) {
	t.Helper()
	n := len(groups)
	ref := newReference(x, n)
	out := make([][]byte, n)
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	errs := each(groups, func(g *engine.Group) error {
		b := ref.buffers(g.Rank(), func(k int) []byte { return x.memory(t, g, k) })
		out[g.Rank()] = b.Recv
		_, err := g.Run(ctx, x.s, x.op, b)
		return err
	})
	for r, err := range errs {
		if err != nil {
			t.Fatalf("%v: rank %d: %v", x, r, err)
		}
	}
	for r := range n {
		if msg := ref.compare(r, out[r]); msg != "" {
			t.Fatalf("%v: rank %d: %s", x, r, msg)
		}
		if (x.op.Kind == coll.AllReduce || x.op.Kind == coll.Broadcast) && !bytes.Equal(out[r], out[0]) {
			t.Fatalf("%v: rank %d has other bits than rank 0", x, r)
		}
	}
}

var allDtypes = []coll.Dtype{
	coll.Float, coll.Int8, coll.Uint8, coll.Int32, coll.Uint32, coll.Int64, coll.Uint64, coll.Half, coll.Double,
	coll.BFloat16, coll.F8E4M3, coll.F8E5M2,
}

// randomTrial is any collective by any algorithm that can do it without switches.
func randomTrial(rng *rand.Rand, n int) trial {
	for {
		all := schedule.Builders()
		b := all[rng.IntN(len(all))]
		kind := b.Kinds[rng.IntN(len(b.Kinds))]
		p := schedule.Params{
			Ranks: n, Root: rng.IntN(n), Channels: 1 + rng.IntN(3), Pieces: 1 + rng.IntN(5), Order: rng.Perm(n),
		}
		if b.Needs == "groups" {
			p.Order = nil
			p.Groups = grouped(n, 1+rng.IntN(n))
		}
		s, err := b.Build(kind, p)
		if err != nil || len(s.Switches) > 0 {
			continue
		}
		x := trial{s: s, seed: rng.Uint64(), inPlace: kind.InPlace() && rng.IntN(2) == 0}
		x.op = coll.Op{
			Kind: kind, Root: s.Root, Type: allDtypes[rng.IntN(len(allDtypes))],
			Reduce: coll.Redop(rng.IntN(int(coll.MulSum) + 1)),
		}
		counts := []int{0, 1, 2, 3, 7, 13, 64, 100, 1000, 1023, 4096, 70001, 300007}
		if testing.Short() { // under the race detector to check many numbers takes long
			counts = counts[:len(counts)-2]
		}
		count := counts[rng.IntN(len(counts))]
		x.op.Bytes = unit.Bytes(count * x.op.Type.Size())
		if kind == coll.AllToAllV {
			x.op.Sizes = make([][]unit.Bytes, n)
			for i := range x.op.Sizes {
				x.op.Sizes[i] = make([]unit.Bytes, n)
				for j := range n {
					x.op.Sizes[i][j] = unit.Bytes(rng.IntN(count/n+2) * x.op.Type.Size())
				}
			}
		}
		return x
	}
}

func grouped(n, size int) [][]int {
	var g [][]int
	for r := range n {
		if r%size == 0 {
			g = append(g, nil)
		}
		g[len(g)-1] = append(g[len(g)-1], r)
	}
	return g
}

var trials = flag.Int("trials", 8, "random calls for each number of ranks; 30 with BUSBAR_LONG (make test-long)")

func trialsOf() int {
	if testing.Short() {
		return min(*trials, 3)
	}
	if os.Getenv("BUSBAR_LONG") != "" {
		return max(*trials, 30)
	}
	return *trials
}

func TestRandomCallsInOneProcess(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 9; n++ {
		groups := local(t, n)
		for range trialsOf() {
			randomTrial(rng, n).run(t, groups)
		}
		closeAll(groups)
	}
}
