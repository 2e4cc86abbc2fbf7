package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// plain is an element that is computed in as it lies in memory.
func (s isa) plain(size int) element {
	return element{
		size: size, unit: s.size(), raw: s.vec, plain: true,
		prepare: func() {},
		widen: func(raw Op) []vec {
			if r, ok := raw.(vec); ok {
				return []vec{r}
			}
			return []vec{s.load(raw)}
		},
		narrow: func(v []vec) vec { return v[0] },
	}
}

func (s isa) load(m Op) vec {
	r := s.vec()
	if s.wide {
		VMOVDQU64(m, r)
	} else {
		VMOVDQU(m, r)
	}
	return r
}

// float16 is computed in as float32. The sum and the product of two float16
// rounded to 24 bits and then to 11 are the correctly rounded ones, since
// 24 >= 2*11+2.
func (s isa) float16() element {
	return element{
		size: 2, unit: s.size() / 2, raw: s.half,
		prepare: func() {},
		widen: func(raw Op) []vec {
			v := s.vec()
			VCVTPH2PS(raw, v)
			return []vec{v}
		},
		narrow: func(v []vec) vec {
			h := s.half()
			VCVTPS2PH(Imm(0), v[0], h) // 0: to nearest, ties to even
			return h
		},
	}
}

// bfloat16 is computed in as float32, the elements at even places in one vector
// and those at odd places in another, so that no lane ever moves.
func (s isa) bfloat16() element {
	var high, one, bias vec
	word := func(v uint32) vec {
		t, r := GP32(), s.vec()
		MOVL(U32(v), t)
		VMOVD(t, r.AsX())
		VPBROADCASTD(r.AsX(), r)
		return r
	}
	e := element{
		size: 2, unit: s.size(), raw: s.vec,
		widen: func(raw Op) []vec {
			even, ok := raw.(vec)
			if !ok {
				even = s.load(raw)
			}
			odd := s.vec()
			if s.wide {
				VPANDD(high, even, odd)
			} else {
				VPAND(high, even, odd)
			}
			VPSLLD(Imm(16), even, even)
			return []vec{even, odd}
		},
	}
	e.prepare = func() {
		high = word(0xffff0000)
		one, bias = word(0x00000001), word(0x00007fff)
		if s.wide {
			one, bias = word(0x00010001), word(0x80008000)
		}
	}
	e.narrow = func(v []vec) vec { return narrowPairs(v[0], v[1], one, bias, s) }
	if s.wide {
		e.narrow = func(v []vec) vec { return narrowWords(v[0], v[1], high, one, bias, s) }
	}
	return e
}

// narrowPairs rounds both vectors to nearest, ties to even, by adding 0x7fff and
// the lowest bit that stays, and puts them together again.
func narrowPairs(even, odd, one, bias vec, s isa) vec {
	for _, v := range []vec{even, odd} {
		t := s.vec()
		VPSRLD(Imm(16), v, t)
		VPAND(one, t, t)
		VPADDD(bias, v, v)
		VPADDD(t, v, v)
	}
	VPSRLD(Imm(16), even, even)
	VPBLENDW(Imm(0xaa), odd, even, even)
	return even
}

// narrowWords puts the upper and the lower halves together first and then
// rounds all of them at once: up by one where lower half + lowest bit that stays
// is more than 0x8000.
func narrowWords(even, odd, high, one, limit vec, s isa) vec {
	upper, lower, lsb := s.vec(), s.vec(), s.vec()
	VPSRLD(Imm(16), even, upper)
	VPTERNLOGD(Imm(0xd8), high, odd, upper) // where high is set: odd, else upper
	VPSLLD(Imm(16), odd, lower)
	VPTERNLOGD(Imm(0xe4), high, even, lower)
	VPANDD(one, upper, lsb)
	VPADDUSW(lsb, lower, lower)
	k := K()
	VPCMPUW(Imm(6), limit, lower, k)
	VPADDW(one, upper, k, upper)
	return upper
}
