package engine_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/schedule"
)

// TestCompressionKeepsAlarms: what is infinite or no number in one rank's contribution is seen in
// every rank's result, as in an uncompressed sum; int8 makes NaN of it and of what shares its
// block. Elements elsewhere stay within the bound, denormals among them.
func TestCompressionKeepsAlarms(t *testing.T) {
	const n, count = 4, 1024
	inf := math.Inf(1)
	special := map[int]map[int]float64{ // by element and rank
		10: {1: math.NaN()}, 300: {0: inf}, 301: {3: -inf}, 700: {2: -inf}, 900: {0: inf, 3: -inf}, 1023: {n - 1: math.NaN()},
	}
	value := func(rank, i int) float64 {
		if x, ok := special[i][rank]; ok {
			return x
		}
		if i/64%3 == 1 {
			return math.Ldexp(float64(1+(rank+i)%7), -149) // denormals
		}
		return float64((rank+1)*(i%13-6)) / 8
	}
	groups := local(t, n)
	for _, wire := range []engine.Wire{engine.FP16, engine.BF16, engine.Int8} {
		for _, algo := range []string{"ring", "recursive_doubling", "rabenseifner", "direct", "one_shot", "tree", "chain"} {
			op := coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: 4 * count}
			s, err := schedule.Build(op.Kind, algo, schedule.Params{Ranks: n})
			if err != nil {
				t.Fatal(err)
			}
			bound, err := engine.BoundFor(s, op, wire)
			if err != nil {
				t.Fatal(err)
			}
			out := summed(t, groups, s, op, wire, value)
			for r := 1; r < n; r++ {
				if !slices.Equal(out[r], out[0]) {
					t.Errorf("%v by %s: rank %d has other bits than rank 0", wire, algo, r)
				}
			}
			for i := range count {
				want, sum := 0.0, 0.0
				for r := range n {
					want += value(r, i)
					sum += math.Abs(value(r, i))
				}
				got := engine.Element(out[0][4*i:], coll.Float)
				near := false // to an element that int8 cannot carry
				for at := range special {
					near = near || max(at-i, i-at) < 256
				}
				if wire == engine.Int8 {
					sum = n * 6 // of the greatest in a block
				}
				alarm := math.IsNaN(want) || math.IsInf(want, 0)
				switch {
				case alarm && (got == want || math.IsNaN(got) && (math.IsNaN(want) || wire == engine.Int8)):
				case !alarm && math.Abs(got-want) <= bound.Of(sum):
				case wire == engine.Int8 && near && math.IsNaN(got):
				default:
					t.Errorf("%v by %s: element %d is %v; want %v", wire, algo, i, got, want)
				}
			}
		}
	}
}

// summed is the result of a compressed all-reduce on all ranks.
func summed(t *testing.T, groups []*engine.Group, s *schedule.Schedule, op coll.Op, wire engine.Wire, value func(rank, i int) float64) [][]byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	out := make([][]byte, len(groups))
	for r, err := range each(groups, func(g *engine.Group) error {
		send := make([]byte, op.Bytes)
		for i := range len(send) / 4 {
			engine.PutElement(send[4*i:], coll.Float, value(g.Rank(), i))
		}
		c, err := g.PrepareWith(s, op, engine.Options{Wire: wire, Force: true})
		if err != nil {
			return err
		}
		defer g.Forget(c)
		out[g.Rank()] = make([]byte, op.Bytes)
		if err := c.Bind(engine.Buffers{Send: send, Recv: out[g.Rank()]}); err != nil {
			return err
		}
		_, err = c.Run(ctx)
		return err
	}) {
		if err != nil {
			t.Fatalf("%v by %s: rank %d: %v", wire, s.Name, r, err)
		}
	}
	return out
}
