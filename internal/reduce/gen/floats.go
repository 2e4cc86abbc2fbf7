package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// precision is the float type that a kernel computes in.
type precision struct {
	isa
	double bool
	canon  vec // the one NaN that results may hold
	factor vec // the constant operand of scale and divide
}

func (p *precision) pick(single, double func(...Op), ops ...Op) {
	if p.double {
		double(ops...)
		return
	}
	single(ops...)
}

// prepare loads the NaN. Narrowed to 16 bits it must still be one with all
// bits set, and rounding must not carry out of it: bfloat16 uses bits 16 to 30.
func (p *precision) prepare(nan uint64) {
	p.canon = p.vec()
	p.broadcast(nan, p.canon)
}

// broadcast fills a vector with a constant of the precision's size.
func (p *precision) broadcast(bits uint64, v vec) {
	t := GP64()
	MOVQ(U64(bits), t)
	if p.double {
		VMOVQ(t, v.AsX())
		VPBROADCASTQ(v.AsX(), v)
		return
	}
	VMOVD(t.As32(), v.AsX())
	VPBROADCASTD(v.AsX(), v)
}

// loadFactor broadcasts the argument called factor.
func (p *precision) loadFactor() {
	p.factor = p.vec()
	x := Load(Param("factor"), XMM()).(reg.VecVirtual)
	if p.double {
		VBROADCASTSD(x, p.factor)
		return
	}
	VBROADCASTSS(x, p.factor)
}

// canonical replaces NaNs in r by the one NaN.
func (p *precision) canonical(r vec) {
	p.replace(r, r, p.canon)
}

// replace puts with into r in the lanes where x is a NaN.
func (p *precision) replace(r, x, with vec) {
	if p.wide {
		k := K()
		p.pick(vcmpps, vcmppd, Imm(3), x, x, k)
		p.pick(VMOVAPS, VMOVAPD, with, k, r)
		return
	}
	t := p.vec()
	p.pick(vcmpps, vcmppd, Imm(3), x, x, t)
	if p.double {
		VBLENDVPD(t, with, r, r)
		return
	}
	VBLENDVPS(t, with, r, r)
}

func vcmpps(ops ...Op) { VCMPPS(ops...) }
func vcmppd(ops ...Op) { VCMPPD(ops...) }

// ifUnordered jumps to a label when any pair has a NaN in it.
func (p *precision) ifUnordered(pairs [][2]vec, label string) {
	if p.wide {
		var k [2]reg.OpmaskVirtual
		for i, q := range pairs {
			m := K()
			p.pick(vcmpps, vcmppd, Imm(3), q[0], q[1], m)
			switch {
			case i < 2:
				k[i] = m
			default:
				KORW(m, k[i%2], k[i%2])
			}
		}
		if len(pairs) == 1 {
			k[1] = k[0]
		}
		KORTESTW(k[0], k[1])
		JNZ(LabelRef(label))
		return
	}
	var sum vec
	for _, q := range pairs {
		m := p.vec()
		p.pick(vcmpps, vcmppd, Imm(3), q[0], q[1], m)
		if sum == nil {
			sum = m
			continue
		}
		VPOR(m, sum, sum)
	}
	t := GP32()
	if p.double {
		VMOVMSKPD(sum, t)
	} else {
		VMOVMSKPS(sum, t)
	}
	TESTL(t, t)
	JNZ(LabelRef(label))
}

// arithmetic is an operation by one instruction (given single and double): the
// results are checked for NaNs two vectors at a time, and mended off the path.
func (p *precision) arithmetic(nan uint64, single, double func(...Op)) operation {
	return operation{
		prepare: func() { p.prepare(nan) },
		fold:    true,
		each: func(a vec, b Op) vec {
			if b == nil {
				b = p.factor
			}
			p.pick(single, double, b, a, a)
			return a
		},
		after: func(_ []vec, _ []Op, r []vec, later *deferred) { p.mend(r, later) },
	}
}

// mend makes NaNs in v the one NaN: a check on the path, the work off it.
func (p *precision) mend(v []vec, later *deferred) {
	var pairs [][2]vec
	for i := 0; i < len(v); i += 2 {
		pairs = append(pairs, [2]vec{v[i], v[min(i+1, len(v)-1)]})
	}
	mend, back := later.label("mend"), later.label("back")
	p.ifUnordered(pairs, mend)
	Label(back)
	later.code = append(later.code, func() {
		Label(mend)
		for _, r := range v {
			p.canonical(r)
		}
		JMP(LabelRef(back))
	})
}

// extreme is min or max: a number wins over a NaN, -0 is less than +0, and two
// NaNs give the one NaN. The instruction returns its second source when the
// operands are equal, so both orders together tell the zeros apart.
func (p *precision) extreme(nan uint64, greatest bool) operation {
	single, double := VMINPS, VMINPD
	if greatest {
		single, double = VMAXPS, VMAXPD
	}
	return operation{
		prepare: func() { p.prepare(nan) },
		each: func(a vec, b Op) vec {
			t, r := p.vec(), p.vec()
			p.pick(single, double, a, b, t)
			p.pick(single, double, b, a, r)
			p.merge(greatest, t, r)
			return r
		},
		after: func(a []vec, b []Op, r []vec, later *deferred) {
			var pairs [][2]vec
			for i := range a {
				pairs = append(pairs, [2]vec{a[i], b[i].(vec)})
			}
			mend, back := later.label("mend"), later.label("back")
			p.ifUnordered(pairs, mend)
			Label(back)
			later.code = append(later.code, func() {
				Label(mend)
				for i, v := range r {
					p.replace(v, b[i].(vec), a[i])
					p.replace(v, a[i], b[i].(vec))
					p.canonical(v)
				}
				JMP(LabelRef(back))
			})
		},
	}
}

// merge is r |= t for min and r &= t for max.
func (p *precision) merge(greatest bool, t, r vec) {
	switch {
	case p.wide && greatest:
		VPANDD(t, r, r)
	case p.wide:
		VPORD(t, r, r)
	case greatest:
		VPAND(t, r, r)
	default:
		VPOR(t, r, r)
	}
}

// floats writes all kernels of the four float types.
func (s isa) floats() {
	for _, f := range []struct {
		name   string
		double bool
		nan    uint64
		unroll int
		// extremes is the unrolling of min and max, which need more registers.
		extremes int
		make     func(isa) element
	}{
		{"F32", false, 0x7fffffff, 8, 2, func(s isa) element { return s.plain(4) }},
		{"F64", true, 0x7fffffffffffffff, 8, 2, func(s isa) element { return s.plain(8) }},
		{"F16", false, 0x7fffffff, 8, 2, isa.float16},
		{"BF16", false, 0x7fff0000, 4, 1, isa.bfloat16},
	} {
		fresh := func() (*precision, element) { return &precision{isa: s, double: f.double}, f.make(s) }
		for _, a := range []struct {
			name           string
			single, double func(...Op)
		}{{"sum", VADDPS, VADDPD}, {"prod", VMULPS, VMULPD}} {
			p, e := fresh()
			s.binary(a.name+f.name, e, p.arithmetic(f.nan, a.single, a.double), f.unroll)
		}
		for _, greatest := range []bool{false, true} {
			p, e := fresh()
			name := map[bool]string{false: "min", true: "max"}[greatest] + f.name
			s.binary(name, e, p.extreme(f.nan, greatest), f.extremes)
		}
		for _, a := range []struct {
			name           string
			single, double func(...Op)
		}{{"scale", VMULPS, VMULPD}, {"divide", VDIVPS, VDIVPD}} {
			p, e := fresh()
			o := p.arithmetic(f.nan, a.single, a.double)
			nan := o.prepare
			o.prepare = func() { nan(); p.loadFactor() }
			factor := "float32"
			if f.double {
				factor = "float64"
			}
			s.unary(a.name+f.name, factor, e, o, 2)
		}
	}
}
