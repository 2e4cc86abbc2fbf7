package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// wireTrial is a compressed call with random data.
type wireTrial struct {
	trial
	wire engine.Wire
	vals [][]float64
}

func (x wireTrial) String() string { return fmt.Sprintf("%v, %v", x.wire, x.trial) }

func randomWireTrial(rng *rand.Rand, n int) wireTrial {
	for {
		x := wireTrial{trial: randomTrial(rng, n), wire: engine.FP16 + engine.Wire(rng.IntN(3))}
		x.op.Type = coll.Float
		x.op.Reduce = []coll.Redop{coll.Sum, coll.Avg, coll.Min, coll.Max}[rng.IntN(4)]
		counts := []int{0, 1, 3, 100, 255, 256, 257, 1000, 4096, 70001, 200003}
		x.op.Bytes = unit.Bytes(4 * counts[rng.IntN(len(counts))])
		if engine.CanCompress(x.op, x.wire) == nil {
			return x
		}
	}
}

// draw makes contributions of many magnitudes: a few great elements among small ones, ranges
// of nothing, and some that are close to each other.
func (x *wireTrial) draw(n int) [][]byte {
	rng := rand.New(rand.NewPCG(x.seed, 3))
	var all [][]byte
	x.vals = nil
	span := 1 + rng.IntN(20)
	for r := range n {
		b := make([]byte, x.op.Send(n, r))
		v := make([]float64, len(b)/4)
		scale := 1.0
		for i := range v {
			if rng.IntN(300) == 0 {
				scale = math.Ldexp(1, -rng.IntN(span))
				if rng.IntN(8) == 0 {
					scale = 0
				}
			}
			engine.PutElement(b[4*i:], coll.Float, rng.NormFloat64()*scale*100)
			v[i] = engine.Element(b[4*i:], coll.Float)
		}
		all, x.vals = append(all, b), append(x.vals, v)
	}
	return all
}

// from is which elements of which ranks element i of a rank's result is made of.
func (x wireTrial) from(n, rank, i int) (ranks []int, at int) {
	per := max(int(x.op.Count(n)), 1)
	switch x.op.Kind {
	case coll.ReduceScatter:
		at = rank*per + i
	case coll.Broadcast:
		return []int{x.op.Root}, i
	case coll.AllGather, coll.Gather, coll.Hypercube:
		return []int{i / per}, i % per
	case coll.AllToAll:
		return []int{i / per}, rank*per + i%per
	case coll.SendRecv:
		return []int{(rank + n - 1) % n}, i
	case coll.Scatter:
		return []int{x.op.Root}, rank*per + i
	default:
		at = i
	}
	for r := range n {
		ranks = append(ranks, r)
	}
	return ranks, at
}

// magnitude is what the bound takes an element of a rank for: with int8, the greatest one that
// may be in its block.
func (x wireTrial) magnitude(r, at int) (m float64) {
	v := x.vals[r]
	if x.wire != engine.Int8 {
		return math.Abs(v[at])
	}
	for _, y := range v[max(at-255, 0):min(at+256, len(v))] {
		m = max(m, math.Abs(y))
	}
	return m
}

// check compares a result with the exact one.
func (x wireTrial) check(n, rank int, got []byte, bound engine.Bound) string {
	for i := 0; i < len(got)/4; i += 1 + len(got)/12000 {
		ranks, at := x.from(n, rank, i)
		var want, s float64
		for k, r := range ranks {
			y, m := x.vals[r][at], x.magnitude(r, at)
			switch {
			case k == 0:
				want, s = y, m
			case x.op.Reduce == coll.Min:
				want, s = min(want, y), max(s, m)
			case x.op.Reduce == coll.Max:
				want, s = max(want, y), max(s, m)
			default:
				want, s = want+y, s+m
			}
		}
		if x.op.Reduce == coll.Avg && len(ranks) > 1 {
			want, s = want/float64(n), s/float64(n)
		}
		v := engine.Element(got[4*i:], coll.Float)
		if !(math.Abs(v-want) <= bound.Of(s)) {
			return fmt.Sprintf("element %d is %v; want %v within %v (sum of magnitudes %v)", i, v, want, bound.Of(s), s)
		}
	}
	return ""
}

func (x wireTrial) run(t testing.TB, groups []*engine.Group) {
	t.Helper()
	n := len(groups)
	bound, err := engine.BoundFor(x.s, x.op, x.wire)
	if err != nil {
		t.Fatalf("%v: %v", x, err)
	}
	ref := &reference{x: x.trial, n: n, send: x.draw(n)}
	out := make([][]byte, n)
	sent := make([][]byte, n)
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	var refused [64]bool
	for r, err := range each(groups, func(g *engine.Group) error {
		c, err := g.PrepareWith(x.s, x.op, engine.Options{Wire: x.wire, Force: true})
		if err != nil {
			if strings.Contains(err.Error(), "int8 has no fixed blocks") {
				refused[g.Rank()] = true
				return nil
			}
			return err
		}
		defer g.Forget(c)
		b := ref.buffers(g.Rank(), func(k int) []byte { return make([]byte, k) })
		out[g.Rank()], sent[g.Rank()] = b.Recv, b.Send
		if err := c.Bind(b); err != nil {
			return err
		}
		_, err = c.Run(ctx)
		return err
	}) {
		if err != nil {
			t.Fatalf("%v: rank %d: %v", x, r, err)
		}
	}
	if refused[0] {
		return
	}
	for r := range n {
		if msg := x.check(n, r, out[r], bound); msg != "" {
			t.Fatalf("%v: rank %d of %d: %s", x, r, n, msg)
		}
		switch x.op.Kind {
		case coll.AllReduce, coll.Broadcast, coll.AllGather, coll.Hypercube:
			if !bytes.Equal(out[r], out[0]) {
				t.Fatalf("%v: rank %d has other bits than rank 0", x, r)
			}
		}
		if !x.inPlace && !bytes.Equal(sent[r], ref.send[r]) {
			t.Fatalf("%v: rank %d: the send buffer has changed", x, r)
		}
	}
}

// TestCompressedCalls: any collective by any algorithm stays within its bound, ranks end with
// the same bits, and what was given to send stays as it was.
func TestCompressedCalls(t *testing.T) {
	for name, make := range map[string]func(n int) []*engine.Group{
		"mem": func(n int) []*engine.Group { return local(t, n) },
		"tcp": func(n int) []*engine.Group { return joined(t, n, func(c *engine.Config) { c.Conns = 1 + n%2 }) },
		"shm": func(n int) []*engine.Group {
			return joined(t, n, func(c *engine.Config) { c.Transport = engine.Shm })
		},
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 8))
			for n := 2; n <= 7; n++ {
				groups := make(n)
				for range 2 * trialsOf() {
					randomWireTrial(rng, n).run(t, groups)
				}
				closeAll(groups) // and what their calls hold
			}
		})
	}
}

// TestCompressionRefused: what cannot be compressed is refused with a reason, before anything
// has happened.
func TestCompressionRefused(t *testing.T) {
	g := local(t, 1)[0]
	for want, op := range map[string]coll.Op{
		"the elements are bfloat16":            {Kind: coll.AllReduce, Bytes: 64, Type: coll.BFloat16},
		"a product cannot be compressed":       {Kind: coll.AllReduce, Bytes: 64, Reduce: coll.Prod},
		"mulsum cannot be compressed":          {Kind: coll.Reduce, Bytes: 64, Reduce: coll.MulSum},
		"barrier cannot be compressed":         {Kind: coll.Barrier},
		"all_to_all_v cannot be compressed":    {Kind: coll.AllToAllV, Bytes: 64},
		"the elements are int8":                {Kind: coll.Broadcast, Bytes: 64, Type: coll.Int8},
		"is not one of none, fp16, bf16, int8": {Kind: coll.AllReduce, Bytes: 64, Root: -1},
	} {
		w := engine.FP16
		if op.Root < 0 {
			op.Root, w = 0, 9
		}
		if _, err := g.PrepareWith(nil, op, engine.Options{Wire: w}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	for op, fine := range map[coll.Redop]bool{coll.Min: false, coll.Max: false, coll.Sum: true, coll.Avg: true} {
		if err := engine.CanCompress(coll.Op{Kind: coll.AllReduce, Bytes: 64, Reduce: op}, engine.Int8); (err == nil) != fine {
			t.Errorf("%v as int8: %v", op, err)
		}
	}
}

// TestInt8Picks: whatever the engine picks for int8 can be prepared, at any size.
func TestInt8Picks(t *testing.T) {
	groups := joined(t, 5, nil)
	for _, kind := range coll.Kinds() {
		for _, size := range []unit.Bytes{400, 40000, 4000000} {
			op := coll.Op{Kind: kind, Type: coll.Float, Bytes: size}
			if engine.CanCompress(op, engine.Int8) != nil || op.Check(5) != nil {
				continue
			}
			for r, err := range each(groups, func(g *engine.Group) error {
				c, err := g.PrepareWith(nil, op, engine.Options{Wire: engine.Int8})
				if err == nil {
					g.Forget(c)
				}
				return err
			}) {
				if err != nil {
					t.Errorf("rank %d: %v", r, err)
				}
			}
		}
	}
}

// TestCompressionWithinHost: within a host, nothing is compressed unless somebody insists.
func TestCompressionWithinHost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		groups []*engine.Group
		force  bool
		want   engine.Wire
	}{
		{"mem", local(t, 2), false, engine.Uncompressed},
		{"mem, forced", local(t, 2), true, engine.BF16},
		{"shm", joined(t, 2, func(c *engine.Config) { c.Transport = engine.Auto }), false, engine.Uncompressed},
		{"tcp", joined(t, 2, nil), false, engine.BF16},
	} {
		for r, err := range each(tt.groups, func(g *engine.Group) error {
			c, err := g.PrepareWith(nil, coll.Op{Kind: coll.AllReduce, Bytes: 4096}, engine.Options{Wire: engine.BF16, Force: tt.force})
			if err != nil {
				return err
			}
			payload, wire := c.Traffic()
			if c.Wire() != tt.want || (payload == wire) != (tt.want == engine.Uncompressed) || payload < 4096 {
				t.Errorf("%s: %v, %d bytes travel as %d", tt.name, c.Wire(), payload, wire)
			}
			return nil
		}) {
			if err != nil {
				t.Errorf("%s: rank %d: %v", tt.name, r, err)
			}
		}
	}
}

// TestNoAllocationCompressed: the steady state of compressed calls allocates nothing.
func TestNoAllocationCompressed(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates too")
	}
	groups := joined(t, 3, nil)
	for _, w := range []engine.Wire{engine.FP16, engine.BF16, engine.Int8} {
		for _, op := range []coll.Op{{Kind: coll.AllReduce, Bytes: 1 << 20}, {Kind: coll.AllReduce, Bytes: 4096, Reduce: coll.Max}, {Kind: coll.AllGather, Bytes: 1 << 18}} {
			if engine.CanCompress(op, w) != nil {
				continue
			}
			calls := make([]*engine.Call, len(groups))
			for r, err := range each(groups, func(g *engine.Group) (err error) {
				c, err := g.PrepareWith(nil, op, engine.Options{Wire: w})
				if err != nil {
					return err
				}
				calls[g.Rank()] = c
				return c.Bind(engine.Buffers{Send: make([]byte, op.Send(3, g.Rank())), Recv: make([]byte, op.Recv(3, g.Rank()))})
			}) {
				if err != nil {
					t.Fatalf("rank %d: %v", r, err)
				}
			}
			if n := allocations(t, calls); n != 0 {
				t.Errorf("%v: %s of %v: %v allocations a run", w, op.Kind, op.Bytes, n)
			}
		}
	}
}

// TestRoundingSettles: ranks that compute the same sum, and of which only some send it on, end
// with the same bits (recursive doubling on a number of ranks that is no power of two).
func TestRoundingSettles(t *testing.T) {
	for _, n := range []int{3, 5, 6} {
		s, err := schedule.Build(coll.AllReduce, "recursive_doubling", schedule.Params{Ranks: n})
		if err != nil {
			t.Fatal(err)
		}
		x := wireTrial{trial: trial{s: s, op: coll.Op{Kind: coll.AllReduce, Bytes: 4 * 10007}, seed: 9}}
		groups := joined(t, n, nil)
		for x.wire = engine.FP16; x.wire <= engine.Int8; x.wire++ {
			x.run(t, groups)
		}
	}
}
