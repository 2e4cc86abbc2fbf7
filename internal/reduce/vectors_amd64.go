package reduce

import (
	"busbar.dev/coll"

	"golang.org/x/sys/cpu"
)

// vectors is the sum in assembly, and of how many bytes it takes a multiple; nil where there is none.
func vectors(t coll.Dtype) (unit int, k kernel) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasF16C {
		return 0, nil
	}
	switch t {
	case coll.Float:
		return 32, sumF32AVX2
	case coll.Half:
		return 16, sumF16AVX2
	case coll.BFloat16:
		return 32, sumBF16AVX2
	}
	return 0, nil
}

//go:noescape
func sumF32AVX2(dst, a, b *byte, n int)

//go:noescape
func sumF16AVX2(dst, a, b *byte, n int)

//go:noescape
func sumBF16AVX2(dst, a, b *byte, n int)
