package reduce

// cpuid asks the processor what it can do.
func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)

// sumF16FP16 works on n bytes, a multiple of 2.
//
//go:noescape
func sumF16FP16(dst, a, b *byte, n int)

// prodF16FP16 works on n bytes, a multiple of 2.
//
//go:noescape
func prodF16FP16(dst, a, b *byte, n int)
