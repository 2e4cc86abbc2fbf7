//go:build linux

package native

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"busbar.dev/coll"
)

// randoms are values around 0, as those of a model's weights.
func randoms(t coll.Dtype, bytes int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, bytes)
	for i := 0; i < len(out); i += t.Size() {
		v := rng.NormFloat64()
		switch t {
		case coll.BFloat16:
			binary.LittleEndian.PutUint16(out[i:], uint16(math.Float32bits(float32(v))>>16))
		case coll.Half, coll.F8E4M3:
			exponent, fraction := 5, 10
			if t == coll.F8E4M3 {
				exponent, fraction = 4, 3
			}
			bits := uint32(0)
			if a := math.Abs(v); a > 1.0/16 && a < 8 { // normal numbers of the type
				bits = small(v, exponent, fraction)
			}
			if t.Size() == 1 {
				out[i] = byte(bits)
			} else {
				binary.LittleEndian.PutUint16(out[i:], uint16(bits))
			}
		default:
			encode(out[i:], t, v)
		}
	}
	return out
}

// decode is the value of an element.
func decode(b []byte, t coll.Dtype) float64 {
	parts := func(bits uint32, exponent, fraction int) float64 {
		e, f := int(bits>>fraction)&(1<<exponent-1), float64(bits&(1<<fraction-1))/float64(int(1)<<fraction)
		v := math.Ldexp(1+f, e-(1<<(exponent-1)-1))
		if e == 0 {
			v = math.Ldexp(f, 2-(1<<(exponent-1)))
		}
		if bits>>(exponent+fraction)&1 == 1 {
			return -v
		}
		return v
	}
	switch t {
	case coll.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case coll.Double:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case coll.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	case coll.Half:
		return parts(uint32(binary.LittleEndian.Uint16(b)), 5, 10)
	case coll.F8E4M3:
		return parts(uint32(b[0]), 4, 3)
	}
	return 0
}

// noise is bytes without a pattern.
func noise(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], rng.Uint64())
	}
	return out
}
