package workload

import "fmt"

// Wire is how gradients travel when they are summed among replicas, by the names of busbar
// step --compress.
type Wire string

// Wires.
const (
	Uncompressed Wire = "none"
	WireFP16     Wire = "fp16"
	WireBF16     Wire = "bf16"
	// WireInt8 is PyTorch's hook for quantized gradients: NCCL cannot sum bytes that have scales of
	// their own, so that every rank gathers those of all others and sums them itself.
	WireInt8 Wire = "int8"
)

// Compresses reports whether gradients are made smaller for the wire.
func (j *Job) Compresses() bool { return j.Compress != "" && j.Compress != Uncompressed }

// WireWidth is the bytes of a gradient on the wire.
func (j *Job) WireWidth() float64 {
	switch j.Compress {
	case WireFP16, WireBF16:
		return 2
	case WireInt8:
		return 1
	}
	return j.GradWidth()
}

// EncodeBytes is what the GPU reads and writes to make a gradient smaller and to bring it back,
// among so many replicas: casts read one width and write the other; quantizing reads once more for
// the scale, and every replica's bytes are widened and added.
func (j *Job) EncodeBytes(replicas int) float64 {
	wide, narrow := j.GradWidth(), j.WireWidth()
	switch j.Compress {
	case WireFP16, WireBF16:
		return 2 * (wide + narrow)
	case WireInt8:
		return 2*wide + narrow + float64(replicas)*(narrow+2*wide)
	}
	return 0
}

// checkCompress reports what no framework does with NCCL.
func (j *Job) checkCompress() error {
	s := j.Split.filled()
	switch {
	case !j.Compresses():
		return nil
	case j.Compress != WireFP16 && j.Compress != WireBF16 && j.Compress != WireInt8:
		return fmt.Errorf("compress %q; expected none, fp16, bf16 or int8", j.Compress)
	case s.DP*s.CP == 1:
		return fmt.Errorf("compress %s: there is one replica, and no gradients travel", j.Compress)
	case j.Compress == WireInt8 && s.ZeRO > 0:
		return fmt.Errorf("compress int8 with zero=%d: NCCL sums no quantized numbers; the hook that gathers them is for "+
			"replicas that hold whole gradients (zero=0)", s.ZeRO)
	case j.WireWidth() >= j.GradWidth():
		return fmt.Errorf("compress %s: gradients of precision %s travel in %g bytes already; it is for fp32, tf32 and amp",
			j.Compress, j.Precision, j.GradWidth())
	}
	return nil
}
