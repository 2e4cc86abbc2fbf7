package reduce

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
)

var formats = []Format{Float16, BFloat16, Int8}

func codec(t testing.TB, p Path, f Format) *Codec {
	t.Helper()
	c, err := p.Codec(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCodecsAgree compares every path with the portable one, bit for bit.
func TestCodecsAgree(t *testing.T) {
	for _, p := range faster() {
		for _, f := range formats {
			t.Run(fmt.Sprintf("%v/%v", p, f), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(2, uint64(f)))
				want, got := codec(t, Portable, f), codec(t, p, f)
				for round := range rounds(300) {
					elems := rng.IntN(700)
					if round == 7 {
						elems = stride/2 + 77
					}
					shift := rng.IntN(9)
					src := newWindow(4*elems, shift)
					fill(rng, coll.Float, src.in, round%2 == 0)
					codecsAgree(t, want, got, src.in, shift)
					wire := newWindow(f.Size(elems), shift)
					for i := range wire.in {
						wire.in[i] = byte(rng.Uint32())
					}
					decodersAgree(t, want, got, src.in, wire.in, shift)
				}
			})
		}
	}
}

func codecsAgree(t *testing.T, want, got *Codec, src []byte, shift int) {
	t.Helper()
	n := got.format.Size(len(src) / 4)
	ref, wire := make([]byte, n), newWindow(n, shift)
	want.Encode(ref, src)
	got.Encode(wire.in, src)
	if err := wire.intact(shift); err != nil {
		t.Fatal(err)
	}
	if at := differ(ref, wire.in); at >= 0 {
		t.Fatalf("%d elements: encoded byte %d is %x, portable %x", len(src)/4, at, wire.in[at], ref[at])
	}
	decodersAgree(t, want, got, src, wire.in, shift)
}

func decodersAgree(t *testing.T, want, got *Codec, a, wire []byte, shift int) {
	t.Helper()
	ref, out := make([]byte, len(a)), newWindow(len(a), shift)
	want.Decode(ref, wire)
	got.Decode(out.in, wire)
	if at := differ(ref, out.in); at >= 0 {
		at &^= 3
		t.Fatalf("%d elements: decoded %d is %x, portable %x", len(a)/4, at/4, get(out.in[at:at+4]), get(ref[at:at+4]))
	}
	want.DecodeAdd(ref, a, wire)
	copy(out.in, a)
	got.DecodeAdd(out.in, out.in, wire)
	if at := differ(ref, out.in); at >= 0 {
		at &^= 3
		t.Fatalf("%d elements: added %d is %x, portable %x", len(a)/4, at/4, get(out.in[at:at+4]), get(ref[at:at+4]))
	}
	if err := out.intact(shift); err != nil {
		t.Fatal(err)
	}
}

func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// TestCodecErrors holds every path to the bounds of the package comment.
func TestCodecErrors(t *testing.T) {
	for _, p := range Paths() {
		for _, f := range formats {
			rng := rand.New(rand.NewPCG(3, uint64(f)))
			c := codec(t, p, f)
			for range rounds(200) {
				elems := 1 + rng.IntN(600)
				src := make([]byte, 4*elems)
				scale := math.Exp2(float64(rng.IntN(290) - 165))
				for i := range elems {
					putF32(src, i, float32(rng.NormFloat64()*scale*math.Exp2(float64(-rng.IntN(12)))))
				}
				wire, back, sum := make([]byte, f.Size(elems)), make([]byte, 4*elems), make([]byte, 4*elems)
				c.Encode(wire, src)
				c.Decode(back, wire)
				c.DecodeAdd(sum, back, wire)
				for i := range elems {
					x, y := float64(f32At(src, i)), float64(f32At(back, i))
					limit := bound(f, src, i)
					if math.IsInf(y, 0) && math.IsInf(limit, 0) {
						continue
					}
					if d := math.Abs(x - y); !(d <= limit) {
						t.Fatalf("%v %v: %g came back as %g, off by %g, bound %g", p, f, x, y, d, limit)
					}
					if s := float64(f32At(sum, i)); s != float64(float32(y+y)) {
						t.Fatalf("%v %v: %g + %g is %g", p, f, y, y, s)
					}
				}
			}
		}
	}
}

// bound is the documented error of element i.
func bound(f Format, src []byte, i int) float64 {
	x := math.Abs(float64(f32At(src, i)))
	switch f {
	case Float16:
		if x >= 65520 {
			return math.Inf(1)
		}
		return max(math.Exp2(-25), math.Exp2(-11)*x)
	case BFloat16:
		if x > 3.3961e38 {
			return math.Inf(1)
		}
		return max(math.Exp2(-134), math.Exp2(-8)*x)
	}
	var m float64
	from := i / BlockElems * BlockElems
	for j := from; j < min(from+BlockElems, len(src)/4); j++ {
		m = max(m, math.Abs(float64(f32At(src, j))))
	}
	return m/254*(1+math.Exp2(-14)) + math.Exp2(-127)
}

// TestCodecsSettle: what was decoded comes back unchanged when it travels on.
func TestCodecsSettle(t *testing.T) {
	for _, p := range Paths() {
		for _, f := range formats {
			rng := rand.New(rand.NewPCG(4, uint64(f)))
			c := codec(t, p, f)
			for round := range rounds(300) {
				elems := 1 + rng.IntN(600)
				src := make([]byte, 4*elems)
				fill(rng, coll.Float, src, round%2 == 0)
				if round%3 == 0 { // denormals, and what borders on them
					for i := range elems {
						putF32(src, i, float32(rng.NormFloat64()*math.Exp2(float64(-115-rng.IntN(36)))))
					}
				}
				wire, once, twice := make([]byte, f.Size(elems)), make([]byte, 4*elems), make([]byte, 4*elems)
				c.Encode(wire, src)
				c.Decode(once, wire)
				c.Encode(wire, once)
				c.Decode(twice, wire)
				if at := differ(once, twice); at >= 0 {
					t.Fatalf("%v %v: element %d, %g, became %g and then %g", p, f, at/4, f32At(src, at/4), f32At(once, at/4), f32At(twice, at/4))
				}
			}
		}
	}
}

// TestCodecsKeepAlarms: what is not a number on one side is not one on the other.
func TestCodecsKeepAlarms(t *testing.T) {
	for _, p := range Paths() {
		for _, f := range formats {
			for _, bits := range []uint32{0x7fc00000, 0xff800001, 0x7f800000, 0xff800000} {
				src := make([]byte, 4*600)
				v := math.Float32frombits(bits)
				putF32(src, 300, v)
				wire, back := make([]byte, f.Size(600)), make([]byte, len(src))
				c := codec(t, p, f)
				c.Encode(wire, src)
				c.Decode(back, wire)
				got := f32At(back, 300)
				if f != Int8 && v == v && got != v {
					t.Errorf("%v %v: %g came back as %g", p, f, v, got)
				}
				if (f == Int8 || v != v) && got == got {
					t.Errorf("%v %v: %x came back as %g, want NaN", p, f, bits, got)
				}
				if first, last := f32At(back, 0), f32At(back, 599); first != 0 || last != 0 {
					t.Errorf("%v %v: the blocks beside hold %g and %g", p, f, first, last)
				}
			}
		}
	}
}

// FuzzCodec gives decoders bytes that no encoder made, and encoders any floats.
func FuzzCodec(f *testing.F) {
	f.Add([]byte{0, 0, 0x80, 0x7f, 1, 2, 3, 4}, uint8(0))
	f.Add(bytes.Repeat([]byte{0xff, 0x7f, 0, 1}, 300), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		format := formats[int(which)%len(formats)]
		src := data[:len(data)&^3]
		for _, p := range faster() {
			codecsAgree(t, codec(t, Portable, format), codec(t, p, format), src, int(which)%7)
			if wire := format.Size(len(src) / 4); wire <= len(data) {
				decodersAgree(t, codec(t, Portable, format), codec(t, p, format), src, data[:wire], int(which)%7)
			}
		}
	})
}
