//go:build unix

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine"
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

// TestElasticLostBefore: a loss that this member hears of between two operations is told like
// one that interrupts an operation: roots and buffers were chosen for members as they were.
func TestElasticLostBefore(t *testing.T) {
	all := members(t, 3, nil)
	all[2].Close()
	errs := everybody(all[:2], func(e *engine.Elastic) error {
		becomes(t, "the loss is known", func() bool { return len(e.Changes()) > 0 }) // which, unlike View, tells nothing
		b := make([]byte, 24)
		_, _, err := e.Run(context.Background(), engine.Work{Op: coll.Op{Kind: coll.Broadcast, Type: coll.Int64, Bytes: 24, Root: 2}, Buffers: engine.Buffers{Recv: b}})
		var changed *engine.ChangedError
		if !errors.As(err, &changed) || changed.View.Size != 2 {
			t.Errorf("the root was lost before: %v", err)
		}
		// Now it is known, and ranks are those of the members there are.
		work := engine.Work{Op: coll.Op{Kind: coll.Broadcast, Type: coll.Int64, Bytes: 24, Root: 1}, Buffers: engine.Buffers{Recv: b}}
		if changed.View.Rank == 1 {
			work.Buffers.Send = bytes.Repeat([]byte{7}, 24)
		}
		if _, _, err := e.Run(context.Background(), work); err != nil {
			return err
		}
		if b[23] != 7 {
			t.Errorf("rank %d has %v", changed.View.Rank, b)
		}
		return e.Finish(context.Background())
	})
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
		all[r].Close()
	}
}
