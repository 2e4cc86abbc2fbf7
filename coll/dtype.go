package coll

import (
	"fmt"
	"strings"
)

// Dtype is the type of an element. The zero value is float, as in nccl-tests.
type Dtype uint8

// The types of nccl-tests' -d.
const (
	Float Dtype = iota
	Int8
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Half
	Double
	BFloat16
	F8E4M3
	F8E5M2
	dtypes
)

var dtypeNames = [dtypes]struct {
	word string
	size int
	also string // other names, blank-separated
}{
	Float:    {"float", 4, "float32 fp32 f32 tf32"},
	Int8:     {"int8", 1, "char"},
	Uint8:    {"uint8", 1, "byte"},
	Int32:    {"int32", 4, "int"},
	Uint32:   {"uint32", 4, ""},
	Int64:    {"int64", 8, ""},
	Uint64:   {"uint64", 8, ""},
	Half:     {"half", 2, "float16 fp16 f16"},
	Double:   {"double", 8, "float64 fp64 f64"},
	BFloat16: {"bfloat16", 2, "bf16"},
	F8E4M3:   {"f8e4m3", 1, "fp8 fp8e4m3 float8_e4m3fn"},
	F8E5M2:   {"f8e5m2", 1, "fp8e5m2 float8_e5m2"},
}

// String is nccl-tests' word.
func (d Dtype) String() string {
	if d >= dtypes {
		return fmt.Sprintf("type(%d)", uint8(d))
	}
	return dtypeNames[d].word
}

// Size is the number of bytes of an element.
func (d Dtype) Size() int {
	if d >= dtypes {
		return 1
	}
	return dtypeNames[d].size
}

// ParseDtype reads nccl-tests' words and PyTorch's (float32, bf16, fp8).
func ParseDtype(s string) (Dtype, error) {
	word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "torch.")
	var words []string
	for d := Float; d < dtypes; d++ {
		if word == dtypeNames[d].word {
			return d, nil
		}
		for _, also := range strings.Fields(dtypeNames[d].also) {
			if word == also {
				return d, nil
			}
		}
		words = append(words, dtypeNames[d].word)
	}
	return Float, fmt.Errorf("type %q is unknown; use one of %s", s, strings.Join(words, ", "))
}

// Redop is how values combine. The zero value is the sum.
type Redop uint8

// The reductions of nccl-tests' -o.
const (
	Sum Redop = iota
	Prod
	Min
	Max
	Avg
	MulSum // the sum of values each multiplied by its rank's factor
	redops
)

var redopNames = [redops]string{"sum", "prod", "min", "max", "avg", "mulsum"}

// String is nccl-tests' word.
func (r Redop) String() string {
	if r >= redops {
		return fmt.Sprintf("reduction(%d)", uint8(r))
	}
	return redopNames[r]
}

// ParseRedop reads nccl-tests' words.
func ParseRedop(s string) (Redop, error) {
	for r, word := range redopNames {
		if strings.EqualFold(s, word) {
			return Redop(r), nil
		}
	}
	return Sum, fmt.Errorf("reduction %q is unknown; use one of %s", s, strings.Join(redopNames[:], ", "))
}
