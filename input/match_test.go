package input

import (
	"math/rand/v2"
	"testing"
)

// noise is text without any format: printable bytes in lines.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + r.IntN(95))
		if r.IntN(100) == 0 {
			b[i] = '\n'
		}
	}
	return b
}

// BenchmarkMatch is what it costs to find out that a text is none of ours.
func BenchmarkMatch(b *testing.B) {
	data := noise(4 << 20)
	b.Run("otherwise", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			otherwise(data)
		}
	})
	for _, f := range kinds {
		b.Run(f.Name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f.Match(data)
			}
		})
	}
}
