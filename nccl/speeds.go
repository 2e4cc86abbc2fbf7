package nccl

// speeds are the bandwidths per channel that the search tries, in GB/s, from high
// to low (NCCL 2.28 src/graph/search.cc, speedArrayIntra and the like).
func speeds(v Version, cc int, inter bool) []float32 {
	switch {
	case !v.From(18):
		return speedsBefore18(v, cc, inter)
	case cc >= 100 && v.From(25) && !inter:
		list := []float32{90, 80, 70, 60, 50, 40, 30, 24, 20, 19}
		if v.From(27) {
			list = append(list, 18)
		}
		if v.From(29) {
			list = []float32{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}
		}
		return list
	case cc >= 100 && v.From(27):
		tail := []float32{48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
		switch {
		case v.From(30):
			return append([]float32{86, 80}, tail...)
		case v.From(29):
			return append([]float32{96, 80}, tail...)
		}
		return append([]float32{96}, tail...)
	case cc >= 90 && !inter:
		switch {
		case v.From(21):
			return []float32{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3}
		case v.From(19):
			return []float32{60, 50, 40, 30, 24, 20, 15, 12, 6, 3}
		}
		return []float32{60, 40, 30, 24, 20, 15, 12, 6, 3}
	case cc >= 90:
		if v.From(19) {
			return []float32{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
		}
		return []float32{48, 45, 42, 40, 30, 24, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case !inter:
		return []float32{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3}
	}
	return []float32{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
}

// speedsBefore18 are those of NCCL 2.8 to 2.17.
func speedsBefore18(v Version, cc int, inter bool) []float32 {
	tail := []float32{18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12}
	switch {
	case !v.From(10):
		return append([]float32{42, 30, 24, 21}, tail...)
	case v.From(16) && cc >= 90 && inter:
		return []float32{48, 45, 30, 24, 15, 12, 6, 3, 2.4, 1.2, .24, .12}
	case v.From(16) && cc >= 90:
		return []float32{66, 33, 24, 20, 15, 12, 6, 3}
	case !inter:
		return append([]float32{44, 30, 22}, tail[:10]...)
	case v.From(16):
		return append([]float32{48, 30, 28, 24, 22}, tail...)
	}
	return append([]float32{48, 30, 24, 22}, tail...)
}
