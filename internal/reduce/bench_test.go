package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
)

// BenchmarkFunc gives GB/s of one operand (the memory moves three times that).
func BenchmarkFunc(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 16 << 20} {
		for _, d := range dtypes {
			for _, op := range ops {
				for _, p := range Paths() {
					b.Run(fmt.Sprintf("%s/%v/%v/%v", sizeName(size), d, op, p), func(b *testing.B) {
						f, err := p.Func(d, op)
						if err != nil {
							b.Fatal(err)
						}
						x, y := make([]byte, size), make([]byte, size)
						rng := rand.New(rand.NewPCG(1, 2))
						fill(rng, d, x, true)
						fill(rng, d, y, true)
						dst := make([]byte, size)
						b.SetBytes(int64(size))
						b.ReportAllocs()
						for b.Loop() {
							f(dst, x, y)
						}
					})
				}
			}
		}
	}
}

func sizeName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}

// BenchmarkCodec gives GB/s of float32.
func BenchmarkCodec(b *testing.B) {
	const size = 64 << 10
	src, dst := make([]byte, size), make([]byte, size)
	fill(rand.New(rand.NewPCG(1, 2)), coll.Float, src, true)
	for _, f := range formats {
		for _, p := range Paths() {
			c := codec(b, p, f)
			wire := make([]byte, f.Size(size/4))
			for _, w := range []struct {
				name string
				do   func()
			}{
				{"encode", func() { c.Encode(wire, src) }},
				{"decode", func() { c.Decode(dst, wire) }},
				{"add", func() { c.DecodeAdd(dst, src, wire) }},
			} {
				b.Run(fmt.Sprintf("%v/%s/%v", f, w.name, p), func(b *testing.B) {
					b.SetBytes(size)
					b.ReportAllocs()
					for b.Loop() {
						w.do()
					}
				})
			}
		}
	}
}
