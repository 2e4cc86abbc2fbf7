package workload

import (
	"fmt"
	"slices"
	"strings"
)

// Precision is how numbers are kept and multiplied.
type Precision string

// Precisions. The amp ones keep float32 weights and cast them for products. Of those in 8 and 4 bits (Transformer
// Engine's recipes) weights, activations between products and attention stay bf16: FP8 scales a tensor by the greatest
// numbers of steps before, FP8Current by its own, which is read twice for that; FP8Block scales tiles of 128, MXFP8
// runs of 32 and NVFP4 runs of 16 numbers.
const (
	FP32       Precision = "fp32"
	TF32       Precision = "tf32"
	FP16       Precision = "fp16"
	BF16       Precision = "bf16"
	AMP        Precision = "amp-bf16"
	AMPH       Precision = "amp-fp16"
	FP8        Precision = "fp8"
	FP8Current Precision = "fp8-tensorwise"
	FP8Block   Precision = "fp8-blockwise"
	MXFP8      Precision = "mxfp8"
	NVFP4      Precision = "nvfp4"
)

// Precisions lists them.
func Precisions() []Precision {
	return []Precision{FP32, TF32, FP16, BF16, AMP, AMPH, FP8, FP8Current, FP8Block, MXFP8, NVFP4}
}

// Width is the bytes of an activation.
func (p Precision) Width() float64 {
	if p == FP32 || p == TF32 {
		return 4
	}
	return 2
}

// Amp says that weights stay float32 and are cast for products.
func (p Precision) Amp() bool { return p == AMP || p == AMPH }

// Low says that products take numbers of fewer bits than activations have.
func (p Precision) Low() bool { return p.Operand() < 2 }

// Operand is the bytes of a number that products take.
func (p Precision) Operand() float64 {
	switch p {
	case FP8, FP8Current, FP8Block, MXFP8:
		return 1
	case NVFP4:
		return 0.5
	}
	return p.Width()
}

// casts is what goes through memory to bring a number of 16 bits into those of products, as it is and turned: one read
// and two writes, where the kernel before it does not write them; a second read for the greatest of a tensor; for NVFP4
// also the rotation before it (NVIDIA 2025, Pretraining Large Language Models with NVFP4, arXiv 2509.25149, section 4).
func (p Precision) casts() float64 {
	switch p {
	case FP8:
		return 3
	case FP8Current:
		return 5
	case FP8Block, MXFP8:
		return 4.2
	case NVFP4:
		return 6
	}
	return 0
}

// precisionWords are the words that people write precisions with, by what they say: what products take, how it is
// scaled, or nothing of importance.
var precisionWords = map[string]Precision{
	"fp32": FP32, "float32": FP32, "single": FP32, "f32": FP32, "tf32": TF32, "tensorfloat32": TF32, "fp16": FP16,
	"float16": FP16, "half": FP16, "f16": FP16,
	"bf16": BF16, "bfloat16": BF16, "fp8": FP8, "float8": FP8, "f8": FP8, "e4m3": FP8, "e5m2": FP8, "e4m3fn": FP8,
	"e4m3fnuz": FP8, "mxfp8": MXFP8, "nvfp4": NVFP4, "fp4": NVFP4, "mxfp4": NVFP4,
}

// scalingWords are how numbers of 8 bits are scaled.
var scalingWords = map[string]Precision{
	"delayed": FP8, "ds": FP8, "current": FP8Current, "cs": FP8Current, "tensorwise": FP8Current, "rowwise": FP8Current,
	"axiswise": FP8Current, "dynamic": FP8Current,
	"blockwise": FP8Block, "block": FP8Block, "subchannel": FP8Block, "sc": FP8Block, "tilewise": FP8Block,
	"groupwise": FP8Block, "deepgemm": FP8Block, "128x128": FP8Block, "1x128": FP8Block,
	"mx": MXFP8, "microscaling": MXFP8,
}

// idleWords say nothing that a price depends on.
var idleWords = strings.Fields("te transformer engine torchao xla scaling scaled hybrid pure o1 o2 true training " +
	"recipe per tensor with compute and in of all gather allgather params param weights weight master optimizer states " +
	"activations gradients grads gemm gemms linear layers linears only format forward backward accumulation accumulate " +
	"attention primary")

// ParsePrecision reads a precision as people write it: fp8-current-scaling, amp_bf16, FP16 (AMP), nvfp4. What it does
// not know is an error that lists what it does; of 16 bits and more, words that name no numbers are passed over.
func ParsePrecision(text string) (Precision, error) {
	fields := strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	var base, scaled Precision
	amp, odd := false, false
	for i, w := range fields {
		word := precisionWords[w]
		switch {
		case w == "amp" || w == "mixed" || w == "autocast":
			amp = true
		case word != "" && (base == "" || base == FP32 && word == TF32 || word.Low() && !base.Low() ||
			word.Operand() < base.Operand() && base.Low()):
			base = word
		case word != "" && (base.Low() || word == base || word == FP32): // fp8 beside bf16, bf16 with float32 sums
		case base == FP32 && word.Width() == 2 && word != "": // bf16 with float32 weights
			base = word
		case scalingWords[w] != "":
			scaled = scalingWords[w]
		case i > 0 && slices.Contains(idleWords, w):
		case i > 0 && !strings.ContainsAny(w, "0123456789") && len(w) > 2:
			odd = true
		default:
			return "", unknownPrecision(text)
		}
	}
	switch {
	case odd && (base.Low() || base == ""):
		return "", unknownPrecision(text)
	case scaled != "" && base == FP8:
		return scaled, nil
	case scaled != "" && base != MXFP8 && base != NVFP4, base == "" && !amp:
		return "", unknownPrecision(text)
	case amp && base == BF16:
		return AMP, nil
	case amp && (base == FP16 || base == ""):
		return AMPH, nil
	}
	return base, nil
}

func unknownPrecision(text string) error {
	var list []string
	for _, p := range Precisions() {
		list = append(list, string(p))
	}
	return fmt.Errorf("precision %.40q is unknown; expected one of %s", text, strings.Join(list, ", "))
}
