package workload

import (
	"fmt"

	"busbar.dev/unit"
)

// Offload is what of a job's state is kept and updated in the host's memory (ZeRO-Offload, Ren
// et al. 2021; parameters too: ZeRO-Infinity, Rajbhandari et al. 2021).
type Offload string

// Offloads.
const (
	OnGPU            Offload = "none"
	OffloadOptimizer Offload = "optimizer"  // its state, and the update
	OffloadParams    Offload = "parameters" // these too; they come when they are computed with
)

// Offloads reports whether the optimizer's state is in the host's memory.
func (j *Job) Offloads() bool { return j.Offload == OffloadOptimizer || j.Offload == OffloadParams }

// Streams reports whether gradients go to the host as they come, after every micro-batch, so
// that the GPU holds only what is under way. DeepSpeed does so where gradients are divided, or
// where there is one replica; else they are gathered on the GPU and go once.
func (j *Job) Streams() bool {
	s := j.Split.filled()
	return j.Offloads() && (s.ZeRO >= 2 || s.DP*s.CP == 1)
}

// Sizes of DeepSpeed.
const (
	// HostState is the bytes of a parameter in the host's memory: a float32 copy, two moments, a
	// gradient.
	HostState = 4 + 4*Adam + 4
	// HostUpdate is the bytes that an update there reads and writes for it: the copy, the moments
	// and the gradient read, all but the gradient written, and a 16-bit parameter.
	HostUpdate = 16 + 12 + 2
	// underWay are gradients on the GPU that wait for their copy: two buckets of
	// reduce_bucket_size, 5e8 elements of 16 bits unless somebody says.
	underWay = 2 * 5e8 * 2
)

// offload moves what the host keeps off the GPU: share is the parameters that a rank has a part of, trained how many of
// them have a state.
func (j *Job) offload(m *Memory, share, trained float64) {
	if !j.Offloads() {
		return
	}
	m.Optimizer = 0
	m.Host = unit.Volume(share * trained * HostState)
	if j.Streams() {
		m.Grads = min(m.Grads, underWay)
	}
	if j.Offload == OffloadParams {
		if j.LoRA.Frozen() {
			m.Host += m.Params
		} else {
			m.Host += unit.Volume(share * j.ParamWidth())
		}
		m.Params = 0
	}
}

// checkOffload reports what DeepSpeed would not do.
func (j *Job) checkOffload() error {
	s := j.Split.filled()
	switch {
	case j.Offload != "" && j.Offload != OnGPU && !j.Offloads():
		return fmt.Errorf("offload %q; expected none, optimizer or parameters", j.Offload)
	case !j.Offloads():
		return nil
	case s.DP*s.CP > 1 && s.ZeRO == 0:
		return fmt.Errorf("offload %s with %d replicas that all keep the whole state; divide it among them with zero=1 or "+
			"more", j.Offload, s.DP*s.CP)
	case j.Offload == OffloadParams && s.ZeRO < 3 && s.DP*s.CP > 1:
		return fmt.Errorf("offload parameters with zero=%d; parameters are divided with zero=3", s.ZeRO)
	case j.Offload == OffloadParams && s.PP > 1:
		return fmt.Errorf("offload parameters with pp=%d; it is for zero=3, which has no pipeline", s.PP)
	case j.Precision.Width() > 2 || j.Precision.Amp():
		return fmt.Errorf("offload with precision %s: the host keeps float32 copies of 16-bit parameters; expected bf16, "+
			"fp16 or fp8", j.Precision)
	}
	return nil
}
