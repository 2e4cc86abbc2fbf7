package reduce

import (
	"unsafe"

	"busbar.dev/coll"
)

// detected: every arm64 processor has NEON, with conversions of float16.
func detected() []Path { return []Path{Portable, NEON} }

// binary returns the path's kernel, or nil for the portable one.
func (p Path) binary(t coll.Dtype, op coll.Redop) kernel {
	if p != NEON {
		return nil
	}
	type key struct {
		t  coll.Dtype
		op coll.Redop
	}
	k := map[key]kernel{
		{coll.Float, coll.Sum}: sumF32NEON, {coll.Float, coll.Prod}: prodF32NEON,
		{coll.Float, coll.Min}: minF32NEON, {coll.Float, coll.Max}: maxF32NEON,
		{coll.Double, coll.Sum}: sumF64NEON, {coll.Double, coll.Prod}: prodF64NEON,
		{coll.Double, coll.Min}: minF64NEON, {coll.Double, coll.Max}: maxF64NEON,
		{coll.Half, coll.Sum}: sumF16NEON, {coll.Half, coll.Prod}: prodF16NEON,
		{coll.BFloat16, coll.Sum}: sumBF16NEON, {coll.BFloat16, coll.Prod}: prodBF16NEON,
		{coll.Int8, coll.Sum}: sumI8NEON, {coll.Uint8, coll.Sum}: sumI8NEON,
		{coll.Int32, coll.Sum}: sumI32NEON, {coll.Uint32, coll.Sum}: sumI32NEON,
		{coll.Int64, coll.Sum}: sumI64NEON, {coll.Uint64, coll.Sum}: sumI64NEON,
	}[key{t, op}]
	if k == nil {
		return nil
	}
	c, err := classify(t)
	if err != nil {
		return nil
	}
	return whole(k, c.portable(op))
}

// whole gives what does not fill a vector to the portable kernel.
func whole(vectors, rest kernel) kernel {
	return func(dst, a, b *byte, n int) {
		v := n &^ 15
		if v > 0 {
			vectors(dst, a, b, v)
		}
		if v < n {
			rest(after(dst, v), after(a, v), after(b, v), n-v)
		}
	}
}

func after(p *byte, n int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), n)) }

// The conversions and averages are portable: they are not on the way of sums.

func (Path) scaler(coll.Dtype, bool) scaler { return nil }

func (Path) half(Format) half { return half{} }

func (Path) block() block { return block{} }
