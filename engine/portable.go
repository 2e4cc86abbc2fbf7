package engine

import (
	"encoding/binary"
	"math"

	"busbar/coll"
)

var le = binary.LittleEndian

// portable combines element by element, for every type and reduction.
func portable(dst, src []byte, t coll.Dtype, op coll.Redop) {
	src = src[:len(dst)]
	switch t {
	case coll.Float:
		f := floats[float32](op)
		for i := 0; i+4 <= len(dst); i += 4 {
			x, y := math.Float32frombits(le.Uint32(dst[i:])), math.Float32frombits(le.Uint32(src[i:]))
			le.PutUint32(dst[i:], math.Float32bits(f(x, y)))
		}
	case coll.Double:
		f := floats[float64](op)
		for i := 0; i+8 <= len(dst); i += 8 {
			x, y := math.Float64frombits(le.Uint64(dst[i:])), math.Float64frombits(le.Uint64(src[i:]))
			le.PutUint64(dst[i:], math.Float64bits(f(x, y)))
		}
	case coll.Int8:
		f := ints[int8](op)
		for i := range dst {
			dst[i] = byte(f(int8(dst[i]), int8(src[i])))
		}
	case coll.Uint8:
		f := ints[uint8](op)
		for i := range dst {
			dst[i] = f(dst[i], src[i])
		}
	case coll.Int32:
		f := ints[int32](op)
		for i := 0; i+4 <= len(dst); i += 4 {
			le.PutUint32(dst[i:], uint32(f(int32(le.Uint32(dst[i:])), int32(le.Uint32(src[i:])))))
		}
	case coll.Uint32:
		f := ints[uint32](op)
		for i := 0; i+4 <= len(dst); i += 4 {
			le.PutUint32(dst[i:], f(le.Uint32(dst[i:]), le.Uint32(src[i:])))
		}
	case coll.Int64:
		f := ints[int64](op)
		for i := 0; i+8 <= len(dst); i += 8 {
			le.PutUint64(dst[i:], uint64(f(int64(le.Uint64(dst[i:])), int64(le.Uint64(src[i:])))))
		}
	case coll.Uint64:
		f := ints[uint64](op)
		for i := 0; i+8 <= len(dst); i += 8 {
			le.PutUint64(dst[i:], f(le.Uint64(dst[i:]), le.Uint64(src[i:])))
		}
	default:
		f := floats[float32](op)
		size := t.Size()
		for i := 0; i+size <= len(dst); i += size {
			PutElement(dst[i:], t, float64(f(float32(Element(dst[i:], t)), float32(Element(src[i:], t)))))
		}
	}
}

// floats is a reduction of two values. Every one of them gives the same bits whichever way
// round they come, so that partners who exchange agree: -0 is less than 0, and what is no
// number stays none.
func floats[T float32 | float64](op coll.Redop) func(x, y T) T {
	switch op {
	case coll.Prod:
		return func(x, y T) T { return x * y }
	case coll.Min:
		return func(x, y T) T { return min(x, y) }
	case coll.Max:
		return func(x, y T) T { return max(x, y) }
	}
	return func(x, y T) T { return x + y }
}

func ints[T int8 | uint8 | int32 | uint32 | int64 | uint64](op coll.Redop) func(x, y T) T {
	switch op {
	case coll.Prod:
		return func(x, y T) T { return x * y }
	case coll.Min:
		return func(x, y T) T { return min(x, y) }
	case coll.Max:
		return func(x, y T) T { return max(x, y) }
	}
	return func(x, y T) T { return x + y }
}

// divide makes sums averages. Whole numbers round towards zero.
func divide(b []byte, t coll.Dtype, n int) {
	switch t {
	case coll.Int64:
		for i := 0; i+8 <= len(b); i += 8 {
			le.PutUint64(b[i:], uint64(int64(le.Uint64(b[i:]))/int64(n)))
		}
	case coll.Uint64:
		for i := 0; i+8 <= len(b); i += 8 {
			le.PutUint64(b[i:], le.Uint64(b[i:])/uint64(n))
		}
	default:
		each(b, t, func(x float64) float64 { return x / float64(n) })
	}
}

// scale multiplies every element.
func scale(b []byte, t coll.Dtype, by float64) {
	each(b, t, func(x float64) float64 { return x * by })
}

func each(b []byte, t coll.Dtype, f func(float64) float64) {
	size := t.Size()
	for i := 0; i+size <= len(b); i += size {
		PutElement(b[i:], t, f(Element(b[i:], t)))
	}
}
