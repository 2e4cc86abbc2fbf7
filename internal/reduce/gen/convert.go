package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// conversions writes what turns float32 into wire formats and back.
func (s isa) conversions() {
	s.encode("F16", 0x7fffffff, func() {}, s.packF16)
	s.encode("BF16", 0x7fff0000, s.prepareBF16, s.packBF16)
	for _, f := range []struct {
		name   string
		unpack func(Mem, vec)
	}{
		{"F16", func(m Mem, v vec) { VCVTPH2PS(m, v) }},
		{"BF16", func(m Mem, v vec) { VPMOVZXWD(m, v); VPSLLD(Imm(16), v, v) }},
	} {
		s.decode(f.name, f.unpack)
		s.decodeAdd(f.name, f.unpack)
	}
	s.peak()
	s.quantize()
	s.dequantize("dequantize", false)
	s.dequantize("dequantizeAdd", true)
}

// stretch writes a loop over n elements, unroll vectors at a time and then one;
// fewer than a vector are left to the caller.
func (s isa) stretch(n reg.GPVirtual, unroll int, walk []walker, body func(count int)) {
	lanes := s.size() / 4
	for _, l := range []struct {
		here, next string
		count      int
	}{{"many", "one", unroll}, {"one", "done", 1}} {
		Label(l.here)
		CMPQ(n, U32(uint32(lanes*l.count)))
		JB(LabelRef(l.next))
		body(l.count)
		advance(walk, lanes*l.count)
		SUBQ(U32(uint32(lanes*l.count)), n)
		JMP(LabelRef(l.here))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// walker is a pointer and the bytes that it walks per element.
type walker struct {
	p     reg.Register
	width int
}

func advance(walk []walker, elems int) {
	for _, w := range walk {
		ADDQ(U32(uint32(elems*w.width)), w.p)
	}
}

func (s isa) begin(name, signature string) {
	TEXT(name+s.suffix(), NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + s.suffix() + " leaves what does not fill a vector to the caller.")
}

func (s isa) encode(name string, nan uint64, prepare func(), pack func(v vec, m Mem)) {
	s.begin("encode"+name, "func(dst, src *byte, n int)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	p := &precision{isa: s}
	p.prepare(nan)
	prepare()
	later := &deferred{}
	s.stretch(n, 4, []walker{{dst, 2}, {src, 4}}, func(count int) {
		v := make([]vec, count)
		for i := range v {
			v[i] = s.load(Mem{Base: src, Disp: i * s.size()})
		}
		p.mend(v, later)
		for i := range v {
			pack(v[i], Mem{Base: dst, Disp: i * s.size() / 2})
		}
	})
	later.flush()
}

func (s isa) packF16(v vec, m Mem) { VCVTPS2PH(Imm(0), v, m) }

// rounding holds the constants of packBF16.
var rounding struct{ one, bias vec }

func (s isa) prepareBF16() {
	p := &precision{isa: s}
	rounding.one, rounding.bias = s.vec(), s.vec()
	p.broadcast(1, rounding.one)
	p.broadcast(0x7fff, rounding.bias)
}

func (s isa) packBF16(v vec, m Mem) {
	t := s.vec()
	VPSRLD(Imm(16), v, t)
	if s.wide {
		VPANDD(rounding.one, t, t)
	} else {
		VPAND(rounding.one, t, t)
	}
	VPADDD(rounding.bias, v, v)
	VPADDD(t, v, v)
	VPSRLD(Imm(16), v, v)
	if s.wide {
		VPMOVDW(v, m)
		return
	}
	VPACKUSDW(v, v, v)
	VPERMQ(Imm(0x08), v, v)
	VMOVDQU(v.AsX(), m)
}

func (s isa) decode(name string, unpack func(Mem, vec)) {
	s.begin("decode"+name, "func(dst, src *byte, n int)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	s.stretch(n, 4, []walker{{dst, 4}, {src, 2}}, func(count int) {
		for i := range count {
			v := s.vec()
			unpack(Mem{Base: src, Disp: i * s.size() / 2}, v)
			store(v, Mem{Base: dst, Disp: i * s.size()})
		}
	})
}

func (s isa) decodeAdd(name string, unpack func(Mem, vec)) {
	s.begin("decodeAdd"+name, "func(dst, a, src *byte, n int)")
	dst, a, src := Load(Param("dst"), GP64()), Load(Param("a"), GP64()), Load(Param("src"), GP64())
	n := Load(Param("n"), GP64()).(reg.GPVirtual)
	p := &precision{isa: s}
	p.prepare(0x7fffffff)
	later := &deferred{}
	s.stretch(n, 4, []walker{{dst, 4}, {a, 4}, {src, 2}}, func(count int) {
		v := make([]vec, count)
		for i := range v {
			v[i] = s.vec()
			unpack(Mem{Base: src, Disp: i * s.size() / 2}, v[i])
			VADDPS(Mem{Base: a, Disp: i * s.size()}, v[i], v[i])
		}
		p.mend(v, later)
		for i := range v {
			store(v[i], Mem{Base: dst, Disp: i * s.size()})
		}
	})
	later.flush()
}
