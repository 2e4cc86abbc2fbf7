package reduce

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// TestSameBitsOnEveryProcessor has the checksums of results that all paths of
// all architectures must give.
func TestSameBitsOnEveryProcessor(t *testing.T) {
	switch runtime.GOARCH {
	case "amd64", "arm64", "riscv64", "loong64", "ppc64le":
	default:
		t.Skipf("the checksums are of little-endian buffers; this is %s", runtime.GOARCH)
	}
	const want = "float:cb6216e3 double:ea6df38e half:cb32f48e bfloat16:90aa5d66 int8:8f43413a " +
		"uint8:1c7d73de int32:783acf26 uint32:7cfa8cd2 int64:815e158a uint64:260c5c39 " +
		"fp16:e59c9a67 bf16:8905ea29 int8:f09b594a"
	for _, p := range Paths() {
		var got []string
		for _, d := range dtypes {
			rng := rand.New(rand.NewPCG(8, uint64(d)))
			odd := specials(d)
			a, b := make([]byte, 2048*d.Size()), make([]byte, 2048*d.Size())
			for at := 0; at < len(a); at += d.Size() {
				put(a[at:at+d.Size()], rng.Uint64())
				put(b[at:at+d.Size()], rng.Uint64())
				if rng.IntN(8) == 0 {
					put(a[at:at+d.Size()], odd[rng.IntN(len(odd))])
				}
			}
			sum := crc32.NewIEEE()
			dst := make([]byte, len(a))
			for _, op := range ops {
				f, err := p.Func(d, op)
				if err != nil {
					t.Fatal(err)
				}
				f(dst, a, b)
				sum.Write(dst)
			}
			f, err := p.Divider(d, 7)
			if err != nil {
				t.Fatal(err)
			}
			f(dst, a)
			sum.Write(dst)
			got = append(got, fmt.Sprintf("%v:%08x", d, sum.Sum32()))
		}
		for _, format := range formats {
			rng := rand.New(rand.NewPCG(9, 9))
			src := make([]byte, 4*2000)
			for at := 0; at < len(src); at += 4 {
				put(src[at:at+4], rng.Uint64()&0xbfffffff) // magnitudes below 2
			}
			wire, dst := make([]byte, format.Size(2000)), make([]byte, len(src))
			c := codec(t, p, format)
			c.Encode(wire, src)
			c.DecodeAdd(dst, src, wire)
			got = append(got, fmt.Sprintf("%v:%08x", format, crc32.ChecksumIEEE(append(wire, dst...))))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%v gives\n%s\nwant\n%s", p, s, want)
		}
	}
}
