package reduce

import "busbar.dev/coll"

// vectors is the sum in assembly, and of how many bytes it takes a multiple; nil where there is none. Every
// arm64 processor has NEON, with conversions of float16.
func vectors(t coll.Dtype) (unit int, k kernel) {
	switch t {
	case coll.Float:
		return 16, sumF32NEON
	case coll.Half:
		return 16, sumF16NEON
	case coll.BFloat16:
		return 16, sumBF16NEON
	}
	return 0, nil
}

//go:noescape
func sumF32NEON(dst, a, b *byte, n int)

//go:noescape
func sumF16NEON(dst, a, b *byte, n int)

//go:noescape
func sumBF16NEON(dst, a, b *byte, n int)
