// Package reduce combines vectors element by element, as collectives need it:
// dst = a op b for sum, prod, min and max; scaling and division for averages.
//
// Sums of float32, float16 and bfloat16 are in assembly where the processor has AVX2 with F16C
// or NEON; all else is Go. Both give the same bits for the same input, so that ranks on different
// processors agree. What they compute is fixed as follows.
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
// allowed. Nothing allocates.
package reduce

import (
	"fmt"
	"unsafe"

	"busbar.dev/coll"
)

// Func is dst = a op b. The three slices have the same length, a multiple of the
// element size.
type Func func(dst, a, b []byte)

// Unary is dst = f(a). Both slices have the same length, a multiple of the
// element size, and may be the same.
type Unary func(dst, a []byte)

// kernel is dst = a op b over n bytes.
type kernel func(dst, a, b *byte, n int)

// stride bounds one call of a kernel: the garbage collector cannot stop a goroutine inside assembly.
const stride = 256 << 10

// For returns the fastest Func of this processor. Avg and MulSum combine as sums: Divider and
// Scaler do the rest.
func For(t coll.Dtype, op coll.Redop) (Func, error) {
	k, err := portable(t, op)
	if err != nil {
		return nil, err
	}
	if unit, v := vectors(t); v != nil && op != coll.Prod && op != coll.Min && op != coll.Max {
		k = whole(unit, v, k)
	}
	return strides(k, t.Size()), nil
}

// portable is the kernel in Go.
func portable(t coll.Dtype, op coll.Redop) (kernel, error) {
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
	return c.combine(op), nil
}

// whole gives what does not fill a vector of so many bytes to the other kernel.
func whole(unit int, vectors, rest kernel) kernel {
	return func(dst, a, b *byte, n int) {
		v := n - n%unit
		if v > 0 {
			vectors(dst, a, b, v)
		}
		if v < n {
			rest(after(dst, v), after(a, v), after(b, v), n-v)
		}
	}
}

func after(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }

// strides is a kernel over slices of elements of a size.
func strides(k kernel, size int) Func {
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
	}
}

// Scaler returns dst = a·factor. Floats are multiplied in float32 (float64 for
// double) by the factor rounded to that type; integers by the factor cut to an
// integer of 64 bits, wrapping around.
func Scaler(t coll.Dtype, factor float64) (Unary, error) { return unary(t, factor, false) }

// Divider returns dst = a/n, the last step of an average over n ranks.
func Divider(t coll.Dtype, n int) (Unary, error) {
	if n < 1 {
		return nil, fmt.Errorf("an average over %d ranks: at least 1 needed", n)
	}
	return unary(t, float64(n), true)
}

func unary(t coll.Dtype, factor float64, divide bool) (Unary, error) {
	c, err := classify(t)
	if err != nil {
		return nil, err
	}
	f := strides(c.scale(divide, factor), t.Size())
	return func(dst, a []byte) { f(dst, a, a) }, nil
}
