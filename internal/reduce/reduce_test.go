package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
)

var (
	dtypes = []coll.Dtype{
		coll.Float, coll.Double, coll.Half, coll.BFloat16,
		coll.Int8, coll.Uint8, coll.Int32, coll.Uint32, coll.Int64, coll.Uint64,
	}
	ops = []coll.Redop{coll.Sum, coll.Prod, coll.Min, coll.Max}
)

// specials are bit patterns worth meeting: zeros, NaNs quiet and signalling of
// both signs, infinities, denormals, the greatest numbers, ones.
func specials(t coll.Dtype) []uint64 {
	switch t {
	case coll.Float:
		return []uint64{
			0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0xff812345, 0x7fffffff,
			0xffffffff, 1, 0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000, 0xbf800000,
		}
	case coll.Double:
		return []uint64{
			0, 1 << 63, 0x7ff << 52, 0xfff << 52, 0x7ff8 << 48, 0xfff8<<48 | 1, 0x7ff<<52 | 1, 0xfff<<52 | 5, math.MaxInt64,
			math.MaxUint64, 1, 1<<63 | 1, 1<<52 - 1, 1 << 52, 0x7ff<<52 - 1, 0xfff<<52 - 1, 0x3ff << 52, 0xbff << 52,
		}
	case coll.Half:
		return []uint64{
			0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0xfd23, 0x7fff, 0xffff, 1, 0x8001, 0x03ff, 0x0400,
			0x7bff, 0xfbff, 0x3c00, 0xbc00, 0x7bfe, 0x4c00, 0x0801,
		}
	case coll.BFloat16:
		return []uint64{
			0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0xff91, 0x7fff, 0xffff, 1, 0x8001, 0x007f, 0x0080,
			0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x7f7e, 0x0101,
		}
	}
	return []uint64{
		0, 1, math.MaxUint64, 0x7f, 0x80, 0x7fffffff, 0x80000000, math.MaxInt64, 1 << 63, 3, 0xfffffffffffffffd,
	}
}

// fill writes elements: mostly numbers of moderate size, some specials, some
// random bits. plain leaves numbers of moderate size alone.
func fill(rng *rand.Rand, t coll.Dtype, buf []byte, plain bool) {
	size, odd := t.Size(), specials(t)
	for at := 0; at+size <= len(buf); at += size {
		var v uint64
		switch c := rng.IntN(100); {
		case !plain && c < 10:
			v = odd[rng.IntN(len(odd))]
		case !plain && c < 20:
			v = rng.Uint64()
		default:
			v = encode(t, rng.NormFloat64()*math.Exp2(float64(rng.IntN(8))))
		}
		put(buf[at:at+size], v)
	}
}

func put(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	case 8:
		binary.NativeEndian.PutUint64(b, v)
	}
}

func get(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

// encode is the type's nearest to x.
func encode(t coll.Dtype, x float64) uint64 {
	switch t {
	case coll.Float:
		return uint64(math.Float32bits(float32(x)))
	case coll.Double:
		return math.Float64bits(x)
	case coll.Half:
		return uint64(narrow16(float32(x)))
	case coll.BFloat16:
		return uint64(narrowB(float32(x)))
	}
	return uint64(int64(x))
}

// window is a buffer of n bytes that begins at the given misalignment, with
// guards on both sides.
type window struct{ all, in []byte }

const guard = 128

func newWindow(n, shift int) window {
	all := bytes.Repeat([]byte{0xa5}, n+shift+2*guard)
	return window{all: all, in: all[guard+shift : guard+shift+n : guard+shift+n]}
}

func (w window) intact(shift int) error {
	for i, b := range w.all {
		if inside := i >= guard+shift && i < guard+shift+len(w.in); !inside && b != 0xa5 {
			return fmt.Errorf("byte %d beside the buffer was written", i-guard-shift)
		}
	}
	return nil
}

// inGo is the Func without assembly.
func inGo(t testing.TB, d coll.Dtype, op coll.Redop) Func {
	t.Helper()
	k, err := portable(d, op)
	if err != nil {
		t.Fatal(err)
	}
	return strides(k, d.Size())
}

// fastest is what this processor runs.
func fastest(t testing.TB, d coll.Dtype, op coll.Redop) Func {
	t.Helper()
	f, err := For(d, op)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rounds is how often a property is tried.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// TestAgree compares what this processor runs with the code in Go on aligned memory, bit for bit, at
// random lengths and alignments, out of place and in place on either side.
func TestAgree(t *testing.T) {
	for _, d := range dtypes {
		for _, op := range ops {
			t.Run(fmt.Sprintf("%v/%v", d, op), func(t *testing.T) { agrees(t, d, op) })
		}
	}
}

func agrees(t *testing.T, d coll.Dtype, op coll.Redop) {
	want, got := inGo(t, d, op), fastest(t, d, op)
	rng := rand.New(rand.NewPCG(1, uint64(d)<<8|uint64(op)))
	for round := range rounds(400) {
		elems := rng.IntN(200)
		if round%200 == 39 {
			elems = rng.IntN(stride+stride/4) / d.Size()
		}
		n := elems * d.Size()
		var sh [3]int
		for i := range sh {
			sh[i] = rng.IntN(2) * rng.IntN(64)
		}
		dst, a, b := newWindow(n, sh[0]), newWindow(n, sh[1]), newWindow(n, sh[2])
		fill(rng, d, a.in, round%3 == 0)
		fill(rng, d, b.in, round%3 == 0)
		ref := make([]byte, n)
		want(ref, bytes.Clone(a.in), bytes.Clone(b.in))
		to := dst
		switch rng.IntN(3) {
		case 1:
			to, sh[0] = a, sh[1]
		case 2:
			to, sh[0] = b, sh[2]
		}
		x, y := bytes.Clone(a.in), bytes.Clone(b.in)
		got(to.in, a.in, b.in)
		if err := to.intact(sh[0]); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < n; at += d.Size() {
			end := at + d.Size()
			if !bytes.Equal(to.in[at:end], ref[at:end]) {
				t.Fatalf("%d elements, element %d: %x op %x gives %x, in Go %x", elems, at/d.Size(),
					get(x[at:end]), get(y[at:end]), get(to.in[at:end]), get(ref[at:end]))
			}
		}
	}
}

// TestSpecialPairs tries every special value against every other, and that the
// order of the operands does not matter.
func TestSpecialPairs(t *testing.T) {
	for _, d := range dtypes {
		odd := specials(d)
		size := d.Size()
		a := make([]byte, len(odd)*len(odd)*size)
		b := make([]byte, len(a))
		for i, x := range odd {
			for j, y := range odd {
				at := (i*len(odd) + j) * size
				put(a[at:at+size], x)
				put(b[at:at+size], y)
			}
		}
		for _, op := range ops {
			ref, got, turned := make([]byte, len(a)), make([]byte, len(a)), make([]byte, len(a))
			f := fastest(t, d, op)
			inGo(t, d, op)(ref, a, b)
			f(got, a, b)
			f(turned, b, a)
			for at := 0; at < len(a); at += size {
				x, y, r := get(a[at:at+size]), get(b[at:at+size]), get(got[at:at+size])
				if w := get(ref[at : at+size]); r != w {
					t.Errorf("%v(%x, %x) of %v is %x, in Go %x", op, x, y, d, r, w)
				}
				if w := get(turned[at : at+size]); r != w {
					t.Errorf("%v(%x, %x) of %v is %x, but %x the other way round", op, x, y, d, r, w)
				}
			}
		}
	}
}
