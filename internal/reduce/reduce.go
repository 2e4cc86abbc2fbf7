// Package reduce combines vectors element by element, as collectives need it:
// dst = a op b for sum, prod, min and max; scaling and division for averages;
// and the conversions that make float32 smaller on the wire.
//
// Every function exists on several paths: AVX-512, AVX2 with F16C, NEON, and
// portable Go. All of them give the same bits for the same input, so that ranks
// on different processors agree. What they compute is fixed as follows.
//
//   - float16 and bfloat16 are widened to float32, combined, and rounded to
//     nearest with ties to even. For sum and product that is the correctly rounded
//     result. Denormals are kept everywhere. A float16 beyond 65504 becomes
//     infinite by the same rounding.
//   - There is one NaN: every result that is a NaN has all bits set but the sign
//     (0x7fffffff, 0x7fff, …), as a GPU has it. So a op b and b op a have equal
//     bits, which they do not have on a bare CPU when both are NaNs.
//   - min and max are C's fmin and fmax, which NCCL uses too: a number wins over a
//     NaN, signalling or not; two NaNs give NaN. -0 is less than +0.
//   - Integer sums and products wrap around.
//   - Divider, for averages, divides floats in float32 (float64 for double), rounded
//     once more to the 16-bit types; integers are cut towards zero, as NCCL does.
//
// Buffers are bytes in the processor's order, of any alignment. A Func may be
// given the same buffer as dst and a, or dst and b; partial overlap is not
// allowed. Nothing allocates, except the portable path on misaligned buffers.
//
// The wire formats (Format) and what they lose, for x the float32 that went in:
//
//   - Float16: |error| ≤ 2^-11·|x| for 2^-14 ≤ |x| < 65520, ≤ 2^-25 below; infinite
//     from 65520 on.
//   - BFloat16: |error| ≤ 2^-8·|x| for |x| ≥ 2^-126, ≤ 2^-134 below; values above
//     3.3961e38 become infinite.
//   - Int8: blocks of BlockElems (256) elements with one float32 scale each, the
//     greatest magnitude m of the block over 127, cut to 17 bits: |error| ≤
//     m/254·(1+2^-14) + 2^-127. A NaN or an infinity makes its whole block NaN, so
//     that an overflow is not lost.
//
// What was decoded encodes without a further loss, in Int8 if the blocks are the
// same. NaNs stay NaNs in all of them. Decoded sums carry the error of each operand's
// encoding: a ring that encodes at each of n-1 hops adds up n-1 of them.
package reduce

import (
	"fmt"

	"busbar.dev/coll"
)

// Func is dst = a op b. The three slices have the same length, a multiple of the
// element size.
type Func func(dst, a, b []byte)

// For returns the fastest Func of this processor.
func For(t coll.Dtype, op coll.Redop) (Func, error) {
	return Best().Func(t, op)
}

// Func returns the path's Func. Avg and MulSum combine as sums: Divider and
// Scaler do the rest.
func (p Path) Func(t coll.Dtype, op coll.Redop) (Func, error) {
	c, err := classify(t)
	if err != nil {
		return nil, err
	}
	switch op {
	case coll.Avg, coll.MulSum:
		op = coll.Sum
	case coll.Sum, coll.Prod, coll.Min, coll.Max:
	default:
		return nil, fmt.Errorf("reduction %v is not one of sum, prod, min, max, avg", op)
	}
	portable := c.portable(op)
	k := p.binary(t, op)
	if k == nil {
		k = portable
	}
	size := t.Size()
	return func(dst, a, b []byte) {
		if len(a) != len(dst) || len(b) != len(dst) || len(dst)%size != 0 {
			panic("reduce: operands differ in length or end within an element")
		}
		for len(dst) > stride {
			k(&dst[0], &a[0], &b[0], stride)
			dst, a, b = dst[stride:], a[stride:], b[stride:]
		}
		if len(dst) > 0 {
			k(&dst[0], &a[0], &b[0], len(dst))
		}
	}, nil
}

const (
	// stride bounds one call of a kernel: the garbage collector cannot stop
	// a goroutine inside assembly.
	stride = 256 << 10
)

// kernel is dst = a op b over n bytes.
type kernel func(dst, a, b *byte, n int)

// scaler is dst = a op factor over n bytes.
type scaler func(dst, a *byte, n int, factor float64)

// Unary is dst = f(a). Both slices have the same length, a multiple of the
// element size, and may be the same.
type Unary func(dst, a []byte)

// Scaler returns dst = a·factor. Floats are multiplied in float32 (float64 for
// double) by the factor rounded to that type; integers by the factor cut to an
// integer of 64 bits, wrapping around.
func (p Path) Scaler(t coll.Dtype, factor float64) (Unary, error) {
	return p.unary(t, factor, false)
}

// Divider returns dst = a/n, the last step of an average over n ranks.
func (p Path) Divider(t coll.Dtype, n int) (Unary, error) {
	if n < 1 {
		return nil, fmt.Errorf("an average over %d ranks: at least 1 needed", n)
	}
	return p.unary(t, float64(n), true)
}

func (p Path) unary(t coll.Dtype, factor float64, divide bool) (Unary, error) {
	c, err := classify(t)
	if err != nil {
		return nil, err
	}
	k := p.scaler(t, divide)
	if k == nil {
		k = c.scaler(divide, factor)
	}
	size := t.Size()
	return func(dst, a []byte) {
		if len(a) != len(dst) || len(dst)%size != 0 {
			panic("reduce: operands differ in length or end within an element")
		}
		for len(dst) > 0 {
			n := min(stride, len(dst))
			k(&dst[0], &a[0], n, factor)
			dst, a = dst[n:], a[n:]
		}
	}, nil
}
