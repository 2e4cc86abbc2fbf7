package reduce

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
)

// value decodes an element as float64, or as the integer that it is.
func value(t coll.Dtype, v uint64) float64 {
	switch t {
	case coll.Float:
		return float64(math.Float32frombits(uint32(v)))
	case coll.Double:
		return math.Float64frombits(v)
	case coll.Half:
		return float64(widen16(uint16(v)))
	case coll.BFloat16:
		return float64(widenB(uint16(v)))
	}
	panic("not a float")
}

// roundoff is half a unit in the last place of 1, and the half of the least
// denormal.
func roundoff(t coll.Dtype) (relative, absolute float64) {
	switch t {
	case coll.Float:
		return math.Exp2(-24), math.Exp2(-150)
	case coll.Half:
		return math.Exp2(-11), math.Exp2(-25)
	case coll.BFloat16:
		return math.Exp2(-8), math.Exp2(-134)
	}
	return 0, 0 // float64 is compared exactly
}

// exact is the operation in float64, which holds sums and products of the
// smaller types without rounding worth speaking of.
func exact(op coll.Redop, x, y float64) float64 {
	switch op {
	case coll.Sum:
		return x + y
	case coll.Prod:
		return x * y
	case coll.Min:
		return math.Min(x, y)
	}
	return math.Max(x, y)
}

// TestPortableAgainstFloat64 holds the portable code to each type's bound.
func TestPortableAgainstFloat64(t *testing.T) {
	for _, d := range []coll.Dtype{coll.Float, coll.Double, coll.Half, coll.BFloat16} {
		for _, op := range ops {
			f := inGo(t, d, op)
			rng := rand.New(rand.NewPCG(4, uint64(d)))
			size := d.Size()
			a, b, dst := make([]byte, 4096*size), make([]byte, 4096*size), make([]byte, 4096*size)
			fill(rng, d, a, false)
			fill(rng, d, b, false)
			f(dst, a, b)
			relative, absolute := roundoff(d)
			for at := 0; at < len(a); at += size {
				x, y, r := value(d, get(a[at:at+size])), value(d, get(b[at:at+size])), value(d, get(dst[at:at+size]))
				want := exact(op, x, y)
				if nanRule(t, op, x, y, r) || math.IsNaN(want) && math.IsNaN(r) {
					continue
				}
				over := math.IsInf(r, 0) && math.Abs(want) > largest(d)*(1-relative)
				if d := math.Abs(r - want); !over && r != want && !(d <= max(relative*math.Abs(want), absolute)) {
					t.Fatalf("%v(%g, %g) is %g, want %g", op, x, y, r, want)
				}
			}
		}
	}
}

func largest(d coll.Dtype) float64 {
	switch d {
	case coll.Float:
		return math.MaxFloat32
	case coll.Half:
		return 65504
	case coll.BFloat16:
		return float64(widenB(0x7f7f))
	}
	return math.MaxFloat64
}

// nanRule checks min and max where an operand is a NaN, and says whether it was
// such a case.
func nanRule(t *testing.T, op coll.Redop, x, y, r float64) bool {
	if op != coll.Min && op != coll.Max || !math.IsNaN(x) && !math.IsNaN(y) {
		return false
	}
	want := x
	if math.IsNaN(x) {
		want = y
	}
	if r != want && !(math.IsNaN(r) && math.IsNaN(want)) {
		t.Errorf("%v(%g, %g) is %g, want %g", op, x, y, r, want)
	}
	return true
}

// TestHalfIsCorrectlyRounded tries every float16 and bfloat16: the way there and
// back is the identity, and the neighbourhood of each rounds to the nearest.
func TestHalfIsCorrectlyRounded(t *testing.T) {
	for _, h := range []struct {
		name   string
		widen  func(uint16) float32
		narrow func(float32) uint16
	}{{"float16", widen16, narrow16}, {"bfloat16", widenB, narrowB}} {
		for v := range 1 << 16 {
			f := h.widen(uint16(v))
			if f != f {
				if got := h.narrow(f); got != nanHalf {
					t.Fatalf("%s: NaN %x becomes %x", h.name, v, got)
				}
				continue
			}
			if got := h.narrow(f); got != uint16(v) {
				t.Fatalf("%s: %x is %g and becomes %x", h.name, v, f, got)
			}
			next := h.widen(uint16(v + 1))
			if v&0x7fff == 0x7fff || next != next || math.IsInf(float64(next), 0) || math.IsInf(float64(f), 0) {
				continue
			}
			middle := float32((float64(f) + float64(next)) / 2)
			even := uint16(v + v&1)
			if got := h.narrow(middle); got != even {
				t.Fatalf("%s: the middle of %g and %g becomes %x, want %x", h.name, f, next, got, even)
			}
			if got := h.narrow(math.Nextafter32(middle, f)); got != uint16(v) {
				t.Fatalf("%s: just short of the middle above %g becomes %x", h.name, f, got)
			}
			if got := h.narrow(math.Nextafter32(middle, next)); got != uint16(v+1) {
				t.Fatalf("%s: just past the middle above %g becomes %x", h.name, f, got)
			}
		}
	}
}

func TestIntegersWrap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, d := range dtypes[4:] {
		signed := d == coll.Int8 || d == coll.Int32 || d == coll.Int64
		bits := uint(8 * d.Size())
		whole := func(v uint64) *big.Int {
			if signed {
				return big.NewInt(int64(v<<(64-bits)) >> (64 - bits))
			}
			return new(big.Int).SetUint64(v)
		}
		modulus := new(big.Int).Lsh(big.NewInt(1), bits)
		for _, op := range ops {
			a, b, dst := make([]byte, 512), make([]byte, 512), make([]byte, 512)
			fill(rng, d, a, false)
			fill(rng, d, b, false)
			fastest(t, d, op)(dst, a, b)
			for at := 0; at < len(a); at += d.Size() {
				x, y := whole(get(a[at:at+d.Size()])), whole(get(b[at:at+d.Size()]))
				want := map[coll.Redop]*big.Int{
					coll.Sum: new(big.Int).Add(x, y), coll.Prod: new(big.Int).Mul(x, y),
					coll.Min: x, coll.Max: y,
				}[op]
				if c := x.Cmp(y); op == coll.Min && c > 0 || op == coll.Max && c > 0 {
					want = map[coll.Redop]*big.Int{coll.Min: y, coll.Max: x}[op]
				}
				r := get(dst[at : at+d.Size()])
				if m := new(big.Int).Mod(want, modulus); m.Uint64() != r {
					t.Fatalf("%v(%v, %v) of %v is %x, want %x", op, x, y, d, r, m)
				}
			}
		}
	}
}

// TestScaleAndDivide compares with float64, and memory of odd places with aligned memory.
func TestScaleAndDivide(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, d := range dtypes {
		for _, n := range []int{1, 2, 3, 7, 300} {
			for _, divide := range []bool{false, true} {
				f, err := Scaler(d, float64(n))
				if divide {
					f, err = Divider(d, n)
				}
				if err != nil {
					t.Fatal(err)
				}
				a := make([]byte, 333*d.Size())
				fill(rng, d, a, false)
				want, odd := make([]byte, len(a)), newWindow(len(a), 1)
				f(want, a)
				copy(odd.in, a)
				f(odd.in, odd.in)
				if err := odd.intact(1); err != nil || !bytes.Equal(odd.in, want) {
					t.Fatalf("%v, n %d, divide %v: another result at an odd place (%v)", d, n, divide, err)
				}
				checkScale(t, d, n, divide, a, want)
			}
		}
	}
	if _, err := Divider(coll.Float, 0); err == nil {
		t.Error("an average over 0 ranks is allowed")
	}
}

func checkScale(t *testing.T, d coll.Dtype, n int, divide bool, a, got []byte) {
	t.Helper()
	if d.Size() == 8 || d == coll.Uint32 || d == coll.Int8 || d == coll.Uint8 || d == coll.Int32 {
		return
	}
	relative, absolute := roundoff(d)
	for at := 0; at < len(a); at += d.Size() {
		x, r := value(d, get(a[at:at+d.Size()])), value(d, get(got[at:at+d.Size()]))
		want := x * float64(n)
		if divide {
			want = x / float64(n)
		}
		over := math.IsInf(r, 0) && math.Abs(want) > largest(d)*(1-relative)
		same := r == want || math.IsNaN(r) && math.IsNaN(want)
		if diff := math.Abs(r - want); !over && !same && !(diff <= max(relative*math.Abs(want), absolute)*(1+1e-4)) {
			t.Fatalf("%v: %g by %d (divide %v) is %g, want %g", d, x, n, divide, r, want)
		}
	}
}

func TestIntegerAveragesAreCut(t *testing.T) {
	src := []byte{0xf9, 7, 0x80, 0x7f} // -7, 7, -128, 127
	dst := make([]byte, 4)
	f, err := Divider(coll.Int8, 2)
	if err != nil {
		t.Fatal(err)
	}
	f(dst, src)
	if want := []byte{0xfd, 3, 0xc0, 63}; !bytes.Equal(dst, want) {
		t.Errorf("halves are %x, want %x", dst, want)
	}
	if f, _ = Divider(coll.Int8, 300); f != nil {
		f(dst, src)
	}
	if want := make([]byte, 4); !bytes.Equal(dst, want) {
		t.Errorf("divided by 300 they are %x, want zeros", dst)
	}
}

// TestEights holds every sum and product of two 8-bit floats to that of float64, rounded once.
func TestEights(t *testing.T) {
	for _, d := range []coll.Dtype{coll.F8E4M3, coll.F8E5M2} {
		for _, op := range []coll.Redop{coll.Sum, coll.Prod} {
			f, err := For(d, op)
			if err != nil {
				t.Fatal(err)
			}
			got, want := make([]byte, 1), make([]byte, 1)
			for i := range 1 << 16 {
				a, b := []byte{byte(i)}, []byte{byte(i >> 8)}
				x, y := Element(a, d), Element(b, d)
				z := x + y
				if op == coll.Prod {
					z = x * y
				}
				f(got, a, b)
				Put(want, d, z)
				if g, w := Element(got, d), Element(want, d); g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
					t.Fatalf("%v of %g and %g as %v is %g, want %g", op, x, y, d, g, w)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	if _, err := For(coll.Dtype(99), coll.Sum); err == nil {
		t.Error("type 99 is known")
	}
	if _, err := For(coll.Float, coll.Redop(99)); err == nil {
		t.Error("reduction 99 is known")
	}
	f, _ := For(coll.Float, coll.Sum)
	for _, lens := range [][3]int{{4, 4, 8}, {4, 8, 4}, {6, 6, 6}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("lengths %v are accepted", lens)
				}
			}()
			f(make([]byte, lens[0]), make([]byte, lens[1]), make([]byte, lens[2]))
		}()
	}
}

func TestNothingAllocates(t *testing.T) {
	dst, a := make([]byte, 4096), make([]byte, 4096)
	for _, d := range dtypes {
		f, g := fastest(t, d, coll.Sum), inGo(t, d, coll.Sum)
		u, _ := Divider(d, 3)
		if n := testing.AllocsPerRun(10, func() { f(dst, dst, a); g(dst, dst, a); u(dst, dst) }); n != 0 {
			t.Errorf("%v: %g allocations", d, n)
		}
	}
}

// FuzzFunc compares what this processor runs with the code in Go on any bytes.
func FuzzFunc(f *testing.F) {
	f.Add([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff, 1, 0, 0, 0}, []byte{0, 0, 0x80, 0x7f}, uint8(0), uint8(2))
	f.Add(bytes.Repeat([]byte{0x7c, 0xfc}, 99), bytes.Repeat([]byte{0xfc, 0x01}, 99), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, a, b []byte, which, how uint8) {
		d, op := dtypes[int(which)%len(dtypes)], ops[int(how)%len(ops)]
		n := min(len(a), len(b)) / d.Size() * d.Size()
		a, b = a[:n], b[:n]
		want := make([]byte, n)
		inGo(t, d, op)(want, a, b)
		got := make([]byte, n)
		fastest(t, d, op)(got, b, a)
		if !bytes.Equal(want, got) {
			t.Fatalf("%v of %v: %x, in Go %x", op, d, got, want)
		}
	})
}
