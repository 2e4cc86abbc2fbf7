package engine

import (
	"encoding/binary"
	"math"

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
	if eight(op.Type) {
		k.combine = eightBits(op.Type, op.Reduce)
		k.divide = eachEight(op.Type, func(x float64) float64 { return x / float64(n) })
		return k, nil
	}
	if k.combine, err = reduce.For(op.Type, op.Reduce); err == nil && op.Reduce == coll.Avg {
		k.divide, err = reduce.Divider(op.Type, n)
	}
	return k, err
}

// factor makes the arithmetic that multiplies a contribution.
func (k *kernels) factor(t coll.Dtype, by float64) (err error) {
	if k.scale != nil && k.by == by {
		return nil
	}
	k.by = by
	if eight(t) {
		k.scale = eachEight(t, func(x float64) float64 { return x * by })
		return nil
	}
	k.scale, err = reduce.Scaler(t, by)
	return err
}

// eight reports whether a type is a floating-point number of eight bits, which no processor
// adds.
func eight(t coll.Dtype) bool { return t == coll.F8E4M3 || t == coll.F8E5M2 }

// eightBits combines numbers of eight bits: both are widened, and the result is rounded.
func eightBits(t coll.Dtype, op coll.Redop) reduce.Func {
	var wide [256]float64
	for i := range wide {
		wide[i] = Element([]byte{byte(i)}, t)
	}
	f := func(x, y float64) float64 { return x + y }
	switch op {
	case coll.Prod:
		f = func(x, y float64) float64 { return x * y }
	case coll.Min:
		f = func(x, y float64) float64 { return number(min(x, y), x, y) }
	case coll.Max:
		f = func(x, y float64) float64 { return number(max(x, y), x, y) }
	}
	return func(dst, a, b []byte) {
		for i := range dst {
			PutElement(dst[i:], t, f(wide[a[i]], wide[b[i]]))
		}
	}
}

// number is z, or the one of x and y that is a number where z is none.
func number(z, x, y float64) float64 {
	switch {
	case !math.IsNaN(z):
		return z
	case math.IsNaN(x):
		return y
	}
	return x
}

func eachEight(t coll.Dtype, f func(float64) float64) reduce.Unary {
	return func(dst, a []byte) {
		for i := range dst {
			PutElement(dst[i:], t, f(Element(a[i:], t)))
		}
	}
}
