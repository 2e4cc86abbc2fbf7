package reduce

import (
	"fmt"
	"math"
	"unsafe"

	"busbar.dev/coll"
)

// class is a type's code in Go. The kernels of scale take no second operand.
type class struct {
	combine func(coll.Redop) kernel
	scale   func(divide bool, factor float64) kernel
}

// classify finds the code of a type.
func classify(t coll.Dtype) (class, error) {
	switch t {
	case coll.Float:
		return floats[float32](math.Float32frombits(nan32)), nil
	case coll.Double:
		return floats[float64](math.Float64frombits(nan64)), nil
	case coll.Half:
		return halves(widenAll16, narrowAll16), nil
	case coll.BFloat16:
		return halves(widenAllB, narrowAllB), nil
	case coll.F8E4M3, coll.F8E5M2:
		return eights(t), nil
	case coll.Int8:
		return integers[int8](), nil
	case coll.Uint8:
		return integers[uint8](), nil
	case coll.Int32:
		return integers[int32](), nil
	case coll.Uint32:
		return integers[uint32](), nil
	case coll.Int64:
		return integers[int64](), nil
	case coll.Uint64:
		return integers[uint64](), nil
	}
	return class{}, fmt.Errorf("%v cannot be reduced", t)
}

type integer interface {
	int8 | uint8 | int32 | uint32 | int64 | uint64
}

type float interface{ float32 | float64 }

// over makes a kernel of a loop over typed elements.
func over[T integer | float | uint16](loop func(dst, a, b []T)) kernel {
	return func(dst, a, b *byte, n int) {
		if aligned[T](dst) && aligned[T](a) && aligned[T](b) {
			loop(typed[T](dst, n), typed[T](a, n), typed[T](b, n))
			return
		}
		// Not every processor can read across a boundary: go through aligned copies.
		const most = 64
		var d, x, y [most]T
		size := int(unsafe.Sizeof(d[0]))
		for at := 0; at < n; at += most * size {
			m := min(most*size, n-at)
			elems := m / size
			copy(raw(x[:], m), bytesAt(a, at, m))
			copy(raw(y[:], m), bytesAt(b, at, m))
			loop(d[:elems], x[:elems], y[:elems])
			copy(bytesAt(dst, at, m), raw(d[:], m))
		}
	}
}

func aligned[T any](p *byte) bool {
	var t T
	return uintptr(unsafe.Pointer(p))%unsafe.Alignof(t) == 0
}

func typed[T any](p *byte, n int) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(p)), n/int(unsafe.Sizeof(t)))
}

func raw[T any](s []T, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), n)
}

func bytesAt(p *byte, at, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), at)), n)
}

func integers[T integer]() class {
	return class{
		combine: func(op coll.Redop) kernel {
			return over(map[coll.Redop]func(dst, a, b []T){
				coll.Sum: func(dst, a, b []T) {
					for i := range dst {
						dst[i] = a[i] + b[i]
					}
				},
				coll.Prod: func(dst, a, b []T) {
					for i := range dst {
						dst[i] = a[i] * b[i]
					}
				},
				coll.Min: func(dst, a, b []T) {
					for i := range dst {
						dst[i] = min(a[i], b[i])
					}
				},
				coll.Max: func(dst, a, b []T) {
					for i := range dst {
						dst[i] = max(a[i], b[i])
					}
				},
			}[op])
		},
		scale: func(divide bool, factor float64) kernel {
			f := T(int64(factor))
			return over(func(dst, a, _ []T) {
				for i := range dst {
					switch {
					case !divide:
						dst[i] = a[i] * f
					case float64(f) != factor: // more ranks than the type can count
						dst[i] = 0
					default:
						dst[i] = a[i] / f
					}
				}
			})
		},
	}
}

func floats[T float](nan T) class {
	return class{
		combine: func(op coll.Redop) kernel {
			return over(func(dst, a, b []T) { combine(op, nan, dst, a, b) })
		},
		scale: func(divide bool, factor float64) kernel {
			f := T(factor)
			return over(func(dst, a, _ []T) {
				for i := range dst {
					r := a[i] * f
					if divide {
						r = a[i] / f
					}
					dst[i] = one(r, nan)
				}
			})
		},
	}
}

// one replaces any NaN by the one NaN.
func one[T float](r, nan T) T {
	if r != r {
		return nan
	}
	return r
}

func combine[T float](op coll.Redop, nan T, dst, a, b []T) {
	switch op {
	case coll.Sum:
		for i := range dst {
			dst[i] = one(a[i]+b[i], nan)
		}
	case coll.Prod:
		for i := range dst {
			dst[i] = one(a[i]*b[i], nan)
		}
	default:
		for i := range dst {
			dst[i] = extreme(a[i], b[i], nan, op == coll.Max)
		}
	}
}

// extreme is C's fmin or fmax with -0 below +0.
func extreme[T float](a, b, nan T, greatest bool) T {
	switch {
	case a != a && b != b:
		return nan
	case a != a:
		return b
	case b != b:
		return a
	case greatest:
		return max(a, b)
	default:
		return min(a, b)
	}
}

// eights is the code of an 8-bit float, which no processor adds.
func eights(t coll.Dtype) class {
	var wide [256]float32
	for i := range wide {
		wide[i] = float32(Element([]byte{byte(i)}, t))
	}
	return halves(func(dst []float32, src []uint8) {
		for i := range dst {
			dst[i] = wide[src[i]]
		}
	}, func(dst []uint8, src []float32) {
		for i := range dst {
			Put(dst[i:], t, float64(src[i]))
		}
	})
}

// halves is the code of a 16-bit float, or of one of 8 bits, given its conversions to and from
// float32.
func halves[T uint8 | uint16](widen func(dst []float32, src []T), narrow func(dst []T, src []float32)) class {
	nan := math.Float32frombits(nan32)
	return class{
		combine: func(op coll.Redop) kernel {
			return over(func(dst, a, b []T) {
				var x, y [64]float32
				for len(dst) > 0 {
					n := min(len(x), len(dst))
					widen(x[:n], a[:n])
					widen(y[:n], b[:n])
					combine(op, nan, x[:n], x[:n], y[:n])
					narrow(dst[:n], x[:n])
					dst, a, b = dst[n:], a[n:], b[n:]
				}
			})
		},
		scale: func(divide bool, factor float64) kernel {
			f := float32(factor)
			return over(func(dst, a, _ []T) {
				var x [64]float32
				for len(dst) > 0 {
					n := min(len(x), len(dst))
					widen(x[:n], a[:n])
					for i := range n {
						if divide {
							x[i] /= f
						} else {
							x[i] *= f
						}
					}
					narrow(dst[:n], x[:n])
					dst, a = dst[n:], a[n:]
				}
			})
		},
	}
}
