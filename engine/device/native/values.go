//go:build linux

package native

import (
	"encoding/binary"
	"math/rand/v2"

	"busbar.dev/coll"
	"busbar.dev/internal/reduce"
)

// randoms are values around 0, as those of a model's weights.
func randoms(t coll.Dtype, bytes int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, bytes)
	for i := 0; i < len(out); i += t.Size() {
		reduce.Put(out[i:], t, rng.NormFloat64())
	}
	return out
}

// noise is bytes without a pattern.
func noise(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(out[i:], rng.Uint64())
	}
	return out
}
