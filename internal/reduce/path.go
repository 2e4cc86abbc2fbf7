package reduce

// Path is an implementation: the same results at another speed.
type Path uint8

// The paths. Portable is always there.
const (
	Portable Path = iota
	NEON
	AVX2       // with F16C
	AVX512     // F, BW, DQ and VL
	AVX512FP16 // AVX512, and float16 sums and products without a detour
)

// Best is the fastest path of this processor.
func Best() Path {
	all := detected()
	return all[len(all)-1]
}
