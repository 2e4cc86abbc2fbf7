package reduce

// String is the path's name.
func (p Path) String() string {
	names := []string{"portable", "neon", "avx2", "avx512", "avx512fp16"}
	if int(p) < len(names) {
		return names[p]
	}
	return "unknown"
}

// Paths returns the paths that this processor has, the fastest last.
func Paths() []Path { return detected() }
