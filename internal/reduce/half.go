package reduce

import "math"

// The one NaN of each type: all bits but the sign, as a GPU has it.
const (
	nan64   = math.MaxInt64
	nan32   = math.MaxInt32
	nanHalf = math.MaxInt16 // of float16 and bfloat16
)

// widen16 is the value of a float16. A NaN keeps its payload and becomes quiet.
func widen16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	mant := uint32(h & 0x3ff)
	switch exp := uint32(h>>10) & 0x1f; {
	case exp == 0:
		v := float32(mant) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case exp == 31 && mant != 0:
		return math.Float32frombits(sign | 0x7fc00000 | mant<<13)
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000)
	default:
		return math.Float32frombits(sign | (exp+112)<<23 | mant<<13)
	}
}

// narrow16 rounds to a float16, to nearest with ties to even.
func narrow16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	switch abs := bits & 0x7fffffff; {
	case abs > 0x7f800000:
		return nanHalf
	case abs >= 0x477ff000: // 65520, half-way past the greatest
		return sign | 0x7c00
	case abs < 0x38800000: // 2^-14: the addition rounds to multiples of 2^-24
		return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-0x3f000000)
	default:
		return sign | uint16((abs+0xfff+abs>>13&1-112<<23)>>13)
	}
}

// widenB is the value of a bfloat16.
func widenB(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// narrowB rounds to a bfloat16, to nearest with ties to even.
func narrowB(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return nanHalf
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func widenAll16(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = widen16(h)
	}
}

func narrowAll16(dst []uint16, src []float32) {
	for i, f := range src {
		dst[i] = narrow16(f)
	}
}

func widenAllB(dst []float32, src []uint16) {
	for i, h := range src {
		dst[i] = widenB(h)
	}
}

func narrowAllB(dst []uint16, src []float32) {
	for i, f := range src {
		dst[i] = narrowB(f)
	}
}
