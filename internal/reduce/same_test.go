package reduce

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"busbar.dev/coll"
)

// TestSameBitsOnEveryProcessor has the checksums of results that all processors must give.
func TestSameBitsOnEveryProcessor(t *testing.T) {
	switch runtime.GOARCH {
	case "amd64", "arm64", "riscv64", "loong64", "ppc64le":
	default:
		t.Skipf("the checksums are of little-endian buffers; this is %s", runtime.GOARCH)
	}
	const want = "float:cb6216e3 double:ea6df38e half:cb32f48e bfloat16:90aa5d66 int8:8f43413a " +
		"uint8:1c7d73de int32:783acf26 uint32:7cfa8cd2 int64:815e158a uint64:260c5c39"
	for name, combine := range map[string]func(testing.TB, coll.Dtype, coll.Redop) Func{
		"in Go": inGo, "fastest": fastest,
	} {
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
				combine(t, d, op)(dst, a, b)
				sum.Write(dst)
			}
			f, err := Divider(d, 7)
			if err != nil {
				t.Fatal(err)
			}
			f(dst, a)
			sum.Write(dst)
			got = append(got, fmt.Sprintf("%v:%08x", d, sum.Sum32()))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: it gives\n%s\nwant\n%s", name, s, want)
		}
	}
}
