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
	plain  bool       // computed in as it lies in memory
}

// operation works on vectors of the type computed in. each combines two of them
// (a second operand of nil means the constant factor); after sees all of a step and
// may leave work for after the return instruction.
type operation struct {
	prepare func()
	// fold says that each takes its second operand from memory, too.
	fold  bool
	each  func(a vec, b Op) vec
	after func(a []vec, b []Op, r []vec, later *deferred)
}

// emit combines vectors one after the other.
func (o operation) emit(a []vec, b []Op, later *deferred) []vec {
	var r []vec
	for i := range a {
		var y Op
		if b != nil {
			y = b[i]
		}
		r = append(r, o.each(a[i], y))
	}
	o.after(a, b, r, later)
	return r
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
		s.loop("many", "few", e, o, p, unroll, later)
	}
	s.loop("one", "tail", e, o, p, 1, later)
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
	CMPQ(p.n, U32(uint32(step)))
	JB(LabelRef(next))
	Label(here)
	var a, r []vec
	var b []Op
	per := 0
	for i := range count {
		x := e.widen(Mem{Base: p.a, Disp: i * e.unit})
		per = len(x)
		y := make([]Op, per)
		if p.b != nil {
			m := Mem{Base: p.b, Disp: i * e.unit}
			if o.fold && e.plain {
				y[0] = m
			} else {
				y = operands(e.widen(m))
			}
		}
		for j := range x {
			r = append(r, o.each(x[j], y[j]))
		}
		a, b = append(a, x...), append(b, y...)
	}
	o.after(a, b, r, later)
	for i := range count {
		store(e.narrow(r[i*per:(i+1)*per]), Mem{Base: p.dst, Disp: i * e.unit})
	}
	p.advance(step)
	CMPQ(p.n, U32(uint32(step)))
	JAE(LabelRef(here))
	Label(next)
}

func operands(v []vec) []Op {
	var out []Op
	for _, x := range v {
		out = append(out, x)
	}
	return out
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
	var b []Op
	if p.b != nil {
		b = operands(load(p.b))
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
	var b []Op
	if p.b != nil {
		b = operands(load(p.b))
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
