package reduce

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkFunc gives GB/s of one operand (the memory moves three times that).
func BenchmarkFunc(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 16 << 20} {
		for _, d := range dtypes {
			for _, op := range ops {
				b.Run(fmt.Sprintf("%s/%v/%v", sizeName(size), d, op), func(b *testing.B) {
					f := fastest(b, d, op)
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

func sizeName(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%dMiB", n>>20)
	}
	return fmt.Sprintf("%dKiB", n>>10)
}
