package engine_test

import (
	"bytes"
	"context"
	"math"
	"testing"

	"busbar/coll"
	"busbar/engine"
)

// TestElasticCompressed: an operation that is compressed survives the loss of a member like any
// other: those who are left repeat it from inputs that are as they were, and all end with the
// same bits.
func TestElasticCompressed(t *testing.T) {
	const elems = 5000
	for _, wire := range []engine.Wire{engine.FP16, engine.BF16, engine.Int8} {
		for _, inPlace := range []bool{false, true} {
			all := members(t, 4, nil)
			out := make([][]float32, 4)
			errs := everybody(all, func(e *engine.Elastic) error {
				r := e.View().Rank
				in := make([]float32, elems)
				for i := range in {
					in[i] = float32(math.Sin(float64(i + 1000*r)))
				}
				kept := bytes.Clone(engine.Bytes(in))
				if out[r] = make([]float32, elems); inPlace {
					out[r] = in
				}
				if r == 3 {
					return e.Close()
				}
				w := engine.Work{Op: coll.Op{Kind: coll.AllReduce, Bytes: 4 * elems}, Buffers: engine.Buffers{Send: engine.Bytes(in), Recv: engine.Bytes(out[r])}, Options: engine.Options{Wire: wire}}
				_, v, err := e.Run(context.Background(), w)
				if err != nil {
					return err
				}
				s, got := e.Plan(w)
				if v.Size != 3 || s == nil || got != wire {
					t.Errorf("%s: rank %d: %d members, by %v as %s", wire, r, v.Size, s, got)
				}
				if !inPlace && !bytes.Equal(engine.Bytes(in), kept) {
					t.Errorf("%s: rank %d: the input has changed", wire, r)
				}
				return e.Finish(context.Background())
			})
			for r, err := range errs {
				if err != nil {
					t.Fatalf("%s: rank %d: %v", wire, r, err)
				}
				all[r].Close()
			}
			for i := range elems {
				var sum float64
				for r := range 3 {
					sum += math.Sin(float64(i + 1000*r))
				}
				if d := math.Abs(float64(out[0][i]) - sum); d > 0.1 || out[1][i] != out[0][i] || out[2][i] != out[0][i] {
					t.Fatalf("%s, in place %v: element %d is %g, %g and %g; expected about %g", wire, inPlace, i, out[0][i], out[1][i], out[2][i], sum)
				}
			}
		}
	}
}
