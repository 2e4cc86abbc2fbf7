package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element is how a type lies in memory and in registers.
type element struct {
	size int // bytes of an element
	unit int // bytes that one raw register holds
	// prepare broadcasts the constants that the others use.
	prepare func()
	// widen turns raw data (a register or memory) into vectors of the type
	// computed in; narrow is the way back.
	widen  func(raw Op) []vec
	narrow func(v []vec) vec
	raw    func() vec // a fresh register of unit bytes
}

// operation works on vectors of the type computed in. emit fills the results
// from the operands (a second operand of nil means the constant factor) and may
// leave work for after the return instruction.
type operation struct {
	prepare func()
	emit    func(a, b []vec, later *deferred) []vec
}

// deferred is code off the fast path: it runs only where a NaN was seen.
type deferred struct {
	code   []func()
	labels int
}

func (d *deferred) label(word string) string {
	d.labels++
	return fmt.Sprintf("%s%d", word, d.labels)
}

func (d *deferred) flush() {
	for _, f := range d.code {
		f()
	}
}

// binary writes dst = a op b over n bytes, any number of elements, with dst
// equal to a or b allowed: every step loads both before it stores.
func (s isa) binary(name string, e element, o operation, unroll int) {
	TEXT(name+s.suffix(), NOSPLIT, "func(dst, a, b *byte, n int)")
	Pragma("noescape")
	Doc(name + s.suffix() + " works on n bytes, a multiple of the element size.")
	s.frame(e, o, unroll, true)
}

// unary writes dst = a op factor; prepare of the operation loads the factor.
func (s isa) unary(name, factor string, e element, o operation, unroll int) {
	TEXT(name+s.suffix(), NOSPLIT, "func(dst, a *byte, n int, factor "+factor+")")
	Pragma("noescape")
	Doc(name + s.suffix() + " works on n bytes, a multiple of the element size.")
	s.frame(e, o, unroll, false)
}

// pointers are the walking pointers of a frame.
type pointers struct {
	dst, a, b reg.Register
	n         reg.GPVirtual
}

func (s isa) frame(e element, o operation, unroll int, two bool) {
	p := pointers{dst: Load(Param("dst"), GP64()), a: Load(Param("a"), GP64())}
	if two {
		p.b = Load(Param("b"), GP64())
	}
	p.n = Load(Param("n"), GP64()).(reg.GPVirtual)
	e.prepare()
	o.prepare()
	later := &deferred{}
	if unroll > 1 {
		s.loop("many", "one", e, o, p, unroll, later)
	}
	s.loop("one", "tail", e, o, p, 1, later)
	Label("tail")
	if s.wide {
		s.maskedTail(e, o, p, later)
	} else {
		s.elementTail(e, o, p, later)
	}
	Label("done")
	VZEROUPPER()
	RET()
	later.flush()
}

// loop takes count units at a time until fewer are left.
func (s isa) loop(here, next string, e element, o operation, p pointers, count int, later *deferred) {
	step := e.unit * count
	Label(here)
	CMPQ(p.n, U32(uint32(step)))
	JB(LabelRef(next))
	var a, b []vec
	for i := range count {
		a = append(a, e.widen(Mem{Base: p.a, Disp: i * e.unit})...)
		if p.b != nil {
			b = append(b, e.widen(Mem{Base: p.b, Disp: i * e.unit})...)
		}
	}
	r := o.emit(a, b, later)
	per := len(r) / count
	for i := range count {
		store(e.narrow(r[i*per:(i+1)*per]), Mem{Base: p.dst, Disp: i * e.unit})
	}
	p.advance(step)
	JMP(LabelRef(here))
}

func (p pointers) advance(step int) {
	ADDQ(U32(uint32(step)), p.dst)
	ADDQ(U32(uint32(step)), p.a)
	if p.b != nil {
		ADDQ(U32(uint32(step)), p.b)
	}
	SUBQ(U32(uint32(step)), p.n)
}

func store(v vec, m Mem) {
	if v.Size() == 64 {
		VMOVDQU64(v, m)
		return
	}
	VMOVDQU(v, m)
}

// maskedTail takes the remaining bytes in one masked step.
func (s isa) maskedTail(e element, o operation, p pointers, later *deferred) {
	TESTQ(p.n, p.n)
	JZ(LabelRef("done"))
	ones := GP64()
	MOVQ(I64(-1), ones)
	BZHIQ(p.n, ones, ones)
	k := K()
	KMOVQ(ones, k)
	load := func(base reg.Register) []vec {
		raw := e.raw()
		VMOVDQU8_Z(Mem{Base: base}, k, raw)
		return e.widen(raw)
	}
	a := load(p.a)
	var b []vec
	if p.b != nil {
		b = load(p.b)
	}
	VMOVDQU8(e.narrow(o.emit(a, b, later)), k, Mem{Base: p.dst})
}

// elementTail takes the remaining elements one at a time, in the lowest lane.
func (s isa) elementTail(e element, o operation, p pointers, later *deferred) {
	TESTQ(p.n, p.n)
	JZ(LabelRef("done"))
	load := func(base reg.Register) []vec {
		raw := e.raw()
		low, m := raw.AsX(), Mem{Base: base}
		switch e.size {
		case 1, 2:
			t := GP32()
			if e.size == 1 {
				MOVBLZX(m, t)
			} else {
				MOVWLZX(m, t)
			}
			VMOVD(t, low)
		case 4:
			VMOVD(m, low)
		case 8:
			VMOVQ(m, low)
		}
		return e.widen(raw)
	}
	a := load(p.a)
	var b []vec
	if p.b != nil {
		b = load(p.b)
	}
	low, m := e.narrow(o.emit(a, b, later)).AsX(), Mem{Base: p.dst}
	switch e.size {
	case 1, 2:
		t := GP32()
		VMOVD(low, t)
		if e.size == 1 {
			MOVB(t.As8(), m)
		} else {
			MOVW(t.As16(), m)
		}
	case 4:
		VMOVD(low, m)
	case 8:
		VMOVQ(low, m)
	}
	p.advance(e.size)
	JMP(LabelRef("tail"))
}
