package workload

import (
	"strings"
	"testing"
)

func TestParsePrecision(t *testing.T) {
	for text, want := range map[string]Precision{
		"bf16": BF16, "bf16-te": BF16, "BFloat16": BF16, "fp16": FP16, "fp16 (amp)": AMPH, "amp": AMPH, "amp_bf16": AMP,
		"bf16-mixed": AMP, "fp32/tf32": TF32, "tf32": TF32, "fp32": FP32,
		"fp8": FP8, "amp_fp8": FP8, "fp8-delayed": FP8, "fp8-te-delayed": FP8, "fp8-current-scaling": FP8Current,
		"fp8-tensorwise": FP8Current, "float8 rowwise": FP8Current,
		"fp8-blockwise": FP8Block, "fp8-subchannel": FP8Block, "mxfp8": MXFP8, "fp8-mx": MXFP8, "nvfp4": NVFP4, "fp4": NVFP4,
	} {
		if got, err := ParsePrecision(text); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, p := range Precisions() {
		if got, err := ParsePrecision(string(p)); got != p || err != nil {
			t.Errorf("%q reads back as %q, %v", p, got, err)
		}
	}
	for _, text := range []string{"", "fp9", "fp8-curious", "delayed", "te", "int8"} {
		if got, err := ParsePrecision(text); err == nil || !strings.Contains(err.Error(), "nvfp4") {
			t.Errorf("%q: %v, %v; want an error that lists what is known", text, got, err)
		}
	}
}

func FuzzParsePrecision(f *testing.F) {
	for _, p := range Precisions() {
		f.Add(string(p))
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrecision(text)
		if err != nil {
			return
		}
		if again, err := ParsePrecision(string(p)); again != p || err != nil {
			t.Errorf("%q is %q, which reads as %q, %v", text, p, again, err)
		}
	})
}

func FuzzParseLoRA(f *testing.F) {
	f.Add("rank=16,targets=attention,bits=4")
	f.Add("8")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLoRA(text)
		if err != nil {
			return
		}
		if again, err := ParseLoRA(l.String()); again != l || err != nil {
			t.Errorf("%q is %v, which reads as %v, %v", text, l, again, err)
		}
	})
}
