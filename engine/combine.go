package engine

import (
	"encoding/binary"

	"busbar.dev/coll"
	"busbar.dev/internal/reduce"
)

var le = binary.LittleEndian

// kernels is the arithmetic of a call.
type kernels struct {
	combine reduce.Func
	divide  reduce.Unary // of avg, after the sum
	scale   reduce.Unary // of mulsum, before it
	by      float64      // the factor of scale
}

// kernelsFor finds the arithmetic of an operation over n ranks.
func kernelsFor(op coll.Op, n int) (k kernels, err error) {
	if !op.Kind.Reduces() {
		return k, nil
	}
	if k.combine, err = reduce.For(op.Type, op.Reduce); err == nil && op.Reduce == coll.Avg {
		k.divide, err = reduce.Divider(op.Type, n)
	}
	return k, err
}

// factor makes the arithmetic that multiplies a contribution.
func (k *kernels) factor(t coll.Dtype, by float64) (err error) {
	if k.scale == nil || k.by != by {
		k.by = by
		k.scale, err = reduce.Scaler(t, by)
	}
	return err
}
