package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockElems is the elements of an int8 block; internal/reduce has the same
// constant.
const blockElems = 256

// block writes a loop over one block, four vectors of float32 at a time.
func (s isa) block(walk []walker, body func()) {
	step := s.size() // elements: four vectors of 4-byte lanes
	n := GP64()
	MOVQ(U32(uint32(blockElems/step)), n)
	Label("loop")
	body()
	advance(walk, step)
	DECQ(n)
	JNZ(LabelRef("loop"))
}

func (s isa) beginBlock(name, signature, doc string) {
	TEXT(name+s.suffix(), NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + s.suffix() + doc)
}

// peak finds the greatest magnitude of a block. Without their sign, the bits of
// floats are ordered like integers, infinities and NaNs at the top.
func (s isa) peak() {
	s.beginBlock("peak", "func(src *byte) uint32", " returns the bits of the greatest magnitude of a block; NaNs are above all.")
	src := Load(Param("src"), GP64())
	p := &precision{isa: s}
	abs := s.vec()
	p.broadcast(0x7fffffff, abs)
	acc := []vec{s.vec(), s.vec()}
	for _, v := range acc {
		VPXOR(v.AsX(), v.AsX(), v.AsX())
	}
	s.block([]walker{{src, 4}}, func() {
		for i := range 4 {
			v := s.vec()
			if s.wide {
				VPANDD(Mem{Base: src, Disp: i * s.size()}, abs, v)
			} else {
				VPAND(Mem{Base: src, Disp: i * s.size()}, abs, v)
			}
			VPMAXUD(v, acc[i%2], acc[i%2])
		}
	})
	VPMAXUD(acc[1], acc[0], acc[0])
	t := s.vec()
	if s.wide {
		VEXTRACTI64X4(Imm(1), acc[0], t.AsY())
		VPMAXUD(t.AsY(), acc[0].AsY(), acc[0].AsY())
	}
	x := acc[0].AsX()
	VEXTRACTI128(Imm(1), acc[0].AsY(), t.AsX())
	VPMAXUD(t.AsX(), x, x)
	for _, order := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(order), x, t.AsX())
		VPMAXUD(t.AsX(), x, x)
	}
	r := GP32()
	VMOVD(x, r)
	VZEROUPPER()
	Store(r, ReturnIndex(0))
	RET()
}

func (s isa) loadScale() vec {
	v := s.vec()
	VBROADCASTSS(Load(Param("scale"), XMM()), v)
	return v
}

// quantize rounds x/scale to the nearest integer, ties to even, within a byte.
func (s isa) quantize() {
	s.beginBlock("quantize", "func(dst, src *byte, scale float32)", " turns a block of float32 into int8.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	scale := s.loadScale()
	var order vec
	if !s.wide {
		table := GLOBL("lanesAVX2", RODATA|NOPTR)
		for i, v := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
			DATA(4*i, U32(v))
		}
		order = s.vec()
		VMOVDQU(table, order)
	}
	s.block([]walker{{dst, 1}, {src, 4}}, func() {
		v := make([]vec, 4)
		for i := range v {
			v[i] = s.load(Mem{Base: src, Disp: i * s.size()})
			VDIVPS(scale, v[i], v[i])
			VCVTPS2DQ(v[i], v[i])
			if s.wide {
				VPMOVSDB(v[i], Mem{Base: dst, Disp: i * 16})
			}
		}
		if s.wide {
			return
		}
		VPACKSSDW(v[1], v[0], v[0])
		VPACKSSDW(v[3], v[2], v[2])
		VPACKSSWB(v[2], v[0], v[0])
		VPERMD(v[0], order, v[0])
		VMOVDQU(v[0], Mem{Base: dst})
	})
	VZEROUPPER()
	RET()
}

// dequantize is dst = scale·src, or dst = a + scale·src with two roundings.
func (s isa) dequantize(name string, add bool) {
	signature := "func(dst, src *byte, scale float32)"
	if add {
		signature = "func(dst, a, src *byte, scale float32)"
	}
	s.beginBlock(name, signature, " turns a block of int8 back into float32.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	walk := []walker{{dst, 4}, {src, 1}}
	var a reg.Register
	if add {
		a = Load(Param("a"), GP64())
		walk = append(walk, walker{a, 4})
	}
	scale := s.loadScale()
	p := &precision{isa: s}
	p.prepare(0x7fffffff)
	later := &deferred{}
	s.block(walk, func() {
		v := make([]vec, 4)
		for i := range v {
			v[i] = s.vec()
			VPMOVSXBD(Mem{Base: src, Disp: i * s.size() / 4}, v[i])
			VCVTDQ2PS(v[i], v[i])
			VMULPS(scale, v[i], v[i])
			if add {
				VADDPS(Mem{Base: a, Disp: i * s.size()}, v[i], v[i])
			}
		}
		p.mend(v, later)
		for i := range v {
			store(v[i], Mem{Base: dst, Disp: i * s.size()})
		}
	})
	VZEROUPPER()
	RET()
	later.flush()
}
