package main

import "fmt"

// neon is a kernel for arm64. R0 to R3 are dst, a, b and how many bytes are left; V0 to V3 and V4 to V7 hold the
// operands, V16 and above are free and V31 holds the one NaN.
type neon struct {
	name   string
	consts map[int]uint64
	// add is V<a> += V<b>.
	add func(t *text, a, b int)
}

func neonKernels() []neon {
	return []neon{
		{"sumF32", map[int]uint64{31: 0x7fffffff7fffffff}, addSingles},
		{"sumF16", map[int]uint64{31: 0x7fffffff7fffffff}, func(t *text, a, b int) {
			addHalves(t, 0x0e217800, "FCVTL", a, b)
			word(t, 0x0e216800, "FCVTN", a, 16, 0)
			word(t, 0x4e216800, "FCVTN2", a, 17, 0)
		}},
		{
			"sumBF16",
			map[int]uint64{31: 0x7fff00007fff0000, 29: 0x0000000100000001, 28: 0x00007fff00007fff},
			func(t *text, a, b int) {
				addHalves(t, 0x2e613800, "SHLL", a, b)
				for _, v := range []int{16, 17} { // to nearest, ties to even: 0x7fff and the lowest bit that stays
					t.line("VUSHR $16, V%d.S4, V20.S4", v)
					t.line("VAND V29.B16, V20.B16, V20.B16")
					t.line("VADD V28.S4, V%d.S4, V%d.S4", v, v)
					t.line("VADD V20.S4, V%d.S4, V%d.S4", v, v)
				}
				t.line("VUZP2 V17.H8, V16.H8, V%d.H8", a)
			},
		},
	}
}

// word is an instruction on vectors that Go's assembler does not know, by its encoding with all registers 0.
func word(t *text, base uint32, name string, d, n, m int) {
	t.line("WORD $%#08x // %s V%d, V%d, V%d", base|uint32(m)<<16|uint32(n)<<5|uint32(d), name, d, n, m)
}

func addSingles(t *text, a, b int) {
	word(t, 0x4e20d400, "FADD.4S", a, a, b)
	word(t, 0x4e20e400, "FCMEQ.4S", 30, a, a)
	t.line("VBIF V30.B16, V31.B16, V%d.B16", a)
}

// addHalves widens both operands and leaves their sums in V16 and V17.
func addHalves(t *text, widen uint32, name string, a, b int) {
	for i, v := range []int{a, b} {
		word(t, widen, name, 16+2*i, v, 0)
		word(t, widen|1<<30, name+"2", 17+2*i, v, 0)
	}
	addSingles(t, 16, 18)
	addSingles(t, 17, 19)
}

func (k neon) write(t *text) {
	t.begin(k.name + "NEON")
	for i, arg := range []string{"dst+0", "a+8", "b+16", "n+24"} {
		t.line("MOVD %s(FP), R%d", arg, i)
	}
	for v := 28; v < 32; v++ {
		if c, ok := k.consts[v]; ok {
			t.line("MOVD $%#x, R4", c)
			t.line("VDUP R4, V%d.D2", v)
		}
	}
	k.loop(t, "many", "one", 4)
	k.loop(t, "one", "done", 1)
	t.label("done")
	t.line("RET")
}

// loop works on so many vectors at a time.
func (k neon) loop(t *text, name, next string, count int) {
	vectors := func(first int) (list string) {
		for i := range count {
			list += fmt.Sprintf(", V%d.B16", first+i)
		}
		return "[" + list[2:] + "]"
	}
	t.label(name)
	t.line("CMP $%d, R3", 16*count)
	t.line("BLT %s", next)
	t.line("VLD1.P %d(R1), %s", 16*count, vectors(0))
	t.line("VLD1.P %d(R2), %s", 16*count, vectors(4))
	for i := range count {
		k.add(t, i, i+4)
	}
	t.line("VST1.P %s, %d(R0)", vectors(0), 16*count)
	t.line("SUB $%d, R3, R3", 16*count)
	t.line("B %s", name)
}
