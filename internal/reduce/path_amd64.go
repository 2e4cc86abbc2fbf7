package reduce

import (
	"sync"

	"busbar.dev/coll"

	"golang.org/x/sys/cpu"
)

// detected is what this processor and its system can do. CPUID is slow inside a
// virtual machine, so it is asked once.
var detected = sync.OnceValue(func() []Path {
	all := []Path{Portable}
	x := &cpu.X86
	_, _, ecx, _ := cpuid(1, 0)
	f16c := ecx>>29&1 == 1
	if !x.HasAVX2 || !f16c {
		return all
	}
	all = append(all, AVX2)
	if !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL || !x.HasBMI2 {
		return all
	}
	all = append(all, AVX512)
	if _, _, _, edx := cpuid(7, 0); edx>>23&1 == 1 {
		all = append(all, AVX512FP16)
	}
	return all
})

// binary returns the path's kernel, or nil for the portable one.
func (p Path) binary(t coll.Dtype, op coll.Redop) kernel {
	switch {
	case p == AVX512FP16 && t == coll.Half && op == coll.Sum:
		return sumF16FP16
	case p == AVX512FP16 && t == coll.Half && op == coll.Prod:
		return prodF16FP16
	case p == AVX512FP16, p == AVX512:
		return binaryAVX512(t, op)
	case p == AVX2:
		return binaryAVX2(t, op)
	}
	return nil
}

// pick chooses by operation.
func pick(op coll.Redop, sum, prod, least, greatest kernel) kernel {
	switch op {
	case coll.Sum:
		return sum
	case coll.Prod:
		return prod
	case coll.Min:
		return least
	case coll.Max:
		return greatest
	}
	return nil
}

func binaryAVX2(t coll.Dtype, op coll.Redop) kernel {
	switch t {
	case coll.Float:
		return pick(op, sumF32AVX2, prodF32AVX2, minF32AVX2, maxF32AVX2)
	case coll.Double:
		return pick(op, sumF64AVX2, prodF64AVX2, minF64AVX2, maxF64AVX2)
	case coll.Half:
		return pick(op, sumF16AVX2, prodF16AVX2, minF16AVX2, maxF16AVX2)
	case coll.BFloat16:
		return pick(op, sumBF16AVX2, prodBF16AVX2, minBF16AVX2, maxBF16AVX2)
	case coll.Int8:
		return pick(op, sumI8AVX2, prodI8AVX2, minI8AVX2, maxI8AVX2)
	case coll.Uint8:
		return pick(op, sumI8AVX2, prodI8AVX2, minU8AVX2, maxU8AVX2)
	case coll.Int32:
		return pick(op, sumI32AVX2, prodI32AVX2, minI32AVX2, maxI32AVX2)
	case coll.Uint32:
		return pick(op, sumI32AVX2, prodI32AVX2, minU32AVX2, maxU32AVX2)
	case coll.Int64:
		return pick(op, sumI64AVX2, prodI64AVX2, minI64AVX2, maxI64AVX2)
	case coll.Uint64:
		return pick(op, sumI64AVX2, prodI64AVX2, minU64AVX2, maxU64AVX2)
	}
	return nil
}

func binaryAVX512(t coll.Dtype, op coll.Redop) kernel {
	switch t {
	case coll.Float:
		return pick(op, sumF32AVX512, prodF32AVX512, minF32AVX512, maxF32AVX512)
	case coll.Double:
		return pick(op, sumF64AVX512, prodF64AVX512, minF64AVX512, maxF64AVX512)
	case coll.Half:
		return pick(op, sumF16AVX512, prodF16AVX512, minF16AVX512, maxF16AVX512)
	case coll.BFloat16:
		return pick(op, sumBF16AVX512, prodBF16AVX512, minBF16AVX512, maxBF16AVX512)
	case coll.Int8:
		return pick(op, sumI8AVX512, prodI8AVX512, minI8AVX512, maxI8AVX512)
	case coll.Uint8:
		return pick(op, sumI8AVX512, prodI8AVX512, minU8AVX512, maxU8AVX512)
	case coll.Int32:
		return pick(op, sumI32AVX512, prodI32AVX512, minI32AVX512, maxI32AVX512)
	case coll.Uint32:
		return pick(op, sumI32AVX512, prodI32AVX512, minU32AVX512, maxU32AVX512)
	case coll.Int64:
		return pick(op, sumI64AVX512, prodI64AVX512, minI64AVX512, maxI64AVX512)
	case coll.Uint64:
		return pick(op, sumI64AVX512, prodI64AVX512, minU64AVX512, maxU64AVX512)
	}
	return nil
}

// scaler returns the path's kernel, or nil for the portable one.
func (p Path) scaler(t coll.Dtype, divide bool) scaler {
	switch {
	case (p == AVX512 || p == AVX512FP16) && divide:
		return single(t, divideF32AVX512, divideF16AVX512, divideBF16AVX512, divideF64AVX512)
	case p == AVX512 || p == AVX512FP16:
		return single(t, scaleF32AVX512, scaleF16AVX512, scaleBF16AVX512, scaleF64AVX512)
	case p == AVX2 && divide:
		return single(t, divideF32AVX2, divideF16AVX2, divideBF16AVX2, divideF64AVX2)
	case p == AVX2:
		return single(t, scaleF32AVX2, scaleF16AVX2, scaleBF16AVX2, scaleF64AVX2)
	}
	return nil
}

// single chooses by type and gives the factor its precision.
func single(t coll.Dtype, f32, f16, bf16 func(dst, a *byte, n int, factor float32), f64 scaler) scaler {
	var k func(dst, a *byte, n int, factor float32)
	switch t {
	case coll.Float:
		k = f32
	case coll.Half:
		k = f16
	case coll.BFloat16:
		k = bf16
	case coll.Double:
		return f64
	default:
		return nil
	}
	return func(dst, a *byte, n int, factor float64) { k(dst, a, n, float32(factor)) }
}

// half returns the path's kernels of a 16-bit wire format.
func (p Path) half(f Format) half {
	wide := p == AVX512 || p == AVX512FP16
	switch {
	case wide && f == Float16:
		return half{lanes: 16, encode: encodeF16AVX512, decode: decodeF16AVX512, decodeAdd: decodeAddF16AVX512}
	case wide && f == BFloat16:
		return half{lanes: 16, encode: encodeBF16AVX512, decode: decodeBF16AVX512, decodeAdd: decodeAddBF16AVX512}
	case p == AVX2 && f == Float16:
		return half{lanes: 8, encode: encodeF16AVX2, decode: decodeF16AVX2, decodeAdd: decodeAddF16AVX2}
	case p == AVX2 && f == BFloat16:
		return half{lanes: 8, encode: encodeBF16AVX2, decode: decodeBF16AVX2, decodeAdd: decodeAddBF16AVX2}
	}
	return half{}
}

// block returns the path's kernels of Int8.
func (p Path) block() block {
	switch p {
	case AVX512, AVX512FP16:
		return block{peakAVX512, quantizeAVX512, dequantizeAVX512, dequantizeAddAVX512}
	case AVX2:
		return block{peakAVX2, quantizeAVX2, dequantizeAVX2, dequantizeAddAVX2}
	}
	return block{}
}
