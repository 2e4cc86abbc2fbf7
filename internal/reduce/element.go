package reduce

import (
	"encoding/binary"
	"math"

	"busbar.dev/coll"
)

var le = binary.LittleEndian

// Element reads an element as a float64. Only 64-bit integers may lose digits.
func Element(b []byte, t coll.Dtype) float64 {
	switch t {
	case coll.Float:
		return float64(math.Float32frombits(le.Uint32(b)))
	case coll.Double:
		return math.Float64frombits(le.Uint64(b))
	case coll.Int8:
		return float64(int8(b[0]))
	case coll.Uint8:
		return float64(b[0])
	case coll.Int32:
		return float64(int32(le.Uint32(b)))
	case coll.Uint32:
		return float64(le.Uint32(b))
	case coll.Int64:
		return float64(int64(le.Uint64(b)))
	case coll.Uint64:
		return float64(le.Uint64(b))
	case coll.Half:
		return small(uint32(le.Uint16(b)), 10, 5, false)
	case coll.BFloat16:
		return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16))
	case coll.F8E4M3:
		return small(uint32(b[0]), 3, 4, true)
	case coll.F8E5M2:
		return small(uint32(b[0]), 2, 5, false)
	}
	return 0
}

// Put writes an element. Numbers round to the nearest, ties to even; whole numbers drop what
// is behind the point.
func Put(b []byte, t coll.Dtype, x float64) {
	switch t {
	case coll.Float:
		le.PutUint32(b, math.Float32bits(float32(x)))
	case coll.Double:
		le.PutUint64(b, math.Float64bits(x))
	case coll.Int8:
		b[0] = byte(int8(int64(x)))
	case coll.Uint8:
		b[0] = byte(int64(x))
	case coll.Int32:
		le.PutUint32(b, uint32(int32(int64(x))))
	case coll.Uint32:
		le.PutUint32(b, uint32(int64(x)))
	case coll.Int64:
		le.PutUint64(b, uint64(int64(x)))
	case coll.Uint64:
		le.PutUint64(b, uint64(x))
	case coll.Half:
		le.PutUint16(b, uint16(shrink(x, 10, 5, false)))
	case coll.BFloat16:
		le.PutUint16(b, uint16(shrink(x, 7, 8, false)))
	case coll.F8E4M3:
		b[0] = byte(shrink(x, 3, 4, true))
	case coll.F8E5M2:
		b[0] = byte(shrink(x, 2, 5, false))
	}
}

// small is the value of a floating-point number with few bits. A finite type (E4M3) has no
// infinities: only the all-ones pattern is no number.
func small(u uint32, mant, exp uint, finite bool) float64 {
	sign := 1.0
	if u>>(mant+exp)&1 != 0 {
		sign = -1
	}
	e := int(u >> mant & (1<<exp - 1))
	m := float64(u & (1<<mant - 1))
	bias := 1<<(exp-1) - 1
	top := e == 1<<exp-1
	switch {
	case top && finite && u&(1<<mant-1) == 1<<mant-1, top && !finite && m != 0:
		return math.NaN()
	case top && !finite:
		return math.Inf(int(sign))
	case e == 0:
		return sign * math.Ldexp(m, 1-bias-int(mant))
	}
	return sign * math.Ldexp(m+float64(uint32(1)<<mant), e-bias-int(mant))
}

// shrink is the nearest floating-point number with few bits. What is too great becomes an
// infinity, or no number where there are none.
func shrink(x float64, mant, exp uint, finite bool) uint32 {
	var sign uint32
	if math.Signbit(x) {
		sign = 1 << (mant + exp)
		x = -x
	}
	bias := 1<<(exp-1) - 1
	top := uint32(1<<exp-1) << mant
	none, most := top|1<<(mant-1), top
	if finite {
		none, most = top|(1<<mant-1), top|(1<<mant-1)
	}
	switch {
	case math.IsNaN(x):
		return sign | none
	case math.IsInf(x, 0):
		return sign | most
	case x == 0:
		return sign
	}
	_, e := math.Frexp(x) // x = f·2^e with f in [½, 1)
	e = max(e-1, 1-bias)
	q := math.RoundToEven(math.Ldexp(x, int(mant)-e)) // in units of the last place
	u := uint32(q)
	if u >= 1<<mant {
		u += uint32(e+bias-1) << mant // the leading one adds one to the exponent
	}
	return sign | min(u, most)
}
