package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// simple is an integer operation by one instruction.
func (s isa) simple(instruction func(...Op)) operation {
	return operation{
		prepare: func() {},
		fold:    true,
		each:    func(a vec, b Op) vec { instruction(b, a, a); return a },
		after:   nothing,
	}
}

func nothing([]vec, []Op, []vec, *deferred) {}

func three(f func(a, b, c Op)) func(...Op) {
	return func(ops ...Op) { f(ops[0], ops[1], ops[2]) }
}

// ints writes all kernels of the integers. Sum and product wrap around, so that
// they are the same for signed and unsigned.
func (s isa) ints() {
	add := map[int]func(...Op){8: VPADDB, 32: VPADDD, 64: VPADDQ}
	for _, bits := range []int{8, 32, 64} {
		e := s.plain(bits / 8)
		s.binary(fmt.Sprintf("sumI%d", bits), e, s.simple(add[bits]), 8)
		s.binary(fmt.Sprintf("prodI%d", bits), e, s.product(bits), 2)
	}
	for _, m := range []struct {
		name        string
		size        int
		instruction func(...Op)
	}{
		{"minI8", 1, VPMINSB},
		{"maxI8", 1, VPMAXSB},
		{"minU8", 1, VPMINUB},
		{"maxU8", 1, VPMAXUB},
		{"minI32", 4, VPMINSD},
		{"maxI32", 4, VPMAXSD},
		{"minU32", 4, VPMINUD},
		{"maxU32", 4, VPMAXUD},
	} {
		s.binary(m.name, s.plain(m.size), s.simple(m.instruction), 8)
	}
	for _, m := range []struct {
		name               string
		wide               func(...Op)
		greatest, unsigned bool
	}{
		{"minI64", VPMINSQ, false, false},
		{"maxI64", VPMAXSQ, true, false},
		{"minU64", VPMINUQ, false, true},
		{"maxU64", VPMAXUQ, true, true},
	} {
		o := s.extreme64(m.greatest, m.unsigned)
		if s.wide {
			o = s.simple(m.wide)
		}
		s.binary(m.name, s.plain(8), o, 2)
	}
}

// extreme64 is min and max of 64 bits for AVX2, which can only compare signed
// numbers: unsigned ones are compared with their top bit turned.
func (s isa) extreme64(greatest, unsigned bool) operation {
	var top vec
	return operation{
		prepare: func() {
			if !unsigned {
				return
			}
			t := GP64()
			MOVQ(U64(1<<63), t)
			top = s.vec()
			VMOVQ(t, top.AsX())
			VPBROADCASTQ(top.AsX(), top)
		},
		each: func(a vec, b Op) vec {
			x, y := a, b.(vec)
			if unsigned {
				x, y = s.vec(), s.vec()
				VPXOR(top, a, x)
				VPXOR(top, b, y)
			}
			m := s.vec()
			if greatest {
				VPCMPGTQ(x, y, m) // y > x: take b
			} else {
				VPCMPGTQ(y, x, m)
			}
			VBLENDVPD(m, b, a, a)
			return a
		},
		after: nothing,
	}
}

// product multiplies and keeps the low bits.
func (s isa) product(bits int) operation {
	switch {
	case bits == 32:
		return s.simple(VPMULLD)
	case bits == 64 && s.wide:
		return s.simple(VPMULLQ)
	case bits == 64:
		return s.product64()
	}
	return s.product8()
}

// product64 is built of 32-bit products: low*low + ((low*high + high*low) << 32).
func (s isa) product64() operation {
	return operation{prepare: func() {}, after: nothing, each: func(a vec, b Op) vec {
		t, u := s.vec(), s.vec()
		VPSRLQ(Imm(32), a, t)
		VPMULUDQ(b, t, t)
		VPSRLQ(Imm(32), b, u)
		VPMULUDQ(u, a, u)
		VPADDQ(u, t, t)
		VPSLLQ(Imm(32), t, t)
		VPMULUDQ(b, a, a)
		VPADDQ(t, a, a)
		return a
	}}
}

// product8 multiplies as 16-bit numbers, even and odd bytes apart.
func (s isa) product8() operation {
	var low vec
	and := three(func(a, b, c Op) { VPAND(a, b, c) })
	or := three(func(a, b, c Op) { VPOR(a, b, c) })
	if s.wide {
		and, or = VPANDD, VPORD
	}
	return operation{
		prepare: func() {
			t := GP32()
			MOVL(U32(0x00ff00ff), t)
			low = s.vec()
			VMOVD(t, low.AsX())
			VPBROADCASTD(low.AsX(), low)
		},
		each: func(a vec, b Op) vec {
			t, u := s.vec(), s.vec()
			VPSRLW(Imm(8), a, t)
			VPSRLW(Imm(8), b, u)
			VPMULLW(u, t, t)
			VPSLLW(Imm(8), t, t)
			VPMULLW(b, a, a)
			and(low, a, a)
			or(t, a, a)
			return a
		},
		after: nothing,
	}
}
