package main

// avx2 is a kernel for amd64. AX, CX, DX and BX are dst, a, b and how many bytes are left; SI is free.
type avx2 struct {
	name   string
	consts map[int]uint32 // by register, in every lane; register 0 has the one NaN
	unit   int            // bytes that a step takes of each operand
	unroll int
	sums   func(i int) []int // the registers that hold the sums of a step
	// add leaves the sums of the step whose operands begin at a place, and store puts them where they belong; free is two
	// registers that both may use.
	add   func(t *text, sums []int, at int, free [2]int)
	store func(t *text, sums []int, at int, free [2]int)
}

func avx2Kernels() []avx2 {
	single := func(i int) []int { return []int{1 + i} }
	return []avx2{
		{
			name: "sumF32", consts: map[int]uint32{0: 0x7fffffff}, unit: 32, unroll: 8, sums: single,
			add: func(t *text, s []int, at int, _ [2]int) {
				t.line("VMOVDQU %d(CX), Y%d", at, s[0])
				t.line("VADDPS %d(DX), Y%d, Y%d", at, s[0], s[0])
			},
			store: func(t *text, s []int, at int, _ [2]int) { t.line("VMOVDQU Y%d, %d(AX)", s[0], at) },
		},
		{
			// Rounded to 24 bits and then to 11, a sum of two float16 is the correctly rounded one, since 24 >= 2*11+2.
			name: "sumF16", consts: map[int]uint32{0: 0x7fffffff}, unit: 16, unroll: 8, sums: single,
			add: func(t *text, s []int, at int, free [2]int) {
				t.line("VCVTPH2PS %d(CX), Y%d", at, s[0])
				t.line("VCVTPH2PS %d(DX), Y%d", at, free[0])
				t.line("VADDPS Y%d, Y%d, Y%d", free[0], s[0], s[0])
			},
			store: func(t *text, s []int, at int, free [2]int) {
				t.line("VCVTPS2PH $0, Y%d, X%d", s[0], free[0]) // $0: to nearest, ties to even
				t.line("VMOVDQU X%d, %d(AX)", free[0], at)
			},
		},
		{
			// The elements at even places are in one vector and those at odd places in another, so that no lane ever moves.
			// Rounding must not carry out of the NaN, which therefore has bits 16 to 30.
			name: "sumBF16", consts: map[int]uint32{0: 0x7fff0000, 13: 0xffff0000, 14: 1, 15: 0x7fff}, unit: 32, unroll: 4,
			sums: func(i int) []int { return []int{1 + 2*i, 2 + 2*i} },
			add: func(t *text, s []int, at int, free [2]int) {
				for k, from := range []string{"CX", "DX"} {
					even, odd := []int{s[0], free[0]}[k], []int{s[1], free[1]}[k]
					t.line("VMOVDQU %d(%s), Y%d", at, from, even)
					t.line("VPAND Y13, Y%d, Y%d", even, odd)
					t.line("VPSLLD $16, Y%d, Y%d", even, even)
				}
				t.line("VADDPS Y%d, Y%d, Y%d", free[0], s[0], s[0])
				t.line("VADDPS Y%d, Y%d, Y%d", free[1], s[1], s[1])
			},
			store: func(t *text, s []int, at int, free [2]int) {
				for k, v := range s { // to nearest, ties to even: 0x7fff and the lowest bit that stays
					t.line("VPSRLD $16, Y%d, Y%d", v, free[k])
					t.line("VPAND Y14, Y%d, Y%d", free[k], free[k])
					t.line("VPADDD Y15, Y%d, Y%d", v, v)
					t.line("VPADDD Y%d, Y%d, Y%d", free[k], v, v)
				}
				t.line("VPSRLD $16, Y%d, Y%d", s[0], s[0])
				t.line("VPBLENDW $0xaa, Y%d, Y%d, Y%d", s[1], s[0], s[0])
				t.line("VMOVDQU Y%d, %d(AX)", s[0], at)
			},
		},
	}
}

func (k avx2) write(t *text) {
	t.begin(k.name + "AVX2")
	for _, arg := range []string{"dst+0(FP), AX", "a+8(FP), CX", "b+16(FP), DX", "n+24(FP), BX"} {
		t.line("MOVQ %s", arg)
	}
	for v := range 16 {
		if c, ok := k.consts[v]; ok {
			t.line("MOVL $%#x, SI", c)
			t.line("VMOVD SI, X%d", v)
			t.line("VPBROADCASTD X%d, Y%d", v, v)
		}
	}
	t.line("CMPQ BX, $%d", k.unit*k.unroll)
	t.line("JB few")
	k.loop(t, "many", k.unroll)
	t.label("few")
	t.line("CMPQ BX, $%d", k.unit)
	t.line("JB done")
	k.loop(t, "one", 1)
	t.label("done")
	t.line("VZEROUPPER")
	t.line("RET")
	k.mend(t, "many", k.unroll)
	k.mend(t, "one", 1)
}

// all is the registers of so many steps.
func (k avx2) all(steps int) (list []int) {
	for i := range steps {
		list = append(list, k.sums(i)...)
	}
	return list
}

// free is two registers that no step uses.
func (k avx2) free() [2]int {
	n := len(k.all(k.unroll)) + 1
	return [2]int{n, n + 1}
}

// loop works on so many vectors at a time. Sums are looked at for NaNs two vectors at a time; replacing them is off the
// path.
func (k avx2) loop(t *text, name string, steps int) {
	t.label(name)
	free := k.free()
	for i := range steps {
		f := free
		if i%2 == 1 {
			f = [2]int{free[1], free[0]}
		}
		k.add(t, k.sums(i), i*k.unit, f)
	}
	all := k.all(steps)
	for i := 0; i < len(all); i += 2 {
		to := free[min(i, 1)]
		t.line("VCMPPS $3, Y%d, Y%d, Y%d", all[i], all[min(i+1, len(all)-1)], to)
		if i > 0 {
			t.line("VPOR Y%d, Y%d, Y%d", to, free[0], free[0])
		}
	}
	t.line("VMOVMSKPS Y%d, SI", free[0])
	t.line("TESTL SI, SI")
	t.line("JNZ %sMend", name)
	t.label(name + "Back")
	for i := range steps {
		k.store(t, k.sums(i), i*k.unit, free)
	}
	for _, p := range []string{"AX", "CX", "DX"} {
		t.line("ADDQ $%d, %s", k.unit*steps, p)
	}
	t.line("SUBQ $%d, BX", k.unit*steps)
	t.line("CMPQ BX, $%d", k.unit*steps)
	t.line("JAE %s", name)
}

// mend makes NaNs among sums the one NaN.
func (k avx2) mend(t *text, name string, steps int) {
	t.label(name + "Mend")
	free := k.free()[0]
	for _, v := range k.all(steps) {
		t.line("VCMPPS $3, Y%d, Y%d, Y%d", v, v, free)
		t.line("VBLENDVPS Y%d, Y0, Y%d, Y%d", free, v, v)
	}
	t.line("JMP %sBack", name)
}
